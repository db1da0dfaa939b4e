from __future__ import annotations

from typing import Any

import pytest
from clusters import GPU, blocked, costed, inventory, node

from gpugate.webhook.audit.inventory import Demand, Devices, GpuTemplate
from gpugate.webhook.audit.model import Unbounded
from gpugate.webhook.report.located import ObjectName

P5 = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["p5.48xlarge"]}
FAMILY_P = {"key": "karpenter.k8s.aws/instance-family", "operator": "In", "values": ["p4d", "p5"]}
AWS = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
VLLM = ObjectName("apps/v1", "Deployment", "serving", "vllm")
SCALER = ObjectName("keda.sh/v1alpha1", "ScaledObject", "serving", "vllm")


def pool(limits: dict[str, Any] | None, requirement: dict[str, Any] = P5, **spec: Any) -> dict[str, Any]:
    template = {"spec": {"requirements": [requirement], "nodeClassRef": AWS}}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "gpu"},
        "spec": {"template": template, **({} if limits is None else {"limits": limits}), **spec},
    }


def scaler(kind: str = "ScaledObject", api: str = "keda.sh/v1alpha1", owner: str = "", **spec: Any) -> dict[str, Any]:
    owners = {"ownerReferences": [{"kind": owner, "name": "vllm"}]} if owner else {}
    metadata = {"name": "vllm", "namespace": "serving", **owners}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, "spec": {"scaleTargetRef": {"name": "vllm"}, **spec}}


def template(gpus: int = 8, of: ObjectName = VLLM, team: str = "") -> GpuTemplate:
    return GpuTemplate(of, "spec.template", Demand({GPU: gpus}), team)


def unbounded(*audited: Any, **seen: Any) -> tuple[Unbounded, ...]:
    return costed(inventory(seen.pop("nodes", ()), **seen), audited).cost.unbounded


@pytest.mark.parametrize(
    ("limits", "spec"),
    [({GPU: "32"}, {}), ({GPU: "0"}, {}), ({"nodes": "4"}, {}), (None, {"replicas": 2}), ({GPU: 8, "cpu": "1k"}, {})],
)  # fmt: skip
def test_a_pool_with_a_limit_on_gpus_or_nodes_is_bounded(limits: dict[str, Any] | None, spec: dict[str, Any]) -> None:
    assert not unbounded(node_pools=(pool(limits, **spec),))


@pytest.mark.parametrize("limits", [None, {}, {"nvidia.com/gpus": "8"}])
def test_of_a_pool_without_any_limit_nobody_can_say_what_it_costs(limits: dict[str, Any] | None) -> None:
    (found,) = unbounded(node_pools=(pool(limits),))

    assert found == Unbounded(ObjectName("karpenter.sh/v1", "NodePool", "", "gpu"), "no limit on nvidia.com/gpu", None)


def test_limits_on_cpu_alone_let_a_pool_cost_this_much() -> None:
    (found,) = unbounded(node_pools=(pool({"cpu": "1000"}, FAMILY_P),))

    # 1000 CPUs are five p5.48xlarge with 192 each, ten p4d.24xlarge with 96 each, or 62 p5.4xlarge with 16 each.
    assert found.usd_per_hour == pytest.approx(62 * 6.88)
    assert found.reason == "no limit on nvidia.com/gpu, only on cpu; worst case as p5.4xlarge"


def test_a_pool_for_cpus_is_not_looked_at() -> None:
    cpus = {"key": "karpenter.k8s.aws/instance-category", "operator": "In", "values": ["c", "m"]}

    assert not unbounded(node_pools=(pool(None, cpus),))


def test_a_pool_of_another_provider_that_speaks_of_gpus_is_unbounded() -> None:
    azure = pool(None)
    azure["spec"]["template"]["spec"] |= {
        "nodeClassRef": {"group": "karpenter.azure.com", "kind": "AKSNodeClass"},
        "taints": [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}],
    }

    (found,) = unbounded(node_pools=(azure,))

    assert found.usd_per_hour is None
    assert "the instance types of its provider are unknown" in found.reason


def test_a_type_without_a_price_is_named() -> None:
    h200 = {"key": "karpenter.k8s.aws/instance-gpu-name", "operator": "In", "values": ["h200"]}

    (found,) = unbounded(node_pools=(pool({"cpu": "400"}, h200),))

    assert found.usd_per_hour == pytest.approx(2 * 63.296)
    assert found.reason.endswith("worst case as p5en.48xlarge; without unpriced p5e.48xlarge")


