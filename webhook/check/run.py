"""Judges everything that paths stand for, and adds it up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpugate.policies.sdk.findings import Stance
from gpugate.webhook.check.locate import located_problem
from gpugate.webhook.check.session import LocalSession
from gpugate.webhook.manifests.inputs import Input, Passed
from gpugate.webhook.manifests.problems import Problem
from gpugate.webhook.report.located import Located, Report, Skipped, Sort

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gpugate.policies.engine.ruleset import Ruleset
    from gpugate.policies.sdk.request import Request
    from gpugate.webhook.check.options import Options
    from gpugate.webhook.check.session import Judged, Numbered, Session


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The report on a run, and the facts in each file that has some, by the file's place in the run."""

    report: Report
    facts: Sequence[tuple[int, list[Request]]]

    @property
    def exit_code(self) -> int:
        """0 nothing, 1 at least one denial, 3 nothing to check, 4 something could not be read or judged."""
        return self.report.exit_code


def check(
    found: Sequence[Input | Problem | Passed],
    ruleset: Ruleset,
    options: Options,
    session: Session | None = None,
    step: Callable[[int], None] = lambda _: None,
) -> CheckResult:
    """Judge the objects of some files.

    Args:
        found: what paths were expanded to; the objects in the files are facts for each other.
        ruleset: the rules in force.
        options: how to judge.
        session: what reads and judges; this process where none is given.
        step: told how many files were read, then how many were judged.
    """
    session = session or LocalSession(ruleset, options)
    facts = session.read(numbered(found), step)
    judged = session.judge([fact for _, facts_of_file in facts for fact in facts_of_file], step)
    judged.findings += [located_problem(part) for part in found if isinstance(part, Problem)]
    passed = [part for part in found if isinstance(part, Passed)]
    judged.remarks += [f"{part.name}: {part.reason}" for part in passed]
    judged.remarks += _repeated(judged)
    names = tuple(part.label for part in found if isinstance(part, Input))
    return CheckResult(_report(judged, ruleset, options, names, len(passed)), facts)


def numbered(found: Sequence[Input | Problem | Passed]) -> list[Numbered]:
    """Return the files with their places in the run."""
    return [(number, part) for number, part in enumerate(found) if isinstance(part, Input)]


def _repeated(judged: Judged) -> Iterator[str]:
    """Say that objects occur more than once, as they do in a base and its overlays."""
    repeated = sorted(name for name, count in judged.names.items() if count > 1)
    if repeated:
        _, kind, namespace, name = repeated[0]
        first = "/".join(part for part in (kind, namespace, name) if part)
        others = f" and {len(repeated) - 1:,} more" if len(repeated) > 1 else ""
        yield f"{first}{others} occurs more than once: each was judged by itself"


def _report(judged: Judged, ruleset: Ruleset, options: Options, names: tuple[str, ...], passed: int) -> Report:
    order = {name: index for index, name in enumerate(names)}

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
        exit_code=_exit_code(findings, judged.objects, options.min_stance),
        suppressed=tuple(sorted(judged.suppressed, key=lambda passing: place(passing.finding))),
        names=names,
    )


def _exit_code(findings: Sequence[Located], objects: int, min_stance: Stance) -> int:
    if any(_counts(finding, min_stance) for finding in findings):
        return 1
    if any(finding.sort in {Sort.UNREADABLE, Sort.BROKE} for finding in findings):
        return 4
    return 0 if objects else 3


def _counts(finding: Located, min_stance: Stance) -> bool:
    if finding.sort is Sort.MALFORMED:
        return True
    if finding.sort is Sort.VIOLATION:
        return finding.stance is not None and finding.stance >= min_stance
    return finding.sort in {Sort.PATCH, Sort.AMBIGUOUS, Sort.IGNORE} and min_stance < Stance.ENFORCE
