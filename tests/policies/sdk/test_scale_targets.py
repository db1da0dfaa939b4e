from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from gpugate.policies.engine.ruleset import Needs
from gpugate.policies.sdk.field import Field
from gpugate.policies.sdk.findings import Stance
from gpugate.policies.sdk.gpu_demand import GpuDemand
from gpugate.policies.sdk.objects import RAY_CLUSTER, GroupVersionKind, Operation, Request, Wrapper
from gpugate.policies.sdk.scale_targets import (
    TARGET_KINDS,
    TARGET_NEEDS,
    ScaleTarget,
    most_for,
    scale_target,
    target_demand,
    template_contexts,
    whole_gpus,
    workload_demand,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpugate.policies.sdk.objects import Kind
    from gpugate.policies.sdk.policy import Context

Contexts: TypeAlias = "Callable[..., Context[Any]]"


@pytest.mark.parametrize(
    ("reference", "target"),
    [
        ({"name": "a"}, ScaleTarget("apps", "Deployment", "a")),
        ({"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"}, ScaleTarget("apps", "Deployment", "a")),
        ({"apiVersion": "apps/v1beta2", "kind": "StatefulSet", "name": "a"}, ScaleTarget("apps", "StatefulSet", "a")),
        ({"apiVersion": "v1", "kind": "X", "name": "a"}, ScaleTarget("", "X", "a")),
        ({"kind": "Deployment"}, None),
        ({}, None),
        (None, None),
    ],
)
def test_it_reads_what_a_scaler_scales(reference: object, target: ScaleTarget | None) -> None:
    assert scale_target(Field({"spec": {"scaleTargetRef": reference}})) == target


WORKLOADS = """
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: gpus, namespace: research}
spec: {template: {spec: {containers: [{resources: {limits: {nvidia.com/gpu: 2}}}]}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: cpus, namespace: research}
spec: {template: {spec: {containers: [{name: c}]}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: claims, namespace: research}
spec:
  template:
    spec:
      resourceClaims: [{name: x, resourceClaimTemplateName: unknown}]
      containers: [{resources: {claims: [{name: x}]}}]
"""


@pytest.mark.parametrize(
    ("target", "most"),
    [
        (ScaleTarget("apps", "StatefulSet", "gpus"), Stance.ENFORCE),
        (ScaleTarget("apps", "Deployment", "cpus"), Stance.OFF),
        (ScaleTarget("apps", "Deployment", "claims"), Stance.WARN),
        (ScaleTarget("apps", "Deployment", "missing"), Stance.WARN),
        (ScaleTarget("apps", "Deployment", "gpus"), Stance.WARN),
        (ScaleTarget("argoproj.io", "Rollout", "gpus"), Stance.WARN),
    ],
    ids=str,
)
def test_only_a_target_with_gpus_is_enforced(context: Contexts, target: ScaleTarget, most: Stance) -> None:
    assert most_for(target_demand(target, context({}, facts=WORKLOADS))) is most


@pytest.mark.parametrize(
    ("demand", "gpus"),
    [
        (GpuDemand({"nvidia.com/gpu": 8}), Fraction(8)),
        (GpuDemand({"nvidia.com/mig-1g.10gb": 2}), Fraction(2, 7)),
        (GpuDemand({"nvidia.com/mig-3g.40gb": 1}), Fraction(1, 2)),
        (GpuDemand({"nvidia.com/mig-9g.9gb": 1}), Fraction(1, 7)),
        (GpuDemand({"nvidia.com/gpu.shared": 4}), Fraction(0)),
        (GpuDemand({"nvidia.com/gpu": 1, "nvidia.com/gpumem": 3000, "nvidia.com/gpucores": 30}), Fraction(1)),
        (GpuDemand({"gpu.intel.com/i915": 2, "gpu.intel.com/millicores": 100}), Fraction(2)),
        (GpuDemand({"gpu.intel.com/i915_monitoring": 1}), Fraction(0)),
        (GpuDemand({"google.com/tpu": 4}), Fraction(4)),
        (GpuDemand({"aws.amazon.com/neuroncore": 2}), Fraction(1)),
        (GpuDemand({"deviceclass.resource.kubernetes.io/gpu.nvidia.com": 2}), Fraction(2)),
        (GpuDemand(device_classes={"gpu.nvidia.com": 4, "mig.nvidia.com": 7}), Fraction(5)),
        (GpuDemand({"deviceclass.resource.kubernetes.io/mig.nvidia.com": 7}), Fraction(1)),
        (GpuDemand({"nvidia.com/gpu": 1, "aws.amazon.com/neuroncore": 1}), Fraction(3, 2)),
        (GpuDemand(), Fraction(0)),
    ],
)
def test_parts_of_a_gpu_count_as_parts(demand: GpuDemand, gpus: Fraction) -> None:
    assert whole_gpus(demand) == gpus


def ray(*gpus: int) -> Field:
    """A RayCluster whose head and workers ask for GPUs, or for none where it is 0."""
    templates = [
        {"template": {"spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": count}} if count else {}}]}}}
        for count in gpus
    ]
    return Field({"spec": {"headGroupSpec": templates[0], "workerGroupSpecs": templates[1:]}})


