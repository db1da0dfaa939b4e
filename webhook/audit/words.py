"""The definitions, number formats and phrases that the audit formats share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gpugate.webhook.audit.model import Action, Use
from gpugate.webhook.audit.tally import code, idle_or_parked, model, usd, uses
from gpugate.webhook.report import words

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gpugate.policies.sdk.platform import Currency
    from gpugate.webhook.audit.model import AllocatedGpus, Audited, AuditReport, Cluster, Cost, Finding, Used

COST_DEFINITIONS: Final = {
    "GPU": "One whole accelerator from NVIDIA, AMD or AWS (Neuron). A MIG slice counts as its share of the GPU's compute"
    " slices: 1g.10gb of an H100 is 1/7. A Neuron core counts as its share of the device. If time-slicing or MPS"
    " shares a GPU, each replica counts as its share: with four replicas, each is 1/4.",
    "price": "The price of a node of the instance type, divided by the GPUs of the type, so it includes the node's CPU and "
    "memory. The price comes from --price-table, else it is the on-demand list price of the stated region and date, less "
    "--discount. Without these options, it is an upper bound for Spot nodes, savings plans and negotiated prices.",
    "spend": "The price of all GPUs of all nodes, per hour. It is the sum of the allocated and the unallocated GPUs, and of those that "
    "nodes have but do not offer to Pods.",
    "allocated": "GPUs of the Pods that are bound to a node and have not finished, by their requests or by the allocations of "
    "their ResourceClaims. A device that several Pods share counts once, in equal shares.",
    "at risk": "The allocated GPUs of objects that would be denied. Running Pods are not affected, but they could not be "
    "created again.",
    "unallocated": "The GPUs that nodes offer to Pods, minus the allocated ones. For a node without a device plugin, as with "
    "DRA, the number of GPUs of its instance type is used.",
    "unpriced": "GPUs without a price. If the instance type of a node is unknown or has no price, all its GPUs are unpriced. If "
    "gpugate cannot determine how many GPUs a node has, the GPUs allocated on it are unpriced. No total includes them, and no price is estimated.",
    "unbounded": "NodePools and autoscalers without a limit on their GPUs, with their worst-case cost per hour. A NodePool "
    "without any limit has no worst-case cost. If a NodePool limits only CPU and memory, gpugate "
    "calculates for each instance type how many nodes these limits allow and what they cost; the worst case is the"
    " highest of these costs. An autoscaler is unbounded if it has no maximum (KEDA then uses 100), or if its maximum is so high that"
    " scaling/unbounded-replicas has a finding for it. Its worst-case cost is: maximum x GPUs per"
    " Pod x GPU price of the most expensive instance type that the NodePools may launch. If the limits of the"
    " NodePools allow fewer GPUs than that, the number that they allow is used instead.",
    "wasted": "Unallocated GPUs of three kinds. First, all unallocated GPUs of a node, if Pods use at most half of its GPUs and no "
    "pending Pod fits on it. Second, unallocated GPUs of a node on which no GPU Pod of the cluster fits, "
    "because too little CPU or memory or too few Pod slots are free. Third, the parts of GPUs that the slices of a"
    " MIG layout do not cover.",
    "pools": "By NodePool and instance type: the GPUs of existing nodes, the allocated ones, and the cost of all these nodes "
    "per hour.",
    "use": "What an allocated GPU did in the window of --prometheus-window (default: 24h), by the metrics of its exporter. A MIG slice "
    "is measured by itself, a shared GPU as a whole. The GPUs and the cost of a Pod are divided among its devices.",
    "busy": "The mean engine activity was at least 20 %, or the activity was at least 1 % and its mean is unknown.",
    "under-used": "The highest engine activity was at least 1 %, and its mean below 20 %. The Pod is older than the window, and samples cover at "
    "least 90 % of the window.",
    "parked": "As idle, but more than 10 % of the memory were in use, as with a loaded model without requests.",
    "idle": "The engine activity stayed below 1 %. No other metric contradicts it, the Pod is older than the window, and samples cover at least "
    "90 % of the window.",
    "doubtful": "The engine activity stayed below 1 %, but the utilization exceeded 5 %, or the mean power exceeded a third of the power limit of "
    "the model (at least 45 W). The exporter probably reports a wrong activity.",
    "unknown": "There is no series, too few samples, or the Pod is younger than the window. Such a GPU never counts as idle.",
    "working hours": "The hours in which the Pods of a namespace are expected to work, from platform.working_hours in the policy file. A GPU counts as idle, "
    "parked or under-used only if at least four of these hours are in the window (or all of a shorter window). The mean activity is then "
    "the highest that it can have been within them. Work outside these hours counts too, so such a GPU is not idle.",
    "team": "The value of the first label that pods/missing-cost-labels requires (default: team), of the Pod or of its namespace.",
    "budget": "What idle and parked GPUs may cost per hour, from --idle-budget. Unallocated GPUs do not count towards it.",
    "currency": "Amounts are in US dollars, or in the currency of platform.currency in the policy file: US dollars times its rate, which "
    "each report states. JSON, CSV and metrics are always in US dollars.",
    "month": "The hourly figure times --hours-per-month (default: 730).",
}


UNKNOWN: Final = "-"
UNALLOCATED: Final = "unallocated"
NOT_OFFERED: Final = "not offered"
_CENT: Final = 0.005
CONSEQUENCES: Final = {
    Action.DENY: "would be denied",
    Action.MUTATE: "would be mutated",
    Action.WARN: "would get a warning",
    Action.RECORD: "would be recorded",
    Action.ALLOW: "no findings",
}
# `docs/audit.md` has the same wording, with the method.
DEFINITIONS: Final = {
    "would be denied": "The webhook would deny the next request that creates the object or one of its Pods. Running Pods are "
    "not affected.",
    "would be mutated": "The webhook would patch the object, for example add a missing toleration, and allow it.",
    "would get a warning": "The webhook would allow the object, and the client would show a warning.",
    "would be recorded": "The webhook would allow the object without a warning, because of a mode or an exemption. Only "
    "metrics and the API server's audit log would contain the finding.",
    "object": "A top-level owner. A Pod counts as the Deployment, Job or other object at the top of its owner references.",
    "pending": "Pods with GPUs that are not scheduled and for which no NodePool can launch a node now. In addition to "
    "pods/unprovisionable, resources in use count towards limits, and volumes have their zones. Objects with a finding of this "
    "policy are not repeated.",
    **COST_DEFINITIONS,
    "coverage": "How complete the audit is. Each kind that the cluster serves and that policies evaluate or look up has a "
    "value, and the coverage is the mean of these values. The value of a kind is the fraction of its objects that were read, times the fraction "
    "of its evaluations that had all required data. If the list of a kind is incomplete and the API "
    "server did not report how many objects remain, the value of the kind is 0. Objects that were not read never count as allowed.",
}


def number(count: float) -> str:
    """Format a number of GPUs, with at most two decimals."""
    return f"{count:,.0f}" if float(count).is_integer() else f"{count:,.2f}".rstrip("0")


def identity(report: AuditReport) -> str:
    """Return the configured cluster and the run of an audit on one line; empty if the cluster is not configured."""
    known = configured(report.cluster)
    parts = {**known, "Run": report.run_id} if known else {}
    return ", ".join(f"{name.lower()} {text}" for name, text in parts.items() if text)


def configured(cluster: Cluster) -> dict[str, str]:
    """Return what the configuration says of a cluster, by name; empty if it says nothing."""
    if not cluster.is_configured:
        return {}
    labels = ", ".join(f"{key}={value}" for key, value in cluster.labels.items())
    parts = {"Cluster": cluster.id, "Region": cluster.region, "Labels": labels}
    return {name: text for name, text in parts.items() if text}


def gpus(models: Mapping[str, float]) -> str:
    """Format GPUs by model, most first: `24 H100, 2 L4`."""
    ordered = sorted(models.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{number(count)} {name}" for name, count in ordered if count) or UNKNOWN


def gpus_of(allocated: Iterable[AllocatedGpus]) -> str:
    """Format the allocated GPUs of an object."""
    models: dict[str, float] = {}
    for allocation in allocated:
        models[model(allocation)] = models.get(model(allocation), 0.0) + allocation.gpus
    return gpus(models)


def money(usd_per_hour: float | None, hours: float = 1.0) -> str:
    """Format USD: with cents per hour, without cents per month."""
    if usd_per_hour is None:
        return UNKNOWN
    return f"{usd_per_hour * hours:,.2f}" if hours == 1.0 else f"{usd_per_hour * hours:,.0f}"


@dataclass(frozen=True, slots=True)
class Amounts:
    """Formats amounts of US dollars in the currency of a report.

    Attributes:
        symbol: what is written before an amount.
        per_usd: the amount of the currency for one US dollar.
    """

    symbol: str = "$"
    per_usd: float = 1.0

    @classmethod
    def of(cls, currency: Currency | None) -> Amounts:
        """Return the format of a configured currency; None is US dollars."""
        return cls(currency.symbol, currency.per_usd) if currency else cls()

    def number(self, usd_per_hour: float | None, hours: float = 1.0) -> str:
        """Format without the symbol, for a table whose header has it."""
        return UNKNOWN if usd_per_hour is None else money(usd_per_hour * self.per_usd, hours)

    def __call__(self, usd_per_hour: float | None, hours: float = 1.0) -> str:
        """Format with the symbol: with cents per hour, without cents per month."""
        return UNKNOWN if usd_per_hour is None else f"{self.symbol}{self.number(usd_per_hour, hours)}"

    @property
    def rate(self) -> str:
        """What an amount of the currency is in US dollars; empty if amounts are in US dollars."""
        return "" if self == Amounts() else f"1 US dollar is {self.symbol}{self.per_usd:g}"


def spend(cost: Cost) -> list[tuple[str, float]]:
    """Return the parts of the spend with their cost per hour: the uses of allocated GPUs, else `allocated`, and the others."""
    used = uses(cost) or [("allocated", cost.allocated)]
    missing = cost.spend - cost.allocated - cost.unallocated
    parts = [*used, (UNALLOCATED, cost.unallocated)]
    return [*parts, (NOT_OFFERED, missing)] if missing > _CENT else parts


_WASTE: Final = (Use.IDLE, Use.PARKED, Use.UNDER_USED, Use.DOUBTFUL)


def waste(report: AuditReport) -> list[tuple[Audited, Used]]:
    """Return the objects with GPUs that are idle, parked, under-used or doubtful, by use and cost."""
    entries = [(audited, part) for audited in report.audited for part in audited.used if part.use in _WASTE]

    def rank(entry: tuple[Audited, Used]) -> tuple[int, float, float, str]:
        audited, part = entry
        return _WASTE.index(part.use), -(part.usd_per_hour or 0.0), -part.gpus, str(audited.object)

    return sorted(entries, key=rank)


def evidence(audited: Audited, part: Used) -> str:
    """Return the evidence for the use of an object's first device with it, and the number of the others."""
    reasons = [device.reason for device in audited.devices if device.use is part.use]
    return f"{reasons[0]} (and {plural(len(reasons) - 1, 'other device')})" if len(reasons) > 1 else "".join(reasons)


