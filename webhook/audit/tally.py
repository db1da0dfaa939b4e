"""The figures of an audit: objects by action and their GPUs, in total and by namespace, policy, kind or owner."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from gpugate.policies.sdk.findings import Stance
from gpugate.webhook.audit.model import Action, Use, worst

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gpugate.webhook.audit.model import AllocatedGpus, Audited, AuditReport, Cost, Finding, Used

Sharing = Literal["namespace", "policy", "kind", "owner"]
CLUSTER: Final = "(cluster)"
MALFORMED: Final = "malformed"


@dataclass(slots=True)
class Group:
    """Objects that share a namespace, a policy, a kind or an owner.

    Attributes:
        name: the name of the namespace, policy, kind or owner.
        objects: action -> the number of objects; for a policy, the action of its findings alone.
        at_risk: GPU model -> the number of GPUs that are allocated to objects that would be denied.
        usd_per_hour: the cost of these GPUs in USD per hour; None without any price.
        mode: the highest mode of the findings.
        findings: the number of findings.
    """

    name: str
    objects: Counter[Action] = field(default_factory=Counter)
    at_risk: dict[str, float] = field(default_factory=dict)
    usd_per_hour: float | None = None
    mode: Stance = Stance.OFF
    findings: int = 0

    @property
    def key(self) -> tuple[object, ...]:
        """Sorts by cost, then by action, then by name."""
        counts = (-self.objects[action] for action in (Action.DENY, Action.MUTATE, Action.WARN, Action.RECORD))
        return (-(self.usd_per_hour or 0.0), *counts, self.name)

    def add(self, audited: Audited, action: Action, findings: Sequence[Finding]) -> None:
        """Count an object."""
        self.objects[action] += 1
        self.findings += len(findings)
        self.mode = max((self.mode, *(finding.stance for finding in findings)))
        if action is Action.DENY:
            for allocated in audited.allocated:
                self.at_risk[model(allocated)] = self.at_risk.get(model(allocated), 0.0) + allocated.gpus
            price = usd(audited.allocated)
            if price is not None:
                self.usd_per_hour = (self.usd_per_hour or 0.0) + price


def actions(report: AuditReport) -> dict[Action, int]:
    """Return the number of objects for every action; each object counts once."""
    return {action: getattr(report.summary, action.value) for action in Action}


def code(finding: Finding) -> str:
    """Return the policy of a finding, or `MALFORMED` for a field of the wrong type."""
    return finding.policy or MALFORMED


def model(allocated: AllocatedGpus) -> str:
    """Return the model of a GPU, such as `H100`, or its resource if the model is unknown."""
    return allocated.model.upper() or allocated.resource


def usd(allocated: Iterable[AllocatedGpus]) -> float | None:
    """Return the cost in USD per hour, without unpriced GPUs; None if no GPU has a price."""
    prices = [gpus.usd_per_hour for gpus in allocated if gpus.usd_per_hour is not None]
    return sum(prices) if prices else None


def uses(cost: Cost) -> list[tuple[str, float]]:
    """Return each use of allocated GPUs with its cost in USD per hour; empty if no use is known."""
    return [(part.use.value, part.usd_per_hour or 0.0) for part in cost.used]


def idle_or_parked(used: Iterable[Used]) -> float:
    """Return the cost of GPUs that did not work, in USD per hour."""
    return sum(part.usd_per_hour or 0.0 for part in used if part.use in {Use.IDLE, Use.PARKED})


def suppressed(report: AuditReport) -> Iterator[tuple[Audited, Finding]]:
    """Yield the findings with an exemption: only these have a note and the mode `audit`."""
    for audited in report.audited:
        yield from ((audited, f) for f in audited.findings if f.note and f.stance is Stance.AUDIT)


def skipped(report: AuditReport) -> Counter[tuple[str, str]]:
    """Return (policy, why it was not evaluated) -> the number of objects."""
    return Counter(item for audited in report.audited for item in audited.skipped.items())


def grouped(report: AuditReport, by: Sharing) -> list[Group]:
    """Group the objects, worst first; an object is in the group of each policy with a finding in it."""
    groups: dict[str, Group] = {}
    for audited in report.audited:
        for name, findings in _shares(audited, by):
            groups.setdefault(name, Group(name)).add(audited, worst(findings), findings)
    return sorted(groups.values(), key=lambda group: group.key)


def _shares(audited: Audited, by: Sharing) -> Iterable[tuple[str, Sequence[Finding]]]:
    name = audited.object
    if by == "policy":
        by_policy: dict[str, list[Finding]] = {}
        for finding in audited.findings:
            by_policy.setdefault(code(finding), []).append(finding)
        return by_policy.items()
    shared = {"namespace": name.namespace or CLUSTER, "kind": name.kind, "owner": str(name)}[by]
    return [(shared, audited.findings)]
