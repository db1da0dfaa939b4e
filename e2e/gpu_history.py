"""What a fake GPU exporter reported for a day, and the cluster whose Pods held these GPUs.

`CASES` are Pods with one device each. Their series have the names and labels of dcgm-exporter, as they arrive in Prometheus.
"""

from __future__ import annotations

import datetime as dt
import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

STEP = 60
HOURS = 25
H100 = "NVIDIA H100 80GB HBM3"
L4 = "NVIDIA L4"
_MIB = 81_000


@dataclass(frozen=True)
class Behaviour:
    """The constant values of a device: engine activity, utilization in percent, used memory in MiB, power in watts.

    `burst` is an engine activity in one sample of each hour.
    """

    engine: float | None = 0.0
    utilization: float | None = 0.0
    memory: int = 500
    watts: float = 66.0
    burst: float = 0.0


IDLE = Behaviour()
BUSY = Behaviour(0.93, 100.0, 70_000, 531.0)
PARKED = Behaviour(0.0, 0.0, 70_000, 112.0)
UNDER_USED = Behaviour(0.0, 100.0, 70_000, 130.0, burst=0.8)
SILENT = Behaviour(0.0, 97.0, 70_000, 512.0)
SILENT_SLICE = Behaviour(0.0, None, 70_000, 512.0)


@dataclass(frozen=True)
class Case:
    """A Pod `name` in namespace `ml` on a node, with one device.

    Attributes:
        use: the expected use.
        node: its node.
        behaviour: what the device did.
        labels: further labels of its series; the Pod's labels are among them.
        age: hours since its start.
        hours: for how many hours of the history there are samples.
        replicas: the Prometheus servers of a pair, if there are two.
        resource: the resource of the Pod; empty: a ResourceClaim.
    """

    name: str
    use: str
    node: str
    behaviour: Behaviour = IDLE
    labels: Mapping[str, str] = field(default_factory=dict)
    age: float = 100.0
    hours: float = HOURS
    model: str = H100
    replicas: Sequence[str] = ("",)
    resource: str = "nvidia.com/gpu"


def exported(name: str, **labels: str) -> dict[str, str]:
    """Labels of a ServiceMonitor with honorLabels: false."""
    exporter = {"namespace": "gpu-operator", "pod": "dcgm-exporter-x7k2p", "Hostname": labels.pop("node", "gpu-a")}
    return {"exported_namespace": "ml", "exported_pod": name, **exporter, **labels}


def honored(name: str, node: str, **labels: str) -> dict[str, str]:
    """Labels of a scrape with honorLabels: true, by an exporter with the new name of the host label."""
    return {"namespace": "ml", "pod": name, "hostname": node, **labels}


def mig(number: str) -> dict[str, str]:
    return {"UUID": "GPU-mig", "GPU_I_ID": number, "GPU_I_PROFILE": "1g.10gb"}


_SLICE = "nvidia.com/mig-1g.10gb"
CASES = (
    Case("notebook", "idle", "gpu-a", labels=exported("notebook"), replicas=("a", "b")),
    Case("trainer", "busy", "gpu-a", BUSY, exported("trainer")),
    Case("server", "parked", "gpu-a", PARKED, exported("server")),
    Case("batch", "under-used", "gpu-a", UNDER_USED, exported("batch")),
    Case("silent", "doubtful", "gpu-a", SILENT, exported("silent")),
    Case("silent-without-utilization", "doubtful", "gpu-a", SILENT_SLICE, exported("silent-without-utilization")),
    Case("young", "unknown", "gpu-a", labels=exported("young"), age=3),
    Case("gap", "unknown", "gpu-a", labels=exported("gap"), hours=12),
    Case("slice-idle", "idle", "gpu-b", Behaviour(utilization=None, watts=512), {**honored("slice-idle", "gpu-b"), **mig("1")}, resource=_SLICE),
    Case("slice-busy", "busy", "gpu-b", Behaviour(0.9, None, watts=512), {**honored("slice-busy", "gpu-b"), **mig("2")}, resource=_SLICE),
    # Two replicas of one time-sliced GPU: each has the values of the whole GPU.
    Case("shared-1", "idle", "gpu-c", Behaviour(watts=16), honored("shared-1", "gpu-c", UUID="GPU-shared"), model=L4),
    Case("shared-2", "idle", "gpu-c", Behaviour(watts=16), honored("shared-2", "gpu-c", UUID="GPU-shared"), model=L4),
    # An exporter without labels of Pods: `pod` is its own, and the Pod has all GPUs of the node.
    Case("unlabelled", "idle", "gpu-d", Behaviour(watts=16), {"namespace": "gpu-operator", "pod": "dcgm-d", "Hostname": "gpu-d"}, model=L4),
    Case("claimed", "parked", "gpu-e", PARKED, {"hostname": "gpu-e", "dra_claim_namespace": "ml", "dra_claim_name": "claimed"}, resource=""),
    # Names of dcgm-exporter before 2.0.
    Case("renamed", "busy", "gpu-f", BUSY, {"pod_namespace": "ml", "pod_name": "renamed", "namespace": "gpu-operator", "pod": "dcgm-f", "node": "gpu-f"}),
    Case("unscraped", "unknown", "gpu-g", labels={"UUID": ""}),
)  # fmt: skip
NODES = {
    "gpu-a": ("p5.48xlarge", {"nvidia.com/gpu": "8"}, {}),
    "gpu-b": ("p5.48xlarge", {_SLICE: "56"}, {}),
    "gpu-c": ("g6.xlarge", {"nvidia.com/gpu": "2"}, {"nvidia.com/gpu.replicas": "2"}),
    "gpu-d": ("g6.xlarge", {"nvidia.com/gpu": "1"}, {}),
    "gpu-e": ("p5.4xlarge", {}, {}),
    "gpu-f": ("p5.4xlarge", {"nvidia.com/gpu": "1"}, {}),
    "gpu-g": ("p5.4xlarge", {"nvidia.com/gpu": "1"}, {}),
}


