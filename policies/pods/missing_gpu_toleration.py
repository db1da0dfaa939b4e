"""Pod that asks for a GPU and does not tolerate the taint of GPU nodes.

## Why is this bad?
The Pod stays Pending: Karpenter finds no node pool for it, and existing GPU nodes do not accept it. GPU nodes have a
taint, so that only Pods that use their GPUs run there.

If the API server's ExtendedResourceToleration plugin is enabled, it adds a toleration whose key is the *name of the
resource*. If your API server enables this plugin, set `platform.extended_resource_toleration: true`; gpugate then
does not add the same toleration again. The plugin's toleration does not cover MIG slices and shared GPUs, whose nodes
have the taint `nvidia.com/gpu`, nor Neuron cores, whose nodes have the taint `aws.amazon.com/neuron`. The plugin adds
nothing to Pods that request their GPU through a ResourceClaim.

## Instead
gpugate adds the missing toleration; a Pod that tolerates the taint in any way is not changed. If gpugate finds
NodePools that may run the Pod, the toleration has the value and effect of their taint, for example `present` and
`NoSchedule` for `nvidia.com/gpu=present:NoSchedule`. To have the toleration in your manifests, write

```yaml
tolerations:
  - key: nvidia.com/gpu
    operator: Exists
    effect: NoSchedule
```

Kueue adds the tolerations of a ResourceFlavor when it admits a workload with the label `kueue.x-k8s.io/queue-name`.
If gpugate finds the flavors of the queue and at least one of them has the toleration, it does not change the Pod. If
gpugate does not find the flavors, the Pod is not evaluated.

Two kinds of Pods never get the toleration:

- Pods without a GPU, or with the quantity 0, because it would allow them on GPU nodes.
- Pods of a DaemonSet, because a toleration on the Pod is too late: the controller reads the tolerations of the
  DaemonSet's template, and creates no Pod for a node whose taint the template does not tolerate.

`extra_tolerations` adds further tolerations by workload class, such as the toleration of Spot nodes for inference.
Pods that train, or possibly train, get none of these. A toleration of Spot nodes would allow them there, and a Spot
interruption ends a Pod even if it has the annotation `karpenter.sh/do-not-disrupt`.

## Sources
- ExtendedResourceToleration: `plugin/pkg/admission/extendedresourcetoleration/admission.go`, Kubernetes v1.36; on by
  default in EKS (EKS user guide, platform versions) and GKE (GKE documentation, "Run GPUs in GKE Standard node pools").
- Flavors: `apis/kueue/v1beta2/resourceflavor_types.go`, Kueue v0.14.
- DaemonSets: `pkg/controller/daemon/daemon_controller.go` NodeShouldRunDaemonPod, Kubernetes v1.36.
- Taints and tolerations: `k8s.io/api/core/v1/toleration.go`, v0.36.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from gpugate.policies.pods._placement import POOL_NEED, missing_tolerations
from gpugate.policies.sdk.findings import Patch, Skip
from gpugate.policies.sdk.gpu_demand import MAY_DEMAND, gpu_demand
from gpugate.policies.sdk.objects import POD
from gpugate.policies.sdk.platform import Taint
from gpugate.policies.sdk.policy import Context, mutates
from gpugate.policies.sdk.policy import Params as PolicyParams
from gpugate.policies.sdk.queues import QUEUE_NEEDS, admission
from gpugate.policies.sdk.scheduling import tolerated
from gpugate.policies.sdk.workload_class import CLASS_NEEDS, owner_kind, workload_class

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpugate.policies.pods._placement import MissingToleration
    from gpugate.policies.sdk.field import Field, Json
    from gpugate.policies.sdk.gpu_demand import GpuDemand
    from gpugate.policies.sdk.policy import AnyContext


class Toleration(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A toleration to add, as a Pod writes it; `Exists` takes no value."""

    key: str
    operator: Literal["Equal", "Exists"] = "Equal"
    value: str = ""
    effect: Literal["NoSchedule", "PreferNoSchedule"] = "NoSchedule"

    def __post_init__(self) -> None:
        if self.operator == "Exists" and self.value:
            raise ValueError("a toleration with operator Exists takes no value")

    @property
    def written(self) -> dict[str, Json]:
        """The toleration as a Pod writes it."""
        value: dict[str, Json] = {"value": self.value} if self.operator == "Equal" else {}
        return {"key": self.key, "operator": self.operator, **value, "effect": self.effect}


class Params(PolicyParams, frozen=True, kw_only=True):
    """What Pods tolerate in addition to the taints of the platform.

    Attributes:
        extra_tolerations: the tolerations that GPU Pods get in addition to the one for their GPU, by workload class.
    """

    extra_tolerations: dict[Literal["inference", "batch", "interactive", "system"], tuple[Toleration, ...]] = (
        msgspec.field(default_factory=dict)
    )


@mutates(POD, params=Params, needs=(*CLASS_NEEDS, *QUEUE_NEEDS, POOL_NEED), concerns=MAY_DEMAND)
def mutate(pod: Field, ctx: Context[Params]) -> Iterator[Patch | Skip]:
    """Add the toleration for each kind of accelerator that the Pod requests."""
    demand = ctx.derived(gpu_demand)
    if not (demand or demand.unresolved) or owner_kind(pod, ctx) == "DaemonSet":
        return
    added: set[str] = set()
    missing_ones, doubt = _missing(demand, ctx)
    if doubt:
        yield doubt
    for missing in missing_ones:
        added.add(str(missing.value["key"]))
        reason = f"adds the toleration {missing}, {_reason(missing, ctx)}"
        yield Patch("append", pod["spec", "tolerations"].path, missing.value, reason)
    if ctx.params.extra_tolerations:
        yield from _extra(pod, ctx, demand, added)
    if demand.doubt:
        yield demand.doubt


def _missing(demand: GpuDemand, ctx: AnyContext) -> tuple[Sequence[MissingToleration], Skip | None]:
    """Return the tolerations that are missing with every flavor that its queue may assign, or a skip if unknown."""
    queue = admission(ctx)
    first: Sequence[MissingToleration] = ()
    for placement in queue.placements:
        pod = placement.pod
        missing = tuple(missing_tolerations(tuple(pod["spec", "tolerations"]), pod, demand, placement.ctx))
        if not missing:
            return (), None
        first = first or missing
    return ((), queue.doubt) if queue.doubt else (first, None)


def _reason(missing: MissingToleration, ctx: Context[Params]) -> str:
    name, key, effect = missing.name, missing.value["key"], missing.value.get("effect")
    if ctx.platform.extended_resource_toleration and key == name and effect == "NoSchedule":
        return "as the API server does (ExtendedResourceToleration)"
    if missing.pool:
        return f"because NodePool {missing.pool} has that taint"
    if ctx.platform.configured_taints_of(name) is not None:
        return f"because nodes with {name} have that taint (platform.taints)"
    return f"the usual taint of nodes with {name}"


def _extra(pod: Field, ctx: Context[Params], demand: GpuDemand, added: set[str]) -> Iterator[Patch]:
    classified = ctx.derived(workload_class)
    if (
        not demand
        or classified.name is None
        or classified.name == "training"
        or "training" in {classified.conflict, classified.possible}
    ):
        return
    for extra in ctx.params.extra_tolerations.get(classified.name, ()):
        taint = Taint(key=extra.key, value=extra.value)
        if extra.key not in added and not tolerated(pod, taint, extra.effect):
            added.add(extra.key)
            reason = f"adds the toleration {extra.key}:{extra.effect}, configured for class {classified.name}"
            yield Patch("append", pod["spec", "tolerations"].path, extra.written, reason)
