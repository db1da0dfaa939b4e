"""Findings with their location, and the counts of a check."""

from __future__ import annotations

from enum import Enum, StrEnum
from typing import TYPE_CHECKING

import msgspec

from gpugate.policies.sdk.findings import Patches, Stance
from gpugate.policies.sdk.structs import Struct, replace
from gpugate.policies.sdk.unknown_kinds import HelmApplications
from gpugate.webhook.manifests.documents import SourceText

if TYPE_CHECKING:
    from gpugate.policies.sdk.field import Path
    from gpugate.policies.sdk.findings import Other, Patch, Replacement
    from gpugate.policies.sdk.unknown_kinds import UnknownKind
    from gpugate.webhook.manifests.documents import Document
    from gpugate.webhook.manifests.problems import Passing


class BaselineKey(Struct, frozen=True, order=True):
    """The identity of a finding across runs.

    File and line are not part of it, so that it survives moved lines and files. `path` names list elements by their
    merge key. The version of the kind is omitted, because it changes while the object remains. `policy` is `schema` for
    schema errors, `malformed` for fields of the wrong type.
    """

    policy: str
    group: str
    kind: str
    namespace: str
    name: str
    path: str

    def __str__(self) -> str:
        names = "/".join(part for part in (self.kind, self.namespace, self.name) if part)
        return f"{self.policy} {names} {self.path}".rstrip()


class BaselineUse(Struct, frozen=True):
    """The effect of a baseline.

    Attributes:
        file: its name.
        hidden: the number of findings that it hid.
        stale: entries without a finding, with the number of findings that they would hide.
        unseen: the same for objects that are not in the files; none if only a part of the project was read.
    """

    file: str
    hidden: int = 0
    stale: tuple[tuple[BaselineKey, int], ...] = ()
    unseen: tuple[tuple[BaselineKey, int], ...] = ()


