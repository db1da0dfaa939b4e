"""The instance types that a platform describes itself: their format and their index.

The types of EC2 are part of this package. These types belong to one platform: its own machines, or types of a provider
that has no table in gpugate.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import msgspec

from gpugate.policies.data.instance_types import INSTANCE_TYPE, TypeRow, index_types
from gpugate.policies.sdk import quantity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from gpugate.policies.data.instance_types import InstanceTypes
    from gpugate.policies.sdk.field import Path
    from gpugate.policies.sdk.quantity import Amount

API_VERSION: Final = "gpugate.dev/v1"
KIND: Final = "InstanceTypes"

Quantity: TypeAlias = str | int
Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=1_000_000)]
Name: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=253)]

MOST_TYPES: Final = 2000
_MOST_MEMBERS: Final = 100
_MIB: Final = 2**20
# The minimum of a node.
_LEAST: Final[dict[str, Quantity]] = {"cpu": "1m", "memory": "1Mi"}


class Devices(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """Devices of one sort that a DRA driver offers on each node of a type.

    Attributes:
        driver: the name of the driver, such as gpu.nvidia.com.
        count: the number of devices of a node.
        product: the model, such as NVIDIA H100 80GB HBM3.
        profile: the MIG profile of a slice, such as 1g.10gb; empty for a whole device.
        memory: the memory of one device, such as 80Gi.
    """

    driver: Name
    count: Count
    product: str = ""
    profile: str = ""
    memory: Quantity = ""


class InstanceType(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """One type of node.

    Attributes:
        name: a unique name. It is the value of the label `node.kubernetes.io/instance-type` unless `labels` has another.
        nodes: how many nodes of the type the cluster had.
        labels: labels that each node of the type has.
        capacity: what a node has of each resource, such as `cpu` and `memory`.
        allocatable: what Pods can request of each resource, such as `nvidia.com/gpu`. A resource that is not listed is not
            offered.
        devices: what DRA drivers offer on each node.
        usd_per_hour: the price of one node.
    """

    name: Name
    nodes: Count | None = None
    labels: dict[str, str] = {}
    capacity: dict[str, Quantity] = {}
    allocatable: dict[str, Quantity] = {}
    devices: tuple[Devices, ...] = ()
    usd_per_hour: Annotated[float, msgspec.Meta(gt=0, le=1_000_000)] | None = None


class Catalogue(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Instance types of the platform, for nodes that are not EC2 instances.

    Attributes:
        from_nodes: whether the types of the cluster's own nodes and ResourceSlices are added to `types`.
        complete: whether nodes of other types never exist. If true, policies also report Pods for which every type is too
            small.
        types: the types. `gpugate catalogue` writes them.
    """

    from_nodes: bool = False
    complete: bool = False
    types: tuple[InstanceType, ...] = ()

    def __bool__(self) -> bool:
        """Tell whether the catalogue lists types or reads them from nodes."""
        return self.from_nodes or bool(self.types)


class CatalogueFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """A file of instance types, as `gpugate catalogue` writes it.

    Attributes:
        source: where the types come from.
        complete: whether nodes of other types never exist.
        types: the types.
    """

    source: str = ""
    complete: bool = False
    types: tuple[InstanceType, ...] = ()


class CatalogueError(ValueError):
    """A type is invalid; `path` is where, within the catalogue."""

    def __init__(self, path: Path, message: str) -> None:
        super().__init__(message)
        self.path = path
        self.message = message


def check_types(types: Sequence[InstanceType]) -> None:
    """Check the rules that the types of the members do not express.

    Raises:
        CatalogueError: there are too many types or members, a name is used twice, an amount is invalid, or CPU or
            memory is missing.
    """
    if len(types) > MOST_TYPES:
        raise CatalogueError(("types",), f"has {len(types):,} types (limit: {MOST_TYPES:,})")
    names: dict[str, int] = {}
    for index, entry in enumerate(types):
        first = names.setdefault(entry.name, index)
        if first != index:
            raise CatalogueError(("types", index, "name"), f"is the name of types[{first}] too: write another")
        _check_type(entry, ("types", index))


def _check_type(entry: InstanceType, path: Path) -> None:
    if len(entry.labels) > _MOST_MEMBERS:
        raise CatalogueError((*path, "labels"), f"has {len(entry.labels):,} labels (limit: {_MOST_MEMBERS})")
    for key, amounts in (("capacity", entry.capacity), ("allocatable", entry.allocatable)):
        if len(amounts) > _MOST_MEMBERS:
            raise CatalogueError((*path, key), f"has {len(amounts):,} resources (limit: {_MOST_MEMBERS})")
        for name, value in amounts.items():
            _check_amount(value, _LEAST.get(name, 0), (*path, key, name))
    for name in _LEAST:
        if name not in entry.capacity and name not in entry.allocatable:
            raise CatalogueError((*path, "allocatable"), f"missing {name}")
    for position, devices in enumerate(entry.devices):
        if devices.memory != "":
            _check_amount(devices.memory, 0, (*path, "devices", position, "memory"))


def _check_amount(value: Quantity, least: Quantity, path: Path) -> None:
    try:
        amount = quantity.parse(value)
    except quantity.QuantityError as error:
        raise CatalogueError(path, str(error)) from None
    if amount < quantity.parse(least):
        raise CatalogueError(path, f"{value} is less than {least}")


def index(types: Iterable[InstanceType], is_accelerator: Callable[[str], bool], *, complete: bool) -> InstanceTypes:
    """Index types after `check_types` has accepted them."""
    return index_types([_row(entry, is_accelerator) for entry in types], complete=complete)


def _row(entry: InstanceType, is_accelerator: Callable[[str], bool]) -> TypeRow:
    having = {**entry.allocatable, **entry.capacity}
    capacity = {name: math.ceil(quantity.parse(having[name]) / unit) for name, unit in (("cpu", 1), ("memory", _MIB))}
    offered = {**{name: having[name] for name in _LEAST}, **entry.allocatable}
    allocatable = {name: _whole(name, quantity.parse(amount)) for name, amount in offered.items()}
    offers = any(is_accelerator(name) for name, count in allocatable.items() if count)
    has_devices = any(devices.count for devices in entry.devices)
    return TypeRow(
        entry.name,
        {INSTANCE_TYPE: entry.name, **entry.labels},
        {name: amount for name, amount in allocatable.items() if amount},
        capacity,
        offers or has_devices,
        has_devices,
        entry.usd_per_hour,
    )


def _whole(name: str, amount: Amount) -> int:
    """Return the amount that Pods can request, in the units of the index."""
    return math.floor(amount * 1000 if name == "cpu" else amount / _MIB if name == "memory" else amount)
