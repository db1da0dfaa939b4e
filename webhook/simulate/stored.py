"""What a candidate policy file would change for the stored objects of a dump, and what would not come back after a node is removed.

Stored objects are evaluated as `gpugate audit` evaluates them: as if their controllers created them again now. That includes the
Pods of templates that exist only as a template today: the next run of a CronJob, a rollout, a scale-up.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from gpugate.webhook.audit.model import Action
from gpugate.webhook.simulate.model import Change, NodeRisk
from gpugate.webhook.simulate.replay import Decision, compare

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from gpugate.webhook.audit.inventory import Inventory
    from gpugate.webhook.audit.model import AllocatedGpus, Audited, AuditReport
    from gpugate.webhook.report.located import ObjectName


class _Cost(NamedTuple):
    gpus: float
    usd_per_hour: float | None


def stored_changes(
    current: AuditReport, candidate: AuditReport, allocated: Mapping[ObjectName, Sequence[AllocatedGpus]]
) -> Iterator[Change]:
    """Yield the owners that two audits of one dump decide differently, with the GPUs that are allocated to them."""
    before = {audited.object: audited for audited in current.audited}
    after = {audited.object: audited for audited in candidate.audited}
    for name in {**before, **after}:
        old, new = before.get(name), after.get(name)
        changed = tuple(
            change for change in compare(_decision(old), _decision(new)) if change.current is not change.candidate
        )
        known = new or old
        if changed and known is not None:
            cost = _cost(allocated.get(name, ()))
            yield Change(
                name,
                "stored",
                old.action if old else Action.ALLOW,
                new.action if new else Action.ALLOW,
                changed,
                pods=known.pods,
                gpus=cost.gpus,
                usd_per_hour=cost.usd_per_hour,
            )


def nodes_at_risk(changes: Iterable[Change], inventory: Inventory) -> tuple[NodeRisk, ...]:
    """Return the nodes with GPU Pods of newly denied owners, those with the most Pods first."""
    denied = {change.object for change in changes if change.newly_denied}
    pools = {node.name: node.node_pool for node in inventory.nodes}
    owners: defaultdict[str, list[ObjectName]] = defaultdict(list)
    for pod in inventory.pods:
        if pod.node and pod.owner in denied:
            owners[pod.node].append(pod.owner)
    risks = (
        NodeRisk(node, pools.get(node, ""), len(names), tuple(sorted(set(names), key=str)))
        for node, names in owners.items()
    )
    return tuple(sorted(risks, key=lambda risk: (-risk.pods, risk.node)))


def _decision(audited: Audited | None) -> Decision:
    policies: dict[str, tuple[Action, str, str]] = {}
    for finding in audited.findings if audited else ():
        known = policies.get(finding.policy)
        if known is None or list(Action).index(finding.action) < list(Action).index(known[0]):
            policies[finding.policy] = (finding.action, finding.message, finding.hint)
    return Decision(policies)


def _cost(allocated: Sequence[AllocatedGpus]) -> _Cost:
    prices = [gpus.usd_per_hour for gpus in allocated]
    known = [price for price in prices if price is not None]
    return _Cost(sum(gpus.gpus for gpus in allocated), sum(known) if known and len(known) == len(prices) else None)
