"""Check a set of files: read them all, then evaluate each object with the others as context."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
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
from gpugate.policies.sdk.structs import MutableStruct, Struct
from gpugate.policies.sdk.unknown_kinds import CHART_INSTALLERS, WITHOUT_TEMPLATE, chart_values, held, training_runtime
from gpugate.webhook.check.ignores import ignores, sift
from gpugate.webhook.check.locate import Locator, located_problem
from gpugate.webhook.check.templates import POLICY as PLACEHOLDERS
from gpugate.webhook.check.templates import Marked, Placeholders, marked
from gpugate.webhook.manifests.documents import Document, read_text
from gpugate.webhook.manifests.expansion import BASES, expanded, names_base, needs_bases, stated, translated
from gpugate.webhook.manifests.load import RunFacts, parts
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
    """Something that is refused, and groups of findings that say the same; it need not be told where all of one are."""

    finding: Located
    said_by: tuple[tuple[Located, ...], ...]


class SchemaFindings:
    """Holds manifests against the schemas of their kinds.

    Args:
        target: the releases assumed.
        folder: holds the schemas that the user added.
    """

    def __init__(self, target: Target, folder: FilePath | None) -> None:
        self._target = target
        self._folder = folder
        self._schemas: Schemas | None = None
        self._core: CoreObjects | None = None

    def concern(self, kind: GroupVersionKind) -> bool:
        """Tell whether there are schemas of a kind."""
        pair = (kind.group, kind.kind)
        return pair in CORE_KINDS or pair in TEMPLATES or tables.find(*pair, self._folder) is not None

    def of(self, made: Marked, beside: Sequence[Denial], locator: Locator) -> Iterator[Refusal]:
        """Yield what is refused of a manifest, with those denials `beside` it that say the same.

        A denial says the same as what the schema says of its own field. A rule of an object or a list is about several
        fields: it is said by the denials without whose fields it would hold.
        """
        manifest, request = made.manifest, made.manifest.request
        written = as_written(request.object) if request.is_template else request.object
        problems = list(self._problems(request.kind, written))
        said = {(problem.path, problem.message) for problem in problems}
        tries = _MOST_TRIES
        for problem in problems:
            if made.placeholders and made.concern(problem):
                continue
            found = locator.schema_problem(manifest, problem)
            if not problem.whole or not isinstance(Field(written)[problem.path].value, dict | list):
                yield Refusal(found, tuple((d.finding,) for d in beside if d.path == problem.path))
                continue
            length = len(problem.path)
            parts = tuple(d for d in beside if len(d.path) > length and d.path[:length] == problem.path)
            if not parts or len(parts) >= tries:
                yield Refusal(found, ())
                continue
            tries -= len(parts) + 1
            yield Refusal(found, self._saying(request.kind, written, problem, parts, said))

    def _problems(self, kind: GroupVersionKind, obj: object) -> Iterator[SchemaProblem]:
        yield from self._of_definitions(kind, obj)
        yield from self._of_core(kind, obj)

    def _of_definitions(self, kind: GroupVersionKind, obj: object) -> Iterator[SchemaProblem]:
        if tables.find(kind.group, kind.kind, self._folder) is None:
            return
        if self._schemas is None:
            from gpugate.webhook.schemas.check import Schemas  # noqa: PLC0415 -- costs start-up time

            self._schemas = Schemas(self._folder)
        yield from self._schemas.problems(obj, kind.group, kind.version, kind.kind, self._target)

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
        said: set[tuple[Path, str]],
    ) -> tuple[tuple[Located, ...], ...]:
        """Return the denials without whose fields a rule would hold, as one group; none where it would not."""

        def holds(without: Iterable[Denial]) -> bool:
            paths = [each.path for each in without]
            obj = _without(written, paths, len(rule.path))
            left = {(problem.path, problem.message) for problem in self._problems(kind, obj)}
            # What is missing now may keep rules from being evaluated at all.
            return (rule.path, rule.message) not in left and left <= said

        if not holds(parts):
            return ()
        needed = tuple(each for each in parts if not holds(other for other in parts if other is not each))
        return (tuple(each.finding for each in needed or parts),)


# An object is evaluated again for each denial within the value of a rule, up to so often.
_MOST_TRIES: Final = 20


class Denial(Struct, frozen=True):
    """A finding for which an object is denied, and the field, in parts."""

    path: Path
    finding: Located


def denials(found: Iterable[Located], verdict: Verdict) -> tuple[Denial, ...]:
    """Return those findings of a verdict, each with its field, for which an object is denied."""
    paths = {render(each.path): each.path for each in verdict.findings}
    paths |= {render(each.path): each.path for each in verdict.malformed}
    sorts = {Sort.VIOLATION, Sort.MALFORMED}
    return tuple(
        Denial(paths[each.path], each) for each in found if each.severity is Severity.ERROR and each.sort in sorts
    )


def _without(obj: object, paths: Sequence[Path], below: int) -> object:
    """Return an object without some fields; of one that is missing, without what it is missing in.

    Nothing is left out that is not deeper than `below` parts of a path.
    """
    changed = deepcopy(obj)
    # From the end, so that the places of elements before stay the same.
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


def _unfixable(finding: Located, made: Expanded) -> Located:
    """Mark a finding on what a controller makes of two objects, of which either may be the one to change."""
    hint = f"make this change in {made.base_name}" if finding.patches else finding.hint
    place = replace(finding.place, is_template=True)
    return replace(finding, place=place, hint=hint, patches=(), fix=None)


class Evaluation:
    """Evaluates objects, those that name a base as their controllers make them.

    Args:
        ruleset: the rules in force.
        options: how to evaluate.
        facts: what is known of other objects.
    """

    def __init__(self, ruleset: Ruleset, options: Options, facts: Facts) -> None:
        self._ruleset = ruleset
        self._options = options
        self._facts = facts
        self._stated: dict[tuple[GroupVersionKind, str, str], frozenset[tuple[str, Path]]] = {}

    def made_of(self, manifest: Manifest) -> Expanded | None:
        """Return what is made of an object and its base; None where it names none that is known."""
        return expanded(manifest.request, self._facts) if names_base(manifest.request.kind) else None

    def of(self, manifest: Manifest, made: Expanded | None = None) -> Verdict:
        """Evaluate one object as admission would, both halves, and its Pods as if they were created."""
        if made is None:
            return self._verdict(manifest.request)
        verdict = self._verdict(made.request)
        return translated(verdict, made, manifest.request, self._of_base(made.base) if made.base else ())

    def _of_base(self, base: Request) -> frozenset[tuple[str, Path]]:
        key = (base.kind, base.namespace, base.name)
        if key not in self._stated:
            self._stated[key] = stated(self._verdict(base))
        return self._stated[key]

    def _verdict(self, request: Request) -> Verdict:
        whole, today = with_defaults(request), self._options.today
        ceiling = Stance.ENFORCE
        return evaluate(self._ruleset, whole, self._facts, today=today, phase=Phase.BOTH, template_ceiling=ceiling)


class Judged(MutableStruct):
    """What was found in some files, and what was looked at.

    `skipped` counts objects by policy and reason, `names` by group, kind, namespace and name. `exemptions` are those of
    the configuration that lowered a finding, by their places there. `unknown` counts the objects of kinds that no policy
    knows and that hold Pods or request GPUs, by apiVersion, kind and whether they request GPUs. `applications`
    counts the objects that install Helm charts, by what they are and whether their values request GPUs. `runtimes` counts the TrainJobs that
    request GPUs, by kind, namespace and name of their training runtime. `unmerged` counts the objects that are not evaluated
    because their bases are not known.
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

    def add(self, other: Judged) -> None:
        """Take in what was found in other files."""
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
    """What is kept of a file until it is judged."""

    number: int
    rendered: bool  # or a part of what could not be rendered
    placeholders: Placeholders
    manifests: list[Marked] = field(default_factory=list)
    comments: list[Ignore] = field(default_factory=list)
    unreadable: bool = False


