"""Check all inputs and aggregate the results.

Two renderings of the same object, or of one release with other values, never exist in one cluster. Neither is cluster data
for the other; otherwise a chart with two values files would appear to contain everything twice.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from gpugate.policies.engine import enforcement
from gpugate.policies.engine.config import WITHOUT_POLICY
from gpugate.policies.engine.defaults import with_defaults
from gpugate.policies.engine.ruleset import Needs
from gpugate.policies.sdk.findings import Stance
from gpugate.policies.sdk.structs import Struct
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
    from gpugate.webhook.check.session import Judged, Numbered, Session
    from gpugate.webhook.report.located import NotRendered

ObjectKey = tuple[str, str, str, str]  # group, kind, namespace, name


class Seen(Struct, frozen=True):
    """What a run looked at.

    Attributes:
        policies: those that looked at everything they judge; `schema` among them where schemas did, and `malformed`.
        objects: those that were read.
        whole: whether all that a project has was read, so that what was not read does not exist.
    """

    policies: Collection[str]
    objects: Collection[ObjectKey]
    whole: bool


_Key = tuple[str, str, str, str]


def apart(
    facts: Sequence[tuple[int, list[Request]]], units: Mapping[int, str]
) -> tuple[list[Request], dict[int, list[Request]]]:
    """Return the facts that all files of a run share, and those of each rendering that has alternatives.

    Args:
        facts: the facts in each file, by the file's place in the run.
        units: for each rendering, by its place in the run, what it is a rendering of.
    """
    if len(units) < 2:
        return [fact for _, held in facts for fact in held], {}
    held = dict(facts)
    keys = {number: {key for fact in held.get(number, ()) if (key := _key(fact))} for number in units}
    others = {number: {o for o in units if o != number and _exclude(o, number, keys, units)} for number in units}
    shown: set[int] = set()
    for number in units:
        # Files beside them see the first of alternatives.
        if not others[number] & shown:
            shown.add(number)
    common = [fact for number, each in facts if number not in units or number in shown for fact in each]
    own = {
        number: [fact for each, there in facts if each not in hidden for fact in there]
        for number, hidden in others.items()
        if hidden
    }
    return common, own


def _exclude(one: int, other: int, keys: Mapping[int, set[_Key]], units: Mapping[int, str]) -> bool:
    return units[one] == units[other] or not keys[one].isdisjoint(keys[other])


def _key(fact: Request) -> _Key | None:
    return (fact.kind.group, fact.kind.kind, fact.namespace, fact.name) if fact.name else None


def context_facts(
    context: Sequence[Request], ruleset: Ruleset, facts: Sequence[tuple[int, list[Request]]]
) -> list[Request]:
    """Return what rules read of some objects; not of those that the files of the run have, which will take their place."""
    if not context:
        return []
    needs = Needs(ruleset.rules, BASES)
    ours = {_object_key(fact) for _, held in facts for fact in held}
    wanted = (request for request in context if needs.of(request.kind) is not None and _object_key(request) not in ours)
    return [fact for request in wanted if (fact := needs.project(with_defaults(request)))]


def _object_key(request: Request) -> tuple[str, str, str, str]:
    return request.kind.group, request.kind.kind, request.namespace, request.name


# What leaves a run incomplete.
INCOMPLETE: Final = frozenset({Sort.UNREADABLE, Sort.BROKE})


class CheckResult(Struct, frozen=True):
    """The report on a run, the facts in each file that has some, by the file's place in the run, and what was looked at."""

    report: Report
    facts: Sequence[tuple[int, list[Request]]]
    seen: Seen

    @property
    def exit_code(self) -> int:
        """The exit code of `exit_code`."""
        return self.report.exit_code


class Beside(Struct, frozen=True):
    """What else there is to know about the files of a run.

    Attributes:
        context: objects that are facts and are not judged; one that the files have too is theirs.
        rendered: what some of them were made of.
        not_rendered: charts and kustomizations that were not rendered.
    """

    context: Sequence[Request] = ()
    rendered: RenderedTexts | None = None
    not_rendered: tuple[NotRendered, ...] = ()


