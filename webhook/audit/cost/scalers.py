"""How far autoscalers of GPU workloads without a suitable bound can scale."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from gpugate.policies.nodepools._accelerators import devices
from gpugate.policies.scaling._scaled_objects import KEDA_MAXIMUM
from gpugate.policies.sdk.field import Field
from gpugate.policies.sdk.scale_targets import scale_target
from gpugate.webhook.audit.cost.gpu_nodes import part_of_gpu
from gpugate.webhook.audit.model import Unbounded
from gpugate.webhook.report.located import ObjectName

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from gpugate.policies.sdk.field import Json
    from gpugate.webhook.audit.cost.gpu_nodes import GpuNode
    from gpugate.webhook.audit.cost.gpu_pools import GpuPool
    from gpugate.webhook.audit.cost.prices import Prices
    from gpugate.webhook.audit.inventory import Demand, GpuTemplate

POLICY: Final = "scaling/unbounded-replicas"
"""The policy that says which bounds are too high."""
_KEDA_KINDS: Final = frozenset({"ScaledObject", "ScaledJob"})
Target = tuple[str, str, str]
"""Namespace, kind and name of a workload."""


@dataclass(frozen=True, slots=True)
class Scaler:
    """An autoscaler.

    Attributes:
        name: the autoscaler.
        target: the workload whose Pods it creates.
        maximum: its maximum number of replicas or Jobs; None if it states none.
        parallel: the Pods of each.
    """

    name: ObjectName
    target: Target
    maximum: int | None
    parallel: int = 1

    @property
    def most_pods(self) -> int:
        """The Pods at the maximum, which has a default in KEDA."""
        return (KEDA_MAXIMUM if self.maximum is None else self.maximum) * self.parallel


def scalers_of(documents: Iterable[Mapping[str, Json]]) -> Iterator[Scaler]:
    """Read ScaledObjects, ScaledJobs and HorizontalPodAutoscalers, without those that KEDA made for a ScaledObject."""
    for document in documents:
        scaler = Field(dict(document))
        if not any(owner["kind"].text in _KEDA_KINDS for owner in scaler["metadata", "ownerReferences"]):
            maximum = scaler["spec", "maxReplicaCount" if scaler["kind"].text in _KEDA_KINDS else "maxReplicas"].integer
            parallel = scaler["spec", "jobTargetRef", "parallelism"].integer or 1
            yield Scaler(_name(scaler), _target(scaler), maximum, parallel)


def gpus_per_pod(demand: Demand) -> Fraction:
    """Return the GPUs that one Pod asks for; a slice counts as its share."""
    return sum((count * part_of_gpu(resource) for resource, count in _requests(demand)), Fraction(0))


@dataclass(frozen=True, slots=True)
class Supply:
    """Where GPUs of a kind come from.

    Attributes:
        usd_per_gpu: instance type -> what one GPU costs an hour, for those that have a price.
        most: how many GPUs there can be at most; None: any number.
    """

    usd_per_gpu: Mapping[str, Fraction]
    most: int | None


def unbounded_scalers(
    scalers: Iterable[Mapping[str, Json]],
    templates: Iterable[GpuTemplate],
    flagged: Collection[ObjectName],
    supplies: Mapping[str, Supply],
) -> Iterator[Unbounded]:
    """Yield scalers of GPU workloads without a bound, or with one that a policy finds too high.

    Args:
        scalers: ScaledObjects, ScaledJobs and HorizontalPodAutoscalers, as JSON.
        templates: the workloads that ask for GPUs.
        flagged: the scalers in which `POLICY` found something.
        supplies: resource or device class -> where it comes from.
    """
    scaled: dict[Target, GpuTemplate] = {}
    for template in templates:
        name = template.object
        scaled.setdefault((name.namespace, name.kind, name.name), template)
    for scaler in scalers_of(scalers):
        workload = scaled.get(scaler.target)
        if workload and (scaler.name in flagged or scaler.maximum is None):
            yield replace(_worst(scaler, workload.demand, supplies), team=workload.team)


def supplies_of(
    names: Iterable[str], pools: Iterable[GpuPool], nodes: Iterable[GpuNode], prices: Prices
) -> dict[str, Supply]:
    """Return where each resource or device class comes from: node pools, else the nodes that there are."""
    pools, nodes = tuple(pools), tuple(nodes)
    return {name: _supply(_whole(name), pools, nodes, prices) for name in names}


def _supply(resource: str, pools: tuple[GpuPool, ...], nodes: tuple[GpuNode, ...], prices: Prices) -> Supply:
    fitting = [(pool, make) for pool in pools for make in pool.makes if resource in make.resources]
    gpus = {
        pool.types.catalogue.names[position]: devices(make, position, pool.types.catalogue)
        for pool, make in fitting
        if pool.types
        for position in pool.types.catalogue.positions_in(make.offering)
    }
    if not gpus:
        there = {n.record.instance_type: n.usd_per_gpu for n in nodes if n.usd_per_gpu and n.part(resource)}
        return Supply(there, None)
    bounds = [pool.most(make) for pool, make in fitting]
    known = [bound for bound in bounds if bound is not None]
    costs = {name: price / count for name, count in gpus.items() if (price := prices.of(name))}
    return Supply(costs, sum(known) if len(known) == len(bounds) else None)


def _whole(name: str) -> str:
    """Return the resource by which nodes offer what a slice, a core or a device class is a part of."""
    if name.startswith("aws.amazon.com/") or "neuron" in name:
        return "aws.amazon.com/neuron"
    return "nvidia.com/gpu" if "nvidia.com" in name else name


def _worst(scaler: Scaler, demand: Demand, supplies: Mapping[str, Supply]) -> Unbounded:
    name, pods, per_pod = scaler.name, scaler.most_pods, gpus_per_pod(demand)
    requests = _requests(demand)
    default = f"no maxReplicaCount, so KEDA uses {KEDA_MAXIMUM}: " if scaler.maximum is None else ""
    reason = f"{default}{pods} Pods x {_number(per_pod)} GPUs = {_number(pods * per_pod)} GPUs"
    supply = supplies[max(requests, key=lambda item: item[1])[0]]
    if not supply.usd_per_gpu or not per_pod:
        return Unbounded(name, f"{reason}; unknown nodes", None)
    usd, dearest = max((usd, kind) for kind, usd in supply.usd_per_gpu.items())
    gpus = pods * per_pod
    if supply.most is not None and supply.most < gpus:
        gpus = Fraction(supply.most)
        reason += f", of which the limits of NodePools allow {supply.most}"
    which = (
        f"as {dearest}"
        if len(supply.usd_per_gpu) == 1
        else f"as {dearest}, the most expensive of {len(supply.usd_per_gpu)} instance types"
    )
    return Unbounded(name, f"{reason}; worst case {which}", float(gpus * usd))


def _number(amount: Fraction) -> str:
    return f"{float(amount):g}"


def _requests(demand: Demand) -> list[tuple[str, int]]:
    return [*demand.resources.items(), *((devices.device_class, devices.count) for devices in demand.devices)]


def _target(scaler: Field) -> Target:
    namespace = scaler["metadata", "namespace"].text
    if scaler["kind"].text == "ScaledJob":
        return namespace, "ScaledJob", scaler["metadata", "name"].text
    target = scale_target(scaler)
    return (namespace, target.kind, target.name) if target else ("", "", "")


def _name(scaler: Field) -> ObjectName:
    metadata = scaler["metadata"]
    return ObjectName(scaler["apiVersion"].text, scaler["kind"].text, metadata["namespace"].text, metadata["name"].text)
