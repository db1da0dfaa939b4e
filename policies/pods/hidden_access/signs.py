"""What in a Pod hands GPUs to its containers without a request.

Sources: NVIDIA container toolkit v1.19 (`NVIDIA_VISIBLE_DEVICES`, runtime classes, CDI annotations), Kubernetes v1.36
(`pkg/kubelet/cm/devicemanager`: the socket of device plugins), AWS Neuron and ROCm documentation (device files).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.sdk.concerns import Each, Flag, Key, Text, any_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field

VISIBLE_DEVICES: Final = "NVIDIA_VISIBLE_DEVICES"
# With these the container runtime hands out nothing.
_NO_DEVICES: Final = frozenset({"", "none", "void"})
_CDI: Final = "cdi.k8s.io/"
_VENDORS: Final = ("nvidia.com", "amd.com", "habana.ai", "aws.amazon.com")
_DEVICE_FILES: Final = ("nvidia", "neuron", "kfd")
_DIRECTORIES: Final = (
    ("var", "lib", "kubelet", "device-plugins"),
    ("run", "nvidia"),
    ("var", "run", "nvidia"),
)

_CONTAINERS: Final = ("spec.containers", "spec.initContainers", "spec.ephemeralContainers")
_NAMES_DEVICES: Final = Each("env", Text("name", (VISIBLE_DEVICES,)) & ~Text("value", tuple(sorted(_NO_DEVICES))))
# Which Pods can have a variable that names GPUs, or something that is of use for nothing but GPUs.
DIRECT: Final = any_of(
    *(Each(path, _NAMES_DEVICES) for path in _CONTAINERS),
    Text("spec.runtimeClassName", ("nvidia*",)),
    Key("metadata.annotations", (f"{_CDI}*",)),
    Each("spec.volumes", Text("hostPath.path", tuple(f"*{word}*" for word in ("device-plugins", *_DEVICE_FILES)))),
)
# Which Pods can have access to every device of a node: `/` and `/dev` may be written with more slashes and dots.
BROAD: Final = any_of(
    *(Each(path, Flag("securityContext.privileged")) for path in _CONTAINERS),
    Each("spec.volumes", Text("hostPath.path", ("*/", "*.", "*/dev", "dev"))),
)


def visible_devices(container: Field) -> Iterator[Field]:
    """Yield the environment variables of a container that name GPUs; one that refers to something else is not seen."""
    for variable in container["env"].having("name", VISIBLE_DEVICES):
        value = variable["value"]
        if value and value.value not in _NO_DEVICES:
            yield variable


def direct(pod: Field) -> Iterator[tuple[Field, str]]:
    """Yield what is of use for nothing but GPUs, each with what it does."""
    runtime = pod["spec", "runtimeClassName"]
    if runtime.text.startswith("nvidia"):
        yield runtime, f'the runtime class "{runtime.text}" hands out the GPUs that the image names'
    for key, annotation in pod["metadata", "annotations"].items():
        if key.startswith(_CDI) and any(_is_gpu(device) for device in annotation.text.split(",")):
            yield annotation, f"{key} injects devices into the containers"
    for path in _host_paths(pod):
        if _is_for_gpus(_parts(path.text)):
            yield path, f"{path.text} of the host gives access to its GPUs"


def broad(pod: Field, containers: tuple[Field, ...]) -> Iterator[tuple[Field, str]]:
    """Yield what gives access to every device of a node, and has other uses, each with what it does."""
    for path in _host_paths(pod):
        if _parts(path.text) in ((), ("dev",)):
            yield path, f"{path.text} of the host holds its GPUs"
    for container in containers:
        privileged = container["securityContext", "privileged"]
        if privileged.value is True:
            yield privileged, "a privileged container may use every device of its node"


def _host_paths(pod: Field) -> Iterator[Field]:
    for volume in pod["spec", "volumes"]:
        path = volume["hostPath", "path"]
        if path.text:
            yield path


def _parts(path: str) -> tuple[str, ...]:
    return tuple(part for part in path.split("/") if part not in {"", "."})


def _is_for_gpus(parts: tuple[str, ...]) -> bool:
    if parts[:1] == ("dev",):
        return len(parts) > 1 and parts[1].startswith(_DEVICE_FILES)
    return any(parts[: len(directory)] == directory for directory in _DIRECTORIES)


def _is_gpu(device: str) -> bool:
    """Tell whether a CDI device, such as `nvidia.com/gpu=all`, is of a vendor of accelerators."""
    vendor = device.strip().partition("/")[0]
    return any(vendor == known or vendor.endswith(f".{known}") for known in _VENDORS)
