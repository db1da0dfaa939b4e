"""NodePool that can launch only one instance type.

## Why is this bad?
When EC2 runs out of the one type that a pool allows, Karpenter launches no node and Pods stay Pending. A GPU type can
be unavailable for hours, in a whole region at once.

All requirements together decide which types a pool can launch. Fewer types may remain than the list suggests: two
values may name the same type, a label of the template acts as a requirement, and a limit may exclude the larger types.
A pool that matches no type, or fewer types than its `minValues`, never launches a node. If the limits of a GPU pool
exclude all its types, `nodepools/unreachable-limit` reports the pool.

In a GPU pool, types without an accelerator do not count, because a Pod that requests a GPU cannot use them.
`[g5.xlarge, t3.nano]` therefore counts as one type. A name that is not in gpugate's EC2 data does not count as a
second type; the parameter `unknown_types` changes that for types that are newer than the data.

Spot needs more choice: a pool that may use Spot gets a warning if it allows fewer than five types.

## Instead
Name several types, families or GPUs. Or require what the workload needs, such as
`karpenter.k8s.aws/instance-gpu-memory Gte 81920`.

If only one type has the requested GPU, the finding is a warning. Use reserved capacity for such a GPU: a pool with
`karpenter.sh/capacity-type In [reserved]`, or for one capacity reservation, is not reported if it allows a single type.

A pool that allows one type and does not use reserved capacity is denied if EC2 has other types with the same GPU model
but a different number of GPUs. Allow the types with more of these GPUs too.

## Sources
Karpenter v1.14.1 `pkg/scheduling/requirement.go`, `requirements.go` (matching, `minValues`),
`pkg/controllers/provisioning/scheduling/scheduler.go` (limits); EC2 types as of 2026-07-20.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeAlias

import msgspec

from gpugate.policies.nodepools._instance_choice import (
    edited,
    excluded_by_limits,
    listed_names,
    more_types,
    narrowest,
    no_types,
    only_type_with_its_gpu,
    real_names,
    siblings,
    unmet_minimums,
    widened,
    within_limits,
)
from gpugate.policies.sdk import node_pools
from gpugate.policies.sdk.findings import Skip, Stance, Violation
from gpugate.policies.sdk.node_pools import (
    AWS,
    INSTANCE_TYPES,
    MatchingTypes,
    ec2_types,
    is_for_accelerators,
    is_gpu_pool,
)
from gpugate.policies.sdk.objects import NODE_CLAIM, NODE_POOL
from gpugate.policies.sdk.policy import Context, validates
from gpugate.policies.sdk.policy import Params as PolicyParams
from gpugate.policies.sdk.structs import replace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field

_NO_NODE: Final = "Karpenter launches no node for the pool, so its Pods stay Pending."
_SPOT: Final = (
    "Spot capacity runs out by instance type: a pool with few types loses nodes and waits longer for new ones."
)
_FEW: Final = "When EC2 runs out of these types at the same time, Karpenter launches no node and Pods stay Pending."
_RESERVATIONS = (f"{AWS}/capacity-reservation-id", f"{AWS}/capacity-reservation-type")

Count: TypeAlias = Annotated[int, msgspec.Meta(ge=1)]


class AtLeast(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How many instance types a pool needs, by its purpose; `spot` if it may use Spot and that is more."""

    training: Count = 2
    inference: Count = 2
    spot: Count = 5
    default: Count = 2


class Params(PolicyParams, frozen=True, kw_only=True):
    """What counts as too few.

    Attributes:
        at_least: how many types a pool needs, by its purpose. A pool with fewer gets a warning; a pool with only one type
            is denied.
        inherent_singles: what to do if only one type has the requested GPU. `enforce`: deny the pool. `warn`: give a
            warning instead. `ignore`: report nothing.
        unknown_types: how to treat types that are missing from gpugate's EC2 data. `count`: like other types. With `warn`
            and `deny` they do not count; a pool of only such types gets a warning or is denied.
        offered_types: the types that EC2 offers in the platform's regions; empty means all.
        only_gpu_pools: evaluate only pools for accelerators.
        allow_static_single: allow one type in static pools (`spec.replicas`).
        min_values_policy: Karpenter's `--min-values-policy`; with `best_effort` an unmet `minValues` is not reported.
    """

    at_least: AtLeast = AtLeast()
    inherent_singles: Literal["enforce", "warn", "ignore"] = "warn"
    unknown_types: Literal["count", "warn", "deny"] = "warn"
    offered_types: frozenset[str] = frozenset()
    only_gpu_pools: bool = True
    allow_static_single: bool = False
    min_values_policy: Literal["strict", "best_effort"] = "strict"


