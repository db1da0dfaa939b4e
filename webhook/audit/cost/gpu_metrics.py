"""The metrics of GPU exporters: their names, the queries for a window of time, and what the answers say of each device.

Every query aggregates by the labels that identify a device and its Pod. This removes the labels of replicas, so that a
pair of Prometheus servers counts once, and joins the series of an exporter that was restarted.

Sources: NVIDIA dcgm-exporter of 2026-05-12 (`etc/default-counters.csv`, `internal/pkg/rendermetrics`: `Hostname` became
`hostname` after 4.8.2; names before 2.0 as `pod_name`); AMD device-metrics-exporter v1.4 (`exportermetrics.proto`);
`neuron-monitor-prometheus.py` of aws-neuronx-tools 2.26; vLLM 0.11 (`vllm/v1/metrics`).
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence


class Signal(StrEnum):
    """What a query measures over the window."""

    ENGINE_MAX = "engine-max"
    ENGINE_MEAN = "engine-mean"
    UTILIZATION_MAX = "utilization-max"
    MEMORY_MAX = "memory-max"
    MEMORY_FREE = "memory-free"
    POWER = "power"
    SAMPLES = "samples"
    DRAM_MEAN = "dram-mean"
    TENSOR_MEAN = "tensor-mean"
    REQUESTS_MAX = "requests-max"


# The labels of a device, by exporter: NVIDIA, AMD, Neuron.
_DEVICE: Final = ("UUID", "gpu_uuid", "serial_number", "neuroncore")
_SLICE: Final = ("GPU_I_ID",)
_PROFILE: Final = ("GPU_I_PROFILE", "dra_mig_profile")
_MODEL: Final = ("modelName", "card_model")
_NODE: Final = ("node", "Hostname", "hostname", "instance_id")
# Prometheus renames the labels of a target that it sets itself to `exported_*` (honorLabels: false). If these exist, `pod` is
# the exporter's own Pod. The names of dcgm-exporter before 2.0 do not collide.
_PODS: Final = (
    ("exported_namespace", "exported_pod"),
    ("pod_namespace", "pod_name"),
    ("namespace", "pod"),
)
_CLAIM: Final = ("dra_claim_namespace", "dra_claim_name")
_DRA_DEVICE: Final = ("dra_pool_name", "dra_device_name")
_POD_LABELS: Final = tuple(label for pair in _PODS for label in pair)
_LABELS: Final = ", ".join((*_DEVICE, *_SLICE, *_PROFILE, *_MODEL, *_NODE, *_POD_LABELS, *_CLAIM, *_DRA_DEVICE))

_ENGINE: Final = ("DCGM_FI_PROF_GR_ENGINE_ACTIVE",)
_UTILIZATION: Final = ("DCGM_FI_DEV_GPU_UTIL",)
_USED: Final = ("DCGM_FI_DEV_FB_USED", "gpu_used_vram")
_FREE: Final = ("DCGM_FI_DEV_FB_FREE", "gpu_free_vram")
# Exporters of AMD and Neuron report activity in percent and as a ratio; neither has a second measure of it.
_PERCENT: Final = "gpu_gfx_activity"
_CORE: Final = "neuroncore_utilization_ratio"
_ENERGY: Final = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"
_PACKAGE_POWER: Final = "gpu_package_power"
_REQUESTS: Final = "vllm:num_requests_running"
METRICS: Final = (
    *_ENGINE, *_UTILIZATION, *_USED, *_FREE, _PERCENT, _CORE, _ENERGY, _PACKAGE_POWER,
    "DCGM_FI_PROF_DRAM_ACTIVE", "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", _REQUESTS,
)  # fmt: skip
"""All metrics that queries read; a platform may have recorded them under other names."""
POINTS: Final = 288
"""At how many times of the window the coverage is determined: each five minutes of a day."""
_LEAST_STEP: Final = 60


@dataclass(frozen=True, slots=True)
class Window:
    """The series that queries read.

    Attributes:
        seconds: the time before the audit, in seconds.
        names: metric -> its name in this Prometheus, if it differs.
        matchers: label matchers for all series, such as `cluster="prod"`.
    """

    seconds: int
    names: Mapping[str, str] = field(default_factory=dict)
    matchers: tuple[str, ...] = ()

    @property
    def step(self) -> int:
        """Seconds between the points at which the coverage is determined."""
        return max(_LEAST_STEP, self.seconds // POINTS)

    @property
    def text(self) -> str:
        """The window as users write it, such as `24h`."""
        for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
            if self.seconds % size == 0 and (unit != "d" or self.seconds > size):
                return f"{self.seconds // size}{unit}"
        return f"{self.seconds}s"

    def selector(self, metric: str, matcher: str = "") -> str:
        """Return the selector of a metric for the series that match."""
        matchers = ", ".join((*self.matchers, *([matcher] if matcher else ())))
        return f"{self.names.get(metric, metric)}{f'{{{matchers}}}' if matchers else ''}"

    def query(self, signal: Signal, part: str = "") -> str:
        """Return the query of a signal; `part` is a matcher for some of the series.

        Samples and power are determined at the points of a subquery, because there the series of replicas and of restarted
        exporters are one. Power is the slope of the energy counter, which also contains the work between two scrapes.
        """

        def over(function: str, metrics: Iterable[str], by: str = "max", factor: str = "") -> str:
            parts = (
                f"{by} by ({_LABELS}) ({function}({self.selector(m, part)}[{self.text}])){factor}" for m in metrics
            )
            return " or ".join(parts)

        def mean(metrics: Iterable[str], factor: str = "") -> str:
            return " or ".join(
                f"{over('sum_over_time', [m], 'sum')} / {over('count_over_time', [m], 'sum')}{factor}" for m in metrics
            )

        steps = f"[{self.text}:{self.step}s]"
        activity = (*_ENGINE, *_UTILIZATION, _PERCENT, _CORE)
        by_pod = f"max by ({', '.join(_POD_LABELS)})"
        texts = {
            Signal.ENGINE_MAX: lambda: (
                f"{over('max_over_time', (*_ENGINE, _CORE))} or {over('max_over_time', [_PERCENT], factor=' / 100')}"
            ),
            Signal.ENGINE_MEAN: lambda: f"{mean((*_ENGINE, _CORE))} or {mean([_PERCENT], ' / 100')}",
            Signal.UTILIZATION_MAX: lambda: over("max_over_time", _UTILIZATION),
            Signal.MEMORY_MAX: lambda: over("max_over_time", _USED),
            Signal.MEMORY_FREE: lambda: over("min_over_time", _FREE, "min"),
            Signal.POWER: lambda: (
                f"deriv(max by ({_LABELS}) ({self.selector(_ENERGY, part)}){steps}) / 1000"
                f" or {over('avg_over_time', [_PACKAGE_POWER])}"
            ),
            Signal.SAMPLES: lambda: (
                f"count_over_time(({' or '.join(f'max by ({_LABELS}) ({self.selector(m, part)})' for m in activity)}){steps})"
            ),
            Signal.DRAM_MEAN: lambda: mean(["DCGM_FI_PROF_DRAM_ACTIVE"]),
            Signal.TENSOR_MEAN: lambda: mean(["DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"]),
            Signal.REQUESTS_MAX: lambda: f"{by_pod} (max_over_time({self.selector(_REQUESTS, part)}[{self.text}]))",
        }
        return texts[signal]()

    def evidence(self, devices: Collection[str]) -> str:
        """Return a query for Grafana that shows the activity of NVIDIA's devices; empty for those of others."""
        names = sorted({name for name in devices if _UUID.fullmatch(name)})
        return self.selector(_ENGINE[0], f'UUID=~"{"|".join(names)}"') if names else ""


