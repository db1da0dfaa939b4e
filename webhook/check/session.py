"""Check a set of files: read them all, then evaluate each object with the others as context."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from copy import deepcopy
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Protocol

from msgspec import field

from gpugate.policies.engine.defaults import with_defaults
from gpugate.policies.engine.enforcement import ExemptionUse, exempting, exemption_note
from gpugate.policies.engine.evaluate import Phase, evaluate
from gpugate.policies.engine.ruleset import Needs
from gpugate.policies.sdk.field import Field, as_written, render
from gpugate.policies.sdk.findings import Stance
from gpugate.policies.sdk.objects import GroupVersionKind, is_known
from gpugate.policies.sdk.pod_templates import TEMPLATES
from gpugate.policies.sdk.structs import MutableStruct, Struct, replace
from gpugate.policies.sdk.unknown_kinds import (
    CHART_INSTALLERS,
    WITHOUT_TEMPLATE,
    chart_values,
    find_pod_content,
    training_runtime,
)
from gpugate.webhook.check.ignores import ignores, sift
from gpugate.webhook.check.locate import Locator, located_problem
from gpugate.webhook.check.templates import POLICY as PLACEHOLDERS
from gpugate.webhook.check.templates import Marked, Placeholders, marked
from gpugate.webhook.manifests.documents import Document, read_text
from gpugate.webhook.manifests.expansion import BASES, expanded, names_base, needs_bases, stated, translated
from gpugate.webhook.manifests.load import RunFacts, installer_fact, parts
from gpugate.webhook.manifests.objects import Manifest, NotAManifest
from gpugate.webhook.manifests.placeholders import TOOLS, Form, decoded, found_in, has_signs
from gpugate.webhook.manifests.problems import Problem
from gpugate.webhook.report.located import Located, PassedOver, Severity, Sort
from gpugate.webhook.schemas import tables
from gpugate.webhook.schemas.tables import CORE_KINDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path as FilePath

    from gpugate.policies.engine.ruleset import Ruleset
    from gpugate.policies.engine.verdict import Verdict
    from gpugate.policies.sdk.facts import Facts
    from gpugate.policies.sdk.field import Path
    from gpugate.policies.sdk.objects import Request
    from gpugate.policies.sdk.platform import Target
    from gpugate.webhook.check.ignores import Ignore
    from gpugate.webhook.check.options import Options
    from gpugate.webhook.manifests.expansion import Expanded
    from gpugate.webhook.manifests.inputs import Input
    from gpugate.webhook.report.located import Suppressed
    from gpugate.webhook.schemas.check import Schemas
    from gpugate.webhook.schemas.core import CoreObjects
    from gpugate.webhook.schemas.wording import SchemaProblem


class Refusal(Struct, frozen=True):
    """A finding of a schema, and groups of findings with its cause; it is redundant if all of a group are reported."""

    finding: Located
    said_by: tuple[tuple[Located, ...], ...]


class SchemaFindings:
    """Validates manifests against the schemas of their kinds.

    Args:
        target: the releases assumed.
        folder: contains the schemas that the user added.
    """

    def __init__(self, target: Target, folder: FilePath | None) -> None:
        self._target = target
        self._folder = folder
        self._schemas: Schemas | None = None
        self._core: CoreObjects | None = None
        self._with_table: dict[tuple[str, str], bool] = {}

    def concern(self, kind: GroupVersionKind) -> bool:
        """Tell whether there are schemas of a kind."""
        pair = (kind.group, kind.kind)
        return pair in CORE_KINDS or pair in TEMPLATES or self._has_table(*pair)

    def of(self, source: Marked, beside: Sequence[Denial], locator: Locator) -> Iterator[Refusal]:
        """Yield the schema findings of a manifest, each with the denials in `beside` that have the same cause.

        A denial has the cause of a schema finding at its own field. A CEL rule of an object or a list reads several
        fields: its cause is that of the denials without whose fields it would hold.
        """
        manifest, request = source.manifest, source.manifest.request
        written = as_written(request.object) if request.is_template else request.object
        problems = list(self._problems(request.kind, written))
        reported = {(problem.path, problem.message) for problem in problems}
        tries = _MOST_TRIES
        for problem in problems:
            if source.placeholders and source.concern(problem):
                continue
            finding = locator.schema_problem(manifest, problem)
            if not problem.whole or not isinstance(Field(written)[problem.path].value, dict | list):
                yield Refusal(finding, tuple((d.finding,) for d in beside if d.path == problem.path))
                continue
            length = len(problem.path)
            parts = tuple(d for d in beside if len(d.path) > length and d.path[:length] == problem.path)
            if not parts or len(parts) >= tries:
                yield Refusal(finding, ())
                continue
            tries -= len(parts) + 1
            yield Refusal(finding, self._saying(request.kind, written, problem, parts, reported))

    def _problems(self, kind: GroupVersionKind, obj: object) -> Iterator[SchemaProblem]:
        yield from self._of_definitions(kind, obj)
        yield from self._of_core(kind, obj)

    def _of_definitions(self, kind: GroupVersionKind, obj: object) -> Iterator[SchemaProblem]:
        if not self._has_table(kind.group, kind.kind):
            return
        if self._schemas is None:
            from gpugate.webhook.schemas.check import Schemas  # noqa: PLC0415 -- costs start-up time

            self._schemas = Schemas(self._folder)
        yield from self._schemas.problems(obj, kind.group, kind.version, kind.kind, self._target)

    def _has_table(self, group: str, kind: str) -> bool:
        # Asked for each object, and answered by the file system.
        has = self._with_table.get((group, kind))
        if has is None:
            has = self._with_table[group, kind] = tables.find(group, kind, self._folder) is not None
        return has

    def _of_core(self, kind: GroupVersionKind, obj: object) -> Iterator[SchemaProblem]:
        pair = (kind.group, kind.kind)
        if pair not in CORE_KINDS and pair not in TEMPLATES:
            return
        if self._core is None:
            from gpugate.webhook.schemas.core import CoreObjects  # noqa: PLC0415 -- costs start-up time

            self._core = CoreObjects(self._target)
        yield from self._core.problems(kind, obj if isinstance(obj, dict) else None)

    def _saying(
        self,
        kind: GroupVersionKind,
        written: object,
        rule: SchemaProblem,
        parts: tuple[Denial, ...],
        reported: set[tuple[Path, str]],
    ) -> tuple[tuple[Located, ...], ...]:
        """Return the denials without whose fields a rule would hold, as one group; none if it would not."""

        def holds(without: Iterable[Denial]) -> bool:
            paths = [denial.path for denial in without]
            obj = _without(written, paths, len(rule.path))
            left = {(problem.path, problem.message) for problem in self._problems(kind, obj)}
            # Because of a missing field, rules may not be evaluated at all.
            return (rule.path, rule.message) not in left and left <= reported

        if not holds(parts):
            return ()
        needed = tuple(denial for denial in parts if not holds(other for other in parts if other is not denial))
        return (tuple(denial.finding for denial in needed or parts),)


# An object is evaluated again for each denial within the value of a rule, up to so often.
_MOST_TRIES: Final = 20


class Denial(Struct, frozen=True):
    """A finding for which an object is denied, and the field, in parts."""

    path: Path
    finding: Located


def denials(findings: Iterable[Located], verdict: Verdict) -> tuple[Denial, ...]:
    """Return the findings for which an object is denied, each with its field."""
    paths = {render(finding.path): finding.path for finding in verdict.findings}
    paths |= {render(violation.path): violation.path for violation in verdict.malformed}
    sorts = {Sort.VIOLATION, Sort.MALFORMED}
    return tuple(
        Denial(paths[finding.path], finding)
        for finding in findings
        if finding.severity is Severity.ERROR and finding.sort in sorts
    )


def _without(obj: object, paths: Sequence[Path], below: int) -> object:
    """Return an object without some fields; of one that is missing, without what it is missing in.

    Nothing is left out that is not deeper than `below` parts of a path.
    """
    changed = deepcopy(obj)
    # From the end, so that the indexes of the elements before stay the same.
    for path in sorted(paths, key=lambda path: [(isinstance(part, str), part) for part in path], reverse=True):
        parents: list[tuple[object, str | int]] = []
        value: object = changed
        for part in path:
            present = part in value if isinstance(value, dict) else isinstance(part, int) and part < _length(value)
            if not present:
                break
            parents.append((value, part))
            value = value[part]  # type: ignore[index] # a dict or a list that has it
        if len(parents) > below:
            parent, last = parents[-1]
            del parent[last]  # type: ignore[attr-defined] # a dict or a list, as found above
    return changed


def _length(value: object) -> int:
    return len(value) if isinstance(value, list) else 0


_POD = GroupVersionKind("", "v1", "Pod")


def _unfixable(finding: Located, expansion: Expanded) -> Located:
    """Remove the fix of a finding on an object that a controller merges of two: either may be the one to change."""
    hint = f"make this change in {expansion.base_name}" if finding.patches else finding.hint
    location = replace(finding.location, is_template=True)
    return replace(finding, location=location, hint=hint, patches=(), fix=None)


class Evaluation:
    """Evaluates objects; those that refer to a base in the form that their controllers give them.

    Args:
        ruleset: the rules in force.
        options: how to evaluate.
        facts: the other objects.
    """

    def __init__(self, ruleset: Ruleset, options: Options, facts: Facts) -> None:
        self._ruleset = ruleset
        self._options = options
        self._facts = facts
        self._stated: dict[tuple[GroupVersionKind, str, str], frozenset[tuple[str, Path]]] = {}

    def made_of(self, manifest: Manifest) -> Expanded | None:
        """Return the merge of an object and its base; None if it refers to no known base."""
        return expanded(manifest.request, self._facts) if names_base(manifest.request.kind) else None

    def of(self, manifest: Manifest, expansion: Expanded | None = None) -> Verdict:
        """Evaluate one object as admission would, both halves, and its Pods as if they were created."""
        if expansion is None:
            return self._verdict(manifest.request)
        verdict = self._verdict(expansion.request)
        return translated(verdict, expansion, manifest.request, self._of_base(expansion.base) if expansion.base else ())

    def _of_base(self, base: Request) -> frozenset[tuple[str, Path]]:
        key = (base.kind, base.namespace, base.name)
        if key not in self._stated:
            self._stated[key] = stated(self._verdict(base))
        return self._stated[key]

    def _verdict(self, request: Request) -> Verdict:
        whole, today = with_defaults(request), self._options.today
        ceiling = Stance.ENFORCE
        return evaluate(self._ruleset, whole, self._facts, today=today, phase=Phase.BOTH, template_ceiling=ceiling)


class Results(MutableStruct):
    """The findings in some files, and counts of the evaluated objects.

    `skipped` counts objects by policy and reason, `names` by group, kind, namespace and name. `exemptions` are those of
    the configuration that lowered a finding, by their indexes there. `unknown` counts the objects of kinds that no
    policy knows and that contain Pods or request GPUs, by apiVersion, kind and whether they request GPUs. `applications`
    counts the objects that install Helm charts, by their kind and whether their values request GPUs. `runtimes` counts
    the TrainJobs that request GPUs, by kind, namespace and name of their training runtime. `unmerged` counts the objects
    that are not evaluated because their bases are not known.
    """

    findings: list[Located] = field(default_factory=list)
    suppressed: list[Suppressed] = field(default_factory=list)
    skipped: Counter[tuple[str, str]] = field(default_factory=Counter)
    names: Counter[tuple[str, str, str, str]] = field(default_factory=Counter)
    objects: int = 0
    passed: list[PassedOver] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    exemptions: set[int] = field(default_factory=set)
    unknown: Counter[tuple[str, str, bool]] = field(default_factory=Counter)
    applications: Counter[tuple[str, bool]] = field(default_factory=Counter)
    runtimes: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    unmerged: int = 0

    def add(self, other: Results) -> None:
        """Add the results of other files."""
        self.findings += other.findings
        self.suppressed += other.suppressed
        self.skipped += other.skipped
        self.names.update(other.names)  # keeps those that are known and not counted
        self.objects += other.objects
        self.passed += other.passed
        self.left_out += other.left_out
        self.exemptions |= other.exemptions
        self.unknown += other.unknown
        self.applications += other.applications
        self.runtimes += other.runtimes
        self.unmerged += other.unmerged


class _File(MutableStruct):
    """The parts of a file that are stored until it is evaluated."""

    number: int
    rendered: bool  # or a part of what could not be rendered
    placeholders: Placeholders
    manifests: list[Marked] = field(default_factory=list)
    comments: list[Ignore] = field(default_factory=list)
    unreadable: bool = False


Numbered = tuple[int, "Input"]  # a file and its number in the run
Apart = Mapping[int, "Sequence[Request]"]
TOGETHER: Final[Apart] = MappingProxyType({})


class Session(Protocol):
    """Reads files and then evaluates them; `step` is called for each file, each time."""

    def read(self, files: Sequence[Numbered], step: Callable[[int], None]) -> list[tuple[int, list[Request]]]:
        """Read files; return the facts in each, with its number in the run."""
        ...

    def evaluate(self, facts: Sequence[Request], step: Callable[[int], None], apart: Apart = TOGETHER) -> Results:
        """Evaluate the files with the facts of the whole run; `apart` has other facts for some files, by number."""
        ...


class LocalSession:
    """Reads and evaluates in this process."""

    def __init__(self, ruleset: Ruleset, options: Options) -> None:
        self._ruleset = ruleset
        self._options = options
        self._needs = Needs(ruleset.rules, BASES)
        self._exemptions = ExemptionUse(ruleset, options.today)
        target = ruleset.config.target
        self._schemas = SchemaFindings(target, options.schema_folder) if options.schemas else None
        self._concern: dict[GroupVersionKind, bool] = {}
        self._names_placeholders = any(rule.policy.id == PLACEHOLDERS for rule in ruleset.rules)
        self._files: list[_File] = []
        self._results = Results()

    def read(self, files: Sequence[Numbered], step: Callable[[int], None]) -> list[tuple[int, list[Request]]]:
        """Read files; return the facts in each, with its number in the run."""
        facts_by_file: list[tuple[int, list[Request]]] = []
        for number, file in files:
            is_part = file.rendering is not None or bool(file.unrendered)
            # Terraform fills in the values of its own files, so these placeholders are not reported.
            known = TOOLS["terraform"] if file.language else frozenset()
            stored = _File(number, is_part, Placeholders(self._options.templates, known))
            facts = self._read(stored, parts(file, self._options.namespace))
            if facts:
                facts_by_file.append((number, facts))
            step(1)
        return facts_by_file

    def evaluate(self, facts: Sequence[Request], step: Callable[[int], None], apart: Apart = TOGETHER) -> Results:
        """Evaluate the files with the facts of the whole run; `apart` has other facts for some files, by number."""
        locator = Locator({rule.policy.id: rule.policy for rule in self._ruleset.rules})
        complete = self._options.complete_context
        shared = Evaluation(self._ruleset, self._options, RunFacts(facts, complete=complete))
        for file in self._files:
            own = RunFacts(apart[file.number], complete=complete) if file.number in apart else None
            evaluation = Evaluation(self._ruleset, self._options, own) if own else shared
            self._evaluate(file, evaluation, locator)
            step(1)
        return self._results

    def _read(self, file: _File, documents: Iterable[Document | Manifest | Problem | NotAManifest]) -> list[Request]:
        facts: list[Request] = []
        signs = False
        self._files.append(file)
        for part in documents:
            if isinstance(part, Manifest):
                part = self._in_namespace(part)  # noqa: PLW2901 -- the same object, in the namespace it would be created in
                self._count(part.request, once=file.rendered)
                source = marked(part) if signs else Marked(part)
                if source.placeholders and self._names_placeholders:
                    is_evaluated = self._is_evaluated(part.request.kind)
                    filled = Form.BRACES if part.document.braces else None
                    left = [placeholder for placeholder in source.placeholders if placeholder.form is not filled]
                    file.placeholders.add(part, left, is_evaluated=is_evaluated)
                if self._concerns(part.request.kind):
                    file.manifests.append(source)
                if self._needs.of(part.request.kind) is not None:
                    fact = self._needs.project(with_defaults(source.manifest.request))
                    facts += [fact] if fact else []
                installed = installer_fact(part.request)
                facts += [installed] if installed else []
            elif isinstance(part, Document):
                # The text of a derived document does not have the values.
                signs = part.derived or has_signs(part.text)
                file.comments += ignores(part) if self._options.ignores else ()
            elif isinstance(part, Problem):
                file.unreadable |= not part.warning
                self._results.findings.append(located_problem(part))
            else:
                self._results.passed.append(PassedOver(part.source, part.line, part.passing, detail=part.detail))
                self._results.left_out += [f"{part.source}: {part.detail}"] if part.detail else []
        return facts

    def _in_namespace(self, manifest: Manifest) -> Manifest:
        """Put an object of a kind that the policy file adds into the default namespace, where it names none."""
        request = manifest.request
        if request.namespace or request.kind not in self._ruleset.pod_templates:
            return manifest
        return replace(manifest, request=replace(request, namespace=self._options.namespace))

    def _count(self, request: Request, *, once: bool) -> None:
        self._results.objects += 1
        kind = request.kind
        installer = CHART_INSTALLERS.get((kind.group, kind.kind))
        if installer:
            charts = list(chart_values(kind.group, request.object))
            if charts:
                self._results.applications[installer, any(map(self._request_gpus, charts))] += 1
        else:
            self._count_unknown(request, 1)
        if request.name:
            # Renderings with other values have the same objects, which is nothing to speak of.
            # Two names with one placeholder may become different ones.
            count = 0 if once or found_in(request.name) or found_in(request.namespace) else 1
            self._results.names[request.kind.group, request.kind.kind, request.namespace, request.name] += count

    def _count_unknown(self, request: Request, change: int) -> None:
        """Count an object of a kind that no policy knows, or take it back (-1) once its Pods are evaluated."""
        kind = request.kind
        if is_known(kind.group, kind.kind) or kind in self._ruleset.pod_templates:
            return
        content = find_pod_content(request.object, self._ruleset.config.platform)
        if content:
            self._results.unknown[kind.api_version, kind.kind, content.gpus] += change
        if content.gpus and (kind.group, kind.kind) in WITHOUT_TEMPLATE:
            self._count_runtime(request, change)

    def _count_runtime(self, request: Request, change: int) -> None:
        runtime, name = training_runtime(request.object)
        namespace = "" if runtime.startswith("Cluster") else request.namespace
        self._results.runtimes[runtime, namespace, name] += change if name else 0

    def _request_gpus(self, values: Sequence[Field]) -> bool:
        """Tell whether the values that an object gives a chart request GPUs; values in other files are not read."""
        platform = self._ruleset.config.platform
        read = [
            part.value
            for source in values
            if source.text
            for part in read_text("", source.text)
            if isinstance(part, Document)
        ]
        documents = (*(source.value for source in values), *read)
        return any(find_pod_content({"values": document}, platform).gpus for document in documents)

    def _concerns(self, kind: GroupVersionKind) -> bool:
        """Tell whether a policy or a schema applies to objects of a kind; the others need not be stored."""
        if kind not in self._concern:
            with_schema = self._schemas is not None and self._schemas.concern(kind)
            self._concern[kind] = self._is_evaluated(kind) or with_schema
        return self._concern[kind]

    def _is_evaluated(self, kind: GroupVersionKind) -> bool:
        holds_pods = (kind.group, kind.kind) in TEMPLATES or kind in self._ruleset.pod_templates or names_base(kind)
        kinds = [kind, _POD] if holds_pods else [kind]
        return any(self._ruleset.handlers(k, mutating=mutating) for k in kinds for mutating in (True, False))

    def _with_note(self, manifest: Manifest, finding: Located) -> Located:
        """Note on a field of the wrong type or a schema finding that the configuration exempts it."""
        if finding.sort not in {Sort.MALFORMED, Sort.SCHEMA}:
            return finding
        config, today = self._ruleset.config, self._options.today
        exemption = exempting(finding.sort.value, manifest.request, config, today)
        if exemption is None:
            return finding
        self._results.exemptions.add(self._exemptions.place_of(exemption))
        return replace(finding, severity=Severity.NOTE, stance=Stance.AUDIT, note=exemption_note(exemption))

    def _exempted(self, manifest: Manifest, refused: Iterable[Refusal]) -> Iterator[Refusal]:
        for refusal in refused:
            yield replace(refusal, finding=self._with_note(manifest, refusal.finding))

    def _evaluate(self, file: _File, evaluation: Evaluation, locator: Locator) -> None:
        findings: list[Located] = []
        refused: list[Refusal] = []
        # One finding stands for all placeholders of a file, so that a comment at another one is not of no use.
        template = file.placeholders.finding()
        blind = {PLACEHOLDERS} if template else set()
        findings += [template] if template else []
        for source in file.manifests:
            manifest = source.manifest
            expansion = evaluation.made_of(manifest)
            verdict = evaluation.of(manifest, expansion)
            if expansion is not None:
                self._count_unknown(manifest.request, -1)
                if expansion.is_partial:
                    self._count_runtime(manifest.request, 1)
            self._results.unmerged += expansion is None and needs_bases(manifest.request)
            located = (
                _unfixable(finding, expansion) if expansion else finding
                for finding in locator.findings(manifest, verdict)
            )
            located = (finding for finding in located if not source.repeats(finding))
            own = [self._with_note(manifest, finding) for finding in located]
            findings += own
            if self._schemas and not manifest.document.partial:
                # The schema has the same finding on the type of a field, even if it is exempt or suppressed.
                typed = {finding.path for finding in own if finding.sort is Sort.MALFORMED}
                refusals = self._schemas.of(source, denials(own, verdict), locator)
                refused += self._exempted(
                    manifest, (refusal for refusal in refusals if refusal.finding.path not in typed)
                )
            self._results.exemptions |= self._exemptions.of(verdict)
            for outcome in verdict.outcomes:
                if outcome.skipped:
                    reasons = (str(decoded(reason)) for reason in dict.fromkeys(outcome.skipped))
                    self._results.skipped.update((outcome.policy, reason) for reason in reasons)
                    blind.add(outcome.policy)
        every = [*findings, *(refusal.finding for refusal in refused)]
        suppressed: list[Suppressed] = []
        if file.comments:
            # If an object was not read or evaluated, or has other renderings, a comment may be needed after all.
            in_force = (
                set() if file.unreadable or file.rendered else {rule.policy.id for rule in self._ruleset.rules} - blind
            )
            in_force |= {Sort.SCHEMA.value} if self._schemas and in_force else set()
            every, suppressed = sift(every, file.comments, self._options.known, in_force, self._options.today)
        remaining = set(map(id, every))
        repeated = {
            id(refusal.finding)
            for refusal in refused
            if any(all(id(finding) in remaining for finding in group) for group in refusal.said_by)
        }
        self._results.findings += [finding for finding in every if id(finding) not in repeated]
        self._results.suppressed += [
            suppression for suppression in suppressed if id(suppression.finding) not in repeated
        ]
