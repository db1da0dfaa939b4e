"""GPU pool without a taint against other Pods.

## Why is this bad?
Without a taint any Pod that fits can run on the GPU nodes: a log collector keeps a node of 50 USD an hour alive, and
uses the CPU and memory that the next GPU Pod needs. A startup taint does not help, because it is removed when the
node is ready. Nor does `PreferNoSchedule`, which the scheduler ignores if no other node fits.

## Instead
Write the taint that GPU Pods tolerate, with the effect `NoSchedule` or `NoExecute`; its value does not matter:

```yaml
taints:
  - key: nvidia.com/gpu
    value: "true"
    effect: NoSchedule
```

Each make of accelerator has its own key: `nvidia.com/gpu`, `amd.com/gpu`, `habana.ai/gaudi`, `aws.amazon.com/neuron`.
`platform.taints` can define other keys, or no taint for a resource.

A pool with another taint that you chose, such as `example.com/gpu`, gets only a warning, because gpugate cannot see
whether Pods without a GPU tolerate that taint. If `platform.taints` sets the taint of these nodes, the pool needs
that taint and is denied without it. Taints of other accelerators, of Karpenter and of Kubernetes do not protect the
GPU nodes, so they do not count.

If the taint covers the accelerators of only some manufacturers, require one manufacturer. If a broad requirement, such as
`instance-category`, allows a few types of another manufacturer, `nodepools/unpinned-manufacturer` reports them.

Split a pool that names types with and without GPUs, such as `[p5.48xlarge, t3.nano]`, into two pools. With a taint, an
unsplit pool would exclude the Pods that use the types without GPUs. Without a taint these Pods run on the GPU nodes,
and Karpenter even launches GPU nodes for Pods that are too large for the other types. A pool that does not restrict its
instance types can launch GPU nodes too, but it is not reported.

## Sources
Karpenter v1.14.1 `pkg/apis/v1/nodeclaim.go` (`taints`, `startupTaints`); aws/karpenter-provider-aws v1.14.1
`pkg/providers/instance/filter/filter.go` (ExoticInstanceTypeFilter: GPU types are launched where no other type fits);
Kubernetes v1.36 `core/v1` TaintEffect; EC2 types as of 2026-07-20.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.nodepools._accelerators import is_minor, makes, taints_for
from gpugate.policies.nodepools._gpu_pools import with_gpu_types
from gpugate.policies.sdk.findings import Patch, Patches, Skip, Stance, Violation
from gpugate.policies.sdk.node_pools import INSTANCE_TYPES, accelerator_taint_keys
from gpugate.policies.sdk.objects import NODE_POOL
from gpugate.policies.sdk.policy import Context, Params, validates
from gpugate.policies.sdk.scheduling import HARD_EFFECTS
from gpugate.policies.sdk.structs import replace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.nodepools._accelerators import Make
    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.node_pools import MatchingTypes
    from gpugate.policies.sdk.platform import Taint

_WEAK: Final = "The scheduler ignores the taint when no other node fits, so Pods without a GPU run on the GPU nodes."
_BRIEF: Final = "Karpenter removes the taint when the node is ready, and then any Pod that fits runs there."
_ADMITS: Final = (
    "A Pod that tolerates the taint and requests no GPU keeps a GPU node running, and uses the CPU and memory that the "
    "next GPU Pod needs."
)
# Domains of taints with another meaning: the capacity type of a node, or that it is not ready.
_GENERAL: Final = ("karpenter.sh", "kubernetes.io", "k8s.aws", "amazonaws.com")
_ONE_MANUFACTURER: Final = "require one manufacturer with the label karpenter.k8s.aws/instance-gpu-manufacturer"
# A taint on a pool with other types too would exclude the Pods that use those.
_APART: Final = "move the types with an accelerator to a separate pool with the taint"


@validates(NODE_POOL, tables=(INSTANCE_TYPES,))
def check(pool: Field, ctx: Context[Params]) -> Iterator[Violation | Skip]:
    """Report the makes of accelerator whose nodes have no taint for it."""
    yield from with_gpu_types(pool, ctx, _violations)


def _violations(pool: Field, types: MatchingTypes, ctx: Context[Params]) -> Iterator[Violation]:
    template = pool["spec", "template", "spec"]
    present = {t["key"].text for t in template["taints"] if t["effect"].text in HARD_EFFECTS}
    wanted = {make: taints_for(make, ctx) for make in makes(types)}
    open_to_all = [make for make, taints in wanted.items() if taints and present.isdisjoint(t.key for t in taints)]
    if not open_to_all:
        return
    if len(open_to_all) < len(wanted):
        named = (make for make in open_to_all if not is_minor(make, types))
        yield from (_another_make(make, types, template["taints"]) for make in named)
    else:
        largest = open_to_all[0]
        violation = _none(template, largest.resources[0], wanted[largest], ctx)
        yield replace(violation, hint=_APART, fix=None) if types.others else violation


def _another_make(make: Make, types: MatchingTypes, taints: Field) -> Violation:
    count = make.types.bit_count()
    return Violation(
        taints.path,
        f"{count} of the instance types {'has' if count == 1 else 'have'} {make.resources[0]}, but the pool has no taint for it",
        hint=_ONE_MANUFACTURER if types.catalogue.version else "allow instance types of one manufacturer only",
        why=f"The taint of the pool is for another accelerator. Pods that request {make.resources[0]} do not tolerate it, so they cannot run on nodes of this pool.",
    )


def _of_platform(template: Field, ctx: Context[Params]) -> Field | None:
    """Return the first taint of the platform's own choice that excludes Pods without a toleration."""
    accelerators = accelerator_taint_keys(ctx)
    return next(
        (
            taint
            for taint in template["taints"]
            if taint["effect"].text in HARD_EFFECTS
            and taint["key"].text not in accelerators
            and not taint["key"].text.partition("/")[0].endswith(_GENERAL)
        ),
        None,
    )


