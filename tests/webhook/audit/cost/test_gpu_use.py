from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import pytest
from clusters import GPU, VLLM, inventory, list_prices, node, pod

from gpugate.policies.sdk.platform import Platform, Target
from gpugate.webhook.audit.cost.gpu_metrics import Device, Reading, Signal, Window, readings, requests
from gpugate.webhook.audit.cost.gpu_use import Measured, use_of, working_watts
from gpugate.webhook.audit.cost.summary import cost_of
from gpugate.webhook.audit.inventory import Allocation, Devices
from gpugate.webhook.audit.inventory import Device as AllocatedDevice
from gpugate.webhook.audit.model import Use

if TYPE_CHECKING:
    from gpugate.webhook.audit.cost.summary import Costed
    from gpugate.webhook.audit.inventory import GpuPod, Inventory

DAY = Window(86400, {})
END = dt.datetime(2026, 11, 23, 12, tzinfo=dt.UTC)
OLD = "2026-11-20T08:00:00Z"
YOUNG = "2026-11-23T09:00:00Z"
H100 = 55.04 / 8
H100_NAME = "NVIDIA H100 80GB HBM3"
IDLE = {
    Signal.ENGINE_MAX: 0.0,
    Signal.ENGINE_MEAN: 0.0,
    Signal.UTILIZATION_MAX: 0.0,
    Signal.MEMORY_MAX: 500.0,
    Signal.MEMORY_FREE: 80000.0,
    Signal.POWER: 66.0,
    Signal.SAMPLES: 288.0,
}
BUSY = IDLE | {Signal.ENGINE_MAX: 1.0, Signal.ENGINE_MEAN: 0.9, Signal.UTILIZATION_MAX: 100.0, Signal.POWER: 520.0}
UNDER_USED = BUSY | {Signal.ENGINE_MEAN: 0.1, Signal.POWER: 130.0}
PARKED = IDLE | {Signal.MEMORY_MAX: 70000.0, Signal.MEMORY_FREE: 10000.0, Signal.POWER: 112.0}


def reading(
    values: dict[Signal, float], *, of: str | None = "p", name: str = "GPU-0", slice_: str = "", **others: str
) -> Reading:
    device = Device(name, slice_, others.get("profile", ""), others.get("model", H100_NAME), others.get("node", "n1"))
    return Reading(device, ("serving", of) if of else None, None, None, values)


L4_IDLE = IDLE | {Signal.POWER: 16.0}


def without(values: dict[Signal, float], *signals: Signal) -> dict[Signal, float]:
    return {signal: value for signal, value in values.items() if signal not in signals}


