"""Instance types: the labels that Karpenter matches, the resources that Pods can request, and their price.

Those of EC2, with their source and date, are in `instance_types.json`, made by `gpugate.tools.instance_types`.
A set of types is an integer whose bit n stands for the n-th type.
"""

from __future__ import annotations

import pkgutil
from bisect import bisect_left
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"
GPU_NAME: Final = "karpenter.k8s.aws/instance-gpu-name"
ACCELERATOR_NAME: Final = "karpenter.k8s.aws/instance-accelerator-name"
# The digits of the largest number of 64 bits.
_LONGEST_NUMBER: Final = 19
# Labels for the capacity of EC2's types: whole CPUs, and MiB of memory.
_CAPACITY: Final = {"cpu": "karpenter.k8s.aws/instance-cpu", "memory": "karpenter.k8s.aws/instance-memory"}


class Scale(msgspec.Struct, frozen=True):
    """Types ordered by a whole number that some of them have, such as the number of GPUs.

    `reach[i]` is the set of types with `numbers[i]` or more; `numbers` ascend.
    """

    numbers: tuple[int, ...]
    reach: tuple[int, ...]

    def at_least(self, number: int) -> int:
        """Return the types with at least this number."""
        index = bisect_left(self.numbers, number)
        return self.reach[index] if index < len(self.reach) else 0


@dataclass(frozen=True, slots=True)
class InstanceTypes:
    """A catalogue of instance types as an index.

    Attributes:
        version: of the Karpenter AWS provider whose reference it was taken from; empty for a platform's own types.
        date: the date of the reference; empty for a platform's own types.
        names: all types; the position of a name is its bit.
        positions: name -> position.
        prices: USD an hour by position, for EC2 on demand in us-east-1; None if the price is unknown.
        values: label -> value -> types. The label of the type's own name is only in it if types share its values.
        labelled: label -> types with the label, regardless of its value.
        scales: label -> types by its number, for labels whose values are numbers.
        allocatable: resource -> types by the amount that Pods can request: millicores, MiB or whole devices.
        capacity: `cpu` and `memory` -> types by their capacity: whole CPUs and MiB.
        everything: all types.
        accelerated: types with a GPU, a part of one, or another accelerator.
        complete: whether nodes of other types never exist.
        has_devices: whether a type offers devices through DRA, which `allocatable` does not contain.
        spellings: label -> spelling -> position and value; filled by the first search for a value.
    """

    version: str
    date: str
    names: tuple[str, ...]
    positions: Mapping[str, int]
    prices: tuple[float | None, ...]
    values: Mapping[str, Mapping[str, int]]
    labelled: Mapping[str, int]
    scales: Mapping[str, Scale]
    allocatable: Mapping[str, Scale]
    capacity: Mapping[str, Scale]
    everything: int
    accelerated: int
    complete: bool = True
    has_devices: bool = False
    spellings: dict[str, dict[str, tuple[int, str]]] = field(default_factory=dict, compare=False, repr=False)

    def __contains__(self, label: str) -> bool:
        """Tell whether instance types have a label."""
        return label in self.labelled

    def having(self, label: str) -> int:
        """Return the types with a label, regardless of its value."""
        return self.labelled.get(label, 0)

    def of(self, label: str, value: str) -> int:
        """Return the types whose label has this value."""
        if label == INSTANCE_TYPE and label not in self.values:
            position = self.positions.get(value)
            return 0 if position is None else 1 << position
        return self.values.get(label, {}).get(value, 0)

    def offering(self, resource: str) -> int:
        """Return the types that offer a resource to Pods."""
        scale = self.allocatable.get(resource)
        return scale.at_least(1) if scale else 0

    def decode(self, types: int) -> Iterator[str]:
        """Yield the names in a set, in the order of the catalogue."""
        for position in self.positions_in(types):
            yield self.names[position]

    def positions_in(self, types: int) -> Iterator[int]:
        """Yield the positions in a set, ascending."""
        while types:
            lowest = types & -types
            yield lowest.bit_length() - 1
            types ^= lowest

    def label(self, label: str, position: int) -> str:
        """Return the value of a label of one type; empty if it has none."""
        if label == INSTANCE_TYPE and label not in self.values:
            return self.names[position]
        bit = 1 << position
        return next((value for value, types in self.values.get(label, {}).items() if types & bit), "")


