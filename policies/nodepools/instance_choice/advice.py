"""Says in words how a pool gets more instance types."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpugate.policies.data.instance_types import INSTANCE_TYPE
from gpugate.policies.sdk import scheduling
from gpugate.policies.sdk.node_pools import AWS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpugate.policies.data.instance_types import InstanceTypes
    from gpugate.policies.nodepools.instance_choice.narrowing import Narrowing
    from gpugate.policies.sdk.node_pools import MatchingTypes

_GPU_NAMES = (f"{AWS}/instance-gpu-name", f"{AWS}/instance-accelerator-name")
_GPU_MEMORY = f"{AWS}/instance-gpu-memory"
_SHOWN = 5
_LONGEST = 63  # characters of a label value


def shown(names: Iterable[str]) -> str:
    """Write a few names, and how many more there are; a name that no label could have is cut."""
    listed = tuple(names)
    more = f" and {len(listed) - _SHOWN} more" if len(listed) > _SHOWN else ""
    return ", ".join(name[:_LONGEST] for name in listed[:_SHOWN]) + more


def only_type_with_its_gpu(types: MatchingTypes, position: int) -> bool:
    """Tell whether no other type has the GPU of this one, or one of the same name with the memory that is required.

    How many of them a type has is left aside: a Pod that asks for two GPUs can run on a type with four.
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
    """Say what to loosen, and which types are nearest."""
    catalogue = types.catalogue
    source = f"(EC2 types of {catalogue.date})"
    nearest = shown(catalogue.names[position] for position in more)
    tail = f"; nearest in GPU, memory and price: {nearest} {source}" if more else f" {source}"
    entry = narrowing.entry
    if entry is None:
        return f"raise {narrowing.name}, or require smaller types{tail}"
    if not entry.field.mapping:
        return f"remove the label {narrowing.name} from the template: it is a requirement too{tail}"
    if sum(1 for other in types.entries if other.key == entry.key) > 1:
        return f"{narrowing.name} is required more than once, and only what all allow counts: write it once{tail}"
    values = dict.fromkeys(catalogue.label(entry.key, position) for position in more)
    new = [v for v in values if v and not entry.requirement.allows(v)]
    if entry.key == INSTANCE_TYPE and new:
        return f"allow {shown(new)} too: nearest in GPU, memory and price (EC2 types of {catalogue.date})"
    if entry.requirement.operator == "In" and new:
        return f"add {shown(new)} to the values of {narrowing.name}{tail}"
    return f"loosen {narrowing.name}{tail}"


def real_names(catalogue: InstanceTypes) -> str:
    """Say what to do about names that no type has."""
    return f"write names of EC2 types; those newer than {catalogue.date} count with the parameter unknown_types: count"


def spelling(narrowing: Narrowing, catalogue: InstanceTypes) -> str:
    """Say how a value is spelled that no type has but in lower case; empty where that is not the cause."""
    entry = narrowing.entry
    for value in sorted(entry.requirement.values) if entry else ():
        if not catalogue.of(narrowing.name, value) and catalogue.of(narrowing.name, value.lower()):
            return f"write {value.lower()} instead of {value}: values of {narrowing.name} are in lower case"
    return ""
