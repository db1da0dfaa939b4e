"""What a policy yields: violations, patches, and that it could not look."""

from __future__ import annotations

from enum import IntEnum
from typing import Final, Literal

# The audit reads the types of a patch's fields at run time, to read and describe its JSON.
from gpugate.policies.sdk.field import Json, Path  # noqa: TC001
from gpugate.policies.sdk.structs import Struct

ModeName = Literal["off", "audit", "warn", "enforce"]


class Stance(IntEnum):
    """What a finding costs, from nothing to the request; a mode of the configuration has the same four values."""

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
    """A fix by changing the object in place; `safe` when it changes neither scheduling nor cost beyond the finding."""

    patches: tuple[Patch, ...]
    safe: bool = False


class Replacement(Struct, frozen=True):
    """A fix by writing other objects instead of this one."""

    objects: tuple[dict[str, Json], ...]
    safe: bool = False


class Other(Struct, frozen=True):
    """Another object that has a part in a violation; `namespace` is empty for a cluster-scoped one."""

    kind: str
    namespace: str
    name: str


class Violation(Struct, frozen=True):
    """Something wrong at `path`: what was found, the numbers compared, and what to do instead.

    Attributes:
        path: where it is.
        message: what is wrong, in one clause.
        at_most: the highest stance that this finding may reach, whatever the policy's mode.
        hint: an imperative that says how to fix it.
        fix: the fix as an edit.
        coming: that of `Skip`: what is missing may be there in a moment.
        convention: whether the finding rests on names that a platform chooses, such as its cost labels: until the
            configuration sets them (`Handler.convention`), it is a note in `check` and at most a warning at admission.
        why: the consequence of this violation, where the policy reports several causes; empty: the first sentence
            under "Why is this bad?" in the policy's documentation.
        same_as: ids of policies. A finding of one of them at the same path, with the same stance or a higher one,
            states the same cause, and this one is not reported beside it.
        others: further objects that have a part in it. The policy may report the same cause at each of them, because
            admission sees one object at a time; check and audit report it once.
        follows: whether it is then the finding at each of `others` that stays, and not this one.
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

    `coming` says that it may be there in a moment (`facts.may_come`), so that another evaluation is worth it.

    What looks the data up makes the skip, as a doubt beside its answer. The policy yields it only where the data could
    change the result: a Pod with a GPU stays one, whatever its claims ask for.
    """

    reason: str
    coming: bool = False
