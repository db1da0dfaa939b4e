"""Signs that a Pod gets accelerators without requesting them.

A sign is one of three kinds. `named` signs name devices to a container runtime or its hook, which then hands them out.
`exclusive` signs have no use but accelerators. `general` signs give access to everything on a node; they matter only
on nodes with accelerators.

What hands devices out, as read in the sources:

- NVIDIA container toolkit v1.20.1, `internal/config/image/cuda_image.go`. Devices come from CDI annotations, else from
  mounts (`accept-nvidia-visible-devices-as-volume-mounts`, off by default), else from `NVIDIA_VISIBLE_DEVICES`
  (`accept-nvidia-visible-devices-envvar-when-unprivileged`, on by default). A mount counts if its source is `/dev/null`
  and its destination starts with `/var/run/nvidia-container-devices`; below it, `imex/` names channels and no GPU. A
  container with `CUDA_VERSION`, without `NVIDIA_REQUIRE_CUDA` and without `NVIDIA_VISIBLE_DEVICES` gets all GPUs.
- Habana container runtime, `cmd/habana-container-runtime-hook/container_config.go` (commit d6029c5):
  `HABANA_VISIBLE_DEVICES`; without it, a container of this runtime gets all devices.
- AMD container toolkit, `internal/oci/oci.go` (commit 03f5069): `AMD_VISIBLE_DEVICES`.
- AWS Neuron, `aws-neuronx-oci-hook` in the container documentation: `AWS_NEURON_VISIBLE_DEVICES`.

- The device injector of NRI, `plugins/device-injector` of containerd/nri, and the plugin of the same name in the NVIDIA
  container toolkit (`cmd/nvidia-ctk-installer/.../nri`): annotations of the keys in `_INJECTED`, with `/container.NAME`, `/pod`
  or nothing after them. Their values are lists in YAML: of CDI devices, or of device files with `path`.
- CRI-O `pkg/annotations`: `io.kubernetes.cri-o.Devices`, with the name of a container after a slash, lists device files
  that the configuration of the node allows.

`CUDA_VISIBLE_DEVICES`, `ROCR_VISIBLE_DEVICES`, `HIP_VISIBLE_DEVICES`, `HABANA_VISIBLE_MODULES` and
`NEURON_RT_VISIBLE_CORES` choose among the devices that a container has, and are no signs. Nor are the kubelet's
pod-resources socket, which only lists, and that of nvidia-persistenced, which only switches a driver's mode.

What a mounted path of the host gives: the device cgroup keeps an unprivileged container from opening device files that
the runtime did not grant (OCI runtime specification v1.2, `config-linux.md`, allowed device list). A privileged
container has no such limit. A socket accepts connections also through a read-only mount, and who may talk to a
container runtime may start any container on the node. The socket in the device plugin directory takes the registration
of further device plugins, which may hand out any device file (Kubernetes v1.36, `pkg/kubelet/cm/devicemanager`). A
writable `/proc` of the host has `sys/kernel/core_pattern`, which names a program that the kernel runs as root.
"""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING, Final

from gpugate.policies.data.accelerators import IMPLICIT_CLASS_PREFIX
from gpugate.policies.sdk.concerns import Each, Flag, Key, Text, any_of
from gpugate.policies.sdk.findings import Stance
from gpugate.policies.sdk.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field

_CONTAINERS: Final = ("spec.containers", "spec.initContainers", "spec.ephemeralContainers")


class Sign(Struct, frozen=True):
    """A sign that a Pod gets accelerators without requesting them.

    Attributes:
        field: the field with the sign.
        effect: what it gives access to, as the start of a sentence.
        at_most: WARN if the sign may give access, depending on data outside of the Pod.
        vendor: of a sign that names devices, the domain of the resources whose devices it names; else empty.
        whole: of a sign that names devices, whether it names more than slices of GPUs.
        variable: the element of `env`, if the sign is one.
        hint: the fix, if it is more than to remove the field.
    """

    field: Field
    effect: str
    at_most: Stance = Stance.ENFORCE
    vendor: str = ""
    whole: bool = True
    variable: Field | None = None
    hint: str = ""


