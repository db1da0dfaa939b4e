"""Replicas, triggers and placement of a ScaledObject as KEDA and Karpenter read them.

A pool is excluded only if it certainly takes none of the Pods: its taints, labels or instance types rule them out. Source:
Karpenter v1.14.1 `pkg/controllers/provisioning/scheduling`, `pkg/scheduling/requirements.go` (Compatible: a label that is
neither well known nor defined by the pool is refused).

Source of replicas: KEDA v2.20.2 `apis/keda/v1alpha1/scaledobject_types.go` (GetPausedReplicaCount),
`controllers/keda/scaledobject_controller.go` (scaleTargetToPausedCount: the number replaces minimum and maximum).
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Final

from gpugate.policies.scaling import _queries
from gpugate.policies.sdk import promql
from gpugate.policies.sdk.facts import Known, Need, named, object_contexts, object_doubt
from gpugate.policies.sdk.findings import Patch, Skip, Stance
from gpugate.policies.sdk.node_pools import INSTANCE_TYPES, NODE_POOL_LABEL, limits, matching_types, pool_requirements
from gpugate.policies.sdk.objects import NODE_POOL, SCALED_OBJECT
from gpugate.policies.sdk.platform import Taint
from gpugate.policies.sdk.scale_targets import TARGET_KINDS, most_for, scale_target, target_demand, target_workload
from gpugate.policies.sdk.scheduling import HARD_EFFECTS, is_only, normalized, tolerated
from gpugate.policies.sdk.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.policy import AnyContext
    from gpugate.policies.sdk.promql import Query
    from gpugate.policies.sdk.quantity import Amount

_BY_UTILISATION: Final = frozenset({"cpu", "memory"})


def set_maximum(scaled_object: Field, replicas: int) -> Iterator[Patch]:
    """Set `maxReplicaCount`."""
    field = scaled_object["spec", "maxReplicaCount"]
    if not field:
        reason = f"sets maxReplicaCount: {replicas}, because KEDA's default is 100"
        yield Patch("set", field.path, replicas, reason)


def set_fallback(scaled_object: Field) -> Iterator[Patch]:
    """Set `fallback`, so that the workload still scales if the metric is lost.

    Only if a trigger other than cpu and memory has type AverageValue, the default: before v2.18 KEDA rejects a fallback
    for other types, and since then it ignores it for type Value while no replica is ready (v2.20.2 `CHANGELOG.md`,
    `pkg/fallback/fallback.go`).
    """
    spec = scaled_object["spec"]
    usable = any(
        trigger["type"].text not in _BY_UTILISATION and trigger["metricType"].text in {"", "AverageValue"}
        for trigger in spec["triggers"]
    )
    if usable and not spec["fallback"]:
        replicas = max(1, spec["minReplicaCount"].integer or 0)
        reason = f"sets a fallback of {replicas} replicas for times without a metric"
        yield Patch("set", spec["fallback"].path, {"failureThreshold": 3, "replicas": replicas}, reason)


def set_stabilization(scaled_object: Field, seconds: int) -> Iterator[Patch]:
    """Set the stabilization window for scaling down."""
    behavior = scaled_object["spec", "advanced", "horizontalPodAutoscalerConfig", "behavior"]
    if not behavior:
        reason = f"waits {seconds} s before scaling down, because GPU Pods start slowly"
        yield Patch("set", behavior.path, {"scaleDown": {"stabilizationWindowSeconds": seconds}}, reason)


POOL_NEEDS: Final = (Need(NODE_POOL, ("spec.limits", "spec.template")),)
# The fields of a Pod template, in addition to its resources, that decide where its Pods run.
PLACEMENT_FIELDS: Final = ("spec.template.spec.nodeSelector", "spec.template.spec.tolerations")


class Room(Struct, frozen=True):
    """The sum of the limits of some pools for one resource, and their names."""

    amount: Amount
    pools: tuple[str, ...]


def shortage(template: Field, resource: str, count: int, replicas: int, ctx: AnyContext) -> Room | Skip | None:
    """Return the limits of the pools that may take Pods with `count` of a resource, if too low for all replicas.

    None if the limits are high enough, if a pool has no limit, or if there are no pools; a skip if that is unknown.
    """
    pools = ctx.facts.list(NODE_POOL)
    if not isinstance(pools, Known):
        return Skip(pools.reason)
    if not pools.complete:
        return Skip("not all NodePools are known")
    known = object_contexts(pools, ctx)
    limited = [(limit, pool) for pool in known if (limit := limits(pool.subject).get(resource)) is not None]
    unlimited = [pool for pool in known if resource not in limits(pool.subject)]
    total: Amount = 0
    names = []
    # Largest limits first: they are usually enough, so the others are not read.
    for limit, pool in sorted(limited, key=lambda pair: pair[0], reverse=True):
        if _may_take(pool, template, resource, count):
            total += limit
            names.append(pool.subject["metadata", "name"].text)
        if total >= replicas * count:
            return None
    if not names or any(_may_take(pool, template, resource, count) for pool in unlimited):
        return None
    return Room(total, tuple(sorted(names)))


def _may_take(pool: AnyContext, template: Field, resource: str, count: int) -> bool:
    types = pool.derived(matching_types)
    offered = types.catalogue.allocatable.get(resource) if types else None
    if types and offered and not types.unknown and not types.known & offered.at_least(count):
        return False
    required = {**pool.derived(pool_requirements), NODE_POOL_LABEL: is_only(pool.subject["metadata", "name"].text)}
    for key, value in template["spec", "nodeSelector"].labels.items():
        requirement = required.get(normalized(key))
        if requirement is None and "/" not in key:
            return False
        if requirement is not None and not requirement.allows(value):
            return False
    # Pods get the tolerations of their accelerators at admission.
    tolerated_keys = {taint.key for taint in pool.platform.taints_of(resource)}
    taints = (t for t in pool.subject["spec", "template", "spec", "taints"] if t["effect"].text in HARD_EFFECTS)
    return all(
        taint["key"].text in tolerated_keys
        or tolerated(template, Taint(key=taint["key"].text, value=taint["value"].text), taint["effect"].text)
        for taint in taints
    )


TABLES: Final = (INSTANCE_TYPES,)


KEDA_MAXIMUM: Final = 100
PAUSED_REPLICAS: Final = "autoscaling.keda.sh/paused-replicas"
# Integers as Go's strconv.ParseInt reads them in base 10; KEDA accepts 32 bits.
_INTEGER: Final = re.compile(r"[+-]?0*([0-9]{1,10})")
_GREATEST: Final = 2**31 - 1
_FORMULA: Final = ("spec", "advanced", "scalingModifiers", "formula")


def highest_stance(scaled_object: Field, ctx: AnyContext) -> Stance:
    """Return the highest stance of a finding in a ScaledObject; OFF if it has no target, or one without GPUs.

    Use `ctx.derived(highest_stance)`, which caches it for all policies.
    """
    target = scale_target(scaled_object)
    return most_for(target_demand(target, ctx)) if target else Stance.OFF


def target_doubt(scaled_object: Field, ctx: AnyContext) -> Skip | None:
    """Return why advice for GPU workloads may not apply to a ScaledObject; None if it applies or the target is known.

    Most ScaledObjects scale workloads without GPUs. If the target is unknown but may exist, only a query of metrics of
    GPUs or of model servers indicates GPUs.
    """
    target = scale_target(scaled_object)
    if target is None or target_workload(target, ctx) or measures_gpus(ctx):
        return None
    kind = next((kind for kind in TARGET_KINDS if (kind.group, kind.name) == (target.group, target.kind)), None)
    if kind is None:
        return Skip(f"the Pod template of {target} is unknown")
    return object_doubt(ctx.facts.list(kind, ctx.request.namespace), kind, target.name)


def measures_gpus(ctx: AnyContext) -> bool:
    """Tell whether a query of a ScaledObject reads metrics of GPUs or of model servers."""
    metrics = (selector.metric for _, query in ctx.derived(queries) for selector in query.selectors)
    return any(_queries.is_of_servers(metric) or metric.startswith("DCGM_FI_") for metric in metrics)


def minimum(scaled_object: Field) -> int:
    """Return the fewest replicas while a trigger is active."""
    return scaled_object["spec", "minReplicaCount"].integer or 0


def maximum(scaled_object: Field) -> int:
    """Return the most replicas."""
    replicas = scaled_object["spec", "maxReplicaCount"].integer
    return KEDA_MAXIMUM if replicas is None else replicas


def paused_at(scaled_object: Field) -> tuple[Field, int] | None:
    """Return the annotation that sets a fixed number of replicas, and that number; None if KEDA reads none.

    The number replaces minimum and maximum, and may be above the maximum.
    """
    annotation = scaled_object["metadata", "annotations", PAUSED_REPLICAS]
    replicas = _INTEGER.fullmatch(annotation.text)
    if replicas is None or annotation.text.startswith("-") or int(replicas[1]) > _GREATEST:
        return None
    return annotation, int(replicas[1])


def floor(scaled_object: Field) -> Field:
    """Return the field with the number of replicas while no trigger is active; missing means 0."""
    idle = scaled_object["spec", "idleReplicaCount"]
    return idle or scaled_object["spec", "minReplicaCount"]


_FALSE: Final = frozenset({"0", "f", "F", "FALSE", "False", "false"})


def is_false(text: str) -> bool:
    """Tell whether KEDA reads a text as false, like Go v1.26 `strconv.ParseBool`."""
    return text in _FALSE


def has_formula(scaled_object: Field) -> bool:
    """Tell whether a formula combines all triggers into one metric, so that no trigger counts by itself."""
    return bool(scaled_object[_FORMULA].text)


def queries(scaled_object: Field, _: AnyContext) -> tuple[tuple[Field, Query], ...]:
    """Return each Prometheus trigger with its query. `ctx.derived(queries)` caches them."""
    return tuple(
        (trigger, promql.read(trigger["metadata", "query"].text))
        for trigger in scaled_object["spec", "triggers"]
        if trigger["type"].text == "prometheus"
    )


HPA_NAME: Final = ("spec", "advanced", "horizontalPodAutoscalerConfig", "name")
# The needs of a policy that reads whether KEDA created an autoscaler.
MAKER_NEEDS: Final = (Need(SCALED_OBJECT, (".".join(HPA_NAME),)),)


def autoscaler_names(scaled_object: Field) -> tuple[str, ...]:
    """Return the names that KEDA may give the autoscaler of a ScaledObject; older versions cut them at 63 characters."""
    chosen = scaled_object[HPA_NAME].text
    default = f"keda-hpa-{scaled_object['metadata', 'name'].text}"
    return (chosen,) if chosen else (default, default[:63].rstrip("-._"))


def is_made_by_keda(autoscaler: Field, ctx: AnyContext) -> bool:
    """Tell whether KEDA created an autoscaler for a known ScaledObject, which is evaluated itself.

    Anyone can write a ScaledObject as the owner, but KEDA's autoscaler has the name that KEDA gives it.
    """
    fact = ctx.facts.list(SCALED_OBJECT, ctx.request.namespace)
    # A name that the API server generates is known when the object is validated.
    own = ctx.request.name or ctx.request.generate_name
    owners = autoscaler["metadata", "ownerReferences"]
    makers = (named(fact, owner["name"].text) for owner in owners if owner["kind"].text == SCALED_OBJECT.name)
    return any(maker is not None and own in autoscaler_names(maker) for maker in makers)


def most_replicas(trigger: Field, query: Query) -> int | None:
    """Return the number of replicas for the largest result of a query; None if it is unbounded or unknown.

    Only a metric of type AverageValue, the default, is divided by the threshold.
    """
    bound, threshold = _queries.most(query), _queries.number(trigger["metadata", "threshold"].text)
    if trigger["metricType"].text not in {"", "AverageValue"} or bound is None or threshold is None or threshold <= 0:
        return None
    return math.ceil(bound / threshold)
