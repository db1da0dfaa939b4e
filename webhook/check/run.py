"""Judges everything that was loaded, and adds it up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpugate.policies.engine.defaults import with_defaults
from gpugate.policies.engine.evaluate import Phase, evaluate
from gpugate.policies.sdk.findings import Stance
from gpugate.webhook.check.facts import RunFacts
from gpugate.webhook.check.locate import Locator, located_problem
from gpugate.webhook.manifests.inputs import Passed
from gpugate.webhook.report.located import Located, Report, Skipped, Sort

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Sequence

    from gpugate.policies.engine.ruleset import Ruleset
    from gpugate.policies.engine.verdict import Verdict
    from gpugate.webhook.manifests.load import Loaded
    from gpugate.webhook.manifests.objects import Manifest


@dataclass(frozen=True, slots=True)
class CheckResult:
    """Each manifest with its verdict, and the report on all of them."""

    judged: tuple[tuple[Manifest, Verdict], ...]
    report: Report

    @property
    def exit_code(self) -> int:
        """0 nothing, 1 at least one denial, 3 nothing to check, 4 something could not be read or judged."""
        return self.report.exit_code


def check(
    loaded: Loaded,
    ruleset: Ruleset,
    today: dt.date,
    *,
    complete_context: bool = False,
    min_stance: Stance = Stance.ENFORCE,
) -> CheckResult:
    """Judge the objects of some files.

    Args:
        loaded: what the files hold; the objects are facts for each other.
        ruleset: the rules in force.
        today: the day, for exemptions.
        complete_context: the files hold every object of the cluster, so that what is missing in them is missing.
        min_stance: the least that counts for the exit code; below `enforce`, patches count too.
    """
    requests = [with_defaults(manifest.request) for manifest in loaded.manifests]
    facts = RunFacts(requests, complete=complete_context)
    judged = tuple(
        (manifest, evaluate(ruleset, request, facts, today=today, phase=Phase.BOTH, template_ceiling=Stance.ENFORCE))
        for manifest, request in zip(loaded.manifests, requests, strict=True)
    )
    locator = Locator({rule.policy.id: rule.policy for rule in ruleset.rules})
    findings = [located_problem(problem) for problem in loaded.problems]
    for manifest, verdict in judged:
        findings += locator.findings(manifest, verdict)
    findings = _in_order(findings, loaded.files)
    target = ruleset.config.target
    return CheckResult(
        judged,
        Report(
            findings=tuple(findings),
            skipped=_skipped([verdict for _, verdict in judged]),
            objects=len(judged),
            files=len(loaded.files),
            policies=len(ruleset.rules),
            passed_over=len(loaded.passed_over),
            remarks=_remarks(loaded),
            target=f"Kubernetes {target.kubernetes}, Karpenter {target.karpenter}, KEDA {target.keda}",
            exit_code=_exit_code(findings, len(judged), min_stance),
        ),
    )


def _in_order(findings: Sequence[Located], files: Sequence[str]) -> list[Located]:
    """Sort by file, in the order in which they were read, then by line."""
    order = {name: index for index, name in enumerate(files)}
    return sorted(findings, key=lambda f: (order.get(f.place.file, -1), f.place.line, f.place.column))


def _skipped(verdicts: Sequence[Verdict]) -> tuple[Skipped, ...]:
    counts: dict[tuple[str, str], int] = {}
    for verdict in verdicts:
        for outcome in verdict.outcomes:
            for reason in dict.fromkeys(outcome.skipped):
                counts[outcome.policy, reason] = counts.get((outcome.policy, reason), 0) + 1
    return tuple(Skipped(policy, reason, count) for (policy, reason), count in sorted(counts.items()))


def _remarks(loaded: Loaded) -> tuple[str, ...]:
    return tuple(
        f"{part.name if isinstance(part, Passed) else part.source}: {part.reason}"
        for part in loaded.passed_over
        if part.reason
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
    return finding.sort in {Sort.PATCH, Sort.AMBIGUOUS} and min_stance < Stance.ENFORCE
