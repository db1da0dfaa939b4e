from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml

from gpugate.policies.nodepools.shared_by_classes import gpu_workloads, selects, unknown_workloads

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpugate.policies.sdk.policy import Context

POOL = """
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: gpu}
spec:
  template:
    metadata: {labels: {pool: shared}}
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: gpu}
      requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}]
      taints:
        - {key: nvidia.com/gpu, value: "true", effect: NoSchedule}
        - {key: dedicated, value: ml, effect: NoSchedule}
        - {key: slow, effect: PreferNoSchedule}
"""
ML: dict[str, Any] = {"tolerations": [{"key": "dedicated", "operator": "Exists"}]}


def workload(
    spec: dict[str, Any], kind: str = "Deployment", gpus: str = "1", command: tuple[str, ...] = ("true",)
) -> str:
    container = {
        "name": "c",
        "command": list(command),
        "ports": [{"containerPort": 80}],
        "resources": {"limits": {"nvidia.com/gpu": gpus}},
    }
    template = {"metadata": {}, "spec": {"containers": [container], **spec}}
    job = {"completionMode": "Indexed", "parallelism": 2, "template": template}
    specs = {"Deployment": {"template": template}, "Job": job, "CronJob": {"jobTemplate": {"spec": job}}}
    version = "apps/v1" if kind == "Deployment" else "batch/v1"
    metadata = {"name": "w", "namespace": "ml"}
    return yaml.safe_dump({"apiVersion": version, "kind": kind, "metadata": metadata, "spec": specs[kind]})


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        pytest.param({**ML, "nodeSelector": {"pool": "shared"}}, True, id="a label of the nodes"),
        pytest.param({**ML, "nodeSelector": {"karpenter.sh/nodepool": "gpu"}}, True, id="the pool by name"),
        pytest.param({**ML, "nodeSelector": {"karpenter.sh/nodepool": "other"}}, False, id="another pool by name"),
        pytest.param({**ML, "nodeSelector": {"pool": "other"}}, False, id="another value"),
        pytest.param(ML, False, id="no selector"),
        pytest.param(
            {**ML, "nodeSelector": {"kubernetes.io/arch": "amd64"}}, False, id="only what any pool could have"
        ),
        pytest.param(
            {**ML, "nodeSelector": {"pool": "shared", "kubernetes.io/arch": "amd64"}},
            True,
            id="and what any could have",
        ),
        pytest.param({**ML, "nodeSelector": {"pool": "shared", "disk": "fast"}}, False, id="a label that no node has"),
        pytest.param(
            {**ML, "nodeSelector": {"pool": "shared", "karpenter.sh/capacity-type": "spot"}},
            False,
            id="what the pool's requirements rule out",
        ),
        pytest.param({"nodeSelector": {"pool": "shared"}}, False, id="a taint that is not tolerated"),
        pytest.param(
            {**ML, "nodeSelector": {"pool": "shared"}, "affinity": {"nodeAffinity": {"x": 1}}}, False, id="an affinity"
        ),
    ],
)
def test_a_workload_selects_a_pool_by(spec: dict[str, Any], wanted: bool, context: Callable[..., Context[Any]]) -> None:  # noqa: FBT001 -- a column
    ctx = context(POOL, facts=workload(spec))
    (found,) = gpu_workloads(ctx.subject, ctx)
    assert selects(found, ctx.subject, ctx) is wanted


@pytest.mark.parametrize(
    ("kind", "shown", "name"),
    [
        ("Deployment", "Deployment ml/w", "inference"),
        ("Job", "Job ml/w", None),
        ("CronJob", "CronJob ml/w", None),
    ],
)
def test_workloads_have_a_name_and_a_class(
    kind: str, shown: str, name: str | None, context: Callable[..., Context[Any]]
) -> None:
    ctx = context(POOL, facts=workload({}, kind))
    assert [(found.display_name, found.name) for found in gpu_workloads(ctx.subject, ctx)] == [(shown, name)]


def test_the_command_of_a_known_workload_tells_its_class(context: Callable[..., Context[Any]]) -> None:
    ctx = context(POOL, facts=workload({}, "Job", command=("torchrun", "main.py")))
    assert [found.name for found in gpu_workloads(ctx.subject, ctx)] == ["training"]


def test_a_workload_without_gpus_does_not_count(context: Callable[..., Context[Any]]) -> None:
    ctx = context(POOL, facts=workload({}, gpus="0"))
    assert gpu_workloads(ctx.subject, ctx) == ()


def test_that_workloads_are_not_known_is_said(context: Callable[..., Context[Any]]) -> None:
    ctx = context(POOL)
    skip = unknown_workloads(ctx)
    assert skip is not None
    assert "deployments" in skip.reason
