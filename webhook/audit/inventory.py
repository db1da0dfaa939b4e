"""The inventory of an audit: nodes and GPU requests, reduced to what prices need.

Sources: `kubernetes/api` v0.36 `resource/v1` types (status of a claim); NVIDIA DRA driver v0.4.1 (names of devices: a whole
GPU is `gpu-0`, a MIG slice `gpu-0-mig-1g10gb-19-0`, in older versions `gpu-0-mig-19-0-1`).
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from gpugate.policies.sdk import objects, quantity
from gpugate.policies.sdk.facts import Known
from gpugate.policies.sdk.field import Field, render
from gpugate.policies.sdk.gpu_demand import (
    alternatives,
    claim_spec,
    claim_spec_of,
    device_requests,
    gpu_demand,
    requested_devices,
)
from gpugate.policies.sdk.node_types import node_types
from gpugate.policies.sdk.objects import Operation, Request
from gpugate.policies.sdk.pod_templates import pod_templates
from gpugate.policies.sdk.policy import Context, Params

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gpugate.policies.engine.ruleset import Ruleset
    from gpugate.policies.sdk.catalogue import InstanceType
    from gpugate.policies.sdk.facts import Facts
    from gpugate.policies.sdk.objects import GroupVersionKind
    from gpugate.policies.sdk.platform import Platform
    from gpugate.policies.sdk.policy import AnyContext
    from gpugate.webhook.audit.source import Stored
    from gpugate.webhook.audit.verdicts import Object
    from gpugate.webhook.report.located import ObjectName

_MIB: Final = 2**20


@dataclass(frozen=True, slots=True)
class Room:
    """Millicores of CPU, MiB of memory, and Pods."""

    cpu: int = 0
    memory: int = 0
    pods: int = 0

    def __add__(self, other: Room) -> Room:
        return Room(self.cpu + other.cpu, self.memory + other.memory, self.pods + other.pods)

    def __sub__(self, other: Room) -> Room:
        return Room(self.cpu - other.cpu, self.memory - other.memory, self.pods - other.pods)

    def times(self, needed: Room) -> int:
        """Return how often what is needed fits in here."""
        pairs = ((self.cpu, needed.cpu), (self.memory, needed.memory), (self.pods, needed.pods))
        return max(0, min((have // need for have, need in pairs if need), default=0))


def room_of_node(node: Field) -> Room | None:
    """Read what a node offers to Pods; None where it says nothing of its CPU."""
    allocatable = node["status", "allocatable"] or node["status", "capacity"]
    if not allocatable["cpu"]:
        return None
    pods = _amount(allocatable["pods"], 1)
    return Room(_amount(allocatable["cpu"], 1000), _amount(allocatable["memory"], 1 / _MIB), math.floor(pods))


def room_of_pod(pod: Field) -> Room:
    """Add up what a Pod reserves, as the scheduler counts (`k8s.io/component-helpers/resource`, PodRequests, v0.36).

    Containers and sidecars together, or the largest init container with the sidecars before it, whichever is more; a
    request for the Pod as a whole wins; the overhead of its runtime comes on top. The API server has made a limit
    without a request into one.
    """
    spec = pod["spec"]
    return Room(_reserved(spec, "cpu", 1000), _reserved(spec, "memory", 1 / _MIB), 1)


def _reserved(spec: Field, resource: str, factor: float) -> int:
    running = sum(_amount(c["resources", "requests", resource], factor) for c in spec["containers"])
    sidecars = peak = 0
    for container in spec["initContainers"]:
        requested = _amount(container["resources", "requests", resource], factor)
        peak = max(peak, sidecars + requested)
        if container["restartPolicy"].text == "Always":
            sidecars += requested
    whole = spec["resources", "requests", resource]
    reserved = _amount(whole, factor) if whole else max(running + sidecars, peak)
    return reserved + _amount(spec["overhead", resource], factor)


def _amount(field: Field, factor: float) -> int:
    if not field:
        return 0
    try:
        return math.ceil(quantity.parse(field.value) * factor)
    except quantity.QuantityError:
        return 0


# `k8s.io/api` resource/v1 types.go, ExtendedResourceClaimAnnotation, v0.36.
_OF_EXTENDED_RESOURCE: Final = "resource.kubernetes.io/extended-resource-claim"


@dataclass(frozen=True, slots=True)
class Device:
    """A device: the driver that offers it, the pool (with most drivers its node) and its name there; and its class."""

    driver: str
    pool: str
    name: str
    device_class: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Allocation:
    """The accelerators that one claim was given, and the names of the Pods that it is reserved for."""

    namespace: str
    claim: str
    pods: tuple[str, ...]
    devices: tuple[Device, ...]


def allocation_of(claim: Field, platform: Platform) -> Allocation | None:
    """Read the status of a ResourceClaim; None where it was given no accelerator.

    What was given for administration is left out, because it takes nothing from those who hold the device. So is what the
    scheduler itself claimed for an extended resource of a Pod, which counts as that resource already.
    """
    if claim["metadata", "annotations"].labels.get(_OF_EXTENDED_RESOURCE) == "true":
        return None
    classes = _classes(claim)
    devices = []
    for result in claim["status", "allocation", "devices", "results"]:
        # `gpu/large` is the alternative `large` of the request `gpu`.
        named = classes.get(result["request"].text) or ""
        driver = result["driver"].text
        is_accelerator = platform.is_accelerator_class(named or driver)
        if is_accelerator and result["adminAccess"].value is not True:
            devices.append(Device(driver, result["pool"].text, result["device"].text, named))
    if not devices:
        return None
    users = (user["name"].text for user in claim["status", "reservedFor"] if user["resource"].text in {"", "pods"})
    metadata = claim["metadata"]
    return Allocation(metadata["namespace"].text, metadata["name"].text, tuple(users), tuple(devices))


def _classes(claim: Field) -> dict[str, str]:
    """Return the device class of each request, and of each alternative as `request/alternative`."""
    classes: dict[str, str] = {}
    for request in device_requests(claim_spec_of(claim, "ResourceClaim")):
        name = request["name"].text
        for ask in alternatives(request):
            key = f"{name}/{ask['name'].text}" if ask["name"] and ask.path != request.path else name
            classes[key] = ask["deviceClassName"].text
    return classes


# Phases in which a Pod holds nothing any more (`k8s.io/api` core/v1 PodPhase, v0.36).
FINISHED: Final = frozenset({"Succeeded", "Failed"})


@dataclass(frozen=True, slots=True)
class Devices:
    """Devices that a Pod asks for through a DRA claim.

    `claim` is the name of the ResourceClaim when the Pod names one that others may share, else empty: then the claim is
    made for this Pod alone.
    """

    device_class: str
    count: int
    claim: str = ""


@dataclass(frozen=True, slots=True)
class Demand:
    """Accelerators that one Pod asks for.

    Attributes:
        resources: extended resource (`nvidia.com/gpu`, `nvidia.com/mig-1g.10gb`) -> how many, as the scheduler counts.
        devices: those asked for through DRA, of classes that hand out accelerators.
    """

    resources: Mapping[str, int] = field(default_factory=dict)
    devices: tuple[Devices, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.resources or self.devices)


@dataclass(frozen=True, slots=True)
class GpuPod:
    """A Pod that asks for accelerators and has not finished.

    Attributes:
        owner: its top owner, as `Audited.object` names it.
        namespace: its namespace.
        name: its name.
        node: the node it is bound to; empty while it is pending, when it holds nothing.
        phase: `Pending`, `Running` or `Unknown`.
        demand: what it asks for.
        room: the CPU and memory that it reserves (`room.room_of_pod`); None where that was not looked at.
        started: when the kubelet took it over (RFC 3339), else when it was created; empty where neither is known.
        team: the value of its first cost label, its own or that of its namespace; empty without one.
    """

    owner: ObjectName
    namespace: str
    name: str
    node: str
    phase: str
    demand: Demand
    room: Room | None = None
    started: str = ""
    team: str = ""


@dataclass(frozen=True, slots=True)
class NodeRecord:
    """A node.

    Attributes:
        name: its name.
        node_pool: its Karpenter NodePool; empty where it has none.
        instance_type: its instance type; empty where no label says it.
        accelerators: accelerator resource -> how many it offers to Pods (`status.allocatable`, else its capacity).
        labels: its labels; of a node that offers no accelerators those that a price hangs on.
        room: the CPU, memory and Pods that it offers (`room.room_of_node`); None where that is not known.
    """

    name: str
    node_pool: str
    instance_type: str
    accelerators: Mapping[str, int]
    labels: Mapping[str, str]
    room: Room | None = None


@dataclass(frozen=True, slots=True)
class GpuTemplate:
    """A Pod template that asks for accelerators.

    Attributes:
        object: the workload that holds it.
        path: where in it, such as `spec.template`.
        demand: what each Pod made from it asks for.
        team: the team of these Pods; empty without one.
    """

    object: ObjectName
    path: str
    demand: Demand
    team: str = ""


@dataclass(frozen=True, slots=True)
class Inventory:
    """The Pods, nodes and templates that the audit read.

    Attributes:
        pods: every Pod that asks for accelerators and has not finished, of excluded namespaces too.
        nodes: every node.
        templates: Pod templates that ask for accelerators.
        node_pools: NodePool objects without their status, as JSON.
        scalers: ScaledObjects, ScaledJobs and HorizontalPodAutoscalers without their status, as JSON.
        pool_teams: NodePool -> the team in the labels of its nodes, for those with one.
        nodes_known: whether the nodes could be read; when not, nothing can be priced.
        pods_known: whether all Pods could be read; when not, what is held is a lower bound.
        used: node -> what all Pods bound to it reserve that have not finished, with GPUs or without.
        allocations: the devices that ResourceClaims were given (`allocations.allocation_of`).
        types: the platform's own types, if it describes some or its nodes are to show them.
        placed: node -> owner -> its Pods on the node that have not finished, with GPUs or without.
    """

    pods: tuple[GpuPod, ...] = ()
    nodes: tuple[NodeRecord, ...] = ()
    templates: tuple[GpuTemplate, ...] = ()
    node_pools: tuple[Mapping[str, Any], ...] = ()  # Any: the JSON edge
    scalers: tuple[Mapping[str, Any], ...] = ()
    pool_teams: Mapping[str, str] = field(default_factory=dict)
    nodes_known: bool = False
    pods_known: bool = False
    used: Mapping[str, Room] = field(default_factory=dict)
    allocations: tuple[Allocation, ...] = ()
    types: tuple[InstanceType, ...] = ()
    placed: Mapping[str, Mapping[ObjectName, int]] = field(default_factory=dict)


# Karpenter v1.14, and its versions before v0.32.
_POOL_LABELS: Final = ("karpenter.sh/nodepool", "karpenter.sh/provisioner-name")
# The second until Kubernetes 1.17.
_TYPE_LABELS: Final = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")
# What a price hangs on, also of a node whose GPUs are offered through DRA alone.
_PRICE_LABELS: Final = ("karpenter.sh/capacity-type", "topology.kubernetes.io/region")


def node_record(node: Field, platform: Platform) -> NodeRecord:
    """Return what prices and places need to know of a node."""
    labels = node["metadata", "labels"].labels
    accelerators = dict(_accelerators(node, platform))
    return NodeRecord(
        name=node["metadata", "name"].text,
        node_pool=next((labels[key] for key in _POOL_LABELS if key in labels), ""),
        instance_type=next((labels[key] for key in _TYPE_LABELS if key in labels), ""),
        accelerators=accelerators,
        labels=labels if accelerators else {key: labels[key] for key in _PRICE_LABELS if key in labels},
        room=room_of_node(node),
    )


def _accelerators(node: Field, platform: Platform) -> Iterator[tuple[str, int]]:
    for name, amount in (node["status", "allocatable"] or node["status", "capacity"]).items():
        if platform.is_accelerator(name):
            try:
                count = math.floor(quantity.parse(amount.value))
            except quantity.QuantityError:
                continue
            if count:
                yield name, count


_POD: Final = objects.GroupVersionKind("", "v1", "Pod")
_COST_LABELS: Final = "pods/missing-cost-labels"
_TEAM: Final = "team"
_SCALERS: Final = frozenset({("keda.sh", "ScaledObject"), ("keda.sh", "ScaledJob")}) | {
    ("autoscaling", "HorizontalPodAutoscaler")
}


class Stock:
    """Collects an inventory."""

    def __init__(self, ruleset: Ruleset, facts: Facts) -> None:
        self._platform = ruleset.config.platform
        self._target = ruleset.config.target
        self._facts = facts
        self._added = ruleset.pod_templates
        self._pods: list[GpuPod] = []
        self._nodes: list[NodeRecord] = []
        self._templates: list[GpuTemplate] = []
        self._node_pools: list[Object] = []
        self._scalers: list[Object] = []
        self._allocations: list[Allocation] = []
        self._used: dict[str, Room] = {}
        self._placed: defaultdict[str, Counter[ObjectName]] = defaultdict(Counter)
        params = next((rule.params for rule in ruleset.rules if rule.policy.id == _COST_LABELS), None)
        self._team_label: str = next(iter(getattr(params, "required", ())), _TEAM)
        self._teams: dict[str, str] = {}
        self._pool_teams: dict[str, str] = {}

    def object(self, stored: Stored) -> None:
        """Take in an object that is no Pod."""
        pair = (stored.kind.group, stored.kind.kind)
        if pair == ("", "Namespace"):
            metadata = Field(stored.object)["metadata"]
            self._teams[metadata["name"].text] = metadata["labels"].labels.get(self._team_label, "")
        elif pair == ("", "Node"):
            self._nodes.append(node_record(Field(stored.object), self._platform))
        elif pair == ("karpenter.sh", "NodePool"):
            self._node_pools.append(_bare(stored))
            pool = Field(stored.object)
            team = pool["spec", "template", "metadata", "labels"].labels.get(self._team_label)
            if team:
                self._pool_teams[pool["metadata", "name"].text] = team
        elif pair in _SCALERS:
            self._scalers.append(_bare(stored))
        elif pair == ("resource.k8s.io", "ResourceClaim"):
            allocation = allocation_of(Field(stored.object), self._platform)
            self._allocations += [allocation] if allocation else []

    def templates(self, name: ObjectName, kind: GroupVersionKind, obj: Object) -> None:
        """Take in the Pod templates of a workload, after what claims they name was read."""
        for template in pod_templates(kind.group, kind.kind, Field(obj), self._added.get(kind, ())):
            demand = self.demand(template, name.namespace)
            if demand:
                self._templates.append(
                    GpuTemplate(name, render(template.path), demand, self.team(template, name.namespace))
                )

    @property
    def pods_with_gpus(self) -> Sequence[GpuPod]:
        """Every Pod that was taken in and asks for accelerators."""
        return self._pods

    def pod(self, pod: GpuPod, room: Room) -> None:
        """Take in a Pod that has not finished."""
        if pod.node:
            self._used[pod.node] = self._used.get(pod.node, Room()) + room
            self._placed[pod.node][pod.owner] += 1
        if pod.demand:
            self._pods.append(pod)

    def team(self, pod: Field, namespace: str) -> str:
        """Return the team that a Pod belongs to, by its first cost label or that of its namespace; empty without one."""
        metadata = pod["metadata"]
        blocks = (metadata["labels"].labels, metadata["annotations"].labels)
        own = next((block[self._team_label] for block in blocks if block.get(self._team_label)), "")
        return own or self._teams.get(namespace, "")

    def demand(self, pod: Field, namespace: str) -> Demand:
        """Return what a Pod or template asks for.

        Of a claim all devices count, whichever container uses them: the Pod is given all.
        """
        context: AnyContext = Context(
            params=Params(),
            subject=pod,
            wrapper=None,
            request=Request(_POD, Operation.CREATE, None, namespace=namespace),
            facts=self._facts,
            platform=self._platform,
            target=self._target,
            tables={},
            memo={},
        )
        return Demand(gpu_demand(pod, context).resources, tuple(self._devices(pod, context)))

    def _devices(self, pod: Field, context: AnyContext) -> Iterator[Devices]:
        for claim in pod["spec", "resourceClaims"]:
            spec = claim_spec(claim, context)
            for requested in requested_devices(spec) if spec else ():
                granted = max(requested, key=lambda name: requested[name])
                if self._platform.is_accelerator_class(granted):
                    yield Devices(granted, requested[granted], claim["resourceClaimName"].text)

    def inventory(self, *, nodes_known: bool, pods_known: bool) -> Inventory:
        """Return what was collected."""
        types, by_node = self._types()
        return Inventory(
            pods=tuple(self._pods),
            nodes=tuple(_typed(record, by_node) for record in self._nodes) if by_node else tuple(self._nodes),
            types=types,
            templates=tuple(self._templates),
            node_pools=tuple(self._node_pools),
            scalers=tuple(self._scalers),
            pool_teams=self._pool_teams,
            nodes_known=nodes_known,
            pods_known=pods_known,
            used=self._used,
            placed=self._placed,
            allocations=tuple(self._allocations),
        )

    def _types(self) -> tuple[tuple[InstanceType, ...], Mapping[str, str]]:
        """Return the platform's own types, and the name of the type of each node."""
        catalogue = self._platform.catalogue
        if not catalogue:
            return (), {}
        nodes, slices = self._facts.list(objects.NODE), self._facts.list(objects.RESOURCE_SLICE)
        if not isinstance(nodes, Known):
            return catalogue.types, {}
        of_nodes = node_types(nodes.items, slices.items if isinstance(slices, Known) else (), self._platform)
        listed = {entry.name for entry in catalogue.types}
        return (*catalogue.types, *(entry for entry in of_nodes.types if entry.name not in listed)), of_nodes.by_node


def _typed(record: NodeRecord, by_node: Mapping[str, str]) -> NodeRecord:
    """Return a node with the name of its type, where it has another than its label or no label names one."""
    return replace(record, instance_type=by_node.get(record.name, record.instance_type))


def _bare(stored: Stored) -> dict[str, Any]:
    """Return an object with its type, without its status and what the API server keeps about its fields."""
    metadata = stored.object.get("metadata")
    metadata_fields = {key: value for key, value in metadata.items() if key != "managedFields"} if metadata else {}
    typed = {"apiVersion": stored.kind.api_version, "kind": stored.kind.kind}
    return {**{k: v for k, v in stored.object.items() if k != "status"}, **typed, "metadata": metadata_fields}