# Of hexadecimal digits and hyphens, which need no escape in a pattern.
_UUID: Final = re.compile(r"(?:GPU|MIG)-[0-9A-Za-z-]{1,80}")


class Sample(Protocol):
    """One element of an instant vector."""

    @property
    def metric(self) -> Mapping[str, str]:
        """The labels."""
        ...

    @property
    def value(self) -> tuple[float, str]:
        """Time and value."""
        ...


@dataclass(frozen=True, slots=True)
class Device:
    """A GPU, or a MIG slice of one, as an exporter names it.

    Attributes:
        name: the UUID of the GPU, else another name that is unique on its node.
        slice: the id of the MIG slice; empty for a whole GPU.
        profile: the profile of the slice, such as `1g.10gb`.
        model: the name of the product, such as `NVIDIA H100 80GB HBM3`.
        node: the node, as far as a label names it.
    """

    name: str
    slice: str = ""
    profile: str = ""
    model: str = ""
    node: str = ""

    def __str__(self) -> str:
        return f"{self.name}/{self.slice}" if self.slice else self.name


@dataclass(frozen=True, slots=True)
class Reading:
    """What was measured of a device while one Pod held it.

    Attributes:
        device: the device.
        pod: namespace and name of the Pod; None without labels of a Pod.
        claim: namespace and name of the ResourceClaim that the device was allocated for; None without DRA labels.
        allocated: pool and name of the device in DRA; None without DRA labels.
        values: what was measured; a signal is missing if it has no series.
    """

    device: Device
    pod: tuple[str, str] | None
    claim: tuple[str, str] | None
    allocated: tuple[str, str] | None
    values: Mapping[Signal, float]


