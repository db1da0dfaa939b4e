"""NodePool that can launch only one instance type.

## Why is this bad?
When EC2 runs out of the one type that a pool allows, no node comes and its Pods stay Pending. GPU types run short for hours, in a whole
region at once. What a pool can launch is what all its requirements leave together: two values may be the same type
twice, a label of the template is a requirement too, and a limit may rule the larger types out. A pool that matches no
type at all, or fewer than its `minValues`, never launches anything.

Spot needs more choice: a pool that may use it warns below five types.

## Instead
Name several types, families or GPUs, or require what the workload needs, such as
`karpenter.k8s.aws/instance-gpu-memory Gte 81920`. Where a GPU exists in one type only, use reserved capacity, for which
one type is right: a pool with `karpenter.sh/capacity-type In [reserved]`, or with a capacity reservation, passes.

## Sources
Karpenter v1.14.1 `pkg/scheduling/requirement.go`, `requirements.go` (matching, `minValues`),
`pkg/controllers/provisioning/scheduling/scheduler.go` (limits); EC2 types as of 2026-07-20.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import msgspec

from gpugate.policies.nodepools.instance_choice.advice import more_types, only_type_with_its_gpu, real_names, shown
from gpugate.policies.nodepools.instance_choice.minimums import unmet_minimums
from gpugate.policies.nodepools.instance_choice.narrowing import edited, narrowest, within_limits
from gpugate.policies.nodepools.instance_choice.no_types import no_types
from gpugate.policies.nodepools.instance_choice.siblings import siblings, widened
from gpugate.policies.sdk import node_pools
from gpugate.policies.sdk.findings import Skip, Stance, Violation
from gpugate.policies.sdk.kinds import NODE_CLAIM, NODE_POOL
from gpugate.policies.sdk.node_pools import AWS, INSTANCE_TYPES, MatchingTypes, is_for_accelerators, matching_types
from gpugate.policies.sdk.policy import Context, validates
from gpugate.policies.sdk.policy import Params as PolicyParams

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field

_RESERVATIONS = (f"{AWS}/capacity-reservation-id", f"{AWS}/capacity-reservation-type")

Count: TypeAlias = Annotated[int, msgspec.Meta(ge=1)]


class AtLeast(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How many instance types a pool needs, by what it is for; `spot` where it may use Spot, if that is more."""

    training: Count = 2
    inference: Count = 2
    spot: Count = 5
    default: Count = 2


class Params(PolicyParams, frozen=True, kw_only=True):
    """What counts as too few.

    Attributes:
        at_least: how many types are needed; below two it is a denial, below this a warning.
        inherent_singles: what it costs that no second type has the GPU asked for.
        unknown_types: whether a type that the catalogue lacks counts as one, warns or denies, where at most one type
            beside it is known.
        offered_types: the types that EC2 offers in the platform's regions; empty: all.
        only_gpu_pools: judge only pools for accelerators.
        allow_static_single: let static pools (`spec.replicas`) have one type.
        min_values_policy: Karpenter's `--min-values-policy`; with `best_effort` an unmet `minValues` is no finding.
    """

    at_least: AtLeast = AtLeast()
    inherent_singles: Literal["enforce", "warn", "ignore"] = "warn"
    unknown_types: Literal["count", "warn", "deny"] = "warn"
    offered_types: frozenset[str] = frozenset()
    only_gpu_pools: bool = True
    allow_static_single: bool = False
    min_values_policy: Literal["strict", "best_effort"] = "strict"


@validates(NODE_POOL, NODE_CLAIM, params=Params, tables=(INSTANCE_TYPES,), concerns=~node_pools.MADE_BY_KARPENTER)
def check(pool: Field, ctx: Context[Params]) -> Iterator[Violation | Skip]:
    """Count the instance types that are left, and report where there are too few."""
    if node_pools.made_by_karpenter(pool):
        return
    types = ctx.derived(matching_types)
    if types is None:
        yield Skip(f"the instance types of {node_pools.provider(pool, ctx)} are not known")
        return
    if ctx.params.only_gpu_pools and not is_for_accelerators(pool, ctx):
        return
    left = within_limits(types, pool) & _offered(types, ctx.params)
    if not left and not types.unknown:
        yield no_types(types, pool, _offered(types, ctx.params))
        return
    if ctx.params.min_values_policy == "strict":
        yield from unmet_minimums(types, left)
    if not _single_is_right(pool, types, ctx.params):
        yield from _too_few(pool, types, left, ctx)


def _offered(types: MatchingTypes, params: Params) -> int:
    offered = params.offered_types
    catalogue = types.catalogue
    if not offered:
        return catalogue.everything
    return sum(1 << position for name, position in catalogue.positions.items() if name in offered)


def _single_is_right(pool: Field, types: MatchingTypes, params: Params) -> bool:
    reserved = node_pools.capacity_types(types.requirements) == {"reserved"}
    pinned = (types.requirements.get(key) for key in _RESERVATIONS)
    static = params.allow_static_single and bool(pool["spec", "replicas"])
    return reserved or static or any(one is not None and one.operator == "In" for one in pinned)


def _too_few(pool: Field, types: MatchingTypes, left: int, ctx: Context[Params]) -> Iterator[Violation]:
    params, catalogue = ctx.params, types.catalogue
    known, unknown = left.bit_count(), len(types.unknown)
    needed, why = _needed(pool, types, ctx)
    doubtful = known <= 1 < known + unknown and params.unknown_types != "count"
    if known + unknown >= needed and not doubtful:
        return
    cause = narrowest(types, pool, _offered(types, params), needed)
    if cause is None:
        return
    path = edited(cause.field).path
    if doubtful:
        at_most = Stance.ENFORCE if params.unknown_types == "deny" else Stance.WARN
        alone = f"{shown(catalogue.decode(left))} alone" if known else "nothing"
        message = f"no EC2 instance type is called {shown(types.unknown)}, which leaves {alone}"
        yield Violation(path, message, at_most, real_names(catalogue))
        return
    more = siblings(left, cause.others, catalogue, needed - known - unknown)
    hint, fix = more_types(cause, more, types), widened(types, cause, more, needed)
    names, narrowed = shown((*catalogue.decode(left), *types.unknown)), f"narrowed most by {cause.short}"
    if known + unknown > 1:
        message = f"can launch only {known + unknown} instance types ({names}), {why} needs {needed}; {narrowed}"
        yield Violation(path, message, Stance.WARN, hint, fix)
    elif known and only_type_with_its_gpu(types, left.bit_length() - 1):
        if params.inherent_singles != "ignore":
            at_most = Stance.ENFORCE if params.inherent_singles == "enforce" else Stance.WARN
            message = f"can launch only {names}, the one instance type with this GPU; {narrowed}"
            yield Violation(path, message, at_most, f"use reserved capacity; or {hint}", fix)
    else:
        yield Violation(path, f"can launch only {names}, 1 instance type; {narrowed}", hint=hint, fix=fix)


def _needed(pool: Field, types: MatchingTypes, ctx: Context[Params]) -> tuple[int, str]:
    at_least = ctx.params.at_least
    name = node_pools.pool_class(pool, ctx)
    by_class = {"training": at_least.training, "inference": at_least.inference}
    needed = by_class.get(name or "", at_least.default)
    if at_least.spot > needed and "spot" in node_pools.capacity_types(types.requirements):
        return at_least.spot, "Spot"
    return needed, name if name in by_class else "a pool"