@pytest.mark.parametrize(("gpus", "expected"), [((0, 4, 2), 4), ((1, 4), 1), ((0, 0, 2), 2), ((0, 0), None)])
def test_a_workload_asks_for_what_its_first_template_with_gpus_does(
    context: Contexts, gpus: tuple[int, ...], expected: int | None
) -> None:
    demand = workload_demand(RAY_CLUSTER, ray(*gpus), context({}))
    assert demand.resources.get("nvidia.com/gpu") == expected


def test_each_template_of_a_workload_is_a_subject_of_its_own(context: Contexts) -> None:
    around = context({})
    around.memo["of the workload"] = 1
    cluster = ray(1, 2)
    found = list(template_contexts(RAY_CLUSTER, cluster, around))
    assert [ctx.subject.path for ctx in found] == [
        ("spec", "headGroupSpec", "template"),
        ("spec", "workerGroupSpecs", 0, "template"),
    ]
    for ctx in found:
        assert (ctx.memo, ctx.wrapper) == ({}, Wrapper(GroupVersionKind("ray.io", "v1", "RayCluster"), cluster))


PLAIN: dict[str, Any] = {"name": "a", "image": "a"}
DEMANDS = {
    "containers": {"containers": [{**PLAIN, "resources": {"limits": {"nvidia.com/gpu": 2}}}]},
    "init containers": {
        "containers": [PLAIN],
        "initContainers": [{**PLAIN, "resources": {"limits": {"nvidia.com/gpu": 2}}}],
    },
    "sidecars": {
        "containers": [{**PLAIN, "resources": {"limits": {"nvidia.com/gpu": 1}}}],
        "initContainers": [
            {**PLAIN, "restartPolicy": "Always", "resources": {"limits": {"nvidia.com/gpu": 1}}},
            {**PLAIN, "resources": {"limits": {"nvidia.com/gpu": 1}}},
        ],
    },
    "claims": {
        "containers": [{**PLAIN, "resources": {"claims": [{"name": "c"}]}}],
        "resourceClaims": [{"name": "c", "resourceClaimTemplateName": "gpus"}],
    },
}


@pytest.mark.parametrize("kind", TARGET_KINDS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("spec", DEMANDS.values(), ids=DEMANDS)
def test_the_demand_of_a_target_follows_from_what_is_kept_of_it(
    context: Contexts, kind: Kind, spec: dict[str, Any]
) -> None:
    ctx = context("kind: ScaledObject", facts=CLAIM_TEMPLATE)
    obj = {"metadata": {"name": "a"}, "spec": {"template": {"spec": spec}}}
    gvk = GroupVersionKind(kind.group, kind.versions[0], kind.name)
    kept = Needs((), TARGET_NEEDS).project(Request(gvk, Operation.CREATE, obj))
    assert kept is not None

    assert [whole_gpus(workload_demand(kind, Field(each), ctx)) for each in (obj, kept.object)] == [2, 2]


CLAIM_TEMPLATE = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: gpus, namespace: research}
spec: {spec: {devices: {requests: [{name: a, exactly: {deviceClassName: gpu.nvidia.com, count: 2}}]}}}
"""
