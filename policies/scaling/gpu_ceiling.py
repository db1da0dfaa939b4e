"""Workload that may grow to more GPUs than the platform allows or offers.

## Why is this bad?
The workload can use more GPUs than intended, because every replica requests the GPUs of its Pod template. If the
limits of the node pools are lower, the last replicas stay Pending. The workload then uses all GPUs of these pools,
and other workloads get none.

## Instead
Lower the maximum, or raise the limits of the pools if the workload needs that many GPUs.

The policy evaluates a ScaledObject's `maxReplicaCount`, the annotation `autoscaling.keda.sh/paused-replicas`, and the
`replicas` of a Deployment or StatefulSet. The GPUs of that many replicas must not exceed `max_gpus`, nor the sum of
the limits of the node pools that can run the Pods. A MIG slice or a Neuron core counts as its part of a device.
`scaling/unbounded-replicas` reports a ScaledObject without a maximum.

The GPUs are compared with the limits of the pools only if gpugate has read all pools, and if every pool that can run
the Pods has a limit for the resource.

## Sources
KEDA v2.20.2 `apis/keda/v1alpha1/scaledobject_webhook.go` (no check of the maximum),
`controllers/keda/scaledobject_controller.go` (paused replicas); Karpenter v1.14.1
`pkg/controllers/provisioning/scheduling` (limits, taints, requirements of pools).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import msgspec

from gpugate.policies.scaling._scaled_objects import PLACEMENT_FIELDS, POOL_NEEDS, TABLES, paused_at, shortage
from gpugate.policies.sdk.facts import Need
from gpugate.policies.sdk.findings import Skip, Stance, Violation
from gpugate.policies.sdk.gpu_demand import CLAIM_NEEDS
from gpugate.policies.sdk.objects import DEPLOYMENT, SCALED_OBJECT, STATEFUL_SET, Kind
from gpugate.policies.sdk.pod_templates import pod_templates
from gpugate.policies.sdk.policy import Context, validates
from gpugate.policies.sdk.policy import Params as PolicyParams
from gpugate.policies.sdk.scale_targets import (
    TARGET_KINDS,
    TARGET_NEEDS,
    scale_target,
    target_workload,
    whole_gpus,
    workload_demand,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.gpu_demand import GpuDemand

_PLACEMENTS: Final = tuple(Need(kind, PLACEMENT_FIELDS) for kind in TARGET_KINDS)


class Params(PolicyParams, frozen=True, kw_only=True):
    """How much one workload may take.

    Attributes:
        max_gpus: the most GPUs that all replicas of a workload may have together.
    """

    max_gpus: Annotated[int, msgspec.Meta(ge=1)] = 64


@validates(
    SCALED_OBJECT,
    params=Params,
    mode=Stance.WARN,
    needs=(*TARGET_NEEDS, *_PLACEMENTS, *POOL_NEEDS),
    tables=TABLES,
)
def check_scaled_object(scaled_object: Field, ctx: Context[Params]) -> Iterator[Violation | Skip]:
    """Compare the GPUs of all replicas with what there is."""
    target, maximum = scale_target(scaled_object), scaled_object["spec", "maxReplicaCount"]
    paused = paused_at(scaled_object)
    counts = [(maximum, maximum.integer or 0)] if maximum else []
    counts += [paused] if paused else []
    if target is None or not counts:
        return
    workload = target_workload(target, ctx)
    if workload is None:
        yield Skip(f"the Pod template of {target} is unknown")
        return
    for field, replicas in counts:
        yield from _compare(field, replicas, *workload, ctx)


@validates(DEPLOYMENT, STATEFUL_SET, params=Params, mode=Stance.WARN, needs=(*CLAIM_NEEDS, *POOL_NEEDS), tables=TABLES)
def check_workload(workload: Field, ctx: Context[Params]) -> Iterator[Violation | Skip]:
    """Compare the GPUs of all replicas with what there is."""
    field = workload["spec", "replicas"]
    replicas = 1 if not field else field.integer or 0
    yield from _compare(field, replicas, ctx.request.kind_among((DEPLOYMENT, STATEFUL_SET)), workload, ctx)


def _compare(
    field: Field, replicas: int, kind: Kind, workload: Field, ctx: Context[Params]
) -> Iterator[Violation | Skip]:
    demand = workload_demand(kind, workload, ctx)
    if not demand:
        if demand.doubt:
            yield demand.doubt
        return
    gpus = whole_gpus(demand)
    if gpus * replicas > ctx.params.max_gpus:
        total = f"{replicas} replicas x {gpus} GPUs = {float(gpus * replicas):g} GPUs"
        message = f"{total} (maximum: {ctx.params.max_gpus})"
        why = "One workload can then use more GPUs than the policy file allows."
        yield Violation(field.path, message, hint="lower the number of replicas", why=why)
    for template in pod_templates(kind.group, kind.name, workload):
        yield from _beyond_pools(field, replicas, template, demand, ctx)


def _beyond_pools(
    field: Field, replicas: int, template: Field, demand: GpuDemand, ctx: Context[Params]
) -> Iterator[Violation | Skip]:
    for resource, count in sorted(demand.resources.items()):
        room = shortage(template, resource, count, replicas, ctx)
        if isinstance(room, Skip):
            yield room
        elif room:
            pools = f"pool {room.pools[0]} allows" if len(room.pools) == 1 else f"{len(room.pools)} pools allow"
            total = f"{replicas} replicas x {count} {resource} = {replicas * count}"
            hint = f"lower the number of replicas, or raise the limits of {', '.join(room.pools[:5])}"
            why = "The last replicas stay Pending, while the workload uses all GPUs that it shares with others."
            yield Violation(field.path, f"{total}; {pools} only {room.amount}", hint=hint, why=why)
