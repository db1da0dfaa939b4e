"""The instance types that Karpenter's kwok provider offers: EC2's, with their sizes, GPUs, labels and prices.

The file is a list of `{name, architecture, operatingSystems, resources, offerings}`, read once at its start
(Karpenter v1.14.1 `kwok/cloudprovider/helpers.go`). Two things differ from what Karpenter does on AWS:

- Its types carry no labels of AWS. Those of an offering are matched too, and nodes get them, so they stand there.
- `Available: false` is overwritten when the file is read. So what is short of capacity has no such offering.
"""

from __future__ import annotations

import json
from itertools import product
from typing import TYPE_CHECKING, Any, Final

from gpugate.policies.data.instance_types import INSTANCE_TYPE, load_instance_types

if TYPE_CHECKING:
    from pathlib import Path

    from gpugate.policies.data.instance_types import InstanceTypes

ZONES: Final = ("us-east-1a", "us-east-1b", "us-east-1c")
ON_DEMAND: Final = "on-demand"
SPOT: Final = "spot"
GPU: Final = "nvidia.com/gpu"
# No capacity anywhere: of one type on demand, and of one family on Spot.
SHORT_ON_DEMAND: Final = "g6.2xlarge"
SHORT_ON_SPOT: Final = "g4dn"
# Spot costs less; how much changes by the hour, and only the order matters here.
_SPOT_PRICE = 0.4
_CPU_FAMILIES = ("m7i",)
_ARCHITECTURE = "amd64"
_AWS = "karpenter.k8s.aws/instance-"
_LABELS = tuple(
    f"{_AWS}{name}"
    for name in ("category", "family", "generation", "size", "gpu-name", "gpu-count", "gpu-memory", "gpu-manufacturer")
)
_UNITS = {"cpu": "m", "memory": "Mi"}


def written_types(file: Path) -> Path:
    """Write the file, and return it."""
    catalogue = load_instance_types()
    offered = [_type(catalogue, position) for position in catalogue.positions_in(_chosen(catalogue))]
    file.write_text(json.dumps(offered), encoding="utf-8")
    return file


def price(instance_type: str) -> float:
    """Return USD an hour, on demand."""
    catalogue = load_instance_types()
    return catalogue.prices[catalogue.positions[instance_type]] or 0.0


def _chosen(catalogue: InstanceTypes) -> int:
    """Return every type with NVIDIA GPUs, and some without, whose price is known."""
    families = [catalogue.of(f"{_AWS}family", family) for family in _CPU_FAMILIES]
    priced = sum(1 << position for position, known in enumerate(catalogue.prices) if known)
    wanted = catalogue.offering(GPU)
    for family in families:
        wanted |= family
    return wanted & priced & catalogue.of("kubernetes.io/arch", _ARCHITECTURE)


def _type(catalogue: InstanceTypes, position: int) -> dict[str, Any]:
    return {
        "name": catalogue.names[position],
        "architecture": _ARCHITECTURE,
        "operatingSystems": ["linux"],
        "resources": {"ephemeral-storage": "500Gi", **_resources(catalogue, position)},
        "offerings": list(_offerings(catalogue, position)),
    }


def _resources(catalogue: InstanceTypes, position: int) -> dict[str, str]:
    found = {}
    for resource in ("cpu", "memory", GPU):
        scale = catalogue.allocatable[resource]
        amounts = [n for n, types in zip(scale.numbers, scale.reach, strict=True) if types >> position & 1]
        if amounts:
            found[resource] = f"{amounts[-1]}{_UNITS.get(resource, '')}"
    return found


def _offerings(catalogue: InstanceTypes, position: int) -> list[dict[str, Any]]:
    labels = [_labelled(label, catalogue.label(label, position)) for label in _LABELS]
    family, name = catalogue.label(f"{_AWS}family", position), catalogue.label(INSTANCE_TYPE, position)
    short = {ON_DEMAND} if name == SHORT_ON_DEMAND else {SPOT} if family == SHORT_ON_SPOT else set()
    on_demand = catalogue.prices[position] or 0.0
    prices = {ON_DEMAND: on_demand, SPOT: round(on_demand * _SPOT_PRICE, 5)}
    return [
        {
            "Price": prices[capacity_type],
            "Requirements": [
                _labelled("karpenter.sh/capacity-type", capacity_type),
                _labelled("topology.kubernetes.io/zone", zone),
                *labels,
            ],
        }
        for capacity_type, zone in product(sorted({ON_DEMAND, SPOT} - short), ZONES)
    ]


def _labelled(key: str, value: str) -> dict[str, Any]:
    """Return what a type has of a label, or that it lacks it, as Karpenter's AWS provider says it."""
    if value:
        return {"key": key, "operator": "In", "values": [value]}
    return {"key": key, "operator": "DoesNotExist"}
