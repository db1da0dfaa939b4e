"""Judges everything that paths stand for, and adds it up."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from gpugate.policies.engine import exemption_use
from gpugate.policies.sdk.findings import Stance
from gpugate.webhook.check.alternatives import apart
from gpugate.webhook.check.context import context_facts
from gpugate.webhook.check.locate import located_problem
from gpugate.webhook.check.seen import Seen
from gpugate.webhook.check.session import LocalSession
from gpugate.webhook.manifests.inputs import Input, Passed
from gpugate.webhook.manifests.problems import Problem
from gpugate.webhook.report.located import Located, Report, Skipped, Sort

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from gpugate.policies.engine.ruleset import Ruleset
    from gpugate.policies.sdk.request import Request
    from gpugate.webhook.check.options import Options
    from gpugate.webhook.check.rendered import RenderedTexts
    from gpugate.webhook.check.session import Judged, Numbered, Session


# What leaves a run incomplete.
INCOMPLETE: Final = frozenset({Sort.UNREADABLE, Sort.BROKE})


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The report on a run, the facts in each file that has some, by the file's place in the run, and what was looked at."""

    report: Report
    facts: Sequence[tuple[int, list[Request]]]
    seen: Seen

    @property
    def exit_code(self) -> int:
        """0 nothing, 1 at least one denial, 3 nothing to check, 4 something could not be read or judged."""
        return self.report.exit_code


@dataclass(frozen=True, slots=True)
class Beside:
    """What else there is to know about the files of a run.

    Attributes:
        context: objects that are facts and are not judged; one that the files have too is theirs.
        rendered: what some of them were made of.
    """

    context: Sequence[Request] = ()
    rendered: RenderedTexts | None = None


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
    judged.findings += [located_problem(part) for part in found if isinstance(part, Problem)]
    hidden = sum(part.hidden for part in found if isinstance(part, Passed))
    passed = [part for part in found if isinstance(part, Passed) and not part.hidden]
    judged.remarks += [f"{part.name}: {part.reason}" for part in passed]
    judged.remarks += _repeated(judged)
    moved = beside.rendered.place(judged, options) if beside.rendered else {}
    names = tuple(part.label for part in found if isinstance(part, Input))
    report = replace(_report(judged, ruleset, options, names, moved, len(passed)), hidden=hidden)
    looked = {rule.policy.id for rule in ruleset.rules} - {policy for policy, _ in judged.skipped}
    looked |= {Sort.SCHEMA.value} if options.schemas else set()
    complete = not any(finding.sort in INCOMPLETE for finding in report.findings)
    seen = Seen(frozenset(looked if complete else ()), frozenset(judged.names), options.whole)
    # What is looked up is no file's, and is there again when files are mended.
    return CheckResult(_with_exemptions(report, judged, ruleset, options, seen), [*facts, (_BESIDE, context)], seen)


def numbered(found: Sequence[Input | Problem | Passed]) -> list[Numbered]:
    """Return the files with their places in the run."""
    return [(number, part) for number, part in enumerate(found) if isinstance(part, Input)]


def _units(found: Sequence[Input | Problem | Passed]) -> dict[int, str]:
    return {number: part.rendering.unit for number, part in numbered(found) if part.rendering}


def _repeated(judged: Judged) -> Iterator[str]:
    """Say that objects occur more than once, as they do in a base and its overlays."""
    repeated = sorted(name for name, count in judged.names.items() if count > 1)
    if repeated:
        _, kind, namespace, name = repeated[0]
        first = "/".join(part for part in (kind, namespace, name) if part)
        others = f" and {len(repeated) - 1:,} more" if len(repeated) > 1 else ""
        yield f"{first}{others} occurs more than once: each was judged by itself"


def _with_exemptions(report: Report, judged: Judged, ruleset: Ruleset, options: Options, seen: Seen) -> Report:
    """Add which exemptions are over, and which let nothing off though all that they are for was looked at."""
    exemptions, today = ruleset.config.exemptions, options.today
    looked = {rule.policy.id: rule.policy.id in seen.policies for rule in ruleset.rules}
    unused = exemption_use.unused(exemptions, today, judged.exemptions, looked) if options.whole else ()
    return replace(report, expired=tuple(exemption_use.expired(exemptions, today)), unused=tuple(unused))


def _report(
    judged: Judged, ruleset: Ruleset, options: Options, names: tuple[str, ...], moved: Mapping[str, str], passed: int
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
        passed_over=judged.passed_over + passed,
        remarks=tuple(sorted(judged.remarks)),
        target=f"Kubernetes {target.kubernetes}, Karpenter {target.karpenter}, KEDA {target.keda}",
        exit_code=exit_code(findings, judged.objects, options.min_stance),
        suppressed=tuple(sorted(judged.suppressed, key=lambda passing: place(passing.finding))),
        names=tuple(name for name in names if name not in set(moved.values())),
    )


def exit_code(findings: Sequence[Located], objects: int, min_stance: Stance) -> int:
    """Return 0 nothing, 1 at least one denial, 3 nothing to check, 4 something could not be read or judged."""
    if any(_counts(finding, min_stance) for finding in findings):
        return 1
    if any(finding.sort in INCOMPLETE for finding in findings):
        return 4
    return 0 if objects else 3


def _counts(finding: Located, min_stance: Stance) -> bool:
    if finding.sort in {Sort.MALFORMED, Sort.SCHEMA}:
        return True
    if finding.sort is Sort.VIOLATION:
        return finding.stance is not None and finding.stance >= min_stance
    return finding.sort in {Sort.PATCH, Sort.AMBIGUOUS, Sort.IGNORE} and min_stance < Stance.ENFORCE
