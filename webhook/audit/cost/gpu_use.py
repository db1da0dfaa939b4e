"""Tell for each allocated GPU whether it works: busy, under-used, parked, idle, doubtful or unknown, with the evidence.

No verdict of waste rests on missing data. A GPU without series, a Pod that is younger than the window, and gaps in the
samples all make the use unknown.
"""

from __future__ import annotations

import datetime as dt
import re
from collections import defaultdict
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from gpugate.webhook.audit.cost.gpu_metrics import Reading, Signal, add_value
from gpugate.webhook.audit.cost.gpu_nodes import share
from gpugate.webhook.audit.model import DeviceUse, Use, Used

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from gpugate.webhook.audit.cost.gpu_metrics import Window
    from gpugate.webhook.audit.cost.gpu_nodes import GpuNode, Holding
    from gpugate.webhook.audit.inventory import Allocation, GpuPod, Inventory
    from gpugate.webhook.report.located import ObjectName

ACTIVE: Final = 0.01
"""The engine activity from which on a GPU works; 0.01 is one percent."""
UNDER_USED: Final = 0.2
"""The mean engine activity below which a GPU is under-used."""
LEAST_COVERAGE: Final = 0.9
LEAST_WORKING: Final = 4 * 3600
"""The seconds of working time that a window needs for a verdict of waste; all of a shorter window."""
PARKED_MEMORY: Final = 0.1
"""The share of used memory above which an idle GPU is parked."""
_BUSY_UTILIZATION: Final = 5.0  # percent
_LEAST_WATTS: Final = 45.0
# Power limits in watts, from the data sheets of the products; the first pattern that matches. A GPU without work uses less
# than a third of it, also with a model in memory (T4: 27 W, H100: 112 W); the small ones up to 45 W.
_LIMITS: Final = tuple(
    (re.compile(pattern, re.IGNORECASE), watts)
    for pattern, watts in (
        (r"\bG?B300\b", 1400), (r"\bGB200\b", 1200), (r"\bB200\b", 1000), (r"\bH200\b", 700),
        (r"\bH100\b.*\bNVL\b", 400), (r"\bH100\b.*\bPCIe\b", 350), (r"\bG?H100\b|\bGH200\b", 700),
        (r"\bA100\b.*\bPCIe\b", 250), (r"\bA100\b", 400), (r"\bRTX PRO 6000\b", 600), (r"\bL40S\b", 350),
        (r"\bL40\b", 300), (r"\bL4\b", 72), (r"\bA10G\b", 300), (r"\bA10\b", 150), (r"\bT4G?\b", 70), (r"\bV100\b", 300),
        (r"\bMI300", 750), (r"\bMI325", 1000), (r"\bMI35", 1400),
    )
)  # fmt: skip


def _always(_namespace: str) -> float | None:
    return None


@dataclass(frozen=True, slots=True)
class Measured:
    """What a Prometheus measured: readings of devices, highest number of requests by Pod, the window, and its end.

    `working` is namespace -> the seconds of the window in which it works; None if it is not known to have working hours.
    """

    window: Window
    end: dt.datetime
    readings: Sequence[Reading]
    requests: Mapping[tuple[str, str], float] = field(default_factory=dict)
    working: Callable[[str], float | None] = _always


@dataclass(frozen=True, slots=True)
class PodUse:
    """The use of all GPUs of one Pod.

    Attributes:
        pod: the Pod.
        node: its node; None if its GPUs are unknown.
        used: use -> GPUs and USD per hour; the USD are None if no price is known.
        devices: what was measured of each device.
    """

    pod: GpuPod
    node: GpuNode | None
    used: Mapping[Use, tuple[Fraction, Fraction | None]]
    devices: tuple[DeviceUse, ...] = ()


@dataclass(frozen=True, slots=True)
class _Verdict:
    """The use of a device, the evidence, its mean power, and which part of a GPU it is."""

    reading: Reading
    use: Use
    reason: str
    watts: float | None
    part: Fraction