def budget(cost: Cost, limit: float | None, amount: Amounts) -> str:
    """Return how the cost of idle and parked GPUs compares with its budget; empty without a budget, or if the use is unknown."""
    if limit is None or not cost.used:
        return ""
    over = idle_or_parked(cost.used) - limit
    state = f"exceeded by {amount(over)}/h" if is_over(cost, limit) else f"{amount(-over)}/h left"
    return f"budget for idle and parked GPUs: {amount(limit)}/h, {state}"


def is_over(cost: Cost, limit: float | None) -> bool:
    """Return whether idle and parked GPUs cost more than their budget."""
    return limit is not None and idle_or_parked(cost.used) > limit


def percent(share: float) -> str:
    """Format a share; only 1 is 100 %."""
    return f"{share:.0%}" if share == 1.0 or share < 0.99 else f"{int(share * 1000) / 10:g}%"


def plural(count: int, noun: str) -> str:
    """Format a count with its noun."""
    return f"{count:,} {noun if count == 1 else f'{noun[:-1]}ies' if noun.endswith('y') else f'{noun}s'}"


def policies(audited: Audited) -> list[str]:
    """Return the policies with findings in an object, worst first."""
    order = list(Action)
    findings = sorted(audited.findings, key=lambda finding: order.index(finding.action))
    return list(dict.fromkeys(map(code, findings)))


