"""Production workload on GPUs that may scale below the replicas its service level needs.

## Why is this bad?
The first requests after a pause wait minutes until a node, a driver, an image and a model are ready. A single replica
ends with its node. That is acceptable for a development model, but not for a production service level.

## Instead
Keep the replicas that the service level requires:

```yaml
spec:
  minReplicaCount: 2
```

The label `gpugate.dev/sla` names the service level. It can be on the ScaledObject, on the workload that it scales, or
on the namespace. The parameter `namespaces` names the service level of namespaces. If several levels apply, the one
that requires the most replicas counts, so no label lowers another.

If `idleReplicaCount` is set, it is evaluated instead of `minReplicaCount`, because KEDA scales down to it.

## Sources
KEDA v2.20.2 `apis/keda/v1alpha1/scaledobject_types.go` (minReplicaCount is 0 where absent; idleReplicaCount).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import msgspec

from gpugate.policies.scaling._scaled_objects import floor, highest_stance, maximum, minimum
from gpugate.policies.sdk import formats, objects
from gpugate.policies.sdk.facts import Need
from gpugate.policies.sdk.findings import Patch, Patches, Skip, Stance, Violation
from gpugate.policies.sdk.policy import Context, validates
from gpugate.policies.sdk.policy import Params as PolicyParams
from gpugate.policies.sdk.scale_targets import TARGET_KINDS, TARGET_NEEDS, scale_target, target_workload
from gpugate.policies.sdk.workload_class import namespace_doubt, namespace_labels

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field

_LABEL: Final = "gpugate.dev/sla"
_LABEL_NEEDS: Final = tuple(Need(kind, ("metadata.labels",)) for kind in (*TARGET_KINDS, objects.NAMESPACE))
_Count = Annotated[int, msgspec.Meta(ge=0)]


class Params(PolicyParams, frozen=True, kw_only=True):
    """Which service levels there are.

    Attributes:
        sla_min: the minimum number of replicas, by service level as in the label; other levels require none.
        namespaces: the service level of the workloads of a namespace, by name; `*` matches anything.
    """

    sla_min: dict[str, _Count] = msgspec.field(default_factory=lambda: {"prod": 2, "production": 2})
    namespaces: dict[str, str] = msgspec.field(default_factory=lambda: {"prod": "prod", "production": "prod"})


@validates(objects.SCALED_OBJECT, params=Params, mode=Stance.WARN, needs=(*TARGET_NEEDS, *_LABEL_NEEDS))
def check(scaled_object: Field, ctx: Context[Params]) -> Iterator[Violation | Skip]:
    """Compare the minimum number of replicas with that of the service level."""
    lowest = floor(scaled_object)
    replicas = lowest.integer or 0
    if replicas >= max(ctx.params.sla_min.values(), default=0):
        return
    at_most = ctx.derived(highest_stance)
    if not at_most:
        return
    needed, where = max(_levels(scaled_object, ctx), default=(0, ""))
    if replicas >= needed:
        yield from _unknown(scaled_object, ctx)
    else:
        message = (
            f"may scale down to {replicas} replica{'' if replicas == 1 else 's'}; {where} requires at least {needed}"
        )
        why = "A node that ends takes a replica with it, and another one takes minutes to start." if replicas else ""
        hint, fix = f"raise the minimum to {needed} replicas or more", _fix(scaled_object, needed, where)
        yield Violation(lowest.path, message, at_most, hint, fix, why=why)


def _unknown(scaled_object: Field, ctx: Context[Params]) -> Iterator[Skip]:
    """Yield a skip for each object whose unknown labels could require more."""
    target = scale_target(scaled_object)
    if target and target_workload(target, ctx) is None:
        yield Skip(f"the Pod template of {target} is unknown")
    doubt = namespace_doubt(ctx)
    if doubt:
        yield doubt


def _levels(scaled_object: Field, ctx: Context[Params]) -> Iterator[tuple[int, str]]:
    """Yield the minimum number of replicas of each service level, and its source as text."""
    target = scale_target(scaled_object)
    workload = target_workload(target, ctx) if target else None
    labels = {
        "the ScaledObject": scaled_object["metadata", "labels"].labels,
        f"{target}": workload[1]["metadata", "labels"].labels if workload else {},
        f"namespace {ctx.request.namespace}": namespace_labels(ctx),
    }
    for whose, present in labels.items():
        level = present.get(_LABEL, "")
        yield ctx.params.sla_min.get(level, 0), f"label {_LABEL}={level} of {whose}"
    for pattern, level in ctx.params.namespaces.items():
        if formats.matches(pattern, ctx.request.namespace):
            yield ctx.params.sla_min.get(level, 0), f"namespace {ctx.request.namespace}"


def _fix(scaled_object: Field, needed: int, where: str) -> Patches | None:
    if needed > maximum(scaled_object):
        return None
    spec = scaled_object["spec"]
    patches = []
    if spec["idleReplicaCount"]:
        patches.append(Patch("remove", spec["idleReplicaCount"].path, None, "keeps the minimum without load"))
    if minimum(scaled_object) < needed:
        reason = f"keeps {needed} replicas, which {where} requires"
        patches.append(Patch("set", spec["minReplicaCount"].path, needed, reason))
    return Patches(tuple(patches))