def pod_uses(inventory: Inventory, holdings: Iterable[Holding], measured: Measured) -> Iterator[PodUse]:
    """Yield the use of the GPUs of each Pod that has some."""
    by_pod: defaultdict[tuple[str, str], list[Holding]] = defaultdict(list)
    for holding in holdings:
        by_pod[holding.pod.namespace, holding.pod.name].append(holding)
    names = {node.name for node in inventory.nodes}
    pods = {key: of_pod[0].pod.node for key, of_pod in by_pod.items()}
    evaluation = _Evaluation(measured, inventory.allocations, pods, names)
    for of_pod in by_pod.values():
        if any(holding.gpus for holding in of_pod):
            yield evaluation.pod_use(of_pod)


class _Evaluation:
    """Readings by Pod and by node, and what is known of whole GPUs, whose power all slices share."""

    def __init__(
        self,
        measured: Measured,
        allocations: Iterable[Allocation],
        pods: Mapping[tuple[str, str], str],
        nodes: Collection[str],
    ) -> None:
        self._measured = measured
        self._by_pod: defaultdict[tuple[str, str], dict[tuple[str, str], Reading]] = defaultdict(dict)
        self._by_node: defaultdict[str, list[Reading]] = defaultdict(list)
        self._nodes: dict[str, tuple[Fraction, bool]] = {}
        self._power: dict[str, float] = {}
        self._active: set[str] = set()
        by_claim, by_device = _users(allocations, pods)
        for reading in measured.readings:
            self._take_card(reading)
            if not _measures_activity(reading):
                continue
            if reading.device.node:
                self._by_node[reading.device.node].append(reading)
            # The Pod of a series may be the exporter, which has no GPUs.
            users = [reading.pod] if reading.pod in pods and reading.pod else []
            users = users or by_claim.get(reading.claim or ("", ""), [])
            users = users or by_device.get(reading.allocated or ("", ""), [])
            node = reading.device.node
            for user in users:
                # A Pod of this name in another cluster, or before it was created again.
                if node in nodes and node != pods[user]:
                    continue
                devices = self._by_pod[user]
                name = reading.device.name, reading.device.slice
                devices[name] = _merged(devices[name], reading) if name in devices else reading

    def _take_card(self, reading: Reading) -> None:
        card, watts = reading.device.name, reading.values.get(Signal.POWER)
        # The slope of a counter that began again at 0 may be negative.
        if watts is not None and watts > 0:
            self._power[card] = max(watts, self._power.get(card, 0.0))
        if reading.values.get(Signal.ENGINE_MAX, 0.0) >= ACTIVE:
            self._active.add(card)

    def _watts(self, reading: Reading) -> float | None:
        """Return the mean power that tells of the work of a device; None if other slices of the GPU work."""
        if reading.device.slice and reading.device.name in self._active:
            return None
        return self._power.get(reading.device.name)

    def pod_use(self, holdings: Sequence[Holding]) -> PodUse:
        """Return the use of the GPUs of one Pod."""
        pod, node = holdings[0].pod, holdings[0].node
        gpus = sum((holding.gpus for holding in holdings), Fraction(0))
        prices = [holding.usd for holding in holdings]
        usd = None if None in prices else sum((price or Fraction(0) for price in prices), Fraction(0))
        own = [*self._by_pod.get((pod.namespace, pod.name), {}).values()]
        verdicts: Sequence[_Verdict] = [self._verdict(reading, pod, node) for reading in own]
        note = ""
        if not own:
            verdicts, note = self._of_node(pod, node, gpus)
        elif _has_whole_gpus(holdings) and sum((verdict.part for verdict in verdicts), Fraction(0)) > gpus:
            verdicts, note = (), _AMBIGUOUS
        whole = max(sum((verdict.part for verdict in verdicts), Fraction(0)), gpus)
        used: defaultdict[Use, Fraction] = defaultdict(Fraction)
        devices = []
        for verdict in sorted(verdicts, key=lambda verdict: str(verdict.reading.device)):
            share_of_pod = verdict.part / whole
            used[verdict.use] += gpus * share_of_pod
            devices.append(_record(pod, verdict, float(gpus * share_of_pod), _usd(usd, share_of_pod)))
        missing = gpus - sum(used.values(), Fraction(0))
        if missing > 0:
            used[Use.UNKNOWN] += missing
            reason = note or "no series of this device in the window"
            head = (f"{pod.namespace}/{pod.name}", pod.node, "", "")
            devices.append(DeviceUse(*head, Use.UNKNOWN, reason, float(missing), _usd(usd, missing / gpus)))
        return PodUse(
            pod,
            node,
            {use: (amount, None if usd is None else usd * amount / gpus) for use, amount in used.items()},
            tuple(devices),
        )

    def _verdict(self, reading: Reading, pod: GpuPod, node: GpuNode | None, note: str = "") -> _Verdict:
        watts, window = self._watts(reading), self._measured.window
        working = self._measured.working(pod.namespace)
        use, reason = use_of(reading, watts, window, young=_younger(pod, self._measured), working=working)
        most = self._measured.requests.get((pod.namespace, pod.name))
        if use in _WASTE and most is not None:
            reason += f", at most {most:g} requests at a time"
        part = weight(reading, node.record.instance_type if node else "")
        return _Verdict(reading, use, "; ".join(filter(None, (note, reason))), watts, part)

    def _of_node(self, pod: GpuPod, node: GpuNode | None, gpus: Fraction) -> tuple[Sequence[_Verdict], str]:
        """Return what the readings of its node tell of a Pod without series of its own, or why they do not.

        If a Pod has all GPUs of its node, all readings of the node are its. If no GPU of the node works, neither do the Pod's.
        """
        readings = self._by_node.get(pod.node, [])
        if not readings or node is None:
            return (), f"no GPU series of node {pod.node}"
        known, waste = self._node_uses(node)
        if known < node.gpus:
            return (), f"the series of node {pod.node} do not name this Pod, and some of its GPUs have no series"
        if gpus >= node.gpus and len(readings) <= _MOST_READINGS:
            return [self._verdict(reading, pod, node, "all GPUs of the node") for reading in readings], ""
        if not waste:
            return (), f"the series of node {pod.node} do not name this Pod: enable Pod labels in the exporter"
        chosen: list[_Verdict] = []
        for reading in readings:
            if sum((verdict.part for verdict in chosen), Fraction(0)) >= gpus:
                break
            chosen.append(self._verdict(reading, pod, node, "no GPU of the node works"))
        return chosen, ""

    def _node_uses(self, node: GpuNode) -> tuple[Fraction, bool]:
        """Return how many GPUs of a node have series, and whether all of them are idle or parked."""
        name, kind = node.record.name, node.record.instance_type
        if name not in self._nodes:
            readings = self._by_node[name]
            devices = {(reading.device.name, reading.device.slice): weight(reading, kind) for reading in readings}
            uses = {use_of(reading, self._watts(reading), self._measured.window)[0] for reading in readings}
            self._nodes[name] = sum(devices.values(), Fraction(0)), uses <= _WASTE
        return self._nodes[name]


