"""Where each kind of workload keeps the templates of its Pods.

Sources: `kubernetes/api` v0.36; Kubeflow training-operator v1.9.4 (`pkg/apis/kubeflow.org/v1`), JobSet v0.12.0, LWS
v0.10.0, KubeRay v1.7.0, Volcano v1.15.1, KEDA v2.20.2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field

_RAY_CLUSTER = (("headGroupSpec", "template"), ("workerGroupSpecs", "*", "template"))

# (group, kind) -> paths of Pod templates; "*" goes through every element of a list or member of an object.
TEMPLATES: dict[tuple[str, str], tuple[tuple[str, ...], ...]] = {
    ("apps", "Deployment"): (("spec", "template"),),
    ("apps", "ReplicaSet"): (("spec", "template"),),
    ("apps", "StatefulSet"): (("spec", "template"),),
    ("apps", "DaemonSet"): (("spec", "template"),),
    ("batch", "Job"): (("spec", "template"),),
    ("batch", "CronJob"): (("spec", "jobTemplate", "spec", "template"),),
    ("batch.volcano.sh", "Job"): (("spec", "tasks", "*", "template"),),
    ("jobset.x-k8s.io", "JobSet"): (("spec", "replicatedJobs", "*", "template", "spec", "template"),),
    ("keda.sh", "ScaledJob"): (("spec", "jobTargetRef", "template"),),
    ("kubeflow.org", "JAXJob"): (("spec", "jaxReplicaSpecs", "*", "template"),),
    ("kubeflow.org", "MPIJob"): (("spec", "mpiReplicaSpecs", "*", "template"),),
    ("kubeflow.org", "Notebook"): (("spec", "template"),),
    ("kubeflow.org", "PaddleJob"): (("spec", "paddleReplicaSpecs", "*", "template"),),
    ("kubeflow.org", "PyTorchJob"): (("spec", "pytorchReplicaSpecs", "*", "template"),),
    ("kubeflow.org", "TFJob"): (("spec", "tfReplicaSpecs", "*", "template"),),
    ("kubeflow.org", "XGBoostJob"): (("spec", "xgbReplicaSpecs", "*", "template"),),
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): (
        ("spec", "leaderWorkerTemplate", "leaderTemplate"),
        ("spec", "leaderWorkerTemplate", "workerTemplate"),
    ),
    ("ray.io", "RayCluster"): tuple(("spec", *path) for path in _RAY_CLUSTER),
    ("ray.io", "RayJob"): tuple(("spec", "rayClusterSpec", *path) for path in _RAY_CLUSTER),
    ("ray.io", "RayService"): tuple(("spec", "rayClusterConfig", *path) for path in _RAY_CLUSTER),
}


def pod_templates(group: str, kind: str, root: Field) -> Iterator[Field]:
    """Yield the Pod templates in an object of this type; nothing when it holds none."""
    for path in TEMPLATES.get((group, kind), ()):
        yield from _at(root, path)


def _at(field: Field, path: tuple[str, ...]) -> Iterator[Field]:
    if not path:
        if isinstance(field.value, dict):
            yield field
    elif path[0] != "*":
        yield from _at(field[path[0]], path[1:])
    else:
        members = [member for _, member in field.items()] or list(field)
        for member in members:
            yield from _at(member, path[1:])
