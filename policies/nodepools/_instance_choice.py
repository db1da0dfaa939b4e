"""Which instance types a pool allows, what narrows the choice, and comparable types to add."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from gpugate.policies.data.accelerators import PROVISIONED_BY_KARPENTER
from gpugate.policies.data.instance_types import INSTANCE_TYPE
from gpugate.policies.sdk import node_pools, scheduling
from gpugate.policies.sdk.findings import Patch, Patches, Violation
from gpugate.policies.sdk.node_pools import AWS
from gpugate.policies.sdk.structs import Struct, replace

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gpugate.policies.data.instance_types import InstanceTypes
    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.node_pools import Entry, MatchingTypes


def unmet_minimums(types: MatchingTypes, left: int) -> Iterator[Violation]:
    """Report each `minValues` above the number of different values of the label among the types.

    Karpenter launches nothing then (v1.14.1 `pkg/cloudprovider/types.go`, SatisfiesMinValues).
    """
    catalogue = types.catalogue
    for entry in types.entries:
        minimum = entry.requirement.min_values
        if minimum is None or entry.key not in catalogue:
            continue
        if entry.key == INSTANCE_TYPE:
            have = left.bit_count() + len(types.unknown)
        elif types.unknown:
            continue
        else:
            have = sum(1 for having in catalogue.values[entry.key].values() if having & left)
        if have < minimum:
            message = (
                f"minValues {minimum} cannot be met: the matching instance types have {have} values of {entry.key}"
            )
            yield Violation(
                entry.field["minValues"].path, message, hint=f"allow more values, or lower minValues to {have}"
            )


class Narrowing(Struct, frozen=True):
    """A requirement or limit that restricts a pool's types.

    Attributes:
        field: the field of the requirement or limit.
        name: the label, or the limit, in messages.
        meets: the types that it allows.
        others: the types that all other requirements and limits allow.
        entry: the requirement; None for a limit.
    """

    field: Field
    name: str
    meets: int
    others: int
    entry: Entry | None

    @property
    def short(self) -> str:
        """The name without the domain of a label."""
        return self.name.rpartition("/")[2] if self.entry else self.name

    @property
    def phrase(self) -> str:
        """The name in a sentence. A label of the template is a requirement in another field."""
        if self.entry is None:
            return self.name
        return f"the template label {self.short}" if not self.entry.field.mapping else f"the {self.short} requirement"


def within_limits(types: MatchingTypes, pool: Field) -> int:
    """Return the known types of which the pool's limits allow at least one node."""
    fitting = types.known
    for resource, limit in node_pools.limits(pool).items():
        fitting &= ~node_pools.above(types.catalogue, resource, limit)
    return fitting


def excluded_by_limits(types: MatchingTypes, pool: Field) -> bool:
    """Tell whether the limits of a pool exclude every type with an accelerator that its requirements allow."""
    return bool(types.accelerated) and not types.accelerated & within_limits(types, pool)


def narrowest(types: MatchingTypes, pool: Field, offered: int, needed: int = 1) -> Narrowing | None:
    """Return the requirement or limit that excludes the most types which all others allow; None if there is none.

    `offered` are the types without restrictions. If the requirements alone allow as many as needed, it is a limit.
    """
    narrowings = tuple(_narrowings(types, pool, offered))
    limits = tuple(narrowing for narrowing in narrowings if narrowing.entry is None)
    if limits and (types.known & offered).bit_count() >= needed:
        narrowings = limits
    return max(narrowings, key=lambda n: (n.others.bit_count(), -n.meets.bit_count()), default=None)


def edited(field: Field) -> Field:
    """Return the field to edit: the values of a requirement, or else the field itself, a label or a limit."""
    return field["values"] or field


def _narrowings(types: MatchingTypes, pool: Field, offered: int) -> Iterator[Narrowing]:
    catalogue = types.catalogue
    parts: list[tuple[Field, str, int, Entry | None]] = []
    for key, required in types.requirements.items():
        if key in catalogue:
            meets = scheduling.meeting(key, required, catalogue)
            tightest = _tightest([e for e in types.entries if e.key == key], types)
            parts.append((tightest.field, key, meets, tightest))
    for resource, limit in node_pools.limits(pool).items():
        too_large = node_pools.above(catalogue, resource, limit)
        if too_large:
            field = pool["spec", "limits", resource]
            parts.append((field, f"the limit on {resource}", catalogue.everything & ~too_large, None))
    for number, (field, name, meets, entry) in enumerate(parts):
        others = offered
        for other, (_, _, remaining, _) in enumerate(parts):
            others &= remaining if other != number else others
        yield Narrowing(field, name, meets, others, entry)