# Far more than the devices and Pods of one node in a window.
_MOST_READINGS: Final = 1000
_AMBIGUOUS: Final = (
    "more devices have series with the name of this Pod than it has GPUs, as with several clusters in one Prometheus: select one "
    "with --prometheus-matcher"
)


def _has_whole_gpus(holdings: Iterable[Holding]) -> bool:
    """Tell whether the number of devices of a Pod is that of its GPUs; replicas of a shared GPU may be of one or of several."""
    return all(
        holding.node is not None and holding.node.part(holding.resource) == 1 and holding.gpus.denominator == 1
        for holding in holdings
    )


_WASTE: Final = frozenset({Use.IDLE, Use.PARKED})
_Users = dict[tuple[str, str], list[tuple[str, str]]]


def _users(allocations: Iterable[Allocation], known: Collection[tuple[str, str]]) -> tuple[_Users, _Users]:
    """Return the Pods of each ResourceClaim, and of each device by pool and name."""
    by_claim: _Users = {}
    by_device: defaultdict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
    for allocation in allocations:
        users = [(allocation.namespace, name) for name in allocation.pods if (allocation.namespace, name) in known]
        by_claim[allocation.namespace, allocation.claim] = users
        for device in allocation.devices:
            by_device[device.pool, device.name] += users
    return by_claim, by_device