class Severity(StrEnum):
    """How a finding counts: errors block the object, warnings do not, and notes only inform."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Sort(Enum):
    """The kind of a finding."""

    VIOLATION = "violation"
    """A policy found something wrong."""
    PATCH = "patch"
    """A policy would change the object."""
    MALFORMED = "malformed"
    """A field has the wrong type, which the API server refuses."""
    SCHEMA = "schema"
    """The API server refuses the object by the schema of its kind, or loses a field of it."""
    UNREADABLE = "unreadable"
    """A file or a document of it cannot be read."""
    AMBIGUOUS = "ambiguous"
    """A document is read in another way than it looks."""
    IGNORE = "ignore"
    """A suppression comment is invalid, or suppresses no finding."""
    BROKE = "policy-error"
    """A policy raised an exception, so the object is not fully evaluated."""


class Location(Struct, frozen=True):
    """A region on one line of a file, and the lines around it.

    `line`, `column` and `end` (behind the region) count from 1; line 0 stands for the file as a whole. `excerpt` are
    lines of the file from `first_line` on, with the region's among them.

    A rendered object has a line of a file only if that is certain. Otherwise `rendered` is the line in the rendered
    text, which also provides the excerpt, and the region is the beginning of the file. `variants` are the values with
    which the chart was rendered. `is_template` says that the object was rendered from the file, which no edit of the
    object can fix. `unrendered` is the chart or kustomization of the file, if it was not rendered and the file was
    evaluated unchanged; `altered` says that it would change the object.
    """

    file: str
    line: int = 0
    column: int = 0
    end: int = 0
    excerpt: tuple[str, ...] = ()
    first_line: int = 0
    rendered: int = 0
    variants: tuple[str, ...] = ()
    is_template: bool = False
    unrendered: str = ""
    altered: bool = False

    @property
    def where(self) -> str:
        """File, line and column, as compilers write them."""
        if self.rendered:
            return f"{self.file} (rendered:{self.rendered})"
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file


class ObjectName(msgspec.Struct, frozen=True, rename={"api_version": "apiVersion"}):
    """The name of an object; `name` ends in `*` if the API server will generate the rest."""

    api_version: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return "/".join(part for part in (self.kind, self.namespace, self.name) if part)


class Located(Struct, frozen=True):
    """One finding.

    `policy` is empty if no policy reported it. `path` is the field as users write it, and `stable_path` the same with
    list elements named by their merge key, so that it survives a reordered list. `why` is the consequence, `hint` and
    `fix` are what to do. `patches` are the changes of a mutation. `template_of` is the kind of the workload if a Pod
    template in it was evaluated, because the consequence affects its Pods. `convention` says that the finding depends
    on names that the platform has not configured. `related` are findings at other objects with the same cause;
    `others`, `follows` and `owner` identify the cause (`one_cause.Statement`). `of_rendering` says that a chart or
    kustomization was not rendered, which the report counts as such.
    """

    sort: Sort
    severity: Severity
    message: str
    location: Location
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
    stable_path: str = ""
    convention: bool = False
    others: tuple[Other, ...] = ()
    follows: bool = False
    owner: Other | None = None
    related: tuple[Located, ...] = ()
    of_rendering: bool = False

    @property
    def code(self) -> str:
        """Its name in suppressions, baselines and exemptions: its policy, `schema` or `malformed`; else empty."""
        return self.policy or (self.sort.value if self.sort in {Sort.MALFORMED, Sort.SCHEMA} else "")

    @property
    def safely_fixable(self) -> bool:
        """Whether it has a fix that changes neither scheduling nor cost; an exempt finding needs no fix."""
        safe = isinstance(self.fix, Patches) and self.fix.safe
        return not self.exempt and not self.location.is_template and (safe or bool(self.patches))

    @property
    def unsafely_fixable(self) -> bool:
        """Whether it has a fix that needs a review."""
        return not (self.exempt or self.location.is_template or self.fix is None or self.safely_fixable)

    @property
    def exempt(self) -> bool:
        """Whether the configuration exempts the object; only an exemption lowers a finding this far."""
        return bool(self.note) and self.stance is Stance.AUDIT


class Skipped(Struct, frozen=True):
    """A policy that was not evaluated for some objects, because data was missing."""

    policy: str
    reason: str
    objects: int


class PassedOver(Struct, frozen=True):
    """A part of the input that was not checked, with the reason; line 0 stands for the whole file or directory.

    `files` counts the YAML files in a hidden directory; `detail` may add to the reason.
    """

    file: str
    line: int
    reason: Passing
    files: int = 0
    detail: str = ""


class SuppressedBy(StrEnum):
    """The source of a suppression."""

    COMMENT = "comment"
    BASELINE = "baseline"


class Suppressed(Struct, frozen=True):
    """A suppressed finding, the reason, and the source of the suppression: a comment or the baseline."""

    finding: Located
    reason: str
    by: SuppressedBy = SuppressedBy.COMMENT


class NotRendered(Struct, frozen=True):
    """A chart or kustomization that was not rendered, and the number of its files that were evaluated unchanged."""

    name: str
    files: int


class Report(Struct, frozen=True):
    """The report of a run: findings in the order of the files, and the input.

    `passed_over` counts documents and directories that are not manifests; `left_out` are sentences about some of them,
    `remarks` about objects. `hidden` counts the YAML files in hidden directories, which are not read. `passed` lists
    all of these. `unknown_kinds` are kinds that no policy knows and whose objects contain Pods or request GPUs,
    `applications` those of Argo CD that deploy Helm charts. `not_rendered` are charts and kustomizations.

    `suppressed` are the findings that comments and the baseline suppress, `baseline` the effect of the latter,
    `expired` and `unused` exemptions of the policy file, as text. `fixed` is the number of changes to files, `unfixed`
    are the changes that could not be made, with reasons, `names` are the files that were read.
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
    suppressed: tuple[Suppressed, ...] = ()
    fixed: int = 0
    unfixed: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    baseline: BaselineUse | None = None
    expired: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    hidden: int = 0
    unknown_kinds: tuple[UnknownKind, ...] = ()
    passed: tuple[PassedOver, ...] = ()
    not_rendered: tuple[NotRendered, ...] = ()
    applications: HelmApplications = msgspec.field(default_factory=HelmApplications)
    left_out: tuple[str, ...] = ()

    def count(self, severity: Severity) -> int:
        """Return the number of findings with a severity."""
        return sum(finding.severity is severity for finding in self.findings)


class DocumentLocations:
    """The locations in one document, which is composed when the first of them is needed."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self._text = SourceText(document)

    def find(self, path: Path) -> Location:
        """Return the location of a path, or of its nearest existing ancestor."""
        span, around = self._text.find(path)
        location = Location(self.document.source, span.line, span.column, span.end, around.lines, around.first_line)
        return replace(location, is_template=True) if self.document.derived else location