Numbered = tuple[int, "Input"]  # a file and its place in the run
Apart = Mapping[int, "Sequence[Request]"]
TOGETHER: Final[Apart] = MappingProxyType({})


class Session(Protocol):
    """Something that reads files and then judges them; `step` is called for each file, each time."""

    def read(self, files: Sequence[Numbered], step: Callable[[int], None]) -> list[tuple[int, list[Request]]]:
        """Read files; return the facts in each, with its place in the run."""
        ...

    def judge(self, facts: Sequence[Request], step: Callable[[int], None], apart: Apart = TOGETHER) -> Judged:
        """Judge what was read, with the facts of the whole run; `apart` has other ones for some files, by their places."""
        ...


class LocalSession:
    """Reads and judges in this process."""

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
        self._judged = Judged()

    def read(self, files: Sequence[Numbered], step: Callable[[int], None]) -> list[tuple[int, list[Request]]]:
        """Read files; return the facts in each, with its place in the run."""
        found: list[tuple[int, list[Request]]] = []
        for number, file in files:
            is_part = file.rendering is not None or bool(file.unrendered)
            # That Terraform fills in the values of its own files is nothing to report.
            known = TOOLS["terraform"] if file.language else frozenset()
            kept = _File(number, is_part, Placeholders(self._options.templates, known))
            facts = self._read(kept, parts(file, self._options.namespace))
            if facts:
                found.append((number, facts))
            step(1)
        return found

    def judge(self, facts: Sequence[Request], step: Callable[[int], None], apart: Apart = TOGETHER) -> Judged:
        """Judge what was read, with the facts of the whole run; `apart` has other ones for some files, by their places."""
        locator = Locator({rule.policy.id: rule.policy for rule in self._ruleset.rules})
        complete = self._options.complete_context
        shared = Evaluation(self._ruleset, self._options, RunFacts(facts, complete=complete))
        for file in self._files:
            own = RunFacts(apart[file.number], complete=complete) if file.number in apart else None
            evaluation = Evaluation(self._ruleset, self._options, own) if own else shared
            self._judge(file, evaluation, locator)
            step(1)
        return self._judged

    def _read(self, file: _File, found: Iterable[Document | Manifest | Problem | NotAManifest]) -> list[Request]:
        facts: list[Request] = []
        signs = False
        self._files.append(file)
        for part in found:
            if isinstance(part, Manifest):
                part = self._in_namespace(part)  # noqa: PLW2901 -- the same object, in the namespace it would be created in
                self._count(part.request, once=file.rendered)
                made = marked(part) if signs else Marked(part)
                if made.placeholders and self._names_placeholders:
                    is_evaluated = self._is_evaluated(part.request.kind)
                    filled = Form.BRACES if part.document.braces else None
                    left = [each for each in made.placeholders if each.form is not filled]
                    file.placeholders.add(part, left, is_evaluated=is_evaluated)
                if self._concerns(part.request.kind):
                    file.manifests.append(made)
                if self._needs.of(part.request.kind) is not None:
                    fact = self._needs.project(with_defaults(made.manifest.request))
                    facts += [fact] if fact else []
            elif isinstance(part, Document):
                # The text of what is read otherwise does not have the values.
                signs = part.derived or has_signs(part.text)
                file.comments += ignores(part) if self._options.ignores else ()
            elif isinstance(part, Problem):
                file.unreadable |= not part.warning
                self._judged.findings.append(located_problem(part))
            else:
                self._judged.passed.append(PassedOver(part.source, part.line, part.passing, detail=part.detail))
                self._judged.left_out += [f"{part.source}: {part.detail}"] if part.detail else []
        return facts

    def _in_namespace(self, manifest: Manifest) -> Manifest:
        """Put an object of a kind that the policy file adds into the default namespace, where it names none."""
        request = manifest.request
        if request.namespace or request.kind not in self._ruleset.pod_templates:
            return manifest
        return replace(manifest, request=replace(request, namespace=self._options.namespace))

    def _count(self, request: Request, *, once: bool) -> None:
        self._judged.objects += 1
        kind = request.kind
        installer = CHART_INSTALLERS.get((kind.group, kind.kind))
        if installer:
            charts = list(chart_values(kind.group, request.object))
            if charts:
                self._judged.applications[installer, any(map(self._request_gpus, charts))] += 1
        else:
            self._count_unknown(request, 1)
        if request.name:
            # Renderings with other values have the same objects, which is nothing to speak of.
            # Two names with one placeholder may become different ones.
            count = 0 if once or found_in(request.name) or found_in(request.namespace) else 1
            self._judged.names[request.kind.group, request.kind.kind, request.namespace, request.name] += count

    def _count_unknown(self, request: Request, change: int) -> None:
        """Count an object of a kind that no policy knows, or take it back (-1) once its Pods are evaluated."""
        kind = request.kind
        if is_known(kind.group, kind.kind) or kind in self._ruleset.pod_templates:
            return
        found = held(request.object, self._ruleset.config.platform)
        if found:
            self._judged.unknown[kind.api_version, kind.kind, found.gpus] += change
        if found.gpus and (kind.group, kind.kind) in WITHOUT_TEMPLATE:
            runtime, name = training_runtime(request.object)
            namespace = "" if runtime.startswith("Cluster") else request.namespace
            self._judged.runtimes[runtime, namespace, name] += change if name else 0

    def _request_gpus(self, values: Sequence[Field]) -> bool:
        """Tell whether the values that an object gives a chart request GPUs; values in other files are not read."""
        platform = self._ruleset.config.platform
        read = [
            part.value
            for each in values
            if each.text
            for part in read_text("", each.text)
            if isinstance(part, Document)
        ]
        return any(held({"values": each}, platform).gpus for each in (*(each.value for each in values), *read))

    def _concerns(self, kind: GroupVersionKind) -> bool:
        """Tell whether any rule judges objects of a type, or a schema is known, so that the others need not be kept."""
        if kind not in self._concern:
            with_schema = self._schemas is not None and self._schemas.concern(kind)
            self._concern[kind] = self._is_evaluated(kind) or with_schema
        return self._concern[kind]

    def _is_evaluated(self, kind: GroupVersionKind) -> bool:
        holds_pods = (kind.group, kind.kind) in TEMPLATES or kind in self._ruleset.pod_templates or names_base(kind)
        kinds = [kind, _POD] if holds_pods else [kind]
        return any(self._ruleset.handlers(k, mutating=mutating) for k in kinds for mutating in (True, False))

    def _with_note(self, manifest: Manifest, finding: Located) -> Located:
        """Say of a field of the wrong type, or of what a schema refuses, that the configuration exempts it."""
        if finding.sort not in {Sort.MALFORMED, Sort.SCHEMA}:
            return finding
        config, today = self._ruleset.config, self._options.today
        exemption = exempting(finding.sort.value, manifest.request, config, today)
        if exemption is None:
            return finding
        self._judged.exemptions.add(self._exemptions.place_of(exemption))
        return replace(finding, severity=Severity.NOTE, stance=Stance.AUDIT, note=exemption_note(exemption))

    def _exempted(self, manifest: Manifest, refused: Iterable[Refusal]) -> Iterator[Refusal]:
        for each in refused:
            yield replace(each, finding=self._with_note(manifest, each.finding))

    def _judge(self, file: _File, evaluation: Evaluation, locator: Locator) -> None:
        found: list[Located] = []
        refused: list[Refusal] = []
        # One finding stands for all placeholders of a file, so that a comment at another one is not of no use.
        template = file.placeholders.finding()
        blind = {PLACEHOLDERS} if template else set()
        found += [template] if template else []
        for made in file.manifests:
            manifest = made.manifest
            whole = evaluation.made_of(manifest)
            verdict = evaluation.of(manifest, whole)
            if whole is not None:
                self._count_unknown(manifest.request, -1)
            self._judged.unmerged += whole is None and needs_bases(manifest.request)
            located = (_unfixable(each, whole) if whole else each for each in locator.findings(manifest, verdict))
            located = (each for each in located if not made.repeats(each))
            own = [self._with_note(manifest, each) for each in located]
            found += own
            if self._schemas and not manifest.document.partial:
                # Of the type of a field the schema says the same, also where that is exempt or suppressed.
                typed = {each.path for each in own if each.sort is Sort.MALFORMED}
                said = self._schemas.of(made, denials(own, verdict), locator)
                refused += self._exempted(manifest, (each for each in said if each.finding.path not in typed))
            self._judged.exemptions |= self._exemptions.of(verdict)
            for outcome in verdict.outcomes:
                reasons = (str(decoded(reason)) for reason in dict.fromkeys(outcome.skipped))
                self._judged.skipped.update((outcome.policy, reason) for reason in reasons)
                if outcome.skipped:
                    blind.add(outcome.policy)
        every = [*found, *(each.finding for each in refused)]
        suppressed: list[Suppressed] = []
        if file.comments:
            # Of what could not be read or judged, or is rendered otherwise too, nobody can say that a comment is of no use.
            in_force = (
                set() if file.unreadable or file.rendered else {rule.policy.id for rule in self._ruleset.rules} - blind
            )
            in_force |= {Sort.SCHEMA.value} if self._schemas and in_force else set()
            every, suppressed = sift(every, file.comments, self._options.known, in_force, self._options.today)
        kept = set(map(id, every))
        told = {
            id(each.finding)
            for each in refused
            if any(all(id(finding) in kept for finding in group) for group in each.said_by)
        }
        self._judged.findings += [finding for finding in every if id(finding) not in told]
        self._judged.suppressed += [each for each in suppressed if id(each.finding) not in told]