class _Stored(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    source: str
    version: str
    date: str
    names: tuple[str, ...]
    prices: tuple[float | None, ...]
    labels: dict[str, dict[str, str]]
    allocatable: dict[str, dict[str, str]]


@cache
def load_instance_types() -> InstanceTypes:
    """Return the catalogue of this package, which is read once per process."""
    content = pkgutil.get_data(__package__, "instance_types.json") or b""
    stored = msgspec.json.decode(content, type=_Stored)
    values = {label: _sets(by_value) for label, by_value in stored.labels.items()}
    labelled = {label: _union(by_value) for label, by_value in values.items()}
    everything = (1 << len(stored.names)) - 1
    return InstanceTypes(
        version=stored.version,
        date=stored.date,
        names=stored.names,
        positions={name: position for position, name in enumerate(stored.names)},
        prices=stored.prices,
        values=values,
        labelled={**labelled, INSTANCE_TYPE: everything},
        scales=(scales := _scales(values)),
        allocatable={resource: _scale(_sets(amounts)) for resource, amounts in stored.allocatable.items()},
        capacity={resource: scales[label] for resource, label in _CAPACITY.items()},
        everything=everything,
        accelerated=labelled[GPU_NAME] | labelled[ACCELERATOR_NAME],
    )


class TypeRow(msgspec.Struct, frozen=True):
    """A type of a platform, before it is indexed.

    Attributes:
        name: different for each type.
        labels: the labels that its nodes have.
        allocatable: resource -> the amount that Pods can request: millicores, MiB or whole devices.
        capacity: `cpu` and `memory` -> whole CPUs and MiB.
        accelerated: whether it has an accelerator.
        has_devices: whether it offers devices through DRA.
        price: USD an hour, or None.
    """

    name: str
    labels: dict[str, str]
    allocatable: dict[str, int]
    capacity: dict[str, int]
    accelerated: bool
    has_devices: bool
    price: float | None = None


def index_types(rows: Sequence[TypeRow], *, complete: bool) -> InstanceTypes:
    """Index a platform's own types."""
    values: dict[str, dict[str, int]] = {INSTANCE_TYPE: {}}
    allocatable: dict[str, dict[str, int]] = {"cpu": {}, "memory": {}}
    capacity: dict[str, dict[str, int]] = {"cpu": {}, "memory": {}}
    accelerated = 0
    for position, row in enumerate(rows):
        bit = 1 << position
        for table, members in ((values, row.labels), (allocatable, row.allocatable), (capacity, row.capacity)):
            for key, value in members.items():
                sets = table.setdefault(key, {})
                sets[str(value)] = sets.get(str(value), 0) | bit
        accelerated |= bit if row.accelerated else 0
    return InstanceTypes(
        version="",
        date="",
        names=tuple(row.name for row in rows),
        positions={row.name: position for position, row in enumerate(rows)},
        prices=tuple(row.price for row in rows),
        values=values,
        labelled={label: _union(by_value) for label, by_value in values.items()},
        scales=_scales(values),
        allocatable={resource: _scale(amounts) for resource, amounts in allocatable.items()},
        capacity={resource: _scale(amounts) for resource, amounts in capacity.items()},
        everything=(1 << len(rows)) - 1,
        accelerated=accelerated,
        complete=complete,
        has_devices=any(row.has_devices for row in rows),
    )


def _scales(values: Mapping[str, Mapping[str, int]]) -> dict[str, Scale]:
    return {
        label: _scale(by_value) for label, by_value in values.items() if by_value and all(map(_is_number, by_value))
    }


def _is_number(text: str) -> bool:
    # Hosts choose the labels of their nodes, so only ASCII digits of limited length count as numbers.
    return len(text) <= _LONGEST_NUMBER and text.isascii() and text.isdigit()


def _sets(stored: Mapping[str, str]) -> dict[str, int]:
    return {value: int(types, 16) for value, types in stored.items()}


def _union(by_value: Mapping[str, int]) -> int:
    union = 0
    for types in by_value.values():
        union |= types
    return union


def _scale(by_value: Mapping[str, int]) -> Scale:
    ascending = sorted((int(value), types) for value, types in by_value.items())
    reach: list[int] = []
    reached = 0
    for _, types in reversed(ascending):
        reached |= types
        reach.append(reached)
    return Scale(tuple(number for number, _ in ascending), tuple(reversed(reach)))
