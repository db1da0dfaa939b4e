"""Check all inputs and aggregate the results.

Two renderings of the same object, or of one release with other values, never exist in one cluster. Neither is cluster data
for the other; otherwise a chart with two values files would appear to contain everything twice.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from gpugate.policies.engine import enforcement
from gpugate.policies.engine.config import WITHOUT_POLICY
from gpugate.policies.engine.defaults import with_defaults
from gpugate.policies.engine.ruleset import Needs
from gpugate.policies.sdk.findings import Stance
from gpugate.policies.sdk.structs import Struct, replace
from gpugate.policies.sdk.unknown_kinds import HelmApplications, UnknownKind
from gpugate.webhook.check.locate import located_problem
from gpugate.webhook.check.options import FailOn
from gpugate.webhook.check.session import LocalSession
from gpugate.webhook.check.templates import POLICY as PLACEHOLDERS
from gpugate.webhook.check.templates import template_for
from gpugate.webhook.manifests.expansion import BASES
from gpugate.webhook.manifests.inputs import Input, Passed
from gpugate.webhook.manifests.problems import Passing, Problem
from gpugate.webhook.report.located import Located, ObjectName, PassedOver, Report, Severity, Skipped, Sort
from gpugate.webhook.report.one_cause import Statement, followers

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from gpugate.policies.engine.ruleset import Ruleset
    from gpugate.policies.sdk.objects import Request
    from gpugate.webhook.check.options import Options
    from gpugate.webhook.check.rendered import RenderedTexts
    from gpugate.webhook.check.session import Numbered, Results, Session
    from gpugate.webhook.report.located import NotRendered

ObjectKey = tuple[str, str, str, str]  # group, kind, namespace, name


class Coverage(Struct, frozen=True):
    """The policies and objects that a run evaluated.

    Attributes:
        policies: those that evaluated all objects of their kinds; `schema` if schemas did, and `malformed`.
        objects: those that were read.
        whole: whether all files of a project were read, so that other objects do not exist.
    """

    policies: Collection[str]
    objects: Collection[ObjectKey]
    whole: bool


_Key = tuple[str, str, str, str]


def apart(
    facts: Sequence[tuple[int, list[Request]]], units: Mapping[int, str]
) -> tuple[list[Request], dict[int, list[Request]]]:
    """Return the facts that all files of a run share, and those of each rendering with alternatives.

    Args:
        facts: the facts in each file, by the file's number in the run.
        units: the chart or kustomization of each rendering, by its number in the run.
    """
    if len(units) < 2:
        return [fact for _, file_facts in facts for fact in file_facts], {}
    by_number = dict(facts)
    keys = {number: {key for fact in by_number.get(number, ()) if (key := _key(fact))} for number in units}
    others = {number: {o for o in units if o != number and _exclude(o, number, keys, units)} for number in units}
    visible: set[int] = set()
    for number in units:
        # Other files get the facts of the first alternative.
        if not others[number] & visible:
            visible.add(number)
    common = [fact for number, file_facts in facts if number not in units or number in visible for fact in file_facts]
    own = {
        number: [fact for other, file_facts in facts if other not in hidden for fact in file_facts]
        for number, hidden in others.items()
        if hidden
    }
    return common, own


def _exclude(number: int, other: int, keys: Mapping[int, set[_Key]], units: Mapping[int, str]) -> bool:
    return units[number] == units[other] or not keys[number].isdisjoint(keys[other])


def _key(fact: Request) -> _Key | None:
    return (fact.kind.group, fact.kind.kind, fact.namespace, fact.name) if fact.name else None


def context_facts(
    context: Sequence[Request], ruleset: Ruleset, facts: Sequence[tuple[int, list[Request]]]
) -> list[Request]:
    """Return the fields of context objects that policies read; objects of the run replace those with the same name."""
    if not context:
        return []
    needs = Needs(ruleset.rules, BASES)
    ours = {_object_key(fact) for _, file_facts in facts for fact in file_facts}
    wanted = (request for request in context if needs.of(request.kind) is not None and _object_key(request) not in ours)
    return [fact for request in wanted if (fact := needs.project(with_defaults(request)))]


def _object_key(request: Request) -> tuple[str, str, str, str]:
    return request.kind.group, request.kind.kind, request.namespace, request.name


# Findings that make a run incomplete.
INCOMPLETE: Final = frozenset({Sort.UNREADABLE, Sort.BROKE})


class CheckResult(Struct, frozen=True):
    """The report on a run, the facts in each file by its number in the run, and the coverage."""

    report: Report
    facts: Sequence[tuple[int, list[Request]]]
    coverage: Coverage

    @property
    def exit_code(self) -> int:
        """The exit code of `exit_code`."""
        return self.report.exit_code


class Beside(Struct, frozen=True):
    """Additional data for the files of a run.

    Attributes:
        context: objects that are facts and are not evaluated; objects in the files replace those with the same name.
        rendered: the renderings among the files.
        not_rendered: charts and kustomizations that were not rendered.
    """

    context: Sequence[Request] = ()
    rendered: RenderedTexts | None = None
    not_rendered: tuple[NotRendered, ...] = ()


_NOTHING: Final = Beside()
_BESIDE: Final = -1


def check(
    inputs: Sequence[Input | Problem | Passed],
    ruleset: Ruleset,
    options: Options,
    session: Session | None = None,
    step: Callable[[int], None] = lambda _: None,
    beside: Beside = _NOTHING,
) -> CheckResult:
    """Evaluate the objects of some files.

    Args:
        inputs: the files that paths expand to; their objects are facts for each other.
        ruleset: the rules in force.
        options: how to evaluate.
        session: reads and evaluates; in this process by default.
        step: called with the number of files that were read, and again when they were evaluated.
        beside: additional data.
    """
    session = session or LocalSession(ruleset, options)
    facts = session.read(numbered(inputs), step)
    if beside.context:
        # What charts install is among the objects of a cluster.
        facts = [(number, [fact for fact in own if fact.object is not None]) for number, own in facts]
    shared, alone = apart(facts, _units(inputs))
    context = context_facts(beside.context, ruleset, facts)
    results = session.evaluate(shared + context, step, {number: own + context for number, own in alone.items()})
    results.findings = _as_they_are(results.findings, inputs)
    results.findings += _problems([part for part in inputs if isinstance(part, Problem)], results.findings)
    directories = [part for part in inputs if isinstance(part, Passed)]
    hidden = sum(part.hidden for part in directories)
    results.passed += [PassedOver(part.name, 0, part.passing, part.hidden, part.reason) for part in directories]
    results.left_out += [f"{part.name}: {part.reason}" for part in directories if not part.hidden]
    remarks = (*_repeated(results), *_train_jobs(results), *_unmerged(results), *_incomplete(shared, options))
    moved = beside.rendered.relocate(results, options) if beside.rendered else {}
    _report_each_cause_once(results)
    results.findings = _fold(results.findings)
    names = tuple(part.label for part in inputs if isinstance(part, Input))
    report = replace(
        _report(results, ruleset, options, names, moved),
        hidden=hidden,
        not_rendered=beside.not_rendered,
        remarks=remarks,
    )
    evaluated = {rule.policy.id for rule in ruleset.rules} - {policy for policy, _ in results.skipped}
    evaluated |= {Sort.SCHEMA.value, Sort.MALFORMED.value} if options.schemas else {Sort.MALFORMED.value}
    complete = not any(finding.sort in INCOMPLETE for finding in report.findings)
    coverage = Coverage(frozenset(evaluated if complete else ()), frozenset(results.names), options.whole)
    # Objects that policies look up belong to no file, so that they are the same after files are fixed.
    return CheckResult(
        _with_exemptions(report, results, ruleset, options, coverage), [*facts, (_BESIDE, context)], coverage
    )


def _report_each_cause_once(results: Results) -> None:
    """Turn findings with the cause of another one into its further locations, which are suppressed with it."""
    # Processes return findings in an order of their own.
    results.findings.sort(key=_position)
    results.suppressed.sort(key=lambda suppressed: _position(suppressed.finding))
    every = [*results.findings, *(suppressed.finding for suppressed in results.suppressed)]
    leaders = followers([_statement(finding) for finding in every])
    if not leaders:
        return
    count = len(results.findings)
    related: dict[int, list[Located]] = {}
    for index, leading in leaders.items():
        reported = [leader for leader in leading if leader < count]
        if index < count:
            for leader in reported:
                related.setdefault(leader, []).append(every[index])
            if not reported:
                results.suppressed.append(replace(results.suppressed[leading[0] - count], finding=every[index]))
    results.findings = [
        replace(finding, related=tuple(related[index])) if index in related else finding
        for index, finding in enumerate(results.findings)
        if index not in leaders
    ]


def _fold(findings: Iterable[Located]) -> list[Located]:
    """Join findings with one cause outside of the objects into one finding with further locations."""
    folded: list[Located] = []
    leaders: dict[tuple[str, ...], int] = {}
    related: dict[int, list[Located]] = {}
    for finding in findings:
        cause = _cause(finding)
        if cause and cause in leaders:
            related.setdefault(leaders[cause], []).extend((finding, *finding.related))
            continue
        if cause:
            leaders[cause] = len(folded)
        folded.append(finding)
    for index, further in related.items():
        folded[index] = replace(folded[index], related=(*folded[index].related, *further))
    return folded


def _cause(finding: Located) -> tuple[str, ...]:
    """Name the cause of a finding if it is outside of the object; empty if it is in the object.

    Names that the platform has not configured are one cause of each policy, and so are templates for one tool. Other
    placeholders are one cause of each file. Patches of many objects for the same reason are one cause.
    """
    if finding.convention and finding.fix is None:
        return (finding.policy,)
    if finding.policy == PLACEHOLDERS and finding.fix is None:
        return (finding.policy, template_for(finding) or finding.location.file)
    if finding.sort is Sort.PATCH and finding.patches:
        return (finding.policy, finding.message)
    return ()


def _position(finding: Located) -> tuple[str, int, int, int]:
    location = finding.location
    return location.file, location.line, location.column, location.rendered


def _statement(finding: Located) -> Statement:
    name = finding.object or _NO_OBJECT
    return Statement(
        finding.policy or finding.sort.value,
        finding.message,
        Stance.OFF if finding.stance is None else finding.stance,
        name.kind,
        name.namespace,
        name.name,
        finding.others,
        finding.follows,
        finding.owner,
    )


_NO_OBJECT: Final = ObjectName("", "", "", "")


def _as_they_are(findings: Iterable[Located], inputs: Sequence[Input | Problem | Passed]) -> list[Located]:
    """Mark findings in files of charts and kustomizations that were not rendered."""
    files = {part.label: part for part in inputs if isinstance(part, Input) and part.unrendered}
    return [_as_it_is(finding, file) if (file := files.get(finding.location.file)) else finding for finding in findings]


def _as_it_is(finding: Located, file: Input) -> Located:
    location = replace(finding.location, unrendered=file.unrendered, altered=file.altered, is_template=True)
    # The parts that are not evaluated may change the finding.
    certain = not file.altered or finding.sort is Sort.UNREADABLE or finding.severity is Severity.NOTE
    return replace(finding, location=location, severity=finding.severity if certain else Severity.WARNING)


def _problems(problems: Iterable[Problem], findings: Iterable[Located]) -> list[Located]:
    """Return findings on input that could not be read or rendered, except on files with such a finding."""
    unreadable = {finding.location.file for finding in findings if finding.sort is Sort.UNREADABLE}
    return [located_problem(problem) for problem in problems if not (problem.blames and problem.blames in unreadable)]


def numbered(inputs: Sequence[Input | Problem | Passed]) -> list[Numbered]:
    """Return the files with their numbers in the run."""
    return [(number, part) for number, part in enumerate(inputs) if isinstance(part, Input)]


def _units(inputs: Sequence[Input | Problem | Passed]) -> dict[int, str]:
    return {number: part.rendering.unit for number, part in numbered(inputs) if part.rendering}


def _repeated(results: Results) -> Iterator[str]:
    """Remark that objects are defined more than once, as in a base and its overlays."""
    repeated = sorted(name for name, count in results.names.items() if count > 1)
    if repeated:
        _, kind, namespace, name = repeated[0]
        first = "/".join(part for part in (kind, namespace, name) if part)
        others = f" and {len(repeated) - 1:,} more" if len(repeated) > 1 else ""
        subject = f"{len(repeated):,} objects are" if others else "1 object is"
        yield f"{subject} defined more than once, and each definition was evaluated: {first}{others}"


def _with_exemptions(
    report: Report, results: Results, ruleset: Ruleset, options: Options, coverage: Coverage
) -> Report:
    """Add the expired exemptions, and those without a finding although all their objects were evaluated."""
    exemptions, today = ruleset.config.exemptions, options.today
    evaluated = {rule.policy.id: rule.policy.id in coverage.policies for rule in ruleset.rules}
    evaluated |= {name: name in coverage.policies for name in WITHOUT_POLICY}
    unused = enforcement.unused(exemptions, today, results.exemptions, evaluated) if options.whole else ()
    return replace(report, expired=tuple(enforcement.expired(exemptions, today)), unused=tuple(unused))


def _report(
    results: Results, ruleset: Ruleset, options: Options, names: tuple[str, ...], moved: Mapping[str, str]
) -> Report:
    order = {name: index for index, name in enumerate(names)}
    order = {**{file: order.get(label, -1) for file, label in moved.items()}, **order}

    def position(finding: Located) -> tuple[int, int, int]:
        return order.get(finding.location.file, -1), finding.location.line, finding.location.column

    findings = tuple(sorted(results.findings, key=position))
    target = ruleset.config.target
    return Report(
        findings=findings,
        skipped=tuple(Skipped(policy, why, count) for (policy, why), count in sorted(results.skipped.items())),
        objects=results.objects,
        files=len(names),
        policies=len(ruleset.rules),
        passed_over=sum(part.reason is not Passing.HIDDEN for part in results.passed),
        passed=tuple(sorted(results.passed, key=lambda part: (part.file, part.line))),
        left_out=tuple(sorted(results.left_out)),
        target=f"Kubernetes {target.kubernetes}, Karpenter {target.karpenter}, KEDA {target.keda}",
        exit_code=exit_code(findings, results.objects, options.fail_on),
        suppressed=tuple(sorted(results.suppressed, key=lambda passing: position(passing.finding))),
        names=tuple(name for name in names if name not in set(moved.values())),
        unknown_kinds=_unknown_kinds(results),
        applications=_applications(results),
    )


def _applications(results: Results) -> HelmApplications:
    kinds = Counter[str]()
    for (kind, _), count in sorted(results.applications.items()):
        kinds[kind] += count
    gpus = sum(count for (_, requests_gpus), count in results.applications.items() if requests_gpus)
    return HelmApplications(kinds.total(), gpus, dict(kinds))


def _incomplete(facts: Sequence[Request], options: Options) -> Iterator[str]:
    """Remark that the files are not all objects of the cluster, although the user says so."""
    if options.complete_context and any(fact.object is None for fact in facts):
        yield (
            "--complete-context has no effect: the files install Helm charts, which may contain other objects; "
            "add all objects of the cluster with --context-from"
        )


_RUNTIMES: Final = 5
_LONGEST_NAME: Final = 253


def _train_jobs(results: Results) -> Iterator[str]:
    """Remark which TrainJobs request GPUs and are not evaluated with their runtimes, and where their Pod templates are."""
    read = {
        (kind, namespace, name) for group, kind, namespace, name in results.names if group == "trainer.kubeflow.org"
    }
    worst = sorted((+results.runtimes).items(), key=lambda item: (-item[1], item[0]))
    for (kind, namespace, name), count in worst[:_RUNTIMES]:
        own = "its" if count == 1 else "their"
        jobs = f"{count:,} TrainJob gets {own}" if count == 1 else f"{count:,} TrainJobs get {own}"
        runtime = f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"
        state = (
            "evaluated without them"
            if (kind, namespace, name) in read
            else f"not among the files; only {own} own resources were evaluated"
        )
        yield f"{jobs} Pods from {runtime[:_LONGEST_NAME]}, which is {state}"
    if len(worst) > _RUNTIMES:
        yield f"the TrainJobs of {len(worst) - _RUNTIMES:,} other runtimes are not evaluated"


def _unmerged(results: Results) -> Iterator[str]:
    if results.unmerged:
        services = (
            "1 LLMInferenceService is" if results.unmerged == 1 else f"{results.unmerged:,} LLMInferenceServices are"
        )
        yield f"{services} not evaluated: not all of baseRefs are among the files"


def _unknown_kinds(results: Results) -> tuple[UnknownKind, ...]:
    kinds = sorted({(api_version, kind) for api_version, kind, _ in +results.unknown})
    counts = [(*kind, results.unknown[*kind, False], results.unknown[*kind, True]) for kind in kinds]
    return tuple(UnknownKind(version, kind, other + gpus, gpus) for version, kind, other, gpus in counts)


def exit_code(findings: Sequence[Located], objects: int, fail_on: FailOn) -> int:
    """Return 1 if a finding reaches `fail_on`, 4 if an input could not be read or evaluated, 3 without objects, else 0."""
    if fail_on is not FailOn.NEVER and any(_counts(finding, fail_on) for finding in findings):
        return 1
    if any(finding.sort in INCOMPLETE for finding in findings):
        return 4
    return 0 if objects else 3


def _counts(finding: Located, fail_on: FailOn) -> bool:
    if finding.location.altered:
        return fail_on is FailOn.WARN and finding.severity is not Severity.NOTE
    if finding.sort in {Sort.MALFORMED, Sort.SCHEMA}:
        return not finding.exempt
    if finding.convention:
        return False
    if finding.sort is Sort.VIOLATION:
        # A finding without a mode, such as a placeholder in a template, has no effect on admission.
        lowest = Stance.WARN if fail_on is FailOn.WARN else Stance.ENFORCE
        return finding.stance is not None and finding.stance >= lowest
    if finding.sort is Sort.PATCH:
        return fail_on is not FailOn.DENY
    return finding.sort in {Sort.AMBIGUOUS, Sort.IGNORE} and fail_on is FailOn.WARN
