"""Pods that run on every node: those of a DaemonSet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.sdk.concerns import Each, Flag, SentBy, Text
from gpugate.policies.sdk.workload_class import CONTROLLER_MANAGER, DAEMON_SET_CONTROLLER

if TYPE_CHECKING:
    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.policy import AnyContext

# Which Pods are a DaemonSet's at admission.
OF_DAEMON_SET: Final = (SentBy(DAEMON_SET_CONTROLLER) | SentBy(CONTROLLER_MANAGER)) & Each(
    "metadata.ownerReferences", Text("kind", ("DaemonSet",)) & Flag("controller")
)


def is_of_daemon_set(pod: Field, ctx: AnyContext) -> bool:
    """Tell whether a Pod, or a Pod template, is a DaemonSet's, by its owner and by who sends it."""
    if ctx.wrapper:
        return ctx.wrapper.kind.kind == "DaemonSet"
    return any(
        owner["kind"].text == "DaemonSet"
        and owner["controller"].value is True
        and ctx.request.user in {"", CONTROLLER_MANAGER, DAEMON_SET_CONTROLLER}
        for owner in pod["metadata", "ownerReferences"]
    )