@pytest.mark.parametrize(
    ("values", "young", "use", "reason"),
    [
        (IDLE, "", Use.IDLE, "engine active at most 0.0% (mean 0.0%), utilization at most 0%, 66 W"),
        (PARKED, "", Use.PARKED, "88% of memory used"),
        (BUSY, "", Use.BUSY, "engine active at most 100.0%"),
        (UNDER_USED, "", Use.UNDER_USED, "(mean 10.0%)"),
        # One percent is work; what is below is not.
        (IDLE | {Signal.ENGINE_MAX: 0.01, Signal.ENGINE_MEAN: 0.001}, "", Use.UNDER_USED, "1.0%"),
        (IDLE | {Signal.ENGINE_MAX: 0.0099}, "", Use.IDLE, ""),
        (BUSY | {Signal.ENGINE_MEAN: 0.2}, "", Use.BUSY, ""),
        # The exporter can report 0 for weeks.
        (IDLE | {Signal.UTILIZATION_MAX: 97.0}, "", Use.DOUBTFUL, "the engine activity is 0, but the utilization is not"),
        (IDLE | {Signal.POWER: 512.0}, "", Use.DOUBTFUL, "the engine activity is 0, but the power is that of work"),
        (IDLE | {Signal.POWER: 512.0}, "young", Use.DOUBTFUL, "the power is that of work"),
        # Missing cross-checks contradict nothing.
        (without(IDLE, Signal.UTILIZATION_MAX, Signal.POWER), "", Use.IDLE, ""),
        # Without the size of the memory, nothing tells whether a model is loaded.
        (without(PARKED, Signal.MEMORY_FREE), "", Use.IDLE, ""),
        (IDLE | {Signal.SAMPLES: 250.0}, "", Use.UNKNOWN, "samples for only 87% of 24h"),
        (IDLE | {Signal.SAMPLES: 260.0}, "", Use.IDLE, "samples for 90% of 24h"),
        (UNDER_USED | {Signal.SAMPLES: 100.0}, "", Use.UNKNOWN, "samples for only 35% of 24h"),
        (BUSY | {Signal.SAMPLES: 10.0}, "", Use.BUSY, ""),
        (IDLE, "the Pod is young", Use.UNKNOWN, "the Pod is young"),
        (BUSY, "the Pod is young", Use.BUSY, ""),
        (without(IDLE, Signal.ENGINE_MAX), "", Use.UNKNOWN, "no series of the engine activity"),
    ],
)  # fmt: skip
def test_the_use_of_a_device_follows_from_what_was_measured(
    values: dict[Signal, float], young: str, use: Use, reason: str
) -> None:
    verdict, text = use_of(reading(values), values.get(Signal.POWER), DAY, young=young)

    assert verdict is use
    assert reason in text


@pytest.mark.parametrize(
    ("model", "parked", "working"),
    [
        ("NVIDIA H100 80GB HBM3", 120, 300),
        ("NVIDIA H100 PCIe", 90, 200),
        ("NVIDIA A100-SXM4-40GB", 90, 200),
        ("NVIDIA A10G", 60, 150),
        ("NVIDIA L4", 33, 60),
        ("Tesla T4", 28, 60),
        ("NVIDIA L40S", 90, 200),
        ("NVIDIA GB200", 200, 800),
        ("Some GPU", 1000, None),
    ],
)
def test_a_third_of_the_power_limit_is_work(model: str, parked: float, working: float | None) -> None:
    assert parked < working_watts(model)
    assert working is None or working > working_watts(model)


class Element(NamedTuple):
    metric: dict[str, str]
    value: tuple[float, str]


def series(value: float | str, **labels: str) -> Element:
    return Element({"UUID": "GPU-0", **labels}, (0.0, str(value)))


OWN = {"exported_namespace": "serving", "exported_pod": "p"}


@pytest.mark.parametrize(
    ("labels", "pod_", "node_"),
    [
        # ServiceMonitor with honorLabels: false: `pod` is the exporter's.
        ({**OWN, "namespace": "gpu-operator", "pod": "dcgm-x", "Hostname": "n1"}, ("serving", "p"), "n1"),
        ({"namespace": "serving", "pod": "p", "hostname": "n1"}, ("serving", "p"), "n1"),
        ({"pod_namespace": "serving", "pod_name": "p", "pod": "dcgm-x", "Hostname": "n1"}, ("serving", "p"), "n1"),
        # The host name of the exporter's own Pod is not that of a node.
        ({**OWN, "Hostname": "dcgm-x", "node": "n1"}, ("serving", "p"), "n1"),
        ({**OWN, "node": "", "hostname": "elsewhere"}, ("serving", "p"), "elsewhere"),
        ({"Hostname": "n1"}, None, "n1"),
    ],
)
def test_pod_and_node_are_read_under_all_their_names(
    labels: dict[str, str], pod_: tuple[str, str] | None, node_: str
) -> None:
    (result,) = readings({Signal.ENGINE_MAX: [series(0.5, **labels)]}, {"n1"})

    assert (result.pod, result.device.node) == (pod_, node_)