def _none(template: Field, resource: str, wanted: tuple[Taint, ...], ctx: Context[Params]) -> Violation:
    taint = wanted[0]
    keys = {accelerator_taint.key for accelerator_taint in wanted}
    hint = (
        f"add the taint {taint.key}={taint.value}:NoSchedule under spec.template.spec.taints, and a toleration to the "
        "Pods that use these nodes"
    )
    reason = f"adds the taint {taint.key}, which excludes Pods without an accelerator"
    added = Patch(
        "append",
        template["taints"].path,
        {"key": taint.key, "value": taint.value, "effect": "NoSchedule"},
        reason,
    )
    for weak in template["taints"]:
        if weak["key"].text in keys:
            effect = weak["effect"]
            message = f"the taint {weak['key'].text} has the effect {effect.text}, which excludes no Pod"
            stronger = Patch("set", effect.path, "NoSchedule", "makes the taint exclude Pods without an accelerator")
            return Violation(effect.path, message, hint="write effect: NoSchedule", fix=Patches((stronger,)), why=_WEAK)
    for brief in template["startupTaints"]:
        if brief["key"].text in keys:
            message = f"the taint {brief['key'].text} is a startup taint, which is removed when the node is ready"
            moved = Patch("remove", brief.path, None, "a startup taint is removed when the node is ready")
            return Violation(brief.path, message, hint=hint, fix=Patches((moved, added)), why=_BRIEF)
    own = None if ctx.platform.configured_taints_of(resource) else _of_platform(template, ctx)
    if own is not None:
        key = own["key"].text
        return Violation(
            own.path,
            f"no taint for {resource}: Pods that tolerate the taint {key} and request no GPU may run on these nodes",
            Stance.WARN,
            f"name {key} under platform.taints of the policy file if only GPU Pods tolerate it, or add the taint "
            f"{taint.key}={taint.value}:NoSchedule, and let Pods that use these nodes tolerate it",
            why=_ADMITS,
        )
    return Violation(
        template["taints"].path,
        f"missing taint {taint.key}: Pods that do not request {resource} can run on these nodes",
        hint=hint,
        fix=Patches((added,)),
    )
