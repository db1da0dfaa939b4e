"""Pods that wait for a node that no NodePool can launch, by cause."""

from __future__ import annotations

from typing import Any

import pytest
from audit.memory_source import MemorySource, audited, found, gpu_spec, pod, workload

from gpugate.policies.engine.config import parse_config
from gpugate.policies.sdk import launch_failures
from gpugate.webhook.audit.source import NotReadError

Json = dict[str, Any]
GPU, TYPE, ZONE = "nvidia.com/gpu", "node.kubernetes.io/instance-type", "topology.kubernetes.io/zone"
TOLERATED = {"tolerations": [{"key": GPU, "operator": "Exists"}]}


def node_pool(name: str = "gpu", types: tuple[str, ...] = ("g5.12xlarge",), used: int = 0, **limits: str) -> Json:
    requirements = [
        {"key": TYPE, "operator": "In", "values": [*types]},
        {"key": ZONE, "operator": "In", "values": ["z1"]},
    ]
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "gpu"}
    template = {"spec": {"nodeClassRef": reference, "requirements": requirements}}
    spec = {"template": template, **({"limits": {GPU: "8"}} if used else {}), **limits}
    status = {"resources": {GPU: str(used)}}
    metadata = {"name": name}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": metadata,
        "spec": spec,
        "status": status,
    }


def waiting(name: str, gpus: int = 1, owner: Json | None = None, **spec: Any) -> Json:
    waits = pod(name, gpu_spec(gpus, **TOLERATED, **spec), owner=owner)
    del waits["spec"]["nodeName"]
    waits["status"] = {"phase": "Pending"}
    return waits


def node(name: str, **labels: str) -> Json:
    metadata = {"name": name, "labels": labels}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": {"capacity": {GPU: "8"}}}


def with_status(waits: Json, **status: Any) -> Json:
    return {**waits, "status": {**waits["status"], **status}}


def bound_claim(zone: str) -> list[Json]:
    terms = [{"matchExpressions": [{"key": "topology.ebs.csi.aws.com/zone", "operator": "In", "values": [zone]}]}]
    affinity = {"required": {"nodeSelectorTerms": terms}}
    claim = {"metadata": {"name": "data", "namespace": "team"}, "spec": {"volumeName": "pv"}}
    volume = {"metadata": {"name": "pv"}, "spec": {"nodeAffinity": affinity}}
    return [
        {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **claim},
        {"apiVersion": "v1", "kind": "PersistentVolume", **volume},
    ]


CLAIMED = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}
LIMIT = f"NodePool gpu: its limit leaves 0 {GPU}, and every instance type that fits the Pod has more"


@pytest.mark.parametrize(
    ("objects", "reason", "hint"),
    [
        pytest.param(
            [waiting("a"), node_pool(used=8)], LIMIT, f"in NodePool gpu, raise its limit of {GPU}", id="limit"
        ),
        pytest.param(
            [waiting("a", **CLAIMED), node_pool(), *bound_claim("z2")],
            f"NodePool gpu: its volumes require {ZONE} z2, which the pool does not allow",
            f"in NodePool gpu, allow z2 for {ZONE}",
            id="zone of a volume",
        ),
        pytest.param(
            [waiting("a"), node_pool(used=8), node("n", **{"karpenter.sh/nodepool": "gpu"})],
            LIMIT,
            f"in NodePool gpu, raise its limit of {GPU}",
            id="nodes of the pool run",
        ),
    ],
)
def test_a_pod_that_no_pool_can_launch_a_node_for(objects: list[Json], reason: str, hint: str) -> None:
    (group,) = audited(*objects).report.pending

    assert (group.reason, group.hint, group.pods) == (reason, hint, 1)
    assert [(str(owner.object), owner.pods, owner.example) for owner in group.owners] == [("Pod/team/a", 1, "a")]


@pytest.mark.parametrize(
    "objects",
    [
        pytest.param([waiting("a"), node_pool()], id="a pool can launch one"),
        pytest.param([waiting("a", **CLAIMED), node_pool(), *bound_claim("z1")], id="its volume is in the zone"),
        pytest.param([waiting("a")], id="no pools"),
        pytest.param([pod("a", gpu_spec(**TOLERATED)), node_pool(used=8)], id="it runs"),
        pytest.param([with_status(waiting("a"), phase="Succeeded"), node_pool(used=8)], id="it has ended"),
        pytest.param([waiting("a", schedulingGates=[{"name": "queue"}]), node_pool(used=8)], id="a gate holds it back"),
        pytest.param(
            [with_status(waiting("a"), nominatedNodeName="n"), node_pool(used=8)], id="other Pods make way for it"
        ),
        pytest.param([waiting("a"), node_pool(used=8), node("n")], id="GPU nodes that Karpenter did not launch"),
        pytest.param(
            [waiting("a", nodeSelector={"eks.amazonaws.com/nodegroup": "gpu"}), node_pool(used=8)], id="node group"
        ),
        pytest.param([waiting("a", gpus=0), node_pool(used=8)], id="no GPUs"),
        pytest.param(
            [waiting("a", owner=workload("DaemonSet", "agent")), node_pool(used=8)], id="the Pod of a DaemonSet"
        ),
        pytest.param([pod("a", namespace="kube-system"), node_pool(used=8)], id="an excluded namespace"),
    ],
)
def test_no_pod_waits_in_vain(objects: list[Json]) -> None:
    assert audited(*objects).report.pending == ()


def test_unread_pools_are_no_cause() -> None:
    objects = [waiting("a"), node_pool(used=8)]
    source = MemorySource(objects, refused={"NodePool": NotReadError("forbidden")})

    assert audited(source=source).report.pending == ()


def test_one_cause_is_told_once_for_all_its_owners() -> None:
    jobs = [workload("Job", name, gpu_spec(**TOLERATED)) for name in ("small", "large")]
    pods = [waiting(f"small-{n}", owner=jobs[0]) for n in range(2)]
    pods += [waiting(f"large-{n}", owner=jobs[1]) for n in range(3)]

    (group,) = audited(*jobs, *pods, node_pool(used=8)).report.pending

    assert (group.pods, [(str(owner.object), owner.pods) for owner in group.owners]) == (
        5,
        [("Job/team/large", 3), ("Job/team/small", 2)],
    )


def test_the_finding_of_the_policy_is_enough() -> None:
    job = workload("Job", "train", gpu_spec(8, **TOLERATED))
    scan = audited(job, waiting("train-a", 8, owner=job), node_pool())

    owner = found(scan)["Job/team/train"]
    assert "pods/unprovisionable" in {finding.policy for finding in owner.findings}
    assert scan.report.pending == ()


def test_without_the_policy_causes_are_not_sought() -> None:
    modes = {"policies": {"pods/unprovisionable": {"mode": "off"}}}
    config = parse_config({"apiVersion": "gpugate.dev/v1", "kind": "PolicyConfig", **modes})

    assert audited(waiting("a"), node_pool(used=8), config=config).report.pending == ()


def test_equal_pods_are_compared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[object] = []
    failure = launch_failures._failure
    monkeypatch.setattr(
        launch_failures, "_failure", lambda pool, wanted: (compared.append(pool), failure(pool, wanted))[1]
    )

    (group,) = audited(*(waiting(f"a-{number}") for number in range(50)), node_pool(used=8)).report.pending

    assert (group.pods, len(compared)) == (50, 1)
