"""Which node classes policies evaluate: those that a GPU pool refers to.

A class is evaluated when a known NodePool for accelerators names it in `nodeClassRef`. If only other NodePools name it, it
starts no GPU node and is not evaluated. If no known NodePool names it, it may start GPU nodes later, because a class is usually
created before its pool: its findings are warnings at most. The same holds for a name that the API server has not generated yet.

Source: Karpenter v1.14.1 `pkg/apis/v1/nodeclaim.go` (NodeClassReference: group, kind and name; node classes are
cluster-scoped).
"""

from __future__ import annotations

from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Final, TypeVar

from gpugate.policies.sdk.facts import Known, Need, derived, object_contexts
from gpugate.policies.sdk.findings import Skip, Stance, Violation
from gpugate.policies.sdk.node_pools import is_for_accelerators, provider
from gpugate.policies.sdk.objects import NODE_POOL
from gpugate.policies.sdk.policy import Params

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.policy import AnyContext, Context

    Found = Iterator[Violation | Skip]

P = TypeVar("P", bound=Params)

# The needs of a check with `of_gpu_classes`, which also reads the table of instance types.
POOL_NEEDS: Final = (Need(NODE_POOL, ("spec.limits", "spec.template")),)


def of_gpu_classes(
    check: Callable[[Field, Context[P]], Iterator[Violation]],
) -> Callable[[Field, Context[P]], Iterator[Violation | Skip]]:
    """Restrict a check to node classes of GPU pools, with at most a warning for a class with unknown pools."""

    @wraps(check)
    def concerned(node_class: Field, ctx: Context[P]) -> Found:
        most = ctx.derived(highest_stance)
        if most is not Stance.OFF:
            for finding in check(node_class, ctx):
                yield replace(finding, at_most=min(finding.at_most, most))

    return concerned


def highest_stance(node_class: Field, ctx: AnyContext) -> Stance:
    """Return the highest mode of a finding in a node class; OFF if only pools without GPUs refer to the class."""
    pools = ctx.facts.list(NODE_POOL)
    if not isinstance(pools, Known):
        return Stance.WARN
    references, group = derived(pools, _references, ctx), ctx.request.kind.group
    name, prefix = node_class["metadata", "name"].text, node_class["metadata", "generateName"].text
    if name:
        starts_gpus = references.get((group, name))
        return Stance.WARN if starts_gpus is None else Stance.ENFORCE if starts_gpus else Stance.OFF
    alike = [starts for (of, named), starts in references.items() if of == group and named.startswith(prefix)]
    return Stance.WARN if any(alike) or not alike else Stance.OFF


def _references(pools: Known, ctx: AnyContext) -> dict[tuple[str, str], bool]:
    """Return group and name of each node class that a pool refers to -> whether a pool for accelerators does."""
    by_reference = derived(pools, _by_reference, ctx)
    return {key: any(around.derived(is_for_accelerators) for around in of_key) for key, of_key in by_reference.items()}


def _by_reference(pools: Known, ctx: AnyContext) -> dict[tuple[str, str], tuple[AnyContext, ...]]:
    """Return group and name of each node class that a pool refers to -> a context for each of these pools."""
    by_reference: dict[tuple[str, str], list[AnyContext]] = {}
    for around in object_contexts(pools, ctx):
        reference = around.subject["spec", "template", "spec", "nodeClassRef", "name"].text
        by_reference.setdefault((provider(around.subject, around), reference), []).append(around)
    return {key: tuple(of_key) for key, of_key in by_reference.items()}


def gpu_pools(node_class: Field, ctx: AnyContext) -> tuple[AnyContext, ...]:
    """Return a context for each known NodePool for accelerators that refers to a node class.

    A policy whose rule depends on the pools of a class, and not only on its use for GPUs, evaluates only these: a class
    without a known pool may be for nodes without GPUs.
    """
    pools = ctx.facts.list(NODE_POOL)
    if not isinstance(pools, Known):
        return ()
    by_reference, group = derived(pools, _by_reference, ctx), ctx.request.kind.group
    name, prefix = node_class["metadata", "name"].text, node_class["metadata", "generateName"].text
    alike = (
        of_key
        for (of, named), of_key in by_reference.items()
        if of == group and (named == name if name else named.startswith(prefix))
    )
    return tuple(around for of_key in alike for around in of_key if around.derived(is_for_accelerators))


def pools_doubt(ctx: AnyContext) -> Skip | None:
    """Return why GPU pools of a node class may be missing from `gpu_pools`; None if all pools are known."""
    pools = ctx.facts.list(NODE_POOL)
    if isinstance(pools, Known):
        return None if pools.complete else Skip("no known NodePool for GPUs uses the node class, but one may exist")
    return Skip(pools.reason)
