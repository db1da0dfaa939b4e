"""Other objects a policy may look at: known, or not available."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.kinds import Kind


@dataclass(frozen=True, slots=True)
class Known:
    """Objects of one kind. When not `complete`, what is here exists, but what is missing may exist elsewhere."""

    items: Sequence[Field]
    complete: bool


@dataclass(frozen=True, slots=True)
class Unavailable:
    """Nothing is known about this kind; `reason` says why."""

    reason: str


Fact: TypeAlias = "Known | Unavailable"


class Facts(Protocol):
    """Where a policy looks other objects up; answers at once, from memory."""

    def list(self, kind: Kind, namespace: str | None = None) -> Fact:
        """Return the objects of a kind, of one namespace where one is given."""
        ...


class NoFacts:
    """Facts when there is neither a cluster nor a set of files to look at."""

    def list(self, kind: Kind, namespace: str | None = None) -> Fact:  # noqa: ARG002 -- the protocol's signature
        """Say that nothing is available."""
        return Unavailable(f"no {kind.plural} to look at")


@dataclass(frozen=True, slots=True)
class Need:
    """A kind whose objects a policy looks up, and the fields it reads of them (dotted, as the caches keep them)."""

    kind: Kind
    fields: tuple[str, ...]