_NOTHING: Final = Beside()
_BESIDE: Final = -1


def check(
    found: Sequence[Input | Problem | Passed],
    ruleset: Ruleset,
    options: Options,
    session: Session | None = None,
    step: Callable[[int], None] = lambda _: None,
    beside: Beside = _NOTHING,
) -> CheckResult:
    """Judge the objects of some files.

    Args:
        found: what paths were expanded to; the objects in the files are facts for each other.
        ruleset: the rules in force.
        options: how to judge.
        session: what reads and judges; this process where none is given.
        step: told how many files were read, then how many were judged.
        beside: what else there is to know.
    """
    session = session or LocalSession(ruleset, options)
    facts = session.read(numbered(found), step)
    shared, alone = apart(facts, _units(found))
    context = context_facts(beside.context, ruleset, facts)
    judged = session.judge(shared + context, step, {number: own + context for number, own in alone.items()})
    judged.findings = _as_they_are(judged.findings, found)
    judged.findings += _problems([part for part in found if isinstance(part, Problem)], judged.findings)
    directories = [part for part in found if isinstance(part, Passed)]
    hidden = sum(part.hidden for part in directories)
    judged.passed += [PassedOver(part.name, 0, part.passing, part.hidden, part.reason) for part in directories]
    judged.left_out += [f"{part.name}: {part.reason}" for part in directories if not part.hidden]
    remarks = (*_repeated(judged), *_train_jobs(judged), *_unmerged(judged))
    moved = beside.rendered.place(judged, options) if beside.rendered else {}
    _report_each_cause_once(judged)
    judged.findings = _fold(judged.findings)
    names = tuple(part.label for part in found if isinstance(part, Input))
    report = replace(
        _report(judged, ruleset, options, names, moved),
        hidden=hidden,
        not_rendered=beside.not_rendered,
        remarks=remarks,
    )
    looked = {rule.policy.id for rule in ruleset.rules} - {policy for policy, _ in judged.skipped}
    looked |= {Sort.SCHEMA.value, Sort.MALFORMED.value} if options.schemas else {Sort.MALFORMED.value}
    complete = not any(finding.sort in INCOMPLETE for finding in report.findings)
    seen = Seen(frozenset(looked if complete else ()), frozenset(judged.names), options.whole)
    # Objects that policies look up belong to no file, so that they are the same after files are fixed.
    return CheckResult(_with_exemptions(report, judged, ruleset, options, seen), [*facts, (_BESIDE, context)], seen)


def _report_each_cause_once(judged: Judged) -> None:
    """Make findings that state the cause of another one further locations of it; what suppresses that suppresses them."""
    # Processes return findings in an order of their own.
    judged.findings.sort(key=_position)
    judged.suppressed.sort(key=lambda each: _position(each.finding))
    every = [*judged.findings, *(each.finding for each in judged.suppressed)]
    leaders = followers([_statement(finding) for finding in every])
    if not leaders:
        return
    kept = len(judged.findings)
    related: dict[int, list[Located]] = {}
    for index, leading in leaders.items():
        shown = [leader for leader in leading if leader < kept]
        if index < kept:
            for leader in shown:
                related.setdefault(leader, []).append(every[index])
            if not shown:
                judged.suppressed.append(replace(judged.suppressed[leading[0] - kept], finding=every[index]))
    judged.findings = [
        replace(finding, related=tuple(related[index])) if index in related else finding
        for index, finding in enumerate(judged.findings)
        if index not in leaders
    ]


