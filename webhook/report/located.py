"""What a report shows: findings with their place, and what was looked at."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpugate.policies.sdk.findings import Patch, Patches, Replacement, Stance


class Severity(StrEnum):
    """How a finding counts: errors stop the object, warnings do not, notes only tell."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Sort(Enum):
    """What kind of thing was found."""

    VIOLATION = "violation"
    """A policy found something wrong."""
    PATCH = "patch"
    """A policy would change the object."""
    MALFORMED = "malformed"
    """A field has the wrong type, which the API server refuses."""
    UNREADABLE = "unreadable"
    """A file or a document of it cannot be read."""
    AMBIGUOUS = "ambiguous"
    """A document is read in another way than it looks."""
    BROKE = "broke"
    """A policy raised an exception, so that the object is not fully judged."""


@dataclass(frozen=True, slots=True)
class Place:
    """A region on one line of a file, and the lines around it.

    `line`, `column` and `end` (behind the region) count from 1; line 0 stands for the file as a whole. `excerpt` are
    lines of the file from `first_line` on, with the region's among them.
    """

    file: str
    line: int = 0
    column: int = 0
    end: int = 0
    excerpt: tuple[str, ...] = ()
    first_line: int = 0


@dataclass(frozen=True, slots=True)
class ObjectName:
    """Which object; `name` ends in `*` where the API server has yet to make the rest."""

    api_version: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return "/".join(part for part in (self.kind, self.namespace, self.name) if part)


@dataclass(frozen=True, slots=True)
class Located:
    """One finding.

    `policy` is empty when no policy made it. `path` is the field as people write it. `why` is a sentence on what the
    pattern costs, `hint` and `fix` are what to do. `patches` are the changes that a policy makes. `template_of` is the
    kind of the workload when a Pod template in it was judged, because then its Pods bear the consequence.
    """

    sort: Sort
    severity: Severity
    message: str
    place: Place
    policy: str = ""
    object: ObjectName | None = None
    path: str = ""
    stance: Stance | None = None
    why: str = ""
    hint: str = ""
    note: str = ""
    fix: Patches | Replacement | None = None
    patches: tuple[Patch, ...] = ()
    template_of: str = ""


@dataclass(frozen=True, slots=True)
class Skipped:
    """A policy could not look at some objects, because a fact was not available."""

    policy: str
    reason: str
    objects: int


@dataclass(frozen=True, slots=True)
class Report:
    """A run: what was found, in the order of the files, and what was looked at.

    `passed_over` counts documents and directories that are not manifests; `remarks` are sentences about some of them.
    """

    findings: tuple[Located, ...]
    skipped: tuple[Skipped, ...] = ()
    objects: int = 0
    files: int = 0
    policies: int = 0
    passed_over: int = 0
    remarks: tuple[str, ...] = ()
    target: str = ""
    exit_code: int = 0

    def count(self, severity: Severity) -> int:
        """Return how many findings have a severity."""
        return sum(finding.severity is severity for finding in self.findings)
