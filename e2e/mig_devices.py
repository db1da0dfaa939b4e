"""MIG devices as NVIDIA's DRA driver offers them: class, slice of a node, and a template that asks for one.

Source: kubernetes-sigs/dra-driver-nvidia-gpu v0.4.1: `deployments/helm/dra-driver-nvidia-gpu/templates/deviceclass-mig.yaml`;
`cmd/gpu-kubelet-plugin/mig.go` (CommonAttributesMig, CommonCapacitiesMig, ToCanonicalName), `deviceinfo.go` (uuid, memory
slices), `driver.go` (the pool is named for the node). The values are those of an H100 80GB.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cluster.api import Api

DRIVER = "gpu.nvidia.com"
CLASS = "mig.nvidia.com"
PROFILE = "1g.10gb"
TEMPLATE = "mig-1g-10gb"
API_VERSION = "resource.k8s.io/v1"
_TAINT = {"key": "nvidia.com/gpu", "value": "true", "effect": "NoSchedule"}
_PARENT = "GPU-4cf8db2d-06c0-7d70-1a51-e59b25b2c16c"

Object = dict[str, Any]


def device_class(name: str = CLASS, **others: Any) -> Object:
    """Write the class of all MIG devices."""
    expression = f"device.driver == '{DRIVER}' && device.attributes['{DRIVER}'].type == 'mig'"
    spec = {"selectors": [{"cel": {"expression": expression}}], **others}
    return {"apiVersion": API_VERSION, "kind": "DeviceClass", "metadata": {"name": name}, "spec": spec}


def resource_slice(node: str, devices: int) -> Object:
    """Write what the driver of a node publishes: one GPU, cut into some 1g.10gb devices."""
    return {
        "apiVersion": API_VERSION,
        "kind": "ResourceSlice",
        "metadata": {"name": f"{node}-{DRIVER}"},
        "spec": {
            "driver": DRIVER,
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": [_device(place) for place in range(devices)],
        },
    }


def device_name(place: int) -> str:
    """Name the device at a memory slice of GPU 0: profile without its dot, GPU instance profile 19, place."""
    return f"gpu-0-mig-1g10gb-19-{place}"


def _device(place: int) -> Object:
    strings = {
        "type": "mig",
        "profile": PROFILE,
        "uuid": f"MIG-6ec1e9a4-5b0c-5c0e-9f3e-3a1f5c2d7b0{place}",
        "parentUUID": _PARENT,
        "productName": "NVIDIA H100 80GB HBM3",
        "brand": "Nvidia",
        "architecture": "Hopper",
        "resource.kubernetes.io/pcieRoot": "pci0000:53",
        "resource.kubernetes.io/pciBusID": "0000:53:00.0",
    }
    versions = {"cudaComputeCapability": "9.0.0", "driverVersion": "580.95.5", "cudaDriverVersion": "13.0.0"}
    amounts = {
        "memory": "9984Mi",
        "multiprocessors": "16",
        "copyEngines": "1",
        "decoders": "1",
        "encoders": "0",
        "jpegEngines": "1",
        "ofaEngines": "0",
        f"memorySlice{place}": "1",
    }
    attributes = {name: {"string": value} for name, value in strings.items()}
    attributes |= {name: {"version": value} for name, value in versions.items()}
    capacity = {name: {"value": value} for name, value in amounts.items()}
    return {"name": device_name(place), "attributes": attributes, "capacity": capacity}


def claim_spec(class_name: str = CLASS, *, admin_access: bool = False) -> Object:
    """Write a claim for one 1g.10gb device."""
    selector = {"cel": {"expression": f"device.attributes['{DRIVER}'].profile == '{PROFILE}'"}}
    exactly = {"deviceClassName": class_name, "selectors": [selector], "allocationMode": "ExactCount", "count": 1}
    if admin_access:
        exactly["adminAccess"] = True
    return {"devices": {"requests": [{"name": "mig", "exactly": exactly}]}}


def claim_template(namespace: str, spec: Object | None = None, name: str = TEMPLATE) -> Object:
    """Write the template that gpugate names for the profile."""
    metadata = {"name": name, "namespace": namespace}
    return {
        "apiVersion": API_VERSION,
        "kind": "ResourceClaimTemplate",
        "metadata": metadata,
        "spec": {"spec": spec or claim_spec()},
    }


@contextmanager
def mig_nodes(api: Api, gpu_node: Callable[..., Object]) -> Iterator[Callable[[int], str]]:
    """Give a function that makes a tainted node with some 1g.10gb devices, and their class, and returns its name."""
    made: list[Object] = []

    def make(devices: int) -> str:
        name = str(gpu_node({}, [_TAINT], {})["metadata"]["name"])
        for obj in (device_class(), resource_slice(name, devices)):
            if not api.get(obj):
                answer = api.create(obj)
                assert answer.ok, answer.message
                made.append(obj)
        return name

    yield make
    for obj in made:
        api.delete(obj)
