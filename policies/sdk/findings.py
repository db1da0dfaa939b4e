"""What a policy yields: violations, patches, and that it could not look."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from gpugate.policies.sdk.field import Json, Path


class Stance(IntEnum):
    """What a finding costs, from nothing to the request; a mode of the configuration has the same four values."""

    OFF = 0
    AUDIT = 1
    WARN = 2
    ENFORCE = 3

    @property
    def word(self) -> str:
        """The name as configuration and reports write it."""
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Patch:
    """One change to an object; missing parents are made when it is applied.

    `set` writes `value` at `path`; `append` adds it at the end of the list at `path`; `remove` deletes what is at
    `path`, which exists. `reason` is a sentence for people: what the change is and why it is needed.
    """

    op: Literal["set", "append", "remove"]
    path: Path
    value: Json
    reason: str


@dataclass(frozen=True, slots=True)
class Patches:
    """A fix by changing the object in place; `safe` when it changes neither scheduling nor cost beyond the finding."""

    patches: tuple[Patch, ...]
    safe: bool = False


@dataclass(frozen=True, slots=True)
class Replacement:
    """A fix by writing other objects instead of this one."""

    objects: tuple[dict[str, Json], ...]
    safe: bool = False


@dataclass(frozen=True, slots=True)
class Violation:
    """Something wrong at `path`: what was found, the numbers compared, and what to do instead.

    `at_most` is the highest stance that this finding may reach, whatever the policy's mode. `hint` says in words how
    to mend it, where `fix` cannot do it for the reader. `coming` is that of `Skip`: what is missing may be there in a
    moment. `convention` says that the finding rests on names that a platform chooses, such as its cost labels: until
    the configuration sets them (`Handler.convention`), it is a note in `check` and at most a warning at admission.
    """

    path: Path
    message: str
    at_most: Stance = Stance.ENFORCE
    hint: str = ""
    fix: Patches | Replacement | None = None
    coming: bool = False
    convention: bool = False


@dataclass(frozen=True, slots=True)
class Skip:
    """The policy was not evaluated, because data was missing; `reason` names the data.

    `coming` says that it may be there in a moment (`facts.may_come`), so that another evaluation is worth it.

    What looks the data up makes the skip, as a doubt beside its answer. The policy yields it only where the data could
    change the result: a Pod with a GPU stays one, whatever its claims ask for.
    """

    reason: str
    coming: bool = False
