"""What the framework that makes a Pod says about its class: labels on the Pod, and the kind of workload around it.

Sources: Kubeflow training-operator v1.9.4 (`pkg/apis/kubeflow.org/v1`) and mpi-operator v0.6.0 (`training.kubeflow.org`
labels), Kubeflow trainer v2.3.0 (its Pods are a JobSet's), JobSet v0.12.0 (`jobset_controller.go`), KubeRay v1.7.0
(`controllers/ray/common/pod.go`), LeaderWorkerSet v0.10.0, Volcano v1.15.1, KServe, Zero to JupyterHub.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gpugate.policies.sdk import kinds
from gpugate.policies.sdk.facts import Need, may_come, named
from gpugate.policies.sdk.gpu_demand import gpu_demand

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.platform import WorkloadClass
    from gpugate.policies.sdk.policy import AnyContext
    from gpugate.policies.sdk.request import Wrapper

RAY_CLUSTER_NEED: Final = Need(kinds.RAY_CLUSTER, ("metadata.labels",))


@dataclass(frozen=True, slots=True)
class Mark:
    """What tells a framework: a label on its Pods, or the workload around a template, which has no such label yet.

    `needs_gpu`: the framework also makes Pods of other classes, which ask for no accelerator.
    """

    name: WorkloadClass
    source: str
    needs_gpu: bool = False


_KINDS: Final[dict[tuple[str, str], Mark]] = {
    ("batch.volcano.sh", "Job"): Mark("training", "a Volcano Job"),
    ("jobset.x-k8s.io", "JobSet"): Mark("training", "a JobSet", needs_gpu=True),
    ("kubeflow.org", "JAXJob"): Mark("training", "a JAXJob"),
    ("kubeflow.org", "MPIJob"): Mark("training", "an MPIJob"),
    ("kubeflow.org", "Notebook"): Mark("interactive", "a Notebook"),
    ("kubeflow.org", "PaddleJob"): Mark("training", "a PaddleJob"),
    ("kubeflow.org", "PyTorchJob"): Mark("training", "a PyTorchJob"),
    ("kubeflow.org", "TFJob"): Mark("training", "a TFJob"),
    ("kubeflow.org", "XGBoostJob"): Mark("training", "an XGBoostJob"),
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): Mark("inference", "a LeaderWorkerSet"),
    ("ray.io", "RayJob"): Mark("training", "a RayJob"),
    ("ray.io", "RayService"): Mark("inference", "a RayService"),
    ("serving.kserve.io", "InferenceService"): Mark("inference", "an InferenceService"),
}
_LABELS: Final[dict[str, Mark]] = {
    "training.kubeflow.org/job-name": Mark("training", "label training.kubeflow.org/job-name"),
    "jobset.sigs.k8s.io/jobset-name": Mark("training", "label jobset.sigs.k8s.io/jobset-name", needs_gpu=True),
    "volcano.sh/job-name": Mark("training", "label volcano.sh/job-name"),
    "serving.kserve.io/inferenceservice": Mark("inference", "label serving.kserve.io/inferenceservice"),
    "leaderworkerset.sigs.k8s.io/name": Mark("inference", "label leaderworkerset.sigs.k8s.io/name"),
    "notebook-name": Mark("interactive", "label notebook-name"),
}
_HUB: Final = Mark("interactive", "label component=singleuser-server")
# KubeRay says what a cluster was made for on the RayCluster, not on its Pods.
_RAY_ORIGIN: Final = "ray.io/originated-from-crd"
_RAY: Final[dict[str, Mark]] = {
    "RayJob": Mark("training", "a RayCluster of a RayJob"),
    "RayService": Mark("inference", "a RayCluster of a RayService"),
}
_LAUNCHER: Final = ("training.kubeflow.org/replica-type", "training.kubeflow.org/job-role")


def framework(pod: Field, labels: Mapping[str, str], ctx: AnyContext) -> Mark | None:
    """Return what the framework of a Pod or Pod template tells; None when there is none, or it tells nothing."""
    mark = _of_workload(ctx.wrapper) if ctx.wrapper else None
    mark = mark or _of_labels(labels, ctx)
    if mark and (mark.needs_gpu or _launches(pod, labels)) and not ctx.derived(gpu_demand):
        return None
    return mark


def _of_workload(wrapper: Wrapper) -> Mark | None:
    group, kind = wrapper.kind.group, wrapper.kind.kind
    if (group, kind) == ("ray.io", "RayCluster"):
        return _RAY.get(wrapper.root["metadata", "labels", _RAY_ORIGIN].text)
    return _KINDS.get((group, kind))


def _of_labels(labels: Mapping[str, str], ctx: AnyContext) -> Mark | None:
    for key, mark in _LABELS.items():
        if key in labels:
            return mark
    if labels.get("component") == "singleuser-server":
        return _HUB
    cluster = labels.get("ray.io/cluster")
    if cluster is None:
        return None
    found = named(ctx.facts.list(kinds.RAY_CLUSTER, ctx.request.namespace), cluster)
    return _RAY.get(found["metadata", "labels", _RAY_ORIGIN].text) if found else None


def framework_doubt(labels: Mapping[str, str], ctx: AnyContext) -> tuple[str, bool]:
    """Say which object would tell the framework's class and is not known, and whether it may be known in a moment.

    Empty where there is none.
    """
    cluster = labels.get("ray.io/cluster")
    clusters = ctx.facts.list(kinds.RAY_CLUSTER, ctx.request.namespace)
    if cluster is None or named(clusters, cluster):
        return "", False
    return f"RayCluster {cluster} is not known, so neither is whether it trains or serves", may_come(clusters, cluster)


def _launches(pod: Field, labels: Mapping[str, str]) -> bool:
    """Tell whether a Pod only starts the Pods that compute, as the launcher of an MPIJob does."""
    return "Launcher" in pod.path or any(labels.get(key, "").lower() == "launcher" for key in _LAUNCHER)