def uuid(name: str) -> str:
    return f"GPU-{hashlib.sha256(name.encode()).hexdigest()[:32]}"


def history(end: float, cases: Iterable[Case] = CASES) -> Iterator[str]:
    """Yield the lines of the OpenMetrics format, by metric and series, up to a Unix time."""
    families: dict[str, list[str]] = {}
    for case in cases:
        if case.labels.get("UUID") == "":
            continue
        for replica in case.replicas:
            labels = {"UUID": uuid(case.name), "modelName": case.model, "gpu": "0", "job": "dcgm", **case.labels}
            labels |= {"prometheus_replica": replica} if replica else {}
            text = ",".join(f'{name}="{value}"' for name, value in labels.items())
            for metric, lines in _series(case, text, end):
                families.setdefault(metric, []).extend(lines)
    families["vllm:num_requests_running"] = [
        f'vllm:num_requests_running{{namespace="ml",pod="server",model_name="chat"}} 0 {time:.0f}'
        for time in _times(end, HOURS)
    ]
    for metric, lines in families.items():
        yield f"# TYPE {metric} gauge"
        yield from lines


def _times(end: float, hours: float) -> Iterator[float]:
    first = end - hours * 3600
    return (first + number * STEP for number in range(int(hours * 3600 / STEP)))


def _series(case: Case, labels: str, end: float) -> Iterator[tuple[str, list[str]]]:
    does = case.behaviour
    times = list(_times(end, case.hours))
    values: dict[str, list[float]] = {}
    if does.engine is not None:
        values["DCGM_FI_PROF_GR_ENGINE_ACTIVE"] = [
            does.burst if does.burst and number % 60 == 0 else does.engine for number in range(len(times))
        ]
        values["DCGM_FI_PROF_DRAM_ACTIVE"] = [does.engine / 3] * len(times)
    if does.utilization is not None:
        values["DCGM_FI_DEV_GPU_UTIL"] = [does.utilization] * len(times)
    values["DCGM_FI_DEV_FB_USED"] = [does.memory] * len(times)
    values["DCGM_FI_DEV_FB_FREE"] = [_MIB - does.memory] * len(times)
    values["DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"] = [
        1e9 + does.watts * 1000 * STEP * number for number in range(len(times))
    ]
    for metric, series in values.items():
        yield (
            metric,
            [f"{metric}{{{labels}}} {value:.6g} {time:.0f}" for value, time in zip(series, times, strict=True)]
            if (metric != "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION")
            else [f"{metric}{{{labels}}} {value:.0f} {time:.0f}" for value, time in zip(series, times, strict=True)],
        )


def cluster(end: float) -> dict[str, Any]:
    """Return the objects of the cluster, as kubectl prints them."""
    pods = [_pod(case, end) for case in CASES]
    return {"apiVersion": "v1", "kind": "List", "items": [*map(_node, NODES), *pods, _claim(), _namespace()]}


def _node(name: str) -> dict[str, Any]:
    instance_type, accelerators, labels = NODES[name]
    fixed = {"node.kubernetes.io/instance-type": instance_type, "karpenter.sh/nodepool": name[:4]}
    allocatable = {"cpu": "100", "memory": "500Gi", "pods": "110", **accelerators}
    metadata = {"name": name, "uid": name, "labels": {**fixed, **labels}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": {"allocatable": allocatable}}


def _pod(case: Case, end: float) -> dict[str, Any]:
    amounts = {case.resource: "1"} if case.resource else {}
    container = {"name": "main", "image": "a", "resources": {"limits": amounts, "requests": amounts}}
    spec: dict[str, Any] = {"containers": [container], "nodeName": case.node}
    if not case.resource:
        spec["resourceClaims"] = [{"name": "gpu", "resourceClaimName": case.name}]
    started = dt.datetime.fromtimestamp(end - case.age * 3600, dt.UTC).isoformat(timespec="seconds")
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": case.name, "namespace": "ml", "uid": case.name, "labels": {"team": "research"}},
        "spec": spec,
        "status": {"phase": "Running", "startTime": started.replace("+00:00", "Z")},
    }


def _claim() -> dict[str, Any]:
    request = {
        "name": "gpu",
        "exactly": {"deviceClassName": "gpu.nvidia.com", "allocationMode": "ExactCount", "count": 1},
    }
    result = {"request": "gpu", "driver": "gpu.nvidia.com", "pool": "gpu-e", "device": "gpu-0"}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "claimed", "namespace": "ml", "uid": "claim"},
        "spec": {"devices": {"requests": [request]}},
        "status": {
            "allocation": {"devices": {"results": [result]}},
            "reservedFor": [{"resource": "pods", "name": "claimed", "uid": "claimed"}],
        },
    }


def _namespace() -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ml", "uid": "ml", "labels": {}}}
