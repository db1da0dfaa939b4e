"""Which of the recorded reviews is kept under which name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

_JOB_CONTROLLER = "system:serviceaccount:kube-system:job-controller"
_SCHEDULER = "system:kube-scheduler"


@dataclass(frozen=True)
class Pick:
    """What a request must be; `name` is how the object's name, or what it is generated from, begins."""

    kind: str
    operation: str
    name: str
    subresource: str = ""
    user: str = "admin"
    dry_run: bool = False

    def fits(self, request: dict[str, Any]) -> bool:
        """Tell whether a request is such a one."""
        metadata = (request["object"] or request["oldObject"]).get("metadata") or {}
        name = request.get("name") or metadata.get("generateName", "")
        found = (
            request["requestKind"]["kind"],
            request["operation"],
            request.get("subResource", ""),
            request["userInfo"]["username"],
            request.get("dryRun", False),
        )
        wanted = (self.kind, self.operation, self.subresource, self.user, self.dry_run)
        return bool(name.startswith(self.name)) and found == wanted


# By the file's name without its last part, which says whose review it is: the mutating or the validating webhook's.
PICKS = {
    "deployment-create": Pick("Deployment", "CREATE", "gpu-inference-server"),
    "ec2nodeclass-create": Pick("EC2NodeClass", "CREATE", "gpu-optimized"),
    "horizontalpodautoscaler-create": Pick("HorizontalPodAutoscaler", "CREATE", "model-a-hpa"),
    "nodepool-create": Pick("NodePool", "CREATE", "gpu-training"),
    "nodepool-create-gpu-inference": Pick("NodePool", "CREATE", "gpu-inference-pool"),
    "nodepool-create-unlimited": Pick("NodePool", "CREATE", "gpu-training-protected"),
    "nodepool-delete": Pick("NodePool", "DELETE", "gpu-training"),
    "nodepool-scale-update": Pick("Scale", "UPDATE", "gpu-static", "scale"),
    "nodepool-update": Pick("NodePool", "UPDATE", "gpu-training"),
    "pod-binding-create": Pick("Binding", "CREATE", "training-job", "binding", _SCHEDULER),
    "pod-create-by-job": Pick("Pod", "CREATE", "distributed-training-", user=_JOB_CONTROLLER),
    "pod-create-gpu-tolerated": Pick("Pod", "CREATE", "gpu-pod"),
    "pod-create-gpu-untolerated": Pick("Pod", "CREATE", "gpu-pod-untolerated"),
    "pod-create-training": Pick("Pod", "CREATE", "training-job"),
    "pod-delete": Pick("Pod", "DELETE", "gpu-pod-untolerated"),
    "pod-ephemeralcontainers-update": Pick("Pod", "UPDATE", "gpu-pod", "ephemeralcontainers"),
    "pod-exec-connect": Pick("PodExecOptions", "CONNECT", "gpu-pod", "exec"),
    "pod-status-update": Pick("Pod", "UPDATE", "distributed-training-", "status", _SCHEDULER),
    "pod-update-by-job-controller": Pick("Pod", "UPDATE", "train-", user=_JOB_CONTROLLER),
    "scaledobject-create": Pick("ScaledObject", "CREATE", "vllm-scaler"),
    "scaledobject-create-dry-run": Pick("ScaledObject", "CREATE", "model-a-gpu-scaler", dry_run=True),
}
