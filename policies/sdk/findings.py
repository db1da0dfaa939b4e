"""The results of a policy: violations, patches and skips."""

from __future__ import annotations

from enum import IntEnum
from typing import Final, Literal

# The audit reads the types of a patch's fields at run time, to read and describe its JSON.
from gpugate.policies.sdk.field import Json, Path  # noqa: TC001
from gpugate.policies.sdk.structs import Struct

ModeName = Literal["off", "audit", "warn", "enforce"]


class Stance(IntEnum):
    """The effect of a finding, from none to denying the request. Modes of the configuration have the same values."""

    OFF = 0
    AUDIT = 1
    WARN = 2
    ENFORCE = 3

    @property
    def word(self) -> ModeName:
        """The name as configuration and reports write it."""
        return _WORDS[self]


_WORDS: Final[tuple[ModeName, ...]] = ("off", "audit", "warn", "enforce")


class Patch(Struct, frozen=True):
    """A change of one field; missing parents are created.

    `path` contains the keys and list indices from the object's root. `set` writes `value` at `path`; `append` adds it at
    the end of the list at `path`; `remove` deletes what is at `path`, which exists. `reason` is a sentence: what the change
    is and why it is needed.
    """

    op: Literal["set", "append", "remove"]
    path: Path
    value: Json
    reason: str


class Patches(Struct, frozen=True):
    """A fix that changes the object; `safe` if it changes neither scheduling nor cost beyond the finding."""

    patches: tuple[Patch, ...]
    safe: bool = False


class Replacement(Struct, frozen=True):
    """A fix that replaces the object by others."""

    objects: tuple[dict[str, Json], ...]
    safe: bool = False


class Other(Struct, frozen=True):
    """Another object that is part of a violation; `namespace` is empty for a cluster-scoped object."""

    kind: str
    namespace: str
    name: str


class Violation(Struct, frozen=True):
    """A violation at `path`: what is wrong, the values compared, and what to do.

    Attributes:
        path: the path of the field in the object.
        message: what is wrong, in one clause.
        at_most: the highest stance of this finding, even if the policy's mode is higher.
        hint: how to fix it, as an imperative.
        fix: the fix as an edit.
        coming: as in `Skip`: the missing object may exist in a moment.
        convention: whether the finding depends on names that a platform chooses, such as its cost labels. Until the
            configuration sets them (`Handler.convention`), it is a note in `check` and at most a warning at admission.
        why: the consequence of this violation, if the policy reports several causes. If empty, it is the first sentence
            under "Why is this bad?" in the policy's documentation.
        same_as: ids of policies. If one of them has a finding at the same path with the same or a higher stance, it
            states the same cause, and this one is not reported.
        others: further objects that are part of the violation. The policy may report the same cause at each of them,
            because admission evaluates one object at a time; check and audit report it once.
        follows: whether check and audit then keep the finding at each of `others`, and not this one.
    """

    path: Path
    message: str
    at_most: Stance = Stance.ENFORCE
    hint: str = ""
    fix: Patches | Replacement | None = None
    coming: bool = False
    convention: bool = False
    why: str = ""
    same_as: tuple[str, ...] = ()
    others: tuple[Other, ...] = ()
    follows: bool = False


class Skip(Struct, frozen=True):
    """The policy was not evaluated, because data was missing; `reason` names the data.

    `coming` says that the data may be available in a moment (`facts.may_come`), so the policy is evaluated again.

    The function that looks the data up returns the skip as a doubt beside its result. The policy yields it only if the
    data could change the finding: a Pod with a GPU keeps it, whatever its claims request.
    """

    reason: str
    coming: bool = False