def _fold(findings: Iterable[Located]) -> list[Located]:
    """Make findings that have one cause outside of the objects one finding, with the others as further locations."""
    kept: list[Located] = []
    leaders: dict[tuple[str, ...], int] = {}
    related: dict[int, list[Located]] = {}
    for finding in findings:
        cause = _cause(finding)
        if cause and cause in leaders:
            related.setdefault(leaders[cause], []).extend((finding, *finding.related))
            continue
        if cause:
            leaders[cause] = len(kept)
        kept.append(finding)
    for index, further in related.items():
        kept[index] = replace(kept[index], related=(*kept[index].related, *further))
    return kept


def _cause(finding: Located) -> tuple[str, ...]:
    """Name the cause of a finding, where it is outside of the object; empty where it is in the object.

    Names that the platform has not configured are one cause of each policy, and so are templates for one tool. Other
    placeholders are one cause of each file. A patch that many objects get for the same reason is one thing to know.
    """
    if finding.convention and finding.fix is None:
        return (finding.policy,)
    if finding.policy == PLACEHOLDERS and finding.fix is None:
        return (finding.policy, template_for(finding) or finding.place.file)
    if finding.sort is Sort.PATCH and finding.patches:
        return (finding.policy, finding.message)
    return ()


def _position(finding: Located) -> tuple[str, int, int, int]:
    place = finding.place
    return place.file, place.line, place.column, place.rendered


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


def _as_they_are(findings: Iterable[Located], found: Sequence[Input | Problem | Passed]) -> list[Located]:
    """Mark findings in files that are read as they are, because what they are part of was not rendered."""
    files = {part.label: part for part in found if isinstance(part, Input) and part.unrendered}
    return [_as_it_is(each, file) if (file := files.get(each.place.file)) else each for each in findings]


def _as_it_is(finding: Located, file: Input) -> Located:
    place = replace(finding.place, unrendered=file.unrendered, altered=file.altered, is_template=True)
    # What is left out may change what was found.
    certain = not file.altered or finding.sort is Sort.UNREADABLE or finding.severity is Severity.NOTE
    return replace(finding, place=place, severity=finding.severity if certain else Severity.WARNING)


def _problems(problems: Iterable[Problem], findings: Iterable[Located]) -> list[Located]:
    """Show what could not be read or rendered, but nothing that is found in the file itself."""
    unreadable = {each.place.file for each in findings if each.sort is Sort.UNREADABLE}
    return [located_problem(each) for each in problems if not (each.blames and each.blames in unreadable)]


def numbered(found: Sequence[Input | Problem | Passed]) -> list[Numbered]:
    """Return the files with their places in the run."""
    return [(number, part) for number, part in enumerate(found) if isinstance(part, Input)]


def _units(found: Sequence[Input | Problem | Passed]) -> dict[int, str]:
    return {number: part.rendering.unit for number, part in numbered(found) if part.rendering}


def _repeated(judged: Judged) -> Iterator[str]:
    """Say that objects are defined more than once, as they are in a base and its overlays."""
    repeated = sorted(name for name, count in judged.names.items() if count > 1)
    if repeated:
        _, kind, namespace, name = repeated[0]
        first = "/".join(part for part in (kind, namespace, name) if part)
        others = f" and {len(repeated) - 1:,} more" if len(repeated) > 1 else ""
        what = f"{len(repeated):,} objects are" if others else "1 object is"
        yield f"{what} defined more than once, and each definition was evaluated: {first}{others}"


def _with_exemptions(report: Report, judged: Judged, ruleset: Ruleset, options: Options, seen: Seen) -> Report:
    """Add which exemptions are over, and which let nothing off though all that they are for was looked at."""
    exemptions, today = ruleset.config.exemptions, options.today
    looked = {rule.policy.id: rule.policy.id in seen.policies for rule in ruleset.rules}
    looked |= {name: name in seen.policies for name in WITHOUT_POLICY}
    unused = enforcement.unused(exemptions, today, judged.exemptions, looked) if options.whole else ()
    return replace(report, expired=tuple(enforcement.expired(exemptions, today)), unused=tuple(unused))