def _tightest(entries: Sequence[Entry], types: MatchingTypes) -> Entry:
    return min(
        entries,
        key=lambda e: scheduling.meeting(e.key, e.requirement, types.catalogue).bit_count(),
    )


_GPU_NAMES = (f"{AWS}/instance-gpu-name", f"{AWS}/instance-accelerator-name")
_GPU_MEMORY = f"{AWS}/instance-gpu-memory"
_SHOWN = 5
_LONGEST = 63  # characters of a label value


def listed_names(names: Iterable[str]) -> str:
    """Return some names as text, with the number of further ones. Names longer than a label value are cut."""
    listed = tuple(names)
    more = f" and {len(listed) - _SHOWN} more" if len(listed) > _SHOWN else ""
    return ", ".join(name[:_LONGEST] for name in listed[:_SHOWN]) + more


def only_type_with_its_gpu(types: MatchingTypes, position: int) -> bool:
    """Tell whether no other type has this type's GPU, or one of the same name with the required memory.

    The number of GPUs does not count: a Pod that requests two GPUs can run on a type with four.
    """
    catalogue = types.catalogue
    for label in _GPU_NAMES:
        name = catalogue.label(label, position)
        if name and catalogue.of(label, name) == 1 << position:
            return True
    of_gpu = {k: r for k, r in types.requirements.items() if k in {*_GPU_NAMES, _GPU_MEMORY}}
    names_one = any(r.operator == "In" for k, r in of_gpu.items() if k in _GPU_NAMES)
    return names_one and scheduling.matching(of_gpu, catalogue) == 1 << position


def more_types(narrowing: Narrowing, more: tuple[int, ...], types: MatchingTypes) -> str:
    """Return the hint to relax a requirement or limit, with the most similar types."""
    catalogue = types.catalogue
    source = f"(EC2 data of {catalogue.date})"
    nearest = listed_names(catalogue.names[position] for position in more)
    tail = f"; most similar in GPU, memory and price: {nearest} {source}" if more else f" {source}"
    entry = narrowing.entry
    if entry is None:
        return f"raise {narrowing.name}, or require smaller instance types{tail}"
    if not entry.field.mapping:
        return f"remove the label {narrowing.name} from the template, because it is a requirement too{tail}"
    if sum(1 for other in types.entries if other.key == entry.key) > 1:
        return f"write one requirement for {narrowing.name}: of several, only the values that all of them allow apply{tail}"
    values = dict.fromkeys(catalogue.label(entry.key, position) for position in more)
    new = [v for v in values if v and not entry.requirement.allows(v)]
    if entry.key == INSTANCE_TYPE and new:
        return f"also allow {listed_names(new)}, which are the most similar in GPU, memory and price {source}"
    if entry.requirement.operator == "In" and new:
        return f"add {listed_names(new)} to the values of {narrowing.name}{tail}"
    return f"allow more values of {narrowing.name}{tail}"


def real_names(catalogue: InstanceTypes) -> str:
    """Return the hint for unknown names of types."""
    return f"write names of EC2 types; for types newer than {catalogue.date}, set the parameter unknown_types: count"


def spelling(narrowing: Narrowing, catalogue: InstanceTypes) -> str:
    """Return the hint for values that only differ in case from those of types; empty if that is not the cause."""
    entry = narrowing.entry
    for value in sorted(entry.requirement.values) if entry else ():
        if not catalogue.of(narrowing.name, value) and catalogue.of(narrowing.name, value.lower()):
            return f"write {value.lower()} instead of {value}: values of {narrowing.name} are in lower case"
    return ""


def no_types(types: MatchingTypes, pool: Field, offered: int) -> Violation:
    """Return the finding for a pool whose requirements and limits allow none of the offered types."""
    catalogue = types.catalogue
    cause = narrowest(types, pool, offered)
    if cause is None:
        return Violation(
            (), "EC2 offers no instance type in the configured regions", hint="correct the parameter offered_types"
        )
    path = edited(cause.field).path
    if cause.entry and not cause.meets:
        values = listed_names(sorted(cause.entry.requirement.values))
        hint = spelling(cause, catalogue) or f"write a value of an existing type (EC2 data of {catalogue.date})"
        return Violation(path, f"no EC2 instance type has {cause.name} {values}".rstrip(), hint=hint)
    message = f"no EC2 instance type meets the requirements and limits together (limited mainly by {cause.phrase})"
    return Violation(path, message, hint=more_types(cause, (), types))