def test_series_of_one_device_are_joined() -> None:
    before, after = ({**OWN, "namespace": "gpu-operator", "pod": name} for name in ("dcgm-a", "dcgm-b"))
    (result,) = readings(
        {
            Signal.ENGINE_MAX: [series(0.0, **before), series(0.5, **after)],
            Signal.SAMPLES: [series(100, **before), series(188, **after)],
            Signal.MEMORY_FREE: [series(10, **before), series(5, **after)],
            Signal.POWER: [series("NaN", **before), series("x", **after)],
        },
        {"n1"},
    )

    assert result.values == {Signal.ENGINE_MAX: 0.5, Signal.SAMPLES: 288.0, Signal.MEMORY_FREE: 5.0}


def test_slices_cores_and_other_exporters_have_devices_of_their_own() -> None:
    answer = [
        series(0.5, GPU_I_ID="1", GPU_I_PROFILE="1g.10gb"),
        series(0.5, GPU_I_ID="2", GPU_I_PROFILE="1g.10gb"),
        Element({"gpu_uuid": "amd-1", "pod": "p", "namespace": "serving"}, (0.0, "0.1")),
        Element({"neuroncore": "0", "node": "n1"}, (0.0, "0.1")),
        Element({"neuroncore": "0", "node": "n2"}, (0.0, "0.1")),
        Element({"unrelated": "1"}, (0.0, "0.1")),
    ]
    names = [str(result.device) for result in readings({Signal.ENGINE_MAX: answer}, {"n1", "n2"})]

    assert names == ["GPU-0/1", "GPU-0/2", "amd-1", "n1/0", "n2/0"]


def test_requests_are_by_pod() -> None:
    answer = [Element({"namespace": "a", "pod": "b"}, (0.0, value)) for value in ("2", "3", "NaN")]
    assert requests([*answer, Element({"pod": "b"}, (0.0, "9"))]) == {("a", "b"): 3.0}


@pytest.mark.parametrize("signal", Signal)
def test_every_query_is_for_the_window_and_reads_only_known_metrics(signal: Signal) -> None:
    text = Window(7200, {"DCGM_FI_PROF_GR_ENGINE_ACTIVE": "gpu:engine"}).query(signal, 'UUID=~".*0"')

    assert "[2h" in text
    assert 'UUID=~".*0"' in text
    assert "DCGM_FI_PROF_GR_ENGINE_ACTIVE" not in text
    assert text.count("(") == text.count(")")


@pytest.mark.parametrize(
    ("seconds", "text"), [(86400, "24h"), (7 * 86400, "7d"), (1800, "30m"), (5400, "90m"), (3661, "3661s")]
)
def test_a_window_is_written_in_its_largest_unit(seconds: int, text: str) -> None:
    assert Window(seconds, {}).text == text


@pytest.mark.parametrize(
    ("devices", "query"),
    [
        (["GPU-1a", "GPU-0b", "GPU-1a"], 'DCGM_FI_PROF_GR_ENGINE_ACTIVE{UUID=~"GPU-0b|GPU-1a"}'),
        # Other exporters have no such label, and a hostile name could end the string.
        (["n1/0", 'GPU-"}'], ""),
    ],
)
def test_the_query_for_grafana_names_the_devices(devices: list[str], query: str) -> None:
    assert DAY.evidence(devices) == query


def evaluated(seen: Inventory, *measured: Reading, end: dt.datetime = END) -> Costed:
    found = cost_of(seen, (), list_prices(), Platform(), Target(), Measured(DAY, end, measured))
    assert found is not None
    return found


def uses(costed: Costed) -> dict[str, tuple[float, float | None]]:
    return {
        used.use.value: (round(used.gpus, 4), used.usd_per_hour and round(used.usd_per_hour, 4))
        for used in costed.cost.used
    }


def started(gpu_pod: GpuPod, when: str = OLD, team: str = "") -> GpuPod:
    return replace(gpu_pod, started=when, team=team)