def _measures_activity(reading: Reading) -> bool:
    return Signal.ENGINE_MAX in reading.values or Signal.UTILIZATION_MAX in reading.values


def _merged(known: Reading, other: Reading) -> Reading:
    """Join two readings of one device and Pod, whose other labels differ since the exporter was changed."""
    values = dict(known.values)
    for signal, value in other.values.items():
        add_value(values, signal, value)
    return replace(known, values=values)


def _usd(whole: Fraction | None, part: Fraction) -> float | None:
    return None if whole is None else float(whole * part)


def weight(reading: Reading, instance_type: str) -> Fraction:
    """Return which part of a GPU a device is."""
    device = reading.device
    if device.slice or device.profile:
        return share(device.profile, instance_type)
    return Fraction(1)


def _younger(pod: GpuPod, measured: Measured) -> str:
    """Return why a Pod is too young for a verdict; empty if it is not, or if its start is unknown."""
    try:
        started = dt.datetime.fromisoformat(pod.started)
    except ValueError:
        return "the start of the Pod is unknown"
    age = (measured.end - started).total_seconds() if started.tzinfo else 0.0
    if age >= measured.window.seconds:
        return ""
    return f"the Pod started {max(age, 0) / 3600:.1f} h ago, within the window of {measured.window.text}"


def use_of(
    reading: Reading, watts: float | None, window: Window, *, young: str = "", working: float | None = None
) -> tuple[Use, str]:
    """Return the use of a device, and the evidence for it.

    Args:
        reading: what was measured.
        watts: its mean power, or that of the GPU if no slice of it works; None if unknown.
        window: the window.
        young: why the Pod is too young for a verdict of waste; empty if it is not.
        working: the seconds of the window in which its namespace works; None if all of it counts. All activity could have been
            in these seconds, so the mean within them is at most that of the window by their share.
    """
    values = reading.values
    most, mean = values.get(Signal.ENGINE_MAX), values.get(Signal.ENGINE_MEAN)
    coverage = min(1.0, values.get(Signal.SAMPLES, 0.0) * window.step / window.seconds)
    gap = young or (f"samples for only {coverage:.0%} of {window.text}" if coverage < LEAST_COVERAGE else "")
    gap = gap or _outside(working, window)
    if mean is not None and working:
        mean = min(1.0, mean * window.seconds / working)
    doubt = _doubt(reading, watts)
    used = memory_share(values)
    if most is None:
        use, note = Use.UNKNOWN, "no series of the engine activity"
    elif most >= ACTIVE and (mean is None or mean >= UNDER_USED):
        use, note = Use.BUSY, ""
    elif most < ACTIVE and doubt:
        use, note = Use.DOUBTFUL, doubt
    elif gap:
        use, note = Use.UNKNOWN, gap
    elif most >= ACTIVE:
        use, note = Use.UNDER_USED, ""
    else:
        use, note = (Use.PARKED if used is not None and used > PARKED_MEMORY else Use.IDLE), ""
    if working is not None:
        note = "; ".join(filter(None, (note, f"{working / 3600:g} working hours in {window.text}")))
    return use, "; ".join(filter(None, (note, _evidence(reading, watts, coverage, window))))


