"""Findings about GPUs that did not work: the policy `monitoring/idle-gpu`, evaluated with the measured use of each Pod.

The use of GPUs is known only after all objects were evaluated, so this policy is evaluated for itself.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec.structs import replace

from gpugate.policies.engine import enforcement
from gpugate.policies.engine.ruleset import bind
from gpugate.policies.monitoring.idle_gpu import GPU_USE
from gpugate.policies.sdk.facts import NoFacts
from gpugate.policies.sdk.formats import matches
from gpugate.policies.sdk.objects import GroupVersionKind
from gpugate.webhook.audit.model import Audited, Summary, Use
from gpugate.webhook.audit.verdicts import Judging, creation
from gpugate.webhook.report.located import ObjectName

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterable, Iterator

    from gpugate.policies.engine.config import Exemption
    from gpugate.policies.engine.ruleset import Ruleset
    from gpugate.webhook.audit.cost.gpu_use import PodUse
    from gpugate.webhook.audit.model import AuditReport, Finding

_ID: Final = "monitoring/idle-gpu"
_POD: Final = GroupVersionKind("", "v1", "Pod")
_REPORTED: Final = (Use.IDLE, Use.PARKED)


class _Found(NamedTuple):
    """The Pods of an owner with one use, and what is said of the first of them."""

    finding: Finding
    pods: list[ObjectName]


def with_idle_findings(
    report: AuditReport, uses: Iterable[PodUse], ruleset: Ruleset, used: frozenset[int], today: dt.date
) -> AuditReport:
    """Return a report with a finding for each owner of Pods whose GPUs were idle or parked.

    Pods of an owner with the same use and exemption share a finding.

    Args:
        report: the report, with costs.
        uses: the use of the GPUs of each Pod; empty if it was not measured.
        ruleset: the rules in force.
        used: the exemptions that lowered another finding, by their places in the configuration.
        today: the day, for exemptions.
    """
    exemptions = ruleset.config.exemptions
    rule = next((rule for rule in ruleset.rules if rule.policy.id == _ID), None)
    if rule is None or report.usage is None:
        # Whether an exemption for this policy alone applies to a Pod is unknown.
        known = used | {index for index, exemption in enumerate(exemptions) if _is_for_this_policy(exemption, ruleset)}
        return replace(report, unused=tuple(enforcement.unused(exemptions, today, known)))
    alone = bind([rule.policy], ruleset.config, closed_families=())
    judging = Judging(alone, NoFacts(), today)
    by_owner: defaultdict[ObjectName, dict[tuple[str, str], _Found]] = defaultdict(dict)
    applied = set(used)
    for use in uses:
        pod = ObjectName("v1", "Pod", use.pod.namespace, use.pod.name)
        for request_use, text in _texts(use, report.usage.window_seconds):
            judgement = judging.judge(creation(_POD, _copy(pod, text)))
            applied |= judgement.exemptions
            for stated in judgement.findings:
                of_owner = by_owner[use.pod.owner]
                of_owner.setdefault((request_use, stated.finding.note), _Found(stated.finding, [])).pods.append(pod)
    audited = tuple(_with(owner, by_owner.get(owner.object, {}).values()) for owner in report.audited)
    unused = tuple(enforcement.unused(exemptions, today, applied))
    return replace(report, audited=audited, summary=Summary.of(audited), unused=unused)


def _is_for_this_policy(exemption: Exemption, ruleset: Ruleset) -> bool:
    ids = (policy.id for policy in ruleset.catalog)
    return {name for name in ids if any(matches(pattern, name) for pattern in exemption.policies)} == {_ID}


def _texts(use: PodUse, window: int) -> Iterator[tuple[str, str]]:
    """Yield each reported use of a Pod's GPUs, with the value of the annotation."""
    whole = sum(gpus for gpus, _ in use.used.values())
    for reported in _REPORTED:
        if reported not in use.used:
            continue
        gpus, _ = use.used[reported]
        reason = next((device.reason for device in use.devices if device.use is reported), "")
        noun = "GPU" if whole == 1 else "GPUs"
        yield (
            reported.value,
            f"{reported.value}: {float(gpus):g} of {float(whole):g} {noun} for {window / 3600:g} h: {reason}",
        )


def _copy(pod: ObjectName, text: str) -> dict[str, object]:
    metadata = {"name": pod.name, "namespace": pod.namespace, "annotations": {GPU_USE: text}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": []}}


def _with(owner: Audited, idle: Iterable[_Found]) -> Audited:
    findings = tuple(_finding(owner, group) for group in idle)
    if not findings:
        return owner
    changed = replace(owner, findings=(*owner.findings, *findings))
    return replace(changed, action=Audited.of(owner.object, changed.findings).action)


def _finding(owner: Audited, group: _Found) -> Finding:
    first, *others = group.pods
    # The path is in a copy without any other content.
    return replace(group.finding, path="", dependent=None if first == owner.object else first, related=tuple(others))