def test_the_cost_of_a_pod_is_split_by_the_use_of_its_devices() -> None:
    seen = inventory([node(gpu=8)], [started(pod(4))])
    result = evaluated(seen, reading(IDLE), reading(BUSY, name="GPU-1"), reading(PARKED, name="GPU-2"))

    each = (1.0, round(H100, 4))
    assert uses(result) == {"busy": each, "parked": each, "idle": each, "unknown": each}
    assert sum(used.usd_per_hour or 0 for used in result.cost.used) == pytest.approx(result.cost.allocated)


@pytest.mark.parametrize(
    ("when", "name", "reason"),
    [
        (YOUNG, "unknown", "the Pod started 3.0 h ago, within the window of 24h"),
        ("", "unknown", "the start of the Pod is unknown"),
        (OLD, "idle", "engine active"),
    ],
)
def test_a_young_pod_is_never_idle(when: str, name: str, reason: str) -> None:
    result = evaluated(inventory([node(gpu=8)], [started(pod(1), when)]), reading(IDLE))

    assert set(uses(result)) == {name}
    assert reason in result.uses[0].devices[0].reason


def test_a_gpu_without_series_is_unknown() -> None:
    result = evaluated(inventory([node(gpu=8)], [started(pod(2))]))

    assert uses(result) == {"unknown": (2.0, round(2 * H100, 4))}
    assert result.uses[0].devices[0].reason == "no GPU series of node n1"


def test_a_slice_has_its_share_of_the_price() -> None:
    slices = node(labels={}, **{"nvidia.com/mig-1g.10gb": 7})
    seen = inventory([slices], [started(pod(1, resource="nvidia.com/mig-1g.10gb"))])
    # Utilization is 0 or missing for slices, and the power is that of the whole GPU, on which another slice works.
    values = without(IDLE, Signal.UTILIZATION_MAX) | {Signal.POWER: 500.0}
    result = evaluated(
        seen,
        reading(values, slice_="1", profile="1g.10gb"),
        reading(BUSY, of=None, slice_="2", profile="1g.10gb"),
    )

    assert uses(result) == {"idle": (0.1429, round(H100 / 7, 4))}


def test_the_power_of_a_gpu_contradicts_when_all_its_slices_seem_idle() -> None:
    seen = inventory([node(**{"nvidia.com/mig-1g.10gb": 7})], [started(pod(1, resource="nvidia.com/mig-1g.10gb"))])
    result = evaluated(seen, reading(IDLE | {Signal.POWER: 500.0}, slice_="1", profile="1g.10gb"))

    assert set(uses(result)) == {"doubtful"}


def test_replicas_of_a_shared_gpu_divide_it() -> None:
    shared = node(instance_type="g6.xlarge", labels={"nvidia.com/gpu.replicas": "4"}, gpu=4)
    pods = [started(pod(1, name=name)) for name in ("p", "q")]
    result = evaluated(
        inventory([shared], pods), reading(L4_IDLE, model="NVIDIA L4"), reading(L4_IDLE, of="q", model="NVIDIA L4")
    )

    assert uses(result) == {"idle": (0.5, round(0.8048 / 2, 4))}


def test_an_exporter_without_pod_labels_tells_of_pods_with_a_whole_node() -> None:
    seen = inventory([node(instance_type="g6.xlarge", gpu=1)], [started(pod(1))])
    exporter = replace(reading(L4_IDLE, model="NVIDIA L4"), pod=("gpu-operator", "dcgm-x"))

    assert set(uses(evaluated(seen, exporter))) == {"idle"}


@pytest.mark.parametrize(
    ("values", "gpus_seen", "use"),
    [(IDLE, 8, "idle"), (BUSY, 8, "unknown"), (IDLE, 7, "unknown")],
)
def test_without_pod_labels_a_part_of_a_node_is_idle_only_if_all_of_it_is(
    values: dict[Signal, float], gpus_seen: int, use: str
) -> None:
    seen = inventory([node(gpu=8)], [started(pod(2))])
    others = [reading(IDLE, of=None, name=f"GPU-{number}") for number in range(1, gpus_seen)]

    assert uses(evaluated(seen, reading(values, of=None), *others)) == {use: (2.0, round(2 * H100, 4))}