def test_without_a_maximum_keda_takes_a_hundred() -> None:
    (found,) = unbounded(nodes=[node(gpu=8)], templates=(template(),), scalers=(scaler(),))

    assert found == Unbounded(
        SCALER,
        "no maxReplicaCount, so KEDA uses 100: 100 Pods x 8 GPUs = 800 GPUs; worst case as p5.48xlarge",
        pytest.approx(800 * 6.88),
    )


def test_the_limits_of_node_pools_bound_what_it_costs() -> None:
    (found,) = unbounded(node_pools=(pool({GPU: "16"}),), templates=(template(),), scalers=(scaler(),))

    assert found.usd_per_hour == pytest.approx(16 * 6.88)
    assert "800 GPUs, of which the limits of NodePools allow 16; worst case as p5.48xlarge" in found.reason


def test_the_dearest_type_is_taken_and_named() -> None:
    (found,) = unbounded(node_pools=(pool({GPU: "1000"}, FAMILY_P),), templates=(template(),), scalers=(scaler(),))

    assert found.reason.endswith("worst case as p5.4xlarge, the most expensive of 3 instance types")


@pytest.mark.parametrize(
    "chosen",
    [
        scaler(maxReplicaCount=4),
        scaler("HorizontalPodAutoscaler", "autoscaling/v2", maxReplicas=500),
        scaler("HorizontalPodAutoscaler", "autoscaling/v2", owner="ScaledObject", maxReplicas=100),
    ],
)
def test_a_bound_that_somebody_chose_is_one(chosen: dict[str, Any]) -> None:
    assert not unbounded(nodes=[node(gpu=8)], templates=(template(),), scalers=(chosen,))


def test_a_bound_that_the_policy_finds_too_high_is_none() -> None:
    autoscaler = scaler("HorizontalPodAutoscaler", "autoscaling/v2", maxReplicas=50)
    name = ObjectName("autoscaling/v2", "HorizontalPodAutoscaler", "serving", "vllm")

    (found,) = unbounded(
        blocked(name, "scaling/unbounded-replicas"),
        nodes=[node(gpu=8)],
        templates=(template(1),),
        scalers=(autoscaler,),
    )

    assert (found.object, found.usd_per_hour) == (name, pytest.approx(50 * 6.88))


def test_each_job_of_a_scaled_job_has_all_its_pods() -> None:
    job = scaler("ScaledJob", jobTargetRef={"parallelism": 2})
    of = ObjectName("keda.sh/v1alpha1", "ScaledJob", "serving", "vllm")

    (found,) = unbounded(nodes=[node(gpu=8)], templates=(template(1, of),), scalers=(job,))

    assert found.reason.startswith("no maxReplicaCount, so KEDA uses 100: 200 Pods x 1 GPUs = 200 GPUs")


def test_slices_through_dra_count_as_their_part() -> None:
    by_claim = GpuTemplate(VLLM, "spec.template", Demand(devices=(Devices("mig-1g.10gb.nvidia.com", 7),)))

    (found,) = unbounded(nodes=[node()], templates=(by_claim,), scalers=(scaler(),))

    assert found.usd_per_hour == pytest.approx(100 * 6.88)


def test_where_no_node_is_known_nobody_can_say() -> None:
    (found,) = unbounded(templates=(template(),), scalers=(scaler(),))

    assert found.usd_per_hour is None


def test_a_scaler_of_a_workload_without_gpus_is_not_looked_at() -> None:
    assert not unbounded(nodes=[node(gpu=8)], scalers=(scaler(),))


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"spec": 3},
        {"metadata": [], "spec": {"limits": 3, "template": []}},
        {
            "kind": "NodePool",
            "spec": {"limits": {GPU: "many"}, "template": {"spec": {"requirements": [None, 3, {"key": 1}]}}},
        },
        {"kind": "ScaledObject", "spec": {"scaleTargetRef": {"name": ["vllm"]}, "maxReplicaCount": "5"}},
        {"kind": "ScaledJob", "metadata": {"name": "vllm", "ownerReferences": "x"}, "spec": {"jobTargetRef": 1}},
    ],
)
def test_documents_that_are_not_as_they_should_be_break_nothing(document: dict[str, Any]) -> None:
    unbounded(nodes=[node(gpu=8)], node_pools=(document,), scalers=(document,), templates=(template(),))


def test_an_autoscaler_belongs_to_the_team_of_its_pods_and_a_pool_to_that_of_its_nodes() -> None:
    found = unbounded(
        node_pools=(pool(None),),
        pool_teams={"gpu": "research"},
        templates=(template(team="search"),),
        scalers=(scaler(),),
    )

    assert {entry.object.kind: entry.team for entry in found} == {"NodePool": "research", "ScaledObject": "search"}