def _report(
    judged: Judged, ruleset: Ruleset, options: Options, names: tuple[str, ...], moved: Mapping[str, str]
) -> Report:
    order = {name: index for index, name in enumerate(names)}
    order = {**{file: order.get(label, -1) for file, label in moved.items()}, **order}

    def place(finding: Located) -> tuple[int, int, int]:
        return order.get(finding.place.file, -1), finding.place.line, finding.place.column

    findings = tuple(sorted(judged.findings, key=place))
    target = ruleset.config.target
    return Report(
        findings=findings,
        skipped=tuple(Skipped(policy, why, count) for (policy, why), count in sorted(judged.skipped.items())),
        objects=judged.objects,
        files=len(names),
        policies=len(ruleset.rules),
        passed_over=sum(part.reason is not Passing.HIDDEN for part in judged.passed),
        passed=tuple(sorted(judged.passed, key=lambda part: (part.file, part.line))),
        left_out=tuple(sorted(judged.left_out)),
        target=f"Kubernetes {target.kubernetes}, Karpenter {target.karpenter}, KEDA {target.keda}",
        exit_code=exit_code(findings, judged.objects, options.fail_on),
        suppressed=tuple(sorted(judged.suppressed, key=lambda passing: place(passing.finding))),
        names=tuple(name for name in names if name not in set(moved.values())),
        unknown_kinds=_unknown_kinds(judged),
        applications=_applications(judged),
    )


def _applications(judged: Judged) -> HelmApplications:
    kinds = Counter[str]()
    for (kind, _), count in sorted(judged.applications.items()):
        kinds[kind] += count
    gpus = sum(count for (_, requests_gpus), count in judged.applications.items() if requests_gpus)
    return HelmApplications(kinds.total(), gpus, dict(kinds))


_RUNTIMES: Final = 5
_LONGEST_NAME: Final = 253


def _train_jobs(judged: Judged) -> Iterator[str]:
    """Say which TrainJobs request GPUs and are not evaluated, and where their Pod templates are."""
    read = {(kind, namespace, name) for group, kind, namespace, name in judged.names if group == "trainer.kubeflow.org"}
    worst = sorted((+judged.runtimes).items(), key=lambda item: (-item[1], item[0]))
    for (kind, namespace, name), count in worst[:_RUNTIMES]:
        jobs = f"{count:,} TrainJob gets its" if count == 1 else f"{count:,} TrainJobs get their"
        runtime = f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"
        state = "evaluated without them" if (kind, namespace, name) in read else "not among the files"
        yield f"{jobs} Pods from {runtime[:_LONGEST_NAME]}, which is {state}"
    if len(worst) > _RUNTIMES:
        yield f"the TrainJobs of {len(worst) - _RUNTIMES:,} other runtimes are not evaluated"


def _unmerged(judged: Judged) -> Iterator[str]:
    if judged.unmerged:
        services = (
            "1 LLMInferenceService is" if judged.unmerged == 1 else f"{judged.unmerged:,} LLMInferenceServices are"
        )
        yield f"{services} not evaluated: not all of baseRefs are among the files"


def _unknown_kinds(judged: Judged) -> tuple[UnknownKind, ...]:
    kinds = sorted({(api_version, kind) for api_version, kind, _ in +judged.unknown})
    counts = [(*each, judged.unknown[*each, False], judged.unknown[*each, True]) for each in kinds]
    return tuple(UnknownKind(version, kind, other + gpus, gpus) for version, kind, other, gpus in counts)


def exit_code(findings: Sequence[Located], objects: int, fail_on: FailOn) -> int:
    """Return 1 if a finding reaches `fail_on`, 4 if an input could not be read or evaluated, 3 without objects, else 0."""
    if fail_on is not FailOn.NEVER and any(_counts(finding, fail_on) for finding in findings):
        return 1
    if any(finding.sort in INCOMPLETE for finding in findings):
        return 4
    return 0 if objects else 3


def _counts(finding: Located, fail_on: FailOn) -> bool:
    if finding.place.altered:
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