_Key = tuple[Device, tuple[str, str] | None, tuple[str, str] | None, tuple[str, str] | None]


def readings(answers: Mapping[Signal, Sequence[Sample]], nodes: Collection[str]) -> tuple[Reading, ...]:
    """Join the answers by device and Pod.

    An exporter that was restarted has two series of one device. Of their values the one is used that speaks for more work.

    Args:
        answers: signal -> its series.
        nodes: the names of the nodes; of several labels the one that names a node is used.
    """
    joined: defaultdict[_Key, dict[Signal, float]] = defaultdict(dict)
    for signal, answer in answers.items():
        if signal is Signal.REQUESTS_MAX:
            continue
        for series in answer:
            value, key = _number(series), _key(series.metric, nodes)
            if value is None or key is None:
                continue
            add_value(joined[key], signal, value)
    return tuple(Reading(*key, values) for key, values in joined.items())


def requests(answer: Sequence[Sample]) -> dict[tuple[str, str], float]:
    """Return Pod -> the highest number of requests that ran in its inference server at the same time."""
    most: dict[tuple[str, str], float] = {}
    for series in answer:
        value = _number(series)
        # The server exports them itself, so `pod` is its own.
        pod = series.metric.get("namespace", ""), series.metric.get("pod", "")
        if value is not None and all(pod):
            most[pod] = max(most.get(pod, 0.0), value)
    return most


def add_value(values: dict[Signal, float], signal: Signal, value: float) -> None:
    """Add the value of another series of the same device and Pod."""
    known = values.get(signal)
    if known is None:
        values[signal] = value
    elif signal is Signal.SAMPLES:
        values[signal] = known + value
    else:
        values[signal] = min(known, value) if signal is Signal.MEMORY_FREE else max(known, value)


def _number(series: Sample) -> float | None:
    try:
        value = float(series.value[1])
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _key(labels: Mapping[str, str], nodes: Collection[str]) -> _Key | None:
    names = [labels[label] for label in _NODE if labels.get(label)]
    node = next((name for name in names if name in nodes), names[0] if names else "")
    name = _first(labels, _DEVICE)
    if not name:
        return None
    # A core of Neuron is numbered on its node.
    name = name if labels.get("neuroncore") is None else f"{node}/{name}"
    device = Device(name, _first(labels, _SLICE), _first(labels, _PROFILE), _first(labels, _MODEL), node)
    pod_labels = next((pair for pair in _PODS if labels.get(pair[1])), None)
    pod = (labels.get(pod_labels[0], ""), labels[pod_labels[1]]) if pod_labels else None
    return device, pod, _pair(labels, _CLAIM), _pair(labels, _DRA_DEVICE)


def _first(labels: Mapping[str, str], names: Iterable[str]) -> str:
    return next((labels[name] for name in names if labels.get(name)), "")


def _pair(labels: Mapping[str, str], names: tuple[str, str]) -> tuple[str, str] | None:
    first, second = (labels.get(name, "") for name in names)
    return (first, second) if second else None