@validates(NODE_POOL, NODE_CLAIM, params=Params, tables=(INSTANCE_TYPES,))
def check(pool: Field, ctx: Context[Params]) -> Iterator[Violation | Skip]:
    """Report too few instance types."""
    if node_pools.made_by_karpenter(pool, ctx):
        return
    types = ec2_types(pool, ctx)
    if types is None:
        yield node_pools.types_doubt(pool, ctx)
        return
    if ctx.params.only_gpu_pools and not is_for_accelerators(pool, ctx):
        return
    counted = _counted(types, ctx)
    left = within_limits(types, pool) & counted
    if not left and not types.unknown:
        if ctx.derived(is_gpu_pool) and excluded_by_limits(types, pool):
            return  # nodepools/unreachable-limit reports it
        yield replace(no_types(types, pool, counted), why=_NO_NODE)
        return
    if ctx.params.min_values_policy == "strict":
        yield from (replace(finding, why=_NO_NODE) for finding in unmet_minimums(types, left))
    if not _single_is_right(pool, types, ctx.params):
        yield from _too_few(pool, types, counted, ctx)


def _counted(types: MatchingTypes, ctx: Context[Params]) -> int:
    """Return the types that count: those that EC2 offers, and in a GPU pool only those with accelerators.

    Pods that request a GPU can use only these, which also matters for `minValues`.
    """
    catalogue = types.catalogue
    counted = catalogue.accelerated if types.others and ctx.derived(is_gpu_pool) else catalogue.everything
    offered = ctx.params.offered_types
    if not offered:
        return counted
    return counted & sum(1 << position for name, position in catalogue.positions.items() if name in offered)


def _single_is_right(pool: Field, types: MatchingTypes, params: Params) -> bool:
    reserved = node_pools.capacity_types(types.requirements) == {"reserved"}
    pinned = (types.requirements.get(key) for key in _RESERVATIONS)
    static = params.allow_static_single and bool(pool["spec", "replicas"])
    return reserved or static or any(requirement is not None and requirement.operator == "In" for requirement in pinned)


def _too_few(pool: Field, types: MatchingTypes, counted: int, ctx: Context[Params]) -> Iterator[Violation]:
    params, catalogue = ctx.params, types.catalogue
    left = within_limits(types, pool) & counted
    known, unknown = left.bit_count(), len(types.unknown)
    needed, why = _needed(pool, types, ctx)
    doubtful = bool(unknown) and params.unknown_types != "count"
    only_unknown = doubtful and not known and unknown > 1
    if doubtful and known:
        unknown = 0
    if known + unknown >= needed and not only_unknown:
        return
    cause = narrowest(types, pool, counted, needed)
    if cause is None:
        return
    path = edited(cause.field).path
    if only_unknown:
        at_most = Stance.ENFORCE if params.unknown_types == "deny" else Stance.WARN
        message = f"unknown EC2 instance types {listed_names(types.unknown)} (data of {catalogue.date})"
        why = "If EC2 does not offer these types, Karpenter launches no node and Pods stay Pending."
        values = (value.path for value in cause.field["values"] if value.text in types.unknown)
        same_as = ("nodepools/unknown-requirement-value",)
        yield Violation(next(values, path), message, at_most, real_names(catalogue), why=why, same_as=same_as)
        return
    # A static pool always has the same number of nodes, so smaller types would lower its capacity.
    is_static = bool(pool["spec", "replicas"])
    more = siblings(left, cause.others, catalogue, needed - known - unknown, smaller=not is_static)
    hint, fix = more_types(cause, more, types), widened(types, cause, more, needed, counted)
    narrowed = f"limited mainly by {cause.phrase}"
    names = listed_names((*catalogue.decode(left), *(types.unknown if unknown else ())))
    if doubtful and known:
        narrowed += f"; unknown types {listed_names(types.unknown)} (data of {catalogue.date})"
        hint = f"{hint}; {real_names(catalogue)}"
    with_gpu = " with an accelerator" if types.others and counted & types.others == 0 else ""
    if known + unknown > 1:
        message = f"allows only {known + unknown} instance types{with_gpu} ({names}), {narrowed}; {why} need at least {needed}"
        why = _SPOT if "spot" in node_pools.capacity_types(types.requirements) else _FEW
        yield Violation(path, message, Stance.WARN, hint, fix, why=why)
    elif known and only_type_with_its_gpu(types, left.bit_length() - 1):
        if params.inherent_singles != "ignore":
            at_most = Stance.ENFORCE if params.inherent_singles == "enforce" else Stance.WARN
            message = f"allows only 1 instance type ({names}), {narrowed}; no other type has this accelerator"
            yield Violation(path, message, at_most, f"use reserved capacity; or {hint}", fix)
    else:
        message = f"allows only 1 instance type{with_gpu} ({names}), {narrowed}"
        yield Violation(path, message, hint=hint, fix=fix)


def _needed(pool: Field, types: MatchingTypes, ctx: Context[Params]) -> tuple[int, str]:
    at_least = ctx.params.at_least
    by_class = {"training": at_least.training, "inference": at_least.inference}
    classes = sorted(by_class.keys() & node_pools.pool_classes(pool, ctx), key=lambda name: -by_class[name])
    needed = by_class[classes[0]] if classes else at_least.default
    if at_least.spot > needed and "spot" in node_pools.capacity_types(types.requirements):
        return at_least.spot, "Spot pools"
    return needed, f"{classes[0]} pools" if classes else "pools"
