"""NodePool whose nodeClassRef does not name one node class: group, kind and name.

## Why is this bad?
The file cannot be applied: the API server refuses a v1 NodePool or NodeClaim whose `nodeClassRef` does not have
group, kind and name. In `v1beta1` a name was enough.

A GPU pool with the class `default` gets a warning if a NodePool without GPUs uses the same class. The GPU nodes then
get the image, volumes and tags of general nodes.

## Instead
Write group, kind and name. For GPU pools, use a class for GPU nodes: an image with the driver, a volume large enough
for model images, and cost allocation tags.

## Sources
Karpenter v1.14.1 `pkg/apis/crds/karpenter.sh_nodepools.yaml`, `karpenter.sh_nodeclaims.yaml` (all three are required and
not empty); `karpenter.k8s.aws/v1` EC2NodeClass, `eks.amazonaws.com/v1` NodeClass (EKS Auto Mode).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpugate.policies.nodepools._gpu_pools import accelerator
from gpugate.policies.sdk import formats, node_pools
from gpugate.policies.sdk.facts import Known, Need, Unavailable, derived, object_contexts
from gpugate.policies.sdk.findings import Patch, Patches, Skip, Stance, Violation
from gpugate.policies.sdk.node_pools import INSTANCE_TYPES, NODE_CLASS_KINDS, is_for_accelerators, is_gpu_pool
from gpugate.policies.sdk.objects import NODE_CLAIM, NODE_POOL
from gpugate.policies.sdk.policy import Context, validates
from gpugate.policies.sdk.policy import Params as PolicyParams

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.policy import AnyContext

_MEMBERS = ("group", "kind", "name")


class Params(PolicyParams, frozen=True, kw_only=True):
    """Which node classes may be used.

    Attributes:
        allowed_node_classes: `group/kind`; `*` matches anything.
        forbidden_for_gpu: names that no GPU pool should share with other pools; `*` matches anything.
    """

    allowed_node_classes: tuple[str, ...] = ("*",)
    forbidden_for_gpu: tuple[str, ...] = ("default",)


@validates(
    NODE_POOL,
    NODE_CLAIM,
    params=Params,
    needs=(Need(NODE_POOL, ("spec.limits", "spec.template")),),
    tables=(INSTANCE_TYPES,),
)
def check(pool: Field, ctx: Context[Params]) -> Iterator[Violation | Skip]:
    """Report each missing member, a class that is not allowed, and a general class on a GPU pool."""
    if node_pools.made_by_karpenter(pool, ctx):
        return
    reference = node_pools.node_template(pool, ctx)["spec", "nodeClassRef"]
    missing = [member for member in _MEMBERS if not reference[member].text.strip()]
    if missing == list(_MEMBERS):
        yield Violation(
            reference.path,
            "missing nodeClassRef: the pool names no node class",
            hint="write group, kind and name, such as karpenter.k8s.aws, EC2NodeClass and the name of the class",
        )
        return
    for member in missing:
        yield _missing(reference, member, node_pools.provider(pool, ctx))
    group, kind, name = (reference[member].text for member in _MEMBERS)
    allowed = ctx.params.allowed_node_classes
    if not missing and not any(formats.matches(pattern, f"{group}/{kind}") for pattern in allowed):
        yield Violation(
            reference["kind"].path,
            f"{group}/{kind} is not an allowed node class",
            hint=f"use one of {', '.join(allowed)}",
            why="The policy file allows only other node classes, which are set up for this platform.",
        )
    if name and any(formats.matches(pattern, name) for pattern in ctx.params.forbidden_for_gpu):
        yield from _general(reference, ctx)


def _missing(reference: Field, member: str, provider: str) -> Violation:
    value = {"group": provider, "kind": NODE_CLASS_KINDS.get(provider, "")}.get(member, "")
    message = f"missing {member} in nodeClassRef (required in karpenter.sh/v1)"
    path = reference[member].path
    if not value:
        return Violation(path, message, hint=f"add the {member} of the node class")
    reason = f"adds the {member} of the node class"
    return Violation(
        path,
        message,
        hint=f"add {member}: {value}",
        fix=Patches((Patch("set", path, value, reason),)),
    )


def _general(reference: Field, ctx: Context[Params]) -> Iterator[Violation | Skip]:
    """Warn if a GPU pool and a known pool without GPUs have the same class: the name alone proves nothing."""
    if not ctx.derived(is_gpu_pool):
        return
    fact = ctx.facts.list(NODE_POOL)
    if isinstance(fact, Unavailable):
        yield Skip(fact.reason)
        return
    name = reference["name"]
    other = derived(fact, _general_pools, ctx).get(_class_of(reference))
    if other is None:
        if not fact.complete:
            yield Skip("not all NodePools are known")
    else:
        yield Violation(
            name.path,
            f'this {ctx.derived(accelerator)} pool and the general NodePool {other} use the same node class "{name.text}"',
            at_most=Stance.WARN,
            hint=f"create a node class for {ctx.derived(accelerator)} nodes and refer to it",
            why="These nodes get the image, volumes and tags of general nodes: a driver or disk space may be missing.",
        )


def _general_pools(pools: Known, ctx: AnyContext) -> dict[tuple[str, ...], str]:
    """Return the name of a pool without GPUs for each node class of such a pool."""
    names: dict[tuple[str, ...], str] = {}
    for around in object_contexts(pools, ctx):
        if not around.derived(is_for_accelerators):
            reference = node_pools.node_template(around.subject, around)["spec", "nodeClassRef"]
            names.setdefault(_class_of(reference), around.subject["metadata", "name"].text)
    return names


def _class_of(reference: Field) -> tuple[str, ...]:
    return tuple(reference[member].text for member in _MEMBERS)
