"""What is wrong with an object by its schema."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpugate.policies.sdk.field import Path


@dataclass(frozen=True, slots=True)
class SchemaProblem:
    """One thing that the API server refuses: where, what, and what to do.

    `whole` says that it is about the value as a whole, so that what else is said of a part of it may mean the same.
    """

    path: Path
    message: str
    remedy: str = ""
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Fault:
    """A problem, and what decides whether it counts.

    Attributes:
        problem: what is told.
        owner: the path of the value whose schema is violated; of a missing member its parent's. An UPDATE that leaves
            this value as it was may keep the fault.
        blocking: no rules are judged beside it, as the API server has it for what is missing, unsupported, too long, too
            many or of a wrong type (apiextensions-apiserver v0.36 `pkg/registry/customresource/strategy.go`,
            hasBlockingErr).
        transition: it compares new with old, so that nothing excuses it.
    """

    problem: SchemaProblem
    owner: Path
    blocking: bool = False
    transition: bool = False
