"""The kinds of the API groups that hold only these, and which of them live in no namespace.

Sources: Kubernetes v1.36 (`k8s.io/api`), Karpenter v1.14.1 and its former versions back to v0.1, karpenter-provider-aws
v1.14.1, KEDA v2.20.2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.sdk.pod_templates import TEMPLATES

if TYPE_CHECKING:
    from gpugate.policies.sdk.kinds import GroupVersionKind

_NAMESPACED: Final = {
    "": (
        "Binding ConfigMap Endpoints Event LimitRange PersistentVolumeClaim Pod PodTemplate ReplicationController "
        "ResourceQuota Secret Service ServiceAccount"
    ),
    "apps": "ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet",
    "autoscaling": "HorizontalPodAutoscaler Scale",
    "batch": "CronJob Job",
    "karpenter.k8s.aws": "",
    "karpenter.sh": "HorizontalAutoscaler MetricsProducer ScalableNodeGroup",
    "keda.sh": "ScaledJob ScaledObject TriggerAuthentication",
    "policy": "Eviction PodDisruptionBudget",
}
_CLUSTER_WIDE: Final = {
    "": "ComponentStatus Namespace Node PersistentVolume",
    "apps": "",
    "autoscaling": "",
    "batch": "",
    "karpenter.k8s.aws": "AWSNodeTemplate EC2NodeClass",
    "karpenter.sh": "Machine NodeClaim NodeOverlay NodePool Provisioner",
    "keda.sh": "ClusterTriggerAuthentication",
    "policy": "PodSecurityPolicy",
}
_OPEN_NAMESPACED: Final = frozenset(
    {("resource.k8s.io", "ResourceClaim"), ("resource.k8s.io", "ResourceClaimTemplate")}
)
_OPEN_CLUSTER_WIDE: Final = frozenset({("resource.k8s.io", "DeviceClass"), ("eks.amazonaws.com", "NodeClass")})


def is_namespaced(kind: GroupVersionKind) -> bool | None:
    """Tell whether objects of a type live in a namespace; None when the type is not known."""
    pair = (kind.group, kind.kind)
    if pair in TEMPLATES or pair in _OPEN_NAMESPACED or kind.kind in _NAMESPACED.get(kind.group, "").split():
        return True
    if pair in _OPEN_CLUSTER_WIDE or kind.kind in _CLUSTER_WIDE.get(kind.group, "").split():
        return False
    return None


def correction(kind: GroupVersionKind) -> str | None:
    """Say what to write instead when a group has no such kind; None when it may have one."""
    if kind.group not in _NAMESPACED or is_namespaced(kind) is not None:
        return None
    for group, names in (*_NAMESPACED.items(), *_CLUSTER_WIDE.items()):
        if kind.kind in names.split():
            return f"write the apiVersion of {group or 'the core group'}, which has this kind"
    import difflib  # noqa: PLC0415 -- only a mistake needs it, and it costs start-up time

    names_here = f"{_NAMESPACED[kind.group]} {_CLUSTER_WIDE[kind.group]}".split()
    near = difflib.get_close_matches(kind.kind, names_here, n=1)
    return f"did you mean {near[0]}?" if near else f"it has {', '.join(sorted(names_here))}"
