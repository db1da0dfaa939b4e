"""The figures of an audit: how many objects would be what, and the GPUs that they hold, by namespace, policy and others."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from gpugate.policies.sdk.findings import Stance
from gpugate.webhook.report.audited import Action

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gpugate.webhook.report.audited import Audited, AuditReport, Finding, Held

Sharing = Literal["namespace", "policy", "kind", "owner"]
CLUSTER: Final = "(cluster)"
MALFORMED: Final = "malformed"
_ORDER: Final = list(Action)


@dataclass(slots=True)
class Group:
    """Objects that share a namespace, a policy, a kind or an owner.

    Attributes:
        name: what they share.
        objects: by what would become of them; of a policy, by what its findings alone would do.
        at_risk: GPU model -> how many GPUs the objects hold that would be denied.
        usd_per_hour: what those cost, as far as prices are known; None where none is.
        mode: the highest stance of its findings.
        findings: how many.
    """

    name: str
    objects: Counter[Action] = field(default_factory=Counter)
    at_risk: dict[str, float] = field(default_factory=dict)
    usd_per_hour: float | None = None
    mode: Stance = Stance.OFF
    findings: int = 0

    @property
    def key(self) -> tuple[object, ...]:
        """Sorts the worst first: by money, then by what would become of the objects, then by name."""
        counts = (-self.objects[action] for action in (Action.BLOCK, Action.MUTATE, Action.WARN, Action.RECORD))
        return (-(self.usd_per_hour or 0.0), *counts, self.name)

    def add(self, audited: Audited, action: Action, findings: Sequence[Finding]) -> None:
        """Count an object."""
        self.objects[action] += 1
        self.findings += len(findings)
        self.mode = max((self.mode, *(finding.stance for finding in findings)))
        if action is Action.BLOCK:
            for held in audited.held:
                self.at_risk[model(held)] = self.at_risk.get(model(held), 0.0) + held.gpus
            price = usd(audited.held)
            if price is not None:
                self.usd_per_hour = (self.usd_per_hour or 0.0) + price


def actions(report: AuditReport) -> dict[Action, int]:
    """Return how many objects would be what, each counted once, with every action."""
    counts = Counter(audited.action for audited in report.audited)
    return {action: counts[action] for action in Action}


def code(finding: Finding) -> str:
    """Name what found it: the policy, or that a field has a type that the API server refuses."""
    return finding.policy or MALFORMED


def worst(findings: Iterable[Finding]) -> Action:
    """Return the worst that findings would do."""
    return min((finding.action for finding in findings), key=_ORDER.index, default=Action.COMPLY)


def model(held: Held) -> str:
    """Name a GPU as people do; its resource where the model is not known."""
    return held.model.upper() or held.resource


def usd(held: Iterable[Held]) -> float | None:
    """Return the known price an hour; None where none is."""
    prices = [each.usd_per_hour for each in held if each.usd_per_hour is not None]
    return sum(prices) if prices else None


def suppressed(report: AuditReport) -> Iterator[tuple[Audited, Finding]]:
    """Yield what an exemption lets pass: only then has a finding a note and costs no more than a record."""
    for audited in report.audited:
        yield from ((audited, f) for f in audited.findings if f.note and f.stance is Stance.AUDIT)


def skipped(report: AuditReport) -> Counter[tuple[str, str]]:
    """Return (policy, why it could not look) -> for how many objects."""
    return Counter(item for audited in report.audited for item in audited.skipped.items())


def grouped(report: AuditReport, by: Sharing) -> list[Group]:
    """Group the objects, worst first; an object is in the group of each policy that found something in it."""
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
