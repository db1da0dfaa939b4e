"""Pod that gets at GPUs without asking for one.

## Why is this bad?
It uses GPUs that the scheduler has given to others: their jobs run slower or out of memory, and no quota and no bill
ever sees who did it. `NVIDIA_VISIBLE_DEVICES`, an `nvidia` runtime class, a CDI annotation and device files of the host
all hand GPUs to a container past the scheduler. So do a privileged container and the host's `/` or `/dev` where the
Pod can run on GPU nodes. With a GPU request, `NVIDIA_VISIBLE_DEVICES` is a warning: it takes the place of the GPU that
was granted.

A debug container that is added to a running Pod is judged in the same way.

## Instead
Ask for the GPU, and let the device plugin say which one it is.

```yaml
resources:
  limits:
    nvidia.com/gpu: "1"
```

Agents that watch the GPUs of every node belong in a DaemonSet, for which this is a warning, or nothing where the access
is not to GPUs alone.

What cannot be seen here: an environment that is read from a ConfigMap or Secret, and one that is part of the image.
Only the nodes can close that: set `accept-nvidia-visible-devices-envvar-when-unprivileged = false` for the container
toolkit and let the device plugin use volume mounts or CDI.

## Sources
- `NVIDIA_VISIBLE_DEVICES`: NVIDIA container toolkit v1.19; a container's own variables win over those of a device plugin,
  Kubernetes v1.36 `pkg/kubelet/kubelet_pods.go` GenerateRunContainerOptions.
- Ephemeral containers carry no resources, and change by requests to a subresource: `k8s.io/api/core/v1/types.go`, v0.36.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.pods.hidden_access.signs import BROAD, DIRECT, VISIBLE_DEVICES, broad, direct, visible_devices
from gpugate.policies.pods.placement.daemon_sets import OF_DAEMON_SET, is_of_daemon_set
from gpugate.policies.pods.placement.gpu_nodes import MAY_REACH_GPU_NODES, reaches_gpu_nodes
from gpugate.policies.sdk.findings import Patch, Patches, Skip, Stance, Violation
from gpugate.policies.sdk.gpu_demand import CLAIM_NEEDS, gpu_demand
from gpugate.policies.sdk.kinds import POD, POD_EPHEMERAL_CONTAINERS
from gpugate.policies.sdk.node_pools import INSTANCE_TYPES
from gpugate.policies.sdk.policy import AnyContext, validates
from gpugate.policies.sdk.request import Operation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field

_CONCERNS: Final = DIRECT | (BROAD & MAY_REACH_GPU_NODES & ~OF_DAEMON_SET)
_HINT: Final = "ask for the GPU in resources.limits, or take this away"


@validates(POD, needs=CLAIM_NEEDS, tables=(INSTANCE_TYPES,), concerns=_CONCERNS)
def check(pod: Field, ctx: AnyContext) -> Iterator[Violation | Skip]:
    """Report every way to a GPU that the Pod has beside a request."""
    lists = ("initContainers", "containers", "ephemeralContainers")
    containers = tuple(container for name in lists for container in pod["spec", name])
    yield from _judged(pod, containers, tuple(direct(pod)), ctx)


@validates(
    POD_EPHEMERAL_CONTAINERS,
    operations=frozenset({Operation.UPDATE}),
    needs=CLAIM_NEEDS,
    tables=(INSTANCE_TYPES,),
    concerns=_CONCERNS,
)
def check_debug_containers(pod: Field, ctx: AnyContext) -> Iterator[Violation | Skip]:
    """Report the same of debug containers; the rest of the Pod was judged when it came."""
    yield from _judged(pod, tuple(pod["spec", "ephemeralContainers"]), (), ctx)


def _judged(
    pod: Field, containers: tuple[Field, ...], signs: tuple[tuple[Field, str], ...], ctx: AnyContext
) -> Iterator[Violation | Skip]:
    demand = ctx.derived(gpu_demand)
    variables = tuple(variable for container in containers for variable in visible_devices(container))
    if demand:
        for variable in variables:
            yield _overriding(variable, alone=len(variables) == 1)
        return
    of_daemon_set = is_of_daemon_set(pod, ctx)
    if not of_daemon_set:
        found = tuple(broad(pod, containers))
        signs += found if found and reaches_gpu_nodes(ctx) else ()
    if demand.unresolved and (variables or signs):
        yield Skip(demand.doubt)
        return
    most = Stance.WARN if of_daemon_set else Stance.ENFORCE
    for variable in variables:
        message = f"{VISIBLE_DEVICES} hands GPUs to a container, and the Pod asks for none"
        yield Violation(variable["value"].path, message, most, _HINT)
    for field, what in signs:
        yield Violation(field.path, f"{what}, and the Pod asks for none", most, _HINT)


def _overriding(variable: Field, *, alone: bool) -> Violation:
    reason = f"removes {VISIBLE_DEVICES}: the device plugin says which GPU it is"
    return Violation(
        variable["value"].path,
        f"{VISIBLE_DEVICES} takes the place of the GPU that the Pod is given, and may name those of others",
        Stance.WARN,
        "leave it out: the device plugin sets it",
        # Several in one list would change places under each other.
        Patches((Patch("remove", variable.path, None, reason),)) if alone else None,
    )
