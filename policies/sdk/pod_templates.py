"""Where each kind of workload keeps the templates of its Pods.

Sources: `kubernetes/api` v0.36; Kubeflow training-operator v1.9.4 (`pkg/apis/kubeflow.org/v1`), JobSet v0.12.0, LWS
v0.10.0, KubeRay v1.7.0, Volcano v1.15.1, KEDA v2.20.2; `template_views` for those that have another shape. A TrainJob
holds no template: its runtime does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.sdk.template_views import argo_template, kserve_component

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpugate.policies.sdk.field import Field

_RAY_CLUSTER = (("headGroupSpec", "template"), ("workerGroupSpecs", "*", "template"))

# (group, kind) -> paths of Pod templates; "*" goes through every element of a list or member of an object.
TEMPLATES: dict[tuple[str, str], tuple[tuple[str, ...], ...]] = {
    ("apps", "Deployment"): (("spec", "template"),),
    ("apps", "ReplicaSet"): (("spec", "template"),),
    ("apps", "StatefulSet"): (("spec", "template"),),
    ("apps", "DaemonSet"): (("spec", "template"),),
    ("argoproj.io", "CronWorkflow"): (("spec", "workflowSpec", "templates", "*"),),
    ("argoproj.io", "Workflow"): (("spec", "templates", "*"),),
    ("argoproj.io", "WorkflowTemplate"): (("spec", "templates", "*"),),
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
    ("serving.kserve.io", "InferenceService"): (
        ("spec", "predictor"),
        ("spec", "predictor", "workerSpec"),
        ("spec", "transformer"),
        ("spec", "explainer"),
    ),
}
# What shows something of another shape, found in an object (`root`), as a Pod template.
_VIEWS: Final[dict[tuple[str, str], Callable[[Field, Field], Field | None]]] = {
    ("argoproj.io", "CronWorkflow"): lambda found, root: argo_template(found, root["spec", "workflowSpec"]),
    ("argoproj.io", "Workflow"): lambda found, root: argo_template(found, root["spec"]),
    ("argoproj.io", "WorkflowTemplate"): lambda found, root: argo_template(found, root["spec"]),
    ("serving.kserve.io", "InferenceService"): kserve_component,
}


def pod_templates(group: str, kind: str, root: Field) -> Iterator[Field]:
    """Yield the Pod templates in an object of this type; nothing when it holds none.

    Whatever shape the workload gives them, `["metadata"]` and `["spec"]` are those of a Pod, and the path of a field is
    where it stands in the object.
    """
    view = _VIEWS.get((group, kind))
    for path in TEMPLATES.get((group, kind), ()):
        for found in _at(root, path):
            template = view(found, root) if view else found
            if template is not None:
                yield template


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
