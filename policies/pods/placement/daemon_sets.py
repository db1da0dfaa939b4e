"""Pods that run on every node: those of a DaemonSet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.sdk.concerns import Each, Flag, SentBy, Text

if TYPE_CHECKING:
    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.policy import AnyContext

_CONTROLLER: Final = "system:serviceaccount:kube-system:daemon-set-controller"
# Which Pods are a DaemonSet's at admission.
OF_DAEMON_SET: Final = SentBy(_CONTROLLER) & Each(
    "metadata.ownerReferences", Text("kind", ("DaemonSet",)) & Flag("controller")
)


def is_of_daemon_set(pod: Field, ctx: AnyContext) -> bool:
    """Tell whether a Pod, or a Pod template, is a DaemonSet's.

    Anybody can name a DaemonSet as the owner of a Pod, so at admission that counts only where the DaemonSet controller
    sends the Pod (Kubernetes v1.36, `pkg/controller/daemon`; its service account is
    `plugin/pkg/auth/authorizer/rbac/bootstrappolicy/controller_policy.go`). A file comes from nobody, and is believed.
    """
    if ctx.wrapper:
        return ctx.wrapper.kind.kind == "DaemonSet"
    return ctx.request.user in {"", _CONTROLLER} and any(
        owner["kind"].text == "DaemonSet" and owner["controller"].value is True
        for owner in pod["metadata", "ownerReferences"]
    )
