"""Which GPUs Pods hold: each once, however many Pods share it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from gpugate.webhook.audit.cost import slices
from gpugate.webhook.audit.cost.gpu_nodes import GpuNode, part_of_gpu
from gpugate.webhook.report.audited import Held

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from gpugate.webhook.audit.allocations import Device
    from gpugate.webhook.audit.inventory import Devices, GpuPod, Inventory
    from gpugate.webhook.report.located import ObjectName


@dataclass(frozen=True, slots=True)
class Holding:
    """What one Pod holds of one resource, as GPUs; `node` is None where its node is not known."""

    pod: GpuPod
    resource: str
    gpus: Fraction
    node: GpuNode | None

    @property
    def usd(self) -> Fraction | None:
        """What it costs an hour, None where no price is known."""
        return None if self.node is None or self.node.usd_per_gpu is None else self.gpus * self.node.usd_per_gpu


def holdings(inventory: Inventory, nodes: Mapping[str, GpuNode]) -> Iterator[Holding]:
    """Yield what each Pod that is bound to a node holds.

    A device of a ResourceClaim that several Pods use, or that was given to several claims, is split evenly among them.
    What a claim was given counts; where that is not known, what it asks for.
    """
    bound = tuple(pod for pod in inventory.pods if pod.node)
    for pod in bound:
        node = nodes.get(pod.node)
        for resource, count in pod.demand.resources.items():
            part = node.part(resource) if node else part_of_gpu(resource)
            if count * part:
                yield Holding(pod, resource, count * part, node)
    yield from _claimed(inventory, bound, nodes)


def _claimed(inventory: Inventory, bound: Iterable[GpuPod], nodes: Mapping[str, GpuNode]) -> Iterator[Holding]:
    claiming = {(pod.namespace, pod.name): pod for pod in bound if pod.demand.devices}
    given, answered = _given(inventory, claiming)
    for device, users in given.items():
        for key in sorted(users):
            node = nodes.get(claiming[key].node)
            part = _device_part(device, node)
            yield Holding(claiming[key], device.device_class or device.driver, part * users[key], node)
    asked: defaultdict[tuple[str, Devices], list[GpuPod]] = defaultdict(list)
    for key, pod in sorted(claiming.items(), key=lambda item: item[0]):
        for number, devices in enumerate(pod.demand.devices) if key not in answered else ():
            own = "" if devices.claim else f"{pod.name}/{number}"
            asked[f"{pod.namespace}/{own}", devices].append(pod)
    for (_, devices), sharing in asked.items():
        for pod in sharing:
            node = nodes.get(pod.node)
            part = node.part(devices.device_class) if node else part_of_gpu(devices.device_class)
            yield Holding(pod, devices.device_class, Fraction(devices.count) * part / len(sharing), node)


def _given(
    inventory: Inventory, claiming: Mapping[tuple[str, str], GpuPod]
) -> tuple[dict[Device, dict[tuple[str, str], Fraction]], set[tuple[str, str]]]:
    """Return device -> Pod -> its part of the device; and the Pods for whose claims it is known what they were given."""
    users: defaultdict[Device, defaultdict[tuple[str, str], Fraction]] = defaultdict(lambda: defaultdict(Fraction))
    answered: set[tuple[str, str]] = set()
    for allocation in inventory.allocations:
        keys = sorted({(allocation.namespace, name) for name in allocation.pods} & claiming.keys())
        answered.update(keys)
        for device in allocation.devices:
            for key in keys:
                users[device][key] += Fraction(1, len(keys))
    whole = {
        device: {key: part / sum(parts.values()) for key, part in parts.items()} for device, parts in users.items()
    }
    return whole, answered


def _device_part(device: Device, node: GpuNode | None) -> Fraction:
    kind = node.record.instance_type if node else ""
    if "-mig-" in device.name:
        profile = slices.named_profile(device.name)
        return slices.share(profile, kind) if profile else slices.LEAST
    return part_of_gpu(device.device_class or device.driver, kind)


def held_by_owner(holding: Iterable[Holding]) -> dict[ObjectName, tuple[Held, ...]]:
    """Add up by top owner: one record for each resource and model, those without a price apart."""
    owners: defaultdict[ObjectName, list[Holding]] = defaultdict(list)
    for each in holding:
        owners[each.pod.owner].append(each)
    return {owner: tuple(_records(of_owner)) for owner, of_owner in owners.items()}


def _records(holding: Sequence[Holding]) -> Iterator[Held]:
    sums: defaultdict[tuple[str, str, bool], list[Fraction]] = defaultdict(lambda: [Fraction(0), Fraction(0)])
    for each in holding:
        usd = each.usd
        amounts = sums[each.resource, each.node.model if each.node else "", usd is not None]
        amounts[0] += each.gpus
        amounts[1] += usd or 0
    for (resource, model, priced), (gpus, usd) in sorted(sums.items()):
        yield Held(resource, model, float(gpus), float(usd) if priced else None)