# --- Variables, annotations and mounts that name devices to a runtime.

# Variable -> the domain of the resources whose devices it names, and what they are.
_VARIABLES: Final = {
    "NVIDIA_VISIBLE_DEVICES": ("nvidia.com", "GPUs"),
    "HABANA_VISIBLE_DEVICES": ("habana.ai", "Gaudi accelerators"),
    "AMD_VISIBLE_DEVICES": ("amd.com", "GPUs"),
    "AWS_NEURON_VISIBLE_DEVICES": ("aws.amazon.com", "Neuron devices"),
}
# Values for which the container runtime adds no devices.
_NO_DEVICES: Final = frozenset({"", "none", "void"})
_CDI: Final = "cdi.k8s.io/"
# The beginnings of annotations of a device injector that take device files by number, and names of CDI devices.
_FILES: Final = ("devices.noderesource.dev", "devices.nri.io")
_INJECTED: Final = (
    *_FILES,
    *(f"cdi-{key}" for key in _FILES),
    "devices.crio.io",
    "io.kubernetes.cri-o.Devices",
)
# What separates the devices in such a value.
_SEPARATORS: Final = re.compile(r"[\s,;:'\"\[\]{}]+")
# Domain of CDI devices, resources and device classes -> the same as in `_VARIABLES`.
_VENDORS: Final = {
    "nvidia.com": "nvidia.com",
    "volcano.sh": "nvidia.com",
    "k8s.amazonaws.com": "nvidia.com",
    "amd.com": "amd.com",
    "habana.ai": "habana.ai",
    "aws.amazon.com": "aws.amazon.com",
    "neuron.aws.com": "aws.amazon.com",
}
_DEVICE_LIST: Final = "/var/run/nvidia-container-devices"
# A reference of a variable to a field of the Pod.
_OWN_TEXT: Final = re.compile(r"metadata\.(labels|annotations)\['([^']*)'\]")
# Sources of a variable's value outside of the Pod: member of `valueFrom` -> its name in a sentence.
_SOURCES: Final = {"configMapKeyRef": "a ConfigMap", "secretKeyRef": "a Secret", "fileKeyRef": "a file"}

_NAMES_DEVICES: Final = Each(
    "env",
    Text("name", tuple(_VARIABLES)) & (~Text("value", tuple(sorted(_NO_DEVICES))) | Key("valueFrom")),
)
_MOUNTS_DEVICES: Final = Each("volumeMounts", Text("mountPath", ("*nvidia-container-devices*",)))


def named(pod: Field, containers: tuple[Field, ...]) -> Iterator[Sign]:
    """Yield the signs of some containers that name devices; `annotated` yields those of the whole Pod."""
    null_volumes = _null_volumes(pod)
    for container in containers:
        env = container["env"]
        for name in _VARIABLES if env else ():
            for variable in env.having("name", name):
                yield from _of_variable(name, variable, pod)
        for mount in container["volumeMounts"] if null_volumes else ():
            path = _clean(mount["mountPath"].text)
            device = path.removeprefix(_DEVICE_LIST).strip("/")
            if path.startswith(_DEVICE_LIST) and mount["name"].text in null_volumes and _is_listed(device):
                effect = f"a mount at {_DEVICE_LIST} exposes GPUs to a container"
                yield Sign(mount["mountPath"], effect, vendor="nvidia.com", whole=not _is_slice(device))


def annotated(pod: Field) -> Iterator[Sign]:
    """Yield the annotations that inject accelerators into the containers of a Pod."""
    for key, annotation in pod["metadata", "annotations"].items():
        vendors = dict(_injected(key, annotation))
        if vendors:
            whole = not all(map(_is_slice, vendors))
            vendor = next(iter(vendors.values()))
            yield Sign(annotation, f"{key} injects devices into the containers", vendor=vendor, whole=whole)
        elif _is_opaque(key, annotation.text):
            yield Sign(annotation, f"{key} may inject devices of accelerators into the containers", Stance.WARN)


def _is_opaque(key: str, value: str) -> bool:
    """Tell whether an annotation may inject other devices than those that it names: by a number, or in escaped text."""
    return bool(value) and key.startswith(_INJECTED) and (key.startswith(_FILES) or "\\" in value)


