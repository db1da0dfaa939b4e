"""Whether a Pod is presumed to be training, and where it can write checkpoints that outlive it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.pods._placement import is_of_daemon_set
from gpugate.policies.sdk import durations
from gpugate.policies.sdk.gpu_demand import gpu_demand
from gpugate.policies.sdk.workload_class import owner_kind, workload_class

if TYPE_CHECKING:
    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.objects import Wrapper
    from gpugate.policies.sdk.policy import AnyContext

CHECKPOINTED: Final = "gpugate.dev/checkpointed"
_DO_NOT_DISRUPT: Final = "karpenter.sh/do-not-disrupt"
_SERVING: Final = ("readinessProbe", "livenessProbe", "startupProbe")


def trains(pod: Field, ctx: AnyContext) -> bool:
    """Tell whether a Pod that asks for GPUs trains, or is presumed to.

    Presumed is a Pod that is bare or of a Job, that serves nothing (no ports, no probes), and that somebody protects from
    disruption. A bare Pod's restartPolicy is not looked at, because its default is Always. That is enough for a warning,
    never for a change. Pods of a DaemonSet never train.
    """
    name = ctx.derived(workload_class).name
    if not ctx.derived(gpu_demand) or name not in {"training", "batch", None} or is_of_daemon_set(pod, ctx):
        return False
    return name == "training" or (
        owner_kind(pod, ctx) in {"", "Job", "CronJob"}
        and _is_protected(pod)
        and not any(map(_serves, pod["spec", "containers"]))
    )


def says_checkpointed(pod: Field) -> bool:
    """Tell whether a Pod says that it writes checkpoints; that changes what it is told, and nothing else."""
    return "true" in (pod["metadata", block, CHECKPOINTED].text for block in ("annotations", "labels"))


def _serves(container: Field) -> bool:
    return bool(container["ports"].value) or any(container[probe] for probe in _SERVING)


def _is_protected(pod: Field) -> bool:
    value = pod["metadata", "annotations", _DO_NOT_DISRUPT].text
    try:
        return value == "true" or durations.parse(value) > 0
    except durations.DurationError:
        return False


# Sources of volumes that are gone with the Pod or its node, or cannot be written (`core/v1` VolumeSource, v0.36). All
# others are storage elsewhere.
_FLEETING: Final = frozenset(
    {"configMap", "downwardAPI", "emptyDir", "ephemeral", "gitRepo", "hostPath", "image", "projected", "secret"}
)
# Where a workload of another shape has volumes for its Pods: StatefulSet and Argo, Volcano.
_OF_WORKLOADS: Final = (
    ("spec", "volumeClaimTemplates"),
    ("spec", "workflowSpec", "volumeClaimTemplates"),
    ("spec", "volumes"),
)


def outlives(pod: Field, wrapper: Wrapper | None) -> bool:
    """Tell whether a Pod or Pod template, or the workload around it, has storage to write to that outlives the Pod."""
    written = {
        mount["name"].text
        for name in ("containers", "initContainers")
        for container in pod["spec", name]
        for mount in container["volumeMounts"]
        if mount["readOnly"].value is not True
    }
    return any(v["name"].text in written and _lasts(v) for v in pod["spec", "volumes"]) or bool(
        wrapper and any(_adds_volumes(wrapper.root[path]) for path in _OF_WORKLOADS)
    )


def names_object_store(pod: Field, prefixes: tuple[str, ...]) -> bool:
    """Tell whether an argument or environment variable of a container names an object store."""
    texts = [
        text
        for container in pod["spec", "containers"]
        for field in (container["command"], container["args"])
        for text in field.texts
    ]
    texts += [variable["value"].text for container in pod["spec", "containers"] for variable in container["env"]]
    return any(prefix in text for prefix in prefixes for text in texts)


def _lasts(volume: Field) -> bool:
    return any(
        source and name not in _FLEETING and source["readOnly"].value is not True
        for name, source in volume.items()
        if name != "name"
    )


def _adds_volumes(volumes: Field) -> bool:
    """Tell whether a workload claims a volume of its own for its Pods; Volcano names the claim beside the mount."""
    return any(volume["spec"] or volume["volumeClaim"] or volume["volumeClaimName"] for volume in volumes)