@pytest.mark.parametrize("labels", ["claim", "device"])
def test_labels_of_dra_name_the_pods_of_a_claim(labels: str) -> None:
    device = AllocatedDevice("gpu.nvidia.com", "n1", "gpu-0", "gpu.nvidia.com")
    allocation = Allocation("serving", "mine", ("p",), (device,))
    gpu_pod = started(pod(0, devices=(Devices("gpu.nvidia.com", 1),)))
    seen = inventory([node(gpu=8)], [gpu_pod], allocations=(allocation,))
    hardware = reading(IDLE, of=None)
    named = (
        replace(hardware, claim=("serving", "mine"))
        if labels == "claim"
        else replace(hardware, allocated=("n1", "gpu-0"))
    )

    assert uses(evaluated(seen, named)) == {"idle": (1.0, round(H100, 4))}


@pytest.mark.parametrize(
    ("node_", "use"),
    [
        # The same name in another cluster, or on the node before the last one.
        ("n2", {"idle": (1.0, round(H100, 4))}),
        # Nothing tells which of the two is of this cluster.
        ("", {"unknown": (1.0, round(H100, 4))}),
    ],
)
def test_series_of_other_pods_with_the_same_name_do_not_count(
    node_: str, use: dict[str, tuple[float, float | None]]
) -> None:
    seen = inventory([node(gpu=8), node("n2", gpu=8)], [started(pod(1))])
    result = evaluated(seen, reading(IDLE), reading(BUSY, name="GPU-1", node=node_))

    assert uses(result) == use


def test_a_pod_may_have_a_share_of_several_gpus() -> None:
    shared = node(instance_type="g6.12xlarge", labels={"nvidia.com/gpu.replicas": "4"}, gpu=16)
    result = evaluated(
        inventory([shared], [started(pod(4))]),
        *(reading(L4_IDLE, name=f"GPU-{number}", model="NVIDIA L4") for number in range(4)),
    )

    assert uses(result)["idle"][0] == 1.0


def test_matchers_are_in_every_query() -> None:
    window = Window(86400, {}, ('cluster="prod"',))
    assert all('{cluster="prod", UUID=~"a"}' in window.query(signal, 'UUID=~"a"') for signal in Signal)
    assert all('{cluster="prod"}' in window.query(signal) for signal in Signal)


def test_spending_is_by_team_namespace_and_pool() -> None:
    pods = [started(pod(2), team="search"), started(pod(1, name="q"), team="")]
    result = evaluated(inventory([node(gpu=8)], pods), reading(IDLE), reading(BUSY, name="GPU-1"))

    spending = {(spend.by, spend.name): spend for spend in result.cost.spending}
    assert spending["pool", "gpu"].usd_per_hour == pytest.approx(8 * H100)
    assert spending["namespace", "serving"].usd_per_hour == pytest.approx(3 * H100)
    assert [used.use.value for used in spending["team", "search"].used] == ["busy", "idle"]
    assert [used.use.value for used in spending["team", ""].used] == ["unknown"]
    assert result.cost.spend == pytest.approx(result.cost.allocated + result.cost.unallocated)


def test_requests_are_evidence_for_a_parked_server() -> None:
    seen = inventory([node(gpu=8)], [started(pod(1))])
    measured = Measured(DAY, END, [reading(PARKED)], {(VLLM.namespace, "p"): 0.0})
    result = cost_of(seen, (), list_prices(), Platform(), Target(), measured)

    assert result is not None
    assert result.uses[0].devices[0].reason.endswith("at most 0 requests at a time")
    assert GPU in next(iter(seen.pods)).demand.resources
