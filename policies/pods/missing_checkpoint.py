"""Training workload with nowhere to write checkpoints.

## Why is this bad?
When the Pod ends early, all its work is lost. Even a Pod that is protected from disruption ends with its node: by a
failure of the machine, a Spot interruption, an expiry or an upgrade. The container's file system, an `emptyDir` and
the disk of the node are then deleted.

## Instead
Mount a PersistentVolumeClaim, or another volume that outlives the node, and write checkpoints to it.

```yaml
volumes:
  - name: checkpoints
    persistentVolumeClaim:
      claimName: checkpoints
```

Training that names an object store in its arguments or environment (`s3://` and the like) is not reported. If a
library writes to an object store that the Pod does not name, add an exemption to the policy file. The annotation
`gpugate.dev/checkpointed: "true"` does not prevent the finding, because it does not show where the checkpoints are.

A workload is reported only if its labels, a framework that only trains, or a training launcher in its command show
that it trains. The finding names which. If it does not train, label it `gpugate.dev/workload-class: batch`.

## Sources
- Volumes: `k8s.io/api/core/v1/types.go` VolumeSource, v0.36; Volcano v1.15.1 `batch/v1alpha1` VolumeSpec.
- What ends a protected Pod: Karpenter v1.14 documentation, "Disruption".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpugate.policies.pods._training import (
    evidence_for_class,
    names_object_store,
    node_paths,
    otherwise,
    outlives,
    says_checkpointed,
    trains,
)
from gpugate.policies.sdk.findings import Skip, Stance, Violation
from gpugate.policies.sdk.gpu_demand import MAY_DEMAND, gpu_demand
from gpugate.policies.sdk.objects import POD
from gpugate.policies.sdk.policy import Context, validates
from gpugate.policies.sdk.policy import Params as PolicyParams
from gpugate.policies.sdk.workload_class import CLASS_NEEDS, owner_kind, workload_class

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field


class Params(PolicyParams, frozen=True, kw_only=True):
    """What counts as storage for checkpoints in addition to a volume.

    Attributes:
        object_stores: how the addresses of object stores begin.
    """

    object_stores: tuple[str, ...] = ("s3://", "gs://", "az://", "abfs://", "abfss://")


@validates(POD, params=Params, mode=Stance.WARN, needs=CLASS_NEEDS, concerns=MAY_DEMAND)
def check(pod: Field, ctx: Context[Params]) -> Iterator[Violation | Skip]:
    """Report a template, or a Pod without one, without storage that outlives it."""
    if ctx.wrapper is None and owner_kind(pod, ctx):
        return
    demand = ctx.derived(gpu_demand)
    if not demand and demand.doubt and ctx.derived(workload_class).name == "training":
        yield demand.doubt
    if not ctx.derived(trains) or _have_storage(pod, ctx):
        return
    message = (
        "is annotated as checkpointed, but mounts no volume that outlives the Pod and names no object store"
        if says_checkpointed(pod)
        else _message(pod)
    )
    hint = f"mount a PersistentVolumeClaim for checkpoints, or name the object store in an argument{otherwise(ctx)}"
    yield Violation(pod["spec", "volumes"].path, f"{message} {evidence_for_class(ctx)}", hint=hint)


def _message(pod: Field) -> str:
    path = next(node_paths(pod), "")
    but = f" except {path} of its node: unless that is a shared file system," if path else ":"
    return (
        f"mounts no volume that outlives the Pod{but} training starts again when {'the' if path else 'its'} node fails"
    )


def _have_storage(pod: Field, ctx: Context[Params]) -> bool:
    """Tell whether the Pod, or any template of its workload, has storage: one may write for all that train together."""
    wrapper = ctx.wrapper
    if wrapper is None:
        return _has_storage(pod, ctx)
    key = _has_storage, ctx.params
    if key not in wrapper.memo:
        wrapper.memo[key] = any(_has_storage(template, ctx) for template in wrapper.templates)
    return bool(wrapper.memo[key])


def _has_storage(pod: Field, ctx: Context[Params]) -> bool:
    return outlives(pod, ctx.wrapper) or names_object_store(pod, ctx.params.object_stores)
