"""Words, numbers and definitions that the audit formats share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.webhook.report import words
from gpugate.webhook.report.audit_tally import code, model, usd
from gpugate.webhook.report.audited import Action

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gpugate.webhook.report.audited import Audited, AuditReport, Finding, Held

COST_DEFINITIONS: Final = {
    "GPU": "One whole accelerator, of NVIDIA, AMD or AWS (Neuron) make. A MIG slice is its share of the GPU's compute "
    "slices: 1g.10gb of an H100 is 1/7. A Neuron core, and a GPU shared by time-slicing or MPS, is its part of the device.",
    "price": "The price of a node of that instance type, divided by the GPUs of the type: CPU and memory of the node are "
    "in it. On-demand list prices of the place and day named, or those of --price-table; for Spot, savings plans and "
    "discounts they are an upper bound.",
    "held": "GPUs of the Pods that are bound to a node and have not finished, by what they request or by what their "
    "ResourceClaims were given. A device that several Pods share counts once, split evenly among them.",
    "at risk": "The part of the GPUs held that belongs to objects which would be denied. Running Pods are not touched: at "
    "risk is what stops when they are created again.",
    "idle": "GPUs that the nodes offer to Pods, less those held. A node that offers none by a device plugin, as with DRA, "
    "is taken to offer all that its type has.",
    "unpriced": "GPUs of nodes whose instance type is not known or has no price, and those held on nodes of which no GPUs "
    "are known. They are in no sum of money; no price is guessed.",
    "unbounded": "What can grow without a limit on its GPUs, and its worst case per hour. A NodePool without any limit has "
    "none; one with limits on CPU and memory alone, what these let it become as its dearest type. An autoscaler without "
    "a maximum (KEDA then takes 100), or with one that scaling/unbounded-replicas finds too high: maximum x GPUs per "
    "Pod x price of the dearest type that its node pools may launch, as far as their limits allow.",
    "wasted": "The part of idle that the shape of other Pods keeps from use: where Pods hold half of a node's GPUs or less "
    "and no waiting Pod fits beside them, all its idle ones; else those for which what is left of CPU, memory and Pod "
    "slots is too little, whichever GPU Pod of this cluster came. Beside idle: what a MIG layout leaves in no slice.",
    "pools": "By NodePool and instance type: the GPUs of the nodes there are, those held, and what all of these nodes "
    "cost an hour.",
    "month": "The figure per hour times --hours-per-month, 730 unless said otherwise.",
}


UNKNOWN: Final = "-"
CONSEQUENCES: Final = {
    Action.BLOCK: "would be denied",
    Action.MUTATE: "would be stored changed",
    Action.WARN: "would be warned of",
    Action.RECORD: "would be recorded",
    Action.COMPLY: "nothing would be found",
}
# What each figure means. The wording is that of docs/audit.md, where the method is.
DEFINITIONS: Final = {
    "would be denied": "The next create, or the next creation of a Pod, is refused. What runs now is not touched.",
    "would be stored changed": "Admission adds what is missing, such as a toleration, and lets the object pass.",
    "would be warned of": "The object passes, and whoever applies it reads a warning.",
    "would be recorded": "The object passes, and the finding is in metrics and log only: a mode or an exemption says so.",
    "object": "What people wrote: Pods count as the Deployment, Job or other owner at the top of their owner references.",
    **COST_DEFINITIONS,
    "coverage": "The share of what should have been evaluated that was: over the kinds that policies judge or look up and the "
    "cluster serves, the mean of the share of objects that were read times the share of judgements that could be made. Of a list "
    "that broke off nothing counts, unless the server said how many objects were to come. What could not be read is never "
    "counted as passed.",
}


def number(count: float) -> str:
    """Write a number of GPUs: whole where it is."""
    return f"{count:,.0f}" if float(count).is_integer() else f"{count:,.2f}".rstrip("0")


def gpus(models: Mapping[str, float]) -> str:
    """Write GPUs by model, most first: `24 H100, 2 L4`."""
    found = sorted(models.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{number(count)} {name}" for name, count in found if count) or UNKNOWN


def gpus_of(held: Iterable[Held]) -> str:
    """Write the GPUs that an object holds."""
    models: dict[str, float] = {}
    for each in held:
        models[model(each)] = models.get(model(each), 0.0) + each.gpus
    return gpus(models)


def money(usd_per_hour: float | None, hours: float = 1.0) -> str:
    """Write dollars, with cents for an hour and without for a month."""
    if usd_per_hour is None:
        return UNKNOWN
    return f"{usd_per_hour * hours:,.2f}" if hours == 1.0 else f"{usd_per_hour * hours:,.0f}"


def percent(share: float) -> str:
    """Write a share; only all is 100 %."""
    return f"{share:.0%}" if share == 1.0 or share < 0.99 else f"{int(share * 1000) / 10:g}%"


def plural(count: int, noun: str) -> str:
    """Write how many of something there are."""
    return f"{count:,} {noun if count == 1 else f'{noun[:-1]}ies' if noun.endswith('y') else f'{noun}s'}"


def policies(audited: Audited) -> list[str]:
    """Return what found something in an object, the worst first and each once."""
    order = list(Action)
    found = sorted(audited.findings, key=lambda finding: order.index(finding.action))
    return list(dict.fromkeys(map(code, found)))


def worst_finding(audited: Audited) -> Finding | None:
    """Return the finding that decides what would become of an object."""
    return next((finding for finding in audited.findings if finding.action is audited.action), None)


def first_fix(audited: Audited) -> str:
    """Return the first line on how to mend the worst finding."""
    finding = worst_finding(audited)
    return next(words.fixes(finding), finding.message) if finding else ""


def growth(report: AuditReport) -> dict[str, str]:
    """Return object -> its worst case, of those that can grow without a limit."""
    found = report.cost.unbounded if report.cost else ()
    return {str(each.object): money(each.usd_per_hour) if each.usd_per_hour else "unbounded" for each in found}


def price(audited: Audited, unbounded: Mapping[str, str]) -> str:
    """Write what an object costs an hour: that of its GPUs, else that it has no bound."""
    cost = usd(audited.held)
    return money(cost) if cost is not None else "unbounded" if str(audited.object) in unbounded else UNKNOWN


def not_evaluated(report: AuditReport) -> list[str]:
    """Return what could not be looked at, a phrase each."""
    return [
        f"{each.what}: {each.reason}" + (f" ({plural(each.objects, 'object')})" if each.objects else "")
        for each in report.not_evaluated
    ]
