"""Training pool that may use Spot capacity.

## Why is this bad?
Training on Spot loses its work since the last checkpoint: EC2 takes a Spot instance back with two minutes' notice,
and neither `karpenter.sh/do-not-disrupt` nor a disruption budget prevents that. A distributed run stops when it loses
one node. A pool without a `karpenter.sh/capacity-type` requirement may use Spot too, and prefers it.

A pool is for training if its nodes have the label `gpugate.dev/workload-class: training`, `workload: training` or
`node-type: gpu-training`; `platform.workload_classes` configures other labels. A requirement such as `workload In
[training]` gives nodes the label too.

## Instead
Require `karpenter.sh/capacity-type In [on-demand, reserved]`. Karpenter uses capacity reservations and Capacity
Blocks only for `reserved`. If a node class selects reservations and the pool does not allow `reserved`, the
reservations stay unused, and the pool gets a warning. A pool that allows only `reserved` gets a warning too if its
class selects no reservation.

## Sources
Karpenter v1.14.1 `pkg/apis/v1/labels.go` (capacity types), `website/content/en/v1.14/concepts/disruption.md` (interruption);
aws/karpenter-provider-aws v1.14.1 `pkg/providers/launchtemplate/types.go` (nodes that are not reserved take no capacity
reservation).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.nodepools._gpu_pools import is_training
from gpugate.policies.sdk import node_pools
from gpugate.policies.sdk.facts import Need, named
from gpugate.policies.sdk.findings import Patch, Patches, Stance, Violation
from gpugate.policies.sdk.node_pools import CAPACITY_TYPE, INSTANCE_TYPES
from gpugate.policies.sdk.objects import EC2_NODE_CLASS, NODE_POOL
from gpugate.policies.sdk.policy import Context, Params, validates

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field, Json
    from gpugate.policies.sdk.node_pools import Entry

_RESERVATIONS: Final = "spec.capacityReservationSelectorTerms"
_CHECKPOINTED: Final = "gpugate.dev/checkpointed"
_PARTS: Final = ("labels", "annotations")
_REASON: Final = "keeps training off Spot capacity"
_BY_DEFAULT: Final = "Without the requirement Karpenter may use Spot, and prefers it; EC2 takes Spot instances back with two minutes' notice."
_STEADY: Final[list[Json]] = ["on-demand", "reserved"]


@validates(NODE_POOL, needs=(Need(EC2_NODE_CLASS, (_RESERVATIONS,)),), tables=(INSTANCE_TYPES,))
def check(pool: Field, ctx: Context[Params]) -> Iterator[Violation]:
    """Report that Spot is allowed, and a pool and node class that contradict each other on reservations."""
    if not is_training(pool, ctx) or not node_pools.is_for_accelerators(pool, ctx):
        return
    entries = tuple(node_pools.requirement_entries(pool, ctx))
    allowed = node_pools.capacity_types(node_pools.combined(entries))
    stated = tuple(entry for entry in entries if entry.key == CAPACITY_TYPE)
    if "spot" in allowed:
        yield _spot(pool, stated)
        return
    yield from _reservations(pool, stated, allowed, ctx)


def _spot(pool: Field, stated: tuple[Entry, ...]) -> Violation:
    template = pool["spec", "template"]
    checkpointed = any(
        "true" in part_of_pool["metadata", part, _CHECKPOINTED].text
        for part_of_pool in (pool, template)
        for part in _PARTS
    )
    loss = "the work since its last checkpoint" if checkpointed else "its work"
    hint = f"require {CAPACITY_TYPE} In [on-demand, reserved]"
    if not stated:
        path = template["spec", "requirements"].path
        message = f"missing requirement {CAPACITY_TYPE}: training may run on Spot and lose {loss}"
        fix = Patches((Patch("append", path, _requirement(), _REASON),))
        return Violation(path, message, hint=hint, fix=fix, why=_BY_DEFAULT)
    message = f"allows Spot for training: an interruption loses {loss}"
    entry = stated[0]
    values = entry.field["values"]
    for value in values if entry.field["operator"].text == "In" and len(stated) == 1 else ():
        if value.text == "spot":
            only = len(values.texts) == 1
            change = Patch("set", values.path, _STEADY, _REASON) if only else Patch("remove", value.path, None, _REASON)
            return Violation(value.path, message, hint=hint, fix=Patches((change,)))
    return Violation((values or entry.field).path, message, hint=hint)


def _requirement() -> Json:
    return {"key": CAPACITY_TYPE, "operator": "In", "values": _STEADY}


def _reservations(
    pool: Field,
    stated: tuple[Entry, ...],
    allowed: frozenset[str],
    ctx: Context[Params],
) -> Iterator[Violation]:
    """Compare the pool with its node class, if that is known."""
    reference = pool["spec", "template", "spec", "nodeClassRef"]
    own = node_pools.provider(pool, ctx) == node_pools.AWS
    node_class = named(ctx.facts.list(EC2_NODE_CLASS), reference["name"].text) if own else None
    if node_class is None or not stated:
        return
    selected = bool(node_class[tuple(_RESERVATIONS.split("."))].value)
    field = stated[0].field["values"] or stated[0].field
    if selected and "reserved" not in allowed:
        message = "the node class selects capacity reservations, but the pool does not allow capacity type reserved"
        why = "The reservations are paid for and stay unused: only nodes of capacity type reserved take them."
        yield Violation(field.path, message, Stance.WARN, "add reserved to the allowed capacity types", why=why)
    elif allowed == {"reserved"} and not selected:
        message = "allows only reserved capacity, but the node class selects no capacity reservation"
        hint = f"add {_RESERVATIONS} to the EC2NodeClass"
        why = (
            "Karpenter launches reserved nodes only in reservations that the node class selects, so Pods stay Pending."
        )
        yield Violation(field.path, message, Stance.WARN, hint, why=why)
