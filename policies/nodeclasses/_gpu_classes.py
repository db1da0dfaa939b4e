"""Which node classes policies evaluate: those that a GPU pool refers to.

A class is concerned when a known NodePool for accelerators names it in `nodeClassRef`. While NodePools are known and
none for accelerators refers to it, it starts no GPU node and is not evaluated. While no NodePool is known, it may start GPU
nodes, which is worth a warning at most. So is a name that the API server has yet to make, where it can become one that a
GPU pool names.

Source: Karpenter v1.14.1 `pkg/apis/v1/nodeclaim.go` (NodeClassReference: group, kind and name; node classes are
cluster-scoped).
"""

from __future__ import annotations

from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Final, TypeVar

from gpugate.policies.sdk.facts import Known, Need, derived, each
from gpugate.policies.sdk.findings import Stance, Violation
from gpugate.policies.sdk.node_pools import is_for_accelerators, provider
from gpugate.policies.sdk.objects import NODE_POOL
from gpugate.policies.sdk.policy import Params

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.findings import Skip
    from gpugate.policies.sdk.policy import AnyContext, Context

    Found = Iterator[Violation | Skip]

P = TypeVar("P", bound=Params)

# What a check with `of_gpu_classes` declares that it looks up; it also reads the table of instance types.
POOL_NEEDS: Final = (Need(NODE_POOL, ("spec.limits", "spec.template")),)


def of_gpu_classes(
    check: Callable[[Field, Context[P]], Iterator[Violation]],
) -> Callable[[Field, Context[P]], Iterator[Violation | Skip]]:
    """Let a check report on classes of GPU pools, and at most warn of one whose pools are not known."""

    @wraps(check)
    def concerned(node_class: Field, ctx: Context[P]) -> Found:
        most = ctx.derived(highest_stance)
        if most is not Stance.OFF:
            for found in check(node_class, ctx):
                yield replace(found, at_most=min(found.at_most, most))

    return concerned


def highest_stance(node_class: Field, ctx: AnyContext) -> Stance:
    """Return the most that a finding in a node class can cost; OFF where the class starts no GPU node."""
    pools = ctx.facts.list(NODE_POOL)
    if not isinstance(pools, Known) or not pools.items:
        return Stance.WARN
    used, group = derived(pools, _of_gpu_pools, ctx), ctx.request.kind.group
    name, prefix = node_class["metadata", "name"].text, node_class["metadata", "generateName"].text
    if name:
        return Stance.ENFORCE if (group, name) in used else Stance.OFF
    may_be_used = any(of == group and named.startswith(prefix) for of, named in used)
    return Stance.WARN if may_be_used else Stance.OFF


def _of_gpu_pools(pools: Known, ctx: AnyContext) -> frozenset[tuple[str, str]]:
    """Return group and name of each node class that a pool for accelerators refers to."""
    return frozenset(
        (provider(around.subject, around), around.subject["spec", "template", "spec", "nodeClassRef", "name"].text)
        for around in each(pools, ctx)
        if around.derived(is_for_accelerators)
    )
