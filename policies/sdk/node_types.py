"""The instance types of a cluster, inferred from its nodes and ResourceSlices. Nodes of the same shape are one type.

Sources: `kubernetes/api` v0.36 `core/v1` (NodeStatus: capacity counts unhealthy devices, allocatable does not), `resource/v1`
and `resource/v1beta1` (ResourceSlice: only the slices of the highest generation of a pool count); NVIDIA
gpu-feature-discovery v0.20.0 (labels `nvidia.com/gpu.*`); NVIDIA DRA driver v0.4.1 (attributes `productName` and `profile`,
capacity `memory`).
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Final, TypeAlias

from gpugate.policies.data.instance_types import INSTANCE_TYPE
from gpugate.policies.sdk import quantity
from gpugate.policies.sdk.catalogue import MOST_TYPES, Devices, InstanceType, index
from gpugate.policies.sdk.facts import Known, Need, derived
from gpugate.policies.sdk.objects import NODE, RESOURCE_SLICE
from gpugate.policies.sdk.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from gpugate.policies.data.instance_types import InstanceTypes
    from gpugate.policies.sdk.catalogue import Quantity
    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.platform import Platform
    from gpugate.policies.sdk.policy import AnyContext
    from gpugate.policies.sdk.quantity import Amount

# The needs of a policy that reads the types of a cluster.
NODE_TYPE_NEEDS: Final = (
    Need(NODE, ("metadata.labels", "status.allocatable", "status.capacity")),
    Need(
        RESOURCE_SLICE,
        (
            "spec.devices.attributes",
            "spec.devices.basic",
            "spec.devices.capacity",
            "spec.driver",
            "spec.nodeName",
            "spec.pool",
        ),
    ),
)

# Labels that follow from the machine. Others, such as the zone or the versions of drivers, differ between its nodes.
_LABELS: Final = frozenset(
    {
        INSTANCE_TYPE,
        "kubernetes.io/arch",
        "kubernetes.io/os",
        "cloud.google.com/gke-accelerator",
        "cloud.google.com/machine-family",
        "kubernetes.azure.com/accelerator",
        "nvidia.com/mig.capable",
        "nvidia.com/mig.strategy",
    }
)
_LABEL_PREFIXES: Final = (
    *("amd.com/gpu.", "gpu.intel.com/", "nvidia.com/gpu."),
    *("karpenter.azure.com/sku-", "karpenter.k8s.aws/instance-", "karpenter.k8s.gcp/instance-"),
)
# Labels with which the GPU operator selects the nodes of its DaemonSets.
_NOT_OF_MACHINE: Final = "nvidia.com/gpu.deploy."
_PRODUCT: Final = "nvidia.com/gpu.product"
_COUNT: Final = "nvidia.com/gpu.count"
_REPLICAS: Final = "nvidia.com/gpu.replicas"
_NVIDIA: Final = "nvidia.com/gpu"
_MEMBERS: Final = 64
_LONGEST: Final = 253
_MOST_REMARKS: Final = 20
_MIB: Final = 2**20
_GIB: Final = 2**30
# The memory of machines of one model differs by less than this, because of their firmware.
_SAME_MEMORY: Final = 1.02
_SPECIAL: Final = re.compile(r"[^a-z0-9.]+")


class NodeTypes(Struct, frozen=True):
    """The types of some nodes.

    Attributes:
        types: every type that a node has, by name.
        by_node: the name of the type of each node.
        remarks: contradictions and invalid values, with their location.
    """

    types: tuple[InstanceType, ...]
    by_node: dict[str, str]
    remarks: tuple[str, ...]


DeviceSort: TypeAlias = tuple[str, str, str, int]  # driver, product, profile, MiB of memory


class _Machine(Struct, frozen=True):
    """The properties of a node that depend on the machine; `devices` are those of DRA."""

    name: str
    labels: dict[str, str]
    capacity: dict[str, Amount]
    allocatable: dict[str, Amount]
    devices: tuple[tuple[DeviceSort, int], ...]

    @property
    def extended(self) -> tuple[tuple[str, Amount], ...]:
        """Its extended resources. Unhealthy devices count, because they do not change the type of the machine."""
        return tuple(sorted((name, amount) for name, amount in self.capacity.items() if "/" in name and amount))

    @property
    def memory(self) -> Amount:
        """Its memory in bytes."""
        return self.capacity.get("memory", 0)

    @property
    def shape(self) -> tuple[object, ...]:
        """The value that nodes of one type share, in addition to nearly the same memory."""
        labels = (
            self.labels.get(key, "") for key in (INSTANCE_TYPE, "kubernetes.io/arch", "kubernetes.io/os", _PRODUCT)
        )
        return (*labels, self.extended, self.devices, math.ceil(self.capacity.get("cpu", 0)))


def own_types(ctx: AnyContext) -> InstanceTypes | None:
    """Return the types that the platform lists or its nodes have; None if there are none."""
    catalogue = ctx.platform.catalogue
    nodes = ctx.facts.list(NODE) if catalogue.from_nodes else None
    if isinstance(nodes, Known):
        return derived(nodes, _of_cluster, ctx)
    return ctx.platform.listed_types


def _of_cluster(nodes: Known, ctx: AnyContext) -> InstanceTypes | None:
    catalogue, platform = ctx.platform.catalogue, ctx.platform
    slices = ctx.facts.list(RESOURCE_SLICE)
    observed = node_types(nodes.items, slices.items if isinstance(slices, Known) else (), platform)
    listed = {entry.name for entry in catalogue.types}
    every = (*catalogue.types, *(entry for entry in observed.types if entry.name not in listed))
    return index(every, platform.is_accelerator, complete=catalogue.complete) if every else None


def node_types(nodes: Iterable[Field], slices: Iterable[Field], platform: Platform) -> NodeTypes:
    """Group nodes into types; a type that the platform lists keeps its name.

    The time is linear in the nodes and slices, apart from sorting. At most 2,000 types are returned, those with most nodes.
    """
    remarks: list[str] = []
    devices = devices_by_node(slices, platform)
    groups: defaultdict[tuple[object, ...], list[_Machine]] = defaultdict(list)
    for node in nodes:
        machine = _machine(node, devices, remarks)
        if machine.capacity.get("cpu", 0) * 1000 >= 1 and machine.memory >= _MIB:
            groups[machine.shape].append(machine)
        else:
            remarks.append(
                f"node {machine.name}: status.capacity contains no CPU or no memory, so the node is left out"
            )
    split = [part for group in groups.values() for part in _by_memory(group)]
    split.sort(key=lambda part: (-len(part), part[0].name))
    if len(split) > MOST_TYPES:
        remarks.insert(0, f"{len(split):,} shapes of nodes, of which {len(split) - MOST_TYPES:,} are left out")
    listed = _Listed(platform.catalogue.types)
    labelled = Counter(part[0].labels.get(INSTANCE_TYPE, "") for part in split)
    remarks += [
        f"{count} shapes of nodes have the instance type {label}: their types have longer names"
        for label, count in sorted(labelled.items())
        if label and count > 1
    ]
    types: dict[str, InstanceType] = {}
    by_node: dict[str, str] = {}
    taken = Counter(entry.name for entry in platform.catalogue.types)
    for part in split[:MOST_TYPES]:
        known = listed.find(part, labelled)
        name = known.name if known else _name(part[0], labelled)
        if known is None:
            taken[name] += 1
            name = name if taken[name] == 1 else f"{name}-{taken[name]}"
        types[name] = known or _type(name, part)
        by_node.update((machine.name, name) for machine in part)
    reported = remarks[:_MOST_REMARKS]
    if len(remarks) > len(reported):
        reported.append(f"and {len(remarks) - len(reported):,} more remarks on nodes")
    return NodeTypes(tuple(types[name] for name in sorted(types)), by_node, tuple(reported))


def _machine(node: Field, devices: Mapping[str, tuple[tuple[DeviceSort, int], ...]], remarks: list[str]) -> _Machine:
    name = node["metadata", "name"].text
    labels = {
        key: value
        for key, value in node["metadata", "labels"].labels.items()
        if (key in _LABELS or key.startswith(_LABEL_PREFIXES)) and not key.startswith(_NOT_OF_MACHINE)
    }
    if len(labels) > _MEMBERS:
        remarks.append(f"node {name}: {len(labels):,} labels of the machine, of which {_MEMBERS} are read")
        labels = dict(sorted(labels.items())[:_MEMBERS])
    status = node["status"]
    capacity = dict(_amounts(status["capacity"] or status["allocatable"], name, remarks))
    allocatable = dict(_amounts(status["allocatable"] or status["capacity"], name, remarks))
    machine = _Machine(name, labels, capacity, allocatable, devices.get(name, ()))
    counted, offered = labels.get(_COUNT, ""), capacity.get(_NVIDIA, 0)
    is_shared = labels.get(_REPLICAS, "1") not in {"", "0", "1"} or "-MIG-" in labels.get(_PRODUCT, "")
    if counted.isascii() and counted.isdigit() and offered and not is_shared and counted != str(offered):
        has_slices = any("/mig-" in key and amount for key, amount in machine.extended)
        if not has_slices:
            remarks.append(f"node {name}: label {_COUNT} is {counted[:20]}, status.capacity has {offered} {_NVIDIA}")
    return machine


def _amounts(block: Field, node: str, remarks: list[str]) -> Iterator[tuple[str, Amount]]:
    """Yield CPU, memory and extended resources."""
    count = 0
    for name, field in block.items():
        if name not in {"cpu", "memory"} and ("/" not in name or len(name) > _LONGEST):
            continue
        count += 1
        if count > _MEMBERS:
            remarks.append(f"node {node}: more than {_MEMBERS} resources; the others are not read")
            return
        try:
            amount = quantity.parse(field.value)
        except quantity.QuantityError as error:
            remarks.append(f"node {node}: {'.'.join(map(str, block.path))}.{name}: {error}")
            continue
        if amount < 0:
            remarks.append(f"node {node}: {'.'.join(map(str, block.path))}.{name}: {str(field.value)[:20]} is negative")
        else:
            yield name, amount if name in {"cpu", "memory"} else math.floor(amount)


def devices_by_node(slices: Iterable[Field], platform: Platform) -> dict[str, tuple[tuple[DeviceSort, int], ...]]:
    """Count the accelerators that DRA drivers offer on each node, by sort."""
    newest: dict[tuple[str, str], int] = {}
    read: list[tuple[tuple[str, str], int, str, Counter[DeviceSort]]] = []
    for resource_slice in slices:
        spec = resource_slice["spec"]
        driver, node = spec["driver"].text, spec["nodeName"].text
        if not node or not platform.is_accelerator_class(driver):
            continue
        pool = (driver, spec["pool", "name"].text)
        generation = spec["pool", "generation"].integer or 0
        newest[pool] = max(newest.get(pool, generation), generation)
        read.append((pool, generation, node, Counter(_sort(driver, device) for device in spec["devices"])))
    by_node: defaultdict[str, Counter[DeviceSort]] = defaultdict(Counter)
    for pool, generation, node, sorts in read:
        if generation == newest[pool]:
            by_node[node].update(sorts)
    return {node: tuple(sorted(sorts.items())[:_MEMBERS]) for node, sorts in by_node.items()}


def _sort(driver: str, device: Field) -> DeviceSort:
    basic = device["basic"] or device
    attributes = basic["attributes"]
    memory = basic["capacity", "memory"]
    size = math.ceil((quantity.parse_or_none((memory["value"] or memory).value) or 0) / _MIB)
    product, profile = (attributes[key, "string"].text[:_LONGEST] for key in ("productName", "profile"))
    return driver, product, profile, size


def _by_memory(group: list[_Machine]) -> Iterator[list[_Machine]]:
    """Divide nodes of one shape where their memory differs by more than firmware explains."""
    part: list[_Machine] = []
    for machine in sorted(group, key=lambda machine: (machine.memory, machine.name)):
        if part and machine.memory > part[0].memory * _SAME_MEMORY:
            yield part
            part = []
        part.append(machine)
    yield part


def _type(name: str, part: Sequence[_Machine]) -> InstanceType:
    """Describe a type: the labels that all of its nodes have, and the largest amounts that any of them has."""
    labels = set(part[0].labels.items()).intersection(*(machine.labels.items() for machine in part[1:]))
    return InstanceType(
        name=name,
        nodes=len(part),
        labels=dict(sorted(labels)),
        capacity=_most([{k: v for k, v in m.capacity.items() if k in {"cpu", "memory"}} for m in part]),
        allocatable=_most([machine.allocatable for machine in part]),
        devices=tuple(
            Devices(
                driver=driver, count=count, product=product, profile=profile, memory=f"{size}Mi" if size > 0 else ""
            )
            for (driver, product, profile, size), count in part[0].devices
        ),
    )


def _most(blocks: Sequence[Mapping[str, Amount]]) -> dict[str, Quantity]:
    names = sorted({name for block in blocks for name in block})
    return {name: _written(name, max(block.get(name, 0) for block in blocks)) for name in names}


def _written(name: str, amount: Amount) -> Quantity:
    """Write an amount as Kubernetes does: fractions of CPU in millicores, memory in KiB or MiB."""
    if name == "cpu":
        return int(amount) if amount == int(amount) else f"{math.ceil(amount * 1000)}m"
    if name == "memory":
        return f"{math.ceil(amount / _MIB)}Mi"
    return int(amount)


def _name(machine: _Machine, labelled: Mapping[str, int]) -> str:
    """Name a type after its label, or after its resources if the label is missing or other shapes have it too."""
    label = machine.labels.get(INSTANCE_TYPE, "")
    if label and labelled[label] == 1:
        return label
    product = machine.labels.get(_PRODUCT) or next((sort[1] for sort, _ in machine.devices if sort[1]), "")
    counts = [f"{amount}x-{product or name}" for name, amount in machine.extended if name == _NVIDIA]
    counts += [f"{count}x-{sort[1] or sort[0]}" for sort, count in machine.devices if not counts]
    counts += [f"{amount}x-{name}" for name, amount in machine.extended if not counts]
    cpu, memory = math.ceil(machine.capacity.get("cpu", 0)), round(machine.memory / _GIB)
    described = "-".join((label, *counts[:2], f"{cpu}cpu", f"{memory}gib")).lower()
    return _SPECIAL.sub("-", described).strip("-.")[: _LONGEST - 8]


class _Listed:
    """The types that the platform lists, to find those of its nodes among them."""

    def __init__(self, types: Iterable[InstanceType]) -> None:
        self._by_label: defaultdict[str, list[InstanceType]] = defaultdict(list)
        self._by_shape: defaultdict[tuple[object, ...], list[tuple[Amount, InstanceType]]] = defaultdict(list)
        for entry in types:
            self._by_label[entry.labels.get(INSTANCE_TYPE, entry.name)].append(entry)
            machine = _machine_of(entry)
            self._by_shape[machine.shape].append((machine.memory, entry))

    def find(self, part: Sequence[_Machine], labelled: Mapping[str, int]) -> InstanceType | None:
        """Return the type of some nodes by their label, or by their shape if other nodes have the label too."""
        label = part[0].labels.get(INSTANCE_TYPE, "")
        same = self._by_label.get(label, ()) if label and labelled[label] == 1 else ()
        if len(same) == 1:
            return same[0]
        memory = part[-1].memory
        for listed, entry in self._by_shape.get(part[0].shape, ()):
            if listed <= memory * _SAME_MEMORY and memory <= listed * _SAME_MEMORY:
                return entry
        return None


def _machine_of(entry: InstanceType) -> _Machine:
    """Return a node of a listed type, whose amounts have been checked."""
    capacity = {name: quantity.parse(amount) for name, amount in {**entry.allocatable, **entry.capacity}.items()}
    devices = (
        (
            (
                entry_devices.driver,
                entry_devices.product,
                entry_devices.profile,
                math.ceil(quantity.parse(entry_devices.memory or 0) / _MIB),
            ),
            entry_devices.count,
        )
        for entry_devices in entry.devices
    )
    return _Machine("", entry.labels, capacity, {}, tuple(sorted(devices)))
