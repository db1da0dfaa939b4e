"""Which Pods a warning takes for training, beside those that say so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.pods.placement.daemon_sets import is_of_daemon_set
from gpugate.policies.sdk import durations
from gpugate.policies.sdk.gpu_demand import gpu_demand
from gpugate.policies.sdk.workload_class import owner_kind, workload_class

if TYPE_CHECKING:
    from gpugate.policies.sdk.field import Field
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
