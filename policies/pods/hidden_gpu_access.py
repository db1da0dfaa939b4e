"""Pod that uses GPUs without requesting them.

## Why is this bad?
The Pod uses GPUs that the scheduler allocated to other Pods. These Pods slow down or run out of GPU memory, and no quota
or cost report shows the usage.

There are three groups of settings. The first group names devices, and the container gets these devices:

- The variables `NVIDIA_VISIBLE_DEVICES`, `HABANA_VISIBLE_DEVICES`, `AMD_VISIBLE_DEVICES` and
  `AWS_NEURON_VISIBLE_DEVICES`, also if `fieldRef` takes the value from the Pod's metadata. If gpugate cannot see the
  value, because it comes from a ConfigMap, a Secret or a field of the Pod that is set later, the finding is a warning.
- A CDI annotation, an annotation of NRI's device injector or of CRI-O that names accelerators, and an `nvidia` or `habana`
  runtime class.
- Mounts of `/dev/null` below `/var/run/nvidia-container-devices`: NVIDIA's runtime reads the names of these paths as a
  list of GPUs.
- Device files of accelerators on the host, and the directory of the kubelet's device plugins.

The second group gives access to every device of the node:

- A privileged container.
- `CUDA_VERSION` without `NVIDIA_VISIBLE_DEVICES`: NVIDIA's runtime treats the container as an old image and exposes
  all GPUs.
- A mount of a container runtime's socket, or of a directory above it, such as `/` or `/run`. A read-only mount does not
  protect a socket.
- A mount of a directory above that of the kubelet's device plugins, such as `/var/lib/kubelet`.
- The host's `/dev`.

The third group may give access to devices: a mount of the host's `/dev/dri`, `/dev/char`, `/dev/vfio` or CDI specifications
(`/etc/cdi`, `/run/cdi`), a writable mount of the host's `/proc`, and `hostPID` together with the capability `SYS_ADMIN`,
`SYS_PTRACE` or `ALL`.

| the Pod | first group | second group | third group |
|---|---|---|---|
| requests no GPU, and cannot run on GPU nodes | denied | - | - |
| requests no GPU, and tolerates the taint of GPU nodes, selects them, or names one with `nodeName` | denied | denied | warning |
| requests no GPU, and names a node that gpugate does not find | denied | warning | warning |
| has a ResourceClaim that gpugate does not find, which may be for a GPU | denied, but runtime classes are not evaluated | warning, if the Pod can run on GPU nodes | warning, if the Pod can run on GPU nodes |
| requests GPUs | warning for variables, annotations and mounts of `/dev/null` | - | - |
| requests only shares of GPUs (MIG slices, `nvidia.com/gpu.shared`) | warning for variables, annotations and mounts of `/dev/null`; denied if they expose whole GPUs | denied for a privileged container | - |

`nodeName` bypasses taints, so a Pod with `nodeName` needs no toleration to run on a GPU node. If gpugate does not find
that node, it does not know whether the node has GPUs, so the second group gives only a warning. A Pod that requests a
GPU appears in quotas and cost reports, but may use other GPUs than the allocated one. In a Pod of a DaemonSet,
settings of the first group give a warning. The mount of the device plugins' directory and the settings of the other two
groups are not reported.

A debug container that is added to a running Pod is evaluated in the same way.

## Instead
Request the GPU, and let the device plugin select the device.

```yaml
resources:
  limits:
    nvidia.com/gpu: "1"
```

Run agents that monitor the GPUs of every node as a DaemonSet. In a DaemonSet, a setting that gives access only to GPUs
is a warning. Settings that agents also need for other purposes, such as a privileged container, are not reported. A
DaemonSet may mount the directory of the kubelet's device plugins without a finding, because device plugins need it.

This policy does not see variables that `envFrom` or the image sets. On a GPU node whose default runtime is NVIDIA's,
they take effect in every Pod. It also does not see that a runtime class with another name uses NVIDIA's runtime. To
prevent such access, configure the nodes: set `accept-nvidia-visible-devices-envvar-when-unprivileged = false` for the
container toolkit and let the device plugin use volume mounts or CDI.

## Sources
- `NVIDIA_VISIBLE_DEVICES`, `CUDA_VERSION`, mounts and annotations: NVIDIA container toolkit v1.20.1
  `internal/config/image/cuda_image.go`; a container's own variables win over those of a device plugin, Kubernetes v1.36
  `pkg/kubelet/kubelet_pods.go` GenerateRunContainerOptions.
- Other variables: Habana container runtime `cmd/habana-container-runtime-hook/container_config.go`; AMD container toolkit
  `internal/oci/oci.go`; AWS Neuron container documentation, `aws-neuronx-oci-hook`.
- Device files without a privileged container: OCI runtime specification v1.2 `config-linux.md`, device cgroup.
- `nodeName` and taints: Kubernetes v1.36 `pkg/kubelet/lifecycle/predicate.go`.
- Ephemeral containers cannot request resources, and are added through a subresource of the Pod:
  `k8s.io/api/core/v1/types.go`, v0.36.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.pods import _hidden_access
from gpugate.policies.pods._placement import (
    MAY_REACH_GPU_NODES,
    OF_DAEMON_SET,
    REACH_NEEDS,
    is_of_daemon_set,
    reach,
    reach_by_name,
)
from gpugate.policies.sdk.findings import Patch, Patches, Skip, Stance, Violation
from gpugate.policies.sdk.gpu_demand import CLAIM_NEEDS, MAY_DEMAND, gpu_demand
from gpugate.policies.sdk.node_pools import INSTANCE_TYPES
from gpugate.policies.sdk.objects import POD, POD_EPHEMERAL_CONTAINERS, Operation
from gpugate.policies.sdk.policy import AnyContext, validates

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.pods._hidden_access import Sign
    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.gpu_demand import GpuDemand

# Pods that request a share matter if they are privileged. All Pods with a request are sent for other policies, so this
# concern costs the API server nothing.
_CONCERNS: Final = _hidden_access.DIRECT | (_hidden_access.GENERAL & MAY_REACH_GPU_NODES & ~OF_DAEMON_SET) | MAY_DEMAND
_HINT: Final = "request the GPU in resources.limits, or remove this field"
_ON_GPU_NODES: Final = (
    "On a GPU node the container can use every GPU, also those that the scheduler allocated to other Pods."
)
_OTHER_GPUS: Final = "The container may use GPUs that are not allocated to it but to other Pods."
_SHARE_HINT: Final = "remove this field, or request whole GPUs"


@validates(POD, needs=(*CLAIM_NEEDS, *REACH_NEEDS), tables=(INSTANCE_TYPES,), concerns=_CONCERNS)
def check(pod: Field, ctx: AnyContext) -> Iterator[Violation | Skip]:
    """Report every access to GPUs that the Pod has without a request."""
    lists = ("initContainers", "containers", "ephemeralContainers")
    containers = tuple(container for name in lists for container in pod["spec", name])
    yield from _evaluated(pod, containers, ctx, whole_pod=True)


@validates(
    POD_EPHEMERAL_CONTAINERS,
    operations=frozenset({Operation.UPDATE}),
    needs=(*CLAIM_NEEDS, *REACH_NEEDS),
    tables=(INSTANCE_TYPES,),
    concerns=_CONCERNS,
)
def check_debug_containers(pod: Field, ctx: AnyContext) -> Iterator[Violation | Skip]:
    """Report the same for debug containers. The rest of the Pod was evaluated when it was created."""
    yield from _evaluated(pod, tuple(pod["spec", "ephemeralContainers"]), ctx, whole_pod=False)


def _evaluated(
    pod: Field, containers: tuple[Field, ...], ctx: AnyContext, *, whole_pod: bool
) -> Iterator[Violation | Skip]:
    demand = ctx.derived(gpu_demand)
    of_daemon_set = is_of_daemon_set(pod, ctx)
    most = Stance.WARN if of_daemon_set else Stance.ENFORCE
    named = (*_hidden_access.named(pod, containers), *(_hidden_access.annotated(pod) if whole_pod else ()))
    if demand:
        yield from _beside_demand(demand, named, containers, most)
        return
    signs = (*named, *(_hidden_access.exclusive(pod, of_daemon_set=of_daemon_set) if whole_pod else ()))
    runtime = tuple(_hidden_access.runtime(pod)) if whole_pod else ()
    if demand.doubt and demand.unknown and runtime:
        # Pods with a GPU request run in this runtime class.
        yield demand.doubt
    else:
        signs += tuple(sign for sign in runtime if not any(_names_for(sign, other) for other in named))
    asks = "regardless of its claim" if demand.unknown else "but the Pod requests no GPU"
    for sign in signs:
        yield _violation(sign, f"{sign.effect}, {asks}", most)
    if not of_daemon_set:
        yield from _on_gpu_nodes(pod, containers, demand, ctx)


def _names_for(runtime: Sign, other: Sign) -> bool:
    """Tell whether a variable selects the devices that a runtime adds. Both are one access, reported at the variable."""
    vendor = other.vendor.partition(".")[0]
    return (
        other.variable is not None
        and other.at_most >= runtime.at_most
        and bool(vendor)
        and runtime.field.text.startswith(vendor)
    )


def _on_gpu_nodes(
    pod: Field, containers: tuple[Field, ...], demand: GpuDemand, ctx: AnyContext
) -> Iterator[Violation | Skip]:
    """Report access to everything on a node, if that node may have GPUs."""
    signs = (*_hidden_access.privileged(containers), *_hidden_access.general(pod, containers))
    most = reach(pod, ctx) if signs else Stance.OFF
    if most is Stance.OFF:
        return
    by_name = reach_by_name(pod, ctx)
    # For a Pod that claims whole GPUs this would not be a finding.
    most = Stance.WARN if demand.unknown else most
    asks = "but gpugate finds no GPU request of the Pod" if demand.unknown else "but the Pod requests no GPU"
    for sign in signs:
        where = f"{sign.effect}; nodeName bypasses the taints of GPU nodes" if by_name else sign.effect
        yield _violation(sign, f"{where}, {asks}", most, _ON_GPU_NODES)


def _violation(sign: Sign, message: str, most: Stance, why: str = "") -> Violation:
    return Violation(sign.field.path, message, min(most, sign.at_most), sign.hint or _HINT, why=why)


def _beside_demand(
    demand: GpuDemand, named: tuple[Sign, ...], containers: tuple[Field, ...], most: Stance
) -> Iterator[Violation]:
    """Report access of a Pod to more accelerators than it requests."""
    relevant = [sign for sign in named if not _of_another_vendor(sign, demand)]
    alone = sum(1 for sign in relevant if sign.variable) == 1
    share = f"but the Pod requests only a share ({demand.names[0]})" if demand.is_share else ""
    for sign in relevant:
        if share and sign.whole:
            yield Violation(sign.field.path, f"{sign.effect}, {share}", min(most, sign.at_most), _SHARE_HINT)
        elif sign.variable:
            yield _overriding(sign, sign.variable, alone=alone)
        else:
            message = f"{sign.effect}, in addition to the GPUs of the Pod"
            yield Violation(sign.field.path, message, Stance.WARN, _HINT, why=_OTHER_GPUS)
    if share and most is Stance.ENFORCE:
        for sign in _hidden_access.privileged(containers):
            yield Violation(sign.field.path, f"{sign.effect}, {share}", most, _SHARE_HINT)


def _of_another_vendor(sign: Sign, demand: GpuDemand) -> bool:
    """Tell whether the Pod runs on nodes with accelerators of another vendor than those that a sign names."""
    return all(_hidden_access.vendor_of(name) not in {"", sign.vendor} for name in demand.names)


def _overriding(sign: Sign, variable: Field, *, alone: bool) -> Violation:
    name = variable["name"].text
    reason = f"removes {name}: the device plugin selects the device"
    return Violation(
        sign.field.path,
        f"{name} replaces the allocated GPU, and may name GPUs of other Pods",
        Stance.WARN,
        "remove the variable: the device plugin sets it",
        # Removing several elements of one list would change each other's indices.
        Patches((Patch("remove", variable.path, None, reason),)) if alone else None,
        why=_OTHER_GPUS,
    )
