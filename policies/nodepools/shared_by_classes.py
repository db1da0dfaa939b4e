"""GPU NodePool that is not kept for one class of workload.

## Why is this bad?
Training and inference want the opposite of their nodes: training must not be moved and runs for days, inference grows and
shrinks by the minute and is packed on few nodes. In a pool for both, consolidation, expiry, Spot and budgets are wrong for
one of them, and a burst of one takes the limit of the other. A pool whose labels do not say what it is for is also judged
by none of the policies for training or inference.

## Instead
Make one pool for each class and say so in the labels of its nodes; let Pods select it:

```yaml
template:
  metadata:
    labels:
      workload: training
```

`gpugate.dev/workload-class`, `workload` and `node-type` are read, as the platform's configuration has them; a requirement on
one of them counts like the label, because Karpenter labels nodes with the values of its requirements. Where the
workloads are known, it is also reported that those of another class select the pool, and that weights make Karpenter try
pools in the wrong order: a Spot pool for inference not before its on-demand pool, a training pool before an inference pool
for Pods that select neither.

## Sources
Karpenter v1.14.1 `pkg/utils/nodepool/nodepool.go` (OrderByWeight), `pkg/scheduling/requirements.go` (labels of a template
and node selectors).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpugate.policies.nodepools._gpu_pools import if_gpu_pool
from gpugate.policies.nodepools._instance_choice import edited
from gpugate.policies.nodepools._pool_sharing import (
    POOL_NEED,
    WORKLOAD_NEEDS,
    gpu_workloads,
    misordered,
    selects,
    unknown_workloads,
)
from gpugate.policies.sdk import node_pools
from gpugate.policies.sdk.findings import Skip, Stance, Violation
from gpugate.policies.sdk.node_pools import INSTANCE_TYPES
from gpugate.policies.sdk.objects import NODE_POOL
from gpugate.policies.sdk.policy import Params, validates
from gpugate.policies.sdk.workload_class import CLASS_LABEL

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.platform import WorkloadClass
    from gpugate.policies.sdk.policy import Context


@validates(NODE_POOL, mode=Stance.WARN, tables=(INSTANCE_TYPES,), needs=(*WORKLOAD_NEEDS, POOL_NEED))
def check(pool: Field, ctx: Context[Params]) -> Iterator[Violation | Skip]:
    """Report a pool without a class, one that several classes select, and weights against the classes."""
    yield from if_gpu_pool(pool, ctx, _found(pool, ctx))


def _found(pool: Field, ctx: Context[Params]) -> Iterator[Violation | Skip]:
    labels = pool["spec", "template", "metadata", "labels"]
    own = node_pools.pool_class(pool, ctx)
    classes = node_pools.pool_classes(pool, ctx)
    if len(classes) > 1:
        yield _several(pool, classes, ctx)
    elif own is None:
        yield _without_class(labels, ctx)
    unknown = unknown_workloads(ctx)
    if unknown:
        yield unknown
    selecting = {w.name: w for w in ctx.derived(gpu_workloads) if w.name != own and selects(w, pool, ctx)}
    others = [selecting[name] for name in ("training", "inference") if name in selecting]
    if len(others) + (own in {"training", "inference"}) > 1:
        by = " and ".join(f"{workload.shown}, which is for {workload.name}" for workload in others)
        whose = f"is for {own} by its labels, but " if own else ""
        yield Violation(labels.path, f"{whose}is selected by {by}", hint="make one pool for each class of workload")
    yield from misordered(pool, ctx)


def _several(pool: Field, classes: frozenset[WorkloadClass], ctx: Context[Params]) -> Violation:
    """Report the requirement that gives nodes the label of one class or of another."""
    entries = tuple(node_pools.requirement_entries(pool, ctx))
    entry = next(
        entry
        for key, names in node_pools.class_labels(ctx)
        for entry in entries
        if entry.key == key and names.keys() & entry.requirement.values
    )
    message = f"its requirement {entry.key} makes it a pool for {' and '.join(sorted(classes))}"
    return Violation(edited(entry.field).path, message, hint="make one pool for each class of workload")


def _without_class(labels: Field, ctx: Context[Params]) -> Violation:
    rules = ctx.platform.workload_classes
    hint = f"write workload: training or workload: inference, or {CLASS_LABEL} with any class"
    present = (labels[key] for key in (CLASS_LABEL, *rules.labels, *rules.node_selectors) if labels[key])
    misread = next(present, None)
    if misread is not None:
        message = f'label {misread.path[-1]} is "{misread.text}", which names no class of workload'
        return Violation(misread.path, message, hint=hint)
    return Violation(labels.path, "no label says for which class of workload this GPU pool is", hint=hint)