def _injected(key: str, annotation: Field) -> Iterator[tuple[str, str]]:
    """Yield the accelerators that an annotation injects, each with its vendor; of a device file the vendor may be unknown."""
    if key.startswith(_CDI):
        devices = annotation.text.split(",")
    elif key.startswith(_INJECTED):
        devices = _SEPARATORS.split(annotation.text)
    else:
        return
    for device in devices:
        vendor = vendor_of(device.strip())
        if vendor:
            yield device.partition("=")[2], vendor
        elif device.startswith("/") and _is_exclusive(_on_host(device)):
            yield device, "nvidia.com" if "nvidia" in device else ""


def _of_variable(name: str, variable: Field, pod: Field) -> Iterator[Sign]:
    vendor, devices = _VARIABLES[name]
    source = variable["valueFrom"]
    if source.mapping:
        value, origin = _referenced(source, pod)
        effect = f"{name} takes its value from {origin} and {'may expose' if value is None else 'exposes'} {devices} to a container"
        if value is None:
            yield Sign(source, effect, Stance.WARN, vendor, variable=variable)
        elif value not in _NO_DEVICES:
            yield Sign(source, effect, Stance.ENFORCE, vendor, variable=variable)
        return
    literal = variable["value"].value
    if literal is None or isinstance(literal, dict | list) or literal in _NO_DEVICES:
        return
    whole = not all(map(_is_slice, str(literal).split(",")))
    yield Sign(variable["value"], f"{name} exposes {devices} to a container", Stance.ENFORCE, vendor, whole, variable)


def _referenced(source: Field, pod: Field) -> tuple[str | None, str]:
    """Return the value of a variable, None if the Pod does not contain it, and the name of its source.

    A resource is always a number, which names a device by its index.
    """
    if source["resourceFieldRef"]:
        return "0", "a resource of the container"
    path = source["fieldRef", "fieldPath"].text
    if not path:
        known = next((word for member, word in _SOURCES.items() if source[member]), "elsewhere")
        return None, known
    own = _OWN_TEXT.fullmatch(path)
    field_path = ("metadata", own[1], own[2]) if own else tuple(path.split("."))
    is_shown = field_path[0] == "metadata" and len(field_path) <= 3
    return (pod[field_path].text or None) if is_shown else None, path.partition("[")[0]


def _null_volumes(pod: Field) -> frozenset[str]:
    """Return the names of the volumes that are `/dev/null` of the host."""
    return frozenset(
        volume["name"].text
        for volume in pod["spec", "volumes"]
        if _clean(volume["hostPath", "path"].text) == "/dev/null"
    )


def _is_listed(device: str) -> bool:
    return bool(device) and not device.startswith("imex/")


def _is_slice(device: str) -> bool:
    """Tell whether a device is a MIG slice, by its ID or as `GPU:slice`."""
    return device.strip().startswith("MIG-") or ":" in device


def vendor_of(name: str) -> str:
    """Return the vendor of a CDI device, a resource or a device class; empty if it is unknown."""
    domain = name.removeprefix(IMPLICIT_CLASS_PREFIX).partition("/")[0]
    return next((vendor for known, vendor in _VENDORS.items() if domain == known or domain.endswith(f".{known}")), "")


# --- Fields that only accelerators need.

_RUNTIMES: Final = ("nvidia", "habana")
# Device files below /dev by the start of their name: NVIDIA, Neuron, ROCm, and the kernel's accelerators, among them
# Gaudi; `hl` is Gaudi's name before Linux 6.2.
_DEVICE_FILES: Final = re.compile(r"nvidia|neuron|kfd$|accel[0-9]*$|hl(_controlD)?[0-9]")
_PLUGINS: Final = "/var/lib/kubelet/device-plugins"
_DIRECTORIES: Final = (_PLUGINS, "/run/nvidia")
# Character devices by number: 195 is NVIDIA's (Linux, `Documentation/admin-guide/devices.txt`).
_NVIDIA_MAJOR: Final = "/dev/char/195:"