def _outside(working: float | None, window: Window) -> str:
    """Return why a window has too few working hours for a verdict of waste; empty if it has enough."""
    if working is None or working >= min(LEAST_WORKING, window.seconds):
        return ""
    return f"fewer than {min(LEAST_WORKING, window.seconds) / 3600:g} working hours in the window"


def _doubt(reading: Reading, watts: float | None) -> str:
    """Return what contradicts an engine activity of 0; dcgm-exporter can report it for weeks (its issue 662)."""
    utilization = reading.values.get(Signal.UTILIZATION_MAX)
    if utilization is not None and utilization > _BUSY_UTILIZATION:
        return "the engine activity is 0, but the utilization is not"
    if watts is not None and watts > working_watts(reading.device.model):
        return "the engine activity is 0, but the power is that of work"
    return ""


def working_watts(model: str) -> float:
    """Return the power above which a GPU works; infinite for an unknown model."""
    limit = next((watts for pattern, watts in _LIMITS if pattern.search(model)), None)
    return float("inf") if limit is None else max(limit / 3, _LEAST_WATTS)


def memory_share(values: Mapping[Signal, float]) -> float | None:
    """Return the highest share of used memory; None if unknown."""
    used, free = values.get(Signal.MEMORY_MAX), values.get(Signal.MEMORY_FREE)
    return None if used is None or free is None or used + free <= 0 else used / (used + free)


def _evidence(reading: Reading, watts: float | None, coverage: float, window: Window) -> str:
    values = reading.values
    parts = []
    if Signal.ENGINE_MAX in values:
        mean = f" (mean {values[Signal.ENGINE_MEAN]:.1%})" if Signal.ENGINE_MEAN in values else ""
        parts.append(f"engine active at most {values[Signal.ENGINE_MAX]:.1%}{mean}")
    if Signal.UTILIZATION_MAX in values:
        parts.append(f"utilization at most {values[Signal.UTILIZATION_MAX]:.0f}%")
    if watts is not None:
        parts.append(f"{watts:.0f} W")
    memory = memory_share(values)
    if memory is not None:
        parts.append(f"{memory:.0%} of memory used")
    parts.append(f"samples for {coverage:.0%} of {window.text}")
    return ", ".join(parts)


def _record(pod: GpuPod, verdict: _Verdict, gpus: float, usd: float | None) -> DeviceUse:
    reading = verdict.reading
    values = reading.values
    return DeviceUse(
        pod=f"{pod.namespace}/{pod.name}",
        node=pod.node,
        device=str(reading.device),
        model=reading.device.model,
        use=verdict.use,
        reason=verdict.reason,
        gpus=gpus,
        usd_per_hour=usd,
        profile=reading.device.profile,
        engine_max=values.get(Signal.ENGINE_MAX),
        engine_mean=values.get(Signal.ENGINE_MEAN),
        utilization_max=values.get(Signal.UTILIZATION_MAX),
        memory_max=memory_share(values),
        watts=verdict.watts,
        dram_mean=values.get(Signal.DRAM_MEAN),
        tensor_mean=values.get(Signal.TENSOR_MEAN),
    )


def summed(uses: Iterable[Mapping[Use, tuple[Fraction, Fraction | None]]]) -> tuple[Used, ...]:
    """Add up uses, in the order of `Use`; a use without any price has the cost None."""
    gpus: defaultdict[Use, Fraction] = defaultdict(Fraction)
    usd: dict[Use, Fraction] = {}
    for used in uses:
        for use, (amount, price) in used.items():
            gpus[use] += amount
            if price is not None:
                usd[use] = usd.get(use, Fraction(0)) + price
    return tuple(Used(use, float(gpus[use]), float(usd[use]) if use in usd else None) for use in Use if gpus.get(use))


def by_owner(uses: Iterable[PodUse]) -> dict[ObjectName, list[PodUse]]:
    """Group by top-level owner."""
    owners: defaultdict[ObjectName, list[PodUse]] = defaultdict(list)
    for use in uses:
        owners[use.pod.owner].append(use)
    return dict(owners)
