"""Whether a Pod is known to train, and where it can write checkpoints that outlive it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.pods._placement import is_of_daemon_set
from gpugate.policies.sdk.gpu_demand import gpu_demand
from gpugate.policies.sdk.workload_class import CLASS_LABEL, workload_class

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.objects import Wrapper
    from gpugate.policies.sdk.policy import AnyContext

CHECKPOINTED: Final = "gpugate.dev/checkpointed"


def trains(pod: Field, ctx: AnyContext) -> bool:
    """Tell whether a Pod requests GPUs and is known to train. Pods of a DaemonSet never do."""
    return (
        bool(ctx.derived(gpu_demand))
        and ctx.derived(workload_class).name == "training"
        and not is_of_daemon_set(pod, ctx)
    )


def evidence_for_class(ctx: AnyContext) -> str:
    """Return the evidence that the Pod trains, in brackets."""
    return f"(detected as training by: {ctx.derived(workload_class).source})"


def otherwise(ctx: AnyContext) -> str:
    """Return how to correct the class of a Pod that does not train; empty if its own label sets the class."""
    if ctx.derived(workload_class).source == f"label {CLASS_LABEL} of the Pod":
        return ""
    return f", or label the Pod {CLASS_LABEL}: batch if it does not train"


def says_checkpointed(pod: Field) -> bool:
    """Tell whether a Pod declares that it writes checkpoints, which changes only the text of messages."""
    return "true" in (pod["metadata", block, CHECKPOINTED].text for block in ("annotations", "labels"))


# Sources of volumes that are deleted with the Pod or its node, or are not writable (`core/v1` VolumeSource, v0.36). All
# others are external storage.
_FLEETING: Final = frozenset(
    {"configMap", "downwardAPI", "emptyDir", "ephemeral", "gitRepo", "hostPath", "image", "projected", "secret"}
)
# The paths of volumes for the Pods of other workloads: StatefulSet and Argo, Volcano.
_OF_WORKLOADS: Final = (
    ("spec", "volumeClaimTemplates"),
    ("spec", "workflowSpec", "volumeClaimTemplates"),
    ("spec", "volumes"),
)


def outlives(pod: Field, wrapper: Wrapper | None) -> bool:
    """Tell whether a Pod or Pod template, or its workload, has writable storage that outlives the Pod."""
    written = _written(pod)
    return any(v["name"].text in written and _lasts(v) for v in pod["spec", "volumes"]) or bool(
        wrapper and any(_adds_volumes(wrapper.root[path]) for path in _OF_WORKLOADS)
    )


def _written(pod: Field) -> set[str]:
    """Return the names of the volumes that are writable in a container."""
    return {
        mount["name"].text
        for name in ("containers", "initContainers")
        for container in pod["spec", name]
        for mount in container["volumeMounts"]
        if mount["readOnly"].value is not True
    }


# Directories of a node whose content is not data (Filesystem Hierarchy Standard 3.0).
_SYSTEM: Final = frozenset(
    {"bin", "boot", "dev", "etc", "lib", "lib64", "proc", "run", "sbin", "sys", "tmp", "usr", "var"}
)


def node_paths(pod: Field) -> Iterator[str]:
    """Yield the paths of the node to which a Pod can write data. A shared file system may be mounted there."""
    written = _written(pod)
    for volume in pod["spec", "volumes"]:
        path = volume["hostPath", "path"].text
        if volume["name"].text in written and path.strip("/") and path.strip("/").split("/", 1)[0] not in _SYSTEM:
            yield path


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
    """Tell whether a workload claims its own volumes for its Pods. Volcano names the claim next to the mount."""
    return any(volume["spec"] or volume["volumeClaim"] or volume["volumeClaimName"] for volume in volumes)