def runtime(pod: Field) -> Iterator[Sign]:
    """Yield the runtime class of a Pod, if it adds the devices that an image names."""
    name = pod["spec", "runtimeClassName"]
    if name.text.startswith(_RUNTIMES):
        yield Sign(name, f'the runtime class "{name.text}" exposes the GPUs that the image names')


def exclusive(pod: Field, *, of_daemon_set: bool) -> Iterator[Sign]:
    """Yield the paths of the host that only accelerators need.

    A device plugin is a DaemonSet that registers itself in the kubelet's directory, and may serve any kind of device.
    """
    for path, clean in _host_paths(pod):
        if _is_exclusive(clean) and not (of_daemon_set and _is_in(clean, _PLUGINS)):
            yield Sign(path, f"{path.text} of the host gives access to its GPUs")


def _is_exclusive(clean: str) -> bool:
    file = clean.removeprefix("/dev/").partition("/")[0] if clean.startswith("/dev/") else ""
    return (
        _DEVICE_FILES.match(file) is not None
        or clean.startswith(_NVIDIA_MAJOR)
        or any(_is_in(clean, directory) for directory in _DIRECTORIES)
    )


def uses_gpus(pod: Field) -> bool:
    """Tell whether a Pod that requests no accelerator has a sign that lets it use those of any node."""
    containers = tuple(container for name in ("initContainers", "containers") for container in pod["spec", name])
    signs = (*named(pod, containers), *annotated(pod), *exclusive(pod, of_daemon_set=False), *runtime(pod))
    return any(sign.at_most is Stance.ENFORCE for sign in signs)


# Each path of the host that only accelerators need contains one of these.
_WORDS: Final = ("device-plugins", "nvidia", "neuron", "kfd", "accel", "/hl", "195:")
# Holds for Pods that can have a sign that names devices, a field that only accelerators need, or a variable of old images.
DIRECT: Final = any_of(
    *(Each(path, _NAMES_DEVICES) for path in _CONTAINERS),
    *(Each(path, _MOUNTS_DEVICES) for path in _CONTAINERS),
    # What reading all variables once more costs an API server is more than sending the few Pods that set this one.
    *(Each(path, Each("env", Text("name", ("CUDA_VERSION",)))) for path in _CONTAINERS),
    Text("spec.runtimeClassName", tuple(f"{name}*" for name in _RUNTIMES)),
    Key("metadata.annotations", (f"{_CDI}*", "cdi-devices.*", "devices.*", "io.kubernetes.cri-o.Devices*")),
    Each(
        "spec.volumes",
        Text("hostPath.path", tuple(f"*{word}*" for word in _WORDS)),
    ),
)


# --- Fields that give access to everything on a node.

# Sockets through which a container can start others, or a device plugin can register itself.
_SOCKETS: Final = (
    "/run/containerd/containerd.sock",
    "/run/k3s/containerd/containerd.sock",
    "/run/crio/crio.sock",
    "/run/docker.sock",
    "/run/cri-dockerd.sock",
    "/run/dockershim.sock",
    "/run/podman/podman.sock",
    "/var/lib/kubelet/device-plugins/kubelet.sock",
)
_STARTING: Final = frozenset({*_SOCKETS, "/run/containerd", "/run/k3s/containerd", "/run/crio"})
# Directories of device files that also contain other devices.
_SHARED_DEVICES: Final = ("/dev/dri", "/dev/char", "/dev/vfio")
_SPECS: Final = ("/etc/cdi", "/run/cdi")
# Capabilities with which a container in the host's PID namespace controls processes of the host.
_CONTROLLING: Final = frozenset({"ALL", "SYS_ADMIN", "SYS_PTRACE"})
_VOID_HINT: Final = 'set NVIDIA_VISIBLE_DEVICES to "void", or request the GPU in resources.limits'

# Holds for Pods that can have access to everything on a node. Paths may contain further slashes and dots.
GENERAL: Final = any_of(
    *(Each(path, Flag("securityContext.privileged")) for path in _CONTAINERS),
    Flag("spec.hostPID"),
    Each(
        "spec.volumes",
        Text("hostPath.path", ("*/", "*.", *(f"*{word}*" for word in ("dev", "run", "var", "proc", "etc")))),
    ),
)