def worst_finding(audited: Audited) -> Finding | None:
    """Return the finding that decides the action on an object."""
    return next((finding for finding in audited.findings if finding.action is audited.action), None)


def first_fix(audited: Audited) -> str:
    """Return the first line of the fix for the worst finding."""
    finding = worst_finding(audited)
    return next(words.fixes(finding), finding.message) if finding else ""


def growth(report: AuditReport, amount: Amounts) -> dict[str, str]:
    """Return unbounded object -> its worst-case cost per hour."""
    unbounded = report.cost.unbounded if report.cost else ()
    return {
        str(item.object): amount.number(item.usd_per_hour) if item.usd_per_hour else "unbounded" for item in unbounded
    }


def price(audited: Audited, unbounded: Mapping[str, str], amount: Amounts) -> str:
    """Format the cost of an object's GPUs per hour, else `unbounded` if its GPUs have no limit."""
    cost = usd(audited.allocated)
    return amount.number(cost) if cost is not None else "unbounded" if str(audited.object) in unbounded else UNKNOWN


def waiting(report: AuditReport) -> str:
    """Return what Pods wait for a node in vain; empty where none does."""
    pods = sum(group.pods for group in report.pending)
    return f"no NodePool can launch a node for {plural(pods, 'Pod')} with GPUs" if pods else ""


def not_evaluated(report: AuditReport) -> list[str]:
    """Return a phrase for each kind or object that was not evaluated."""
    return [
        f"{gap.what}: {gap.reason}" + (f" ({plural(gap.objects, 'object')})" if gap.objects else "")
        for gap in report.not_evaluated
    ]