_SIBLINGS_GPU_MEMORY: Final = f"{node_pools.AWS}/instance-gpu-memory"
_CATEGORY: Final = f"{node_pools.AWS}/instance-category"
_GPU_NAME: Final = f"{node_pools.AWS}/instance-gpu-name"
_SIZES: Final = (f"{node_pools.AWS}/instance-cpu", f"{node_pools.AWS}/instance-memory")
# A price that differs by more than this factor is not near.
_NEAR: Final = math.log(2.5)
# A type without a price is assumed to cost half as much again, so types with a known nearer price come first.
_UNPRICED: Final = math.log(1.5)
_SUGGESTED: Final = 3


def siblings(
    present: int, candidates: int, catalogue: InstanceTypes, needed: int, *, smaller: bool = True
) -> tuple[int, ...]:
    """Return the positions of the candidates that are most similar to the most expensive of the present types.

    They offer the same kind of accelerator, at least as many of them and, if possible, at least as much memory on each.
    Types with the same accelerator come first, then those with at least its vCPUs and memory, then those of the same
    category (p, g, trn), then the nearest in price. There are three if enough are near, and as many as needed in any
    case. Without `smaller` all have at least its vCPUs and memory.
    """
    if not present:
        return ()
    model = max(catalogue.positions_in(present), key=lambda position: catalogue.prices[position] or 0.0)
    alike = candidates & ~present & _as_many(model, catalogue)
    memory = catalogue.label(_SIBLINGS_GPU_MEMORY, model)
    as_large = alike & catalogue.scales[_SIBLINGS_GPU_MEMORY].at_least(int(memory)) if memory else alike
    large = as_large or alike
    for size in _SIZES:
        large &= catalogue.scales[size].at_least(int(catalogue.label(size, model)))
    category = catalogue.of(_CATEGORY, catalogue.label(_CATEGORY, model))
    named = catalogue.label(_GPU_NAME, model)
    same = catalogue.of(_GPU_NAME, named) if named else category
    gaps = {
        position: _price_gap(model, position, catalogue)
        for position in catalogue.positions_in(as_large or alike if smaller else large)
    }

    def order(position: int) -> tuple[bool, bool, bool, float]:
        is_other = not same >> position & 1
        return is_other, not large >> position & 1, not category >> position & 1, gaps[position]

    ordered = sorted(gaps, key=order)
    near = [position for position in ordered if gaps[position] <= _NEAR]
    return tuple(near[: max(_SUGGESTED, needed)] if len(near) >= needed else ordered[:needed])


def _as_many(model: int, catalogue: InstanceTypes) -> int:
    for resource in sorted(PROVISIONED_BY_KARPENTER & catalogue.allocatable.keys()):
        scale = catalogue.allocatable[resource]
        amount = max((n for n in scale.numbers if n and scale.at_least(n) >> model & 1), default=0)
        if amount:
            return scale.at_least(amount)
    accelerated = catalogue.accelerated
    return accelerated if accelerated >> model & 1 else catalogue.everything & ~accelerated


def _price_gap(model: int, other: int, catalogue: InstanceTypes) -> float:
    ours, theirs = catalogue.prices[model], catalogue.prices[other]
    return abs(math.log(theirs / ours)) if ours and theirs else _UNPRICED


def widened(
    types: MatchingTypes, narrowing: Narrowing, more: tuple[int, ...], needed: int, counted: int
) -> Patches | None:
    """Return the change that allows siblings; None if adding values to one list does not reach the needed number.

    `counted` are the types that count towards that number.
    """
    entry = narrowing.entry
    if entry is None or entry.requirement.operator != "In" or not entry.field["values"]:
        return None
    wanted = dict.fromkeys(types.catalogue.label(entry.key, position) for position in more)
    new = tuple(value for value in wanted if value and value not in entry.requirement.values)
    wider = replace(entry.requirement, values=entry.requirement.values | set(new))
    entries = tuple(replace(e, requirement=wider) if e is entry else e for e in types.entries)
    after = scheduling.matching(node_pools.combined(entries), types.catalogue) & counted
    if not new or after.bit_count() < needed:
        return None
    key = entry.key.rpartition("/")[2]
    reason = f"allows another {key}, so that the pool has {after.bit_count()} instance types"
    return Patches(tuple(Patch("append", entry.field["values"].path, value, reason) for value in new))