def privileged(containers: tuple[Field, ...]) -> Iterator[Sign]:
    """Yield the signs of privileged containers."""
    for container in containers:
        flag = container["securityContext", "privileged"]
        if flag.value is True:
            yield Sign(flag, "a privileged container may use every device of its node")


def general(pod: Field, containers: tuple[Field, ...]) -> Iterator[Sign]:
    """Yield the other signs of access to everything on a node."""
    yield from _host_access(pod)
    host_pid = pod["spec", "hostPID"].value is True
    for container in containers:
        yield from _legacy(container)
        added = container["securityContext", "capabilities", "add"]
        if host_pid and _CONTROLLING & {name.upper() for name in added.texts}:
            yield Sign(added, "with hostPID this container may control processes of its node", Stance.WARN)


def _legacy(container: Field) -> Iterator[Sign]:
    """Yield `CUDA_VERSION` if NVIDIA's runtime treats the container as one of an old image because of it."""
    env = container["env"]
    for version in env.having("name", "CUDA_VERSION"):
        required = env.having("name", "NVIDIA_REQUIRE_CUDA")
        if (
            _is_set(version)
            and not any(env.having("name", "NVIDIA_VISIBLE_DEVICES"))
            and not any(map(_is_set, required))
        ):
            effect = "CUDA_VERSION without NVIDIA_VISIBLE_DEVICES exposes every GPU of its node to a container"
            yield Sign(version["name"], effect, hint=_VOID_HINT)
        return


def _is_set(variable: Field) -> bool:
    return bool(variable["value"].value or variable["valueFrom"].mapping)


def _host_access(pod: Field) -> Iterator[Sign]:
    for path, clean in _host_paths(pod):
        if _is_exclusive(clean):
            continue
        if clean in _STARTING:
            yield Sign(path, f"{path.text} of the host can start containers with every device")
        elif clean in {"/", "/dev"}:
            yield Sign(path, f"{path.text} of the host contains the devices of its GPUs")
        elif any(_is_in(socket, clean) for socket in _SOCKETS):
            yield Sign(path, f"{path.text} of the host contains sockets that give access to every device")
        elif any(_is_in(clean, directory) for directory in _SHARED_DEVICES):
            yield Sign(path, f"{path.text} of the host contains device files of GPUs", Stance.WARN)
        elif any(_is_in(clean, directory) for directory in _SPECS):
            yield Sign(path, f"{path.text} of the host configures which devices a container can get", Stance.WARN)
    processes = {
        volume["name"].text for volume in pod["spec", "volumes"] if _clean(volume["hostPath", "path"].text) == "/proc"
    }
    yield from _writable(pod, processes) if processes else ()


def _writable(pod: Field, processes: set[str]) -> Iterator[Sign]:
    """Yield the writable mounts of some volumes that are `/proc` of the host."""
    for name in ("initContainers", "containers", "ephemeralContainers"):
        for container in pod["spec", name]:
            for mount in container["volumeMounts"]:
                if mount["name"].text in processes and mount["readOnly"].value is not True:
                    effect = "a writable /proc of the host may allow a container to run programs on its node"
                    yield Sign(mount["mountPath"], effect, Stance.WARN)


# --- Paths.


def _host_paths(pod: Field) -> Iterator[tuple[Field, str]]:
    """Yield the paths of the host that a Pod mounts, as written and in their shortest spelling."""
    for volume in pod["spec", "volumes"]:
        path = volume["hostPath", "path"]
        if path.text:
            yield path, _on_host(path.text)


def _clean(path: str) -> str:
    """Return an absolute path in its shortest spelling; empty for an empty one."""
    return posixpath.normpath("/" + path.lstrip("/")) if path else ""


def _on_host(path: str) -> str:
    """Return the path of a directory or file on a node, on which `/var/run` is a link to `/run`."""
    clean = _clean(path)
    return clean.removeprefix("/var") if clean == "/var/run" or clean.startswith("/var/run/") else clean


def _is_in(path: str, directory: str) -> bool:
    return directory in {"/", path} or path.startswith(f"{directory}/")
