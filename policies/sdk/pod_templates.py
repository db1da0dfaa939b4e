"""The paths of Pod templates in objects of each kind.

A TrainJob has no template. Its runtime has, and `check` builds the JobSet from both.

Sources: `kubernetes/api` v0.36; Kubeflow training-operator v1.9.4 (`pkg/apis/kubeflow.org/v1`), Kubeflow trainer
v2.0.0 (`pkg/apis/trainer/v1alpha1/trainingruntime_types.go`), JobSet v0.12.0, LWS v0.10.0, KubeRay v1.7.0, Volcano v1.15.1,
KEDA v2.20.2, AppWrapper v1beta2 (`api/v1beta2/appwrapper_types.go`), the HyperPod training operator (SageMaker developer guide,
`HyperPodPyTorchJob`, 2026-11).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from gpugate.policies.sdk.field_views import ObjectView
from gpugate.policies.sdk.template_views import DYNAMO, VIEWS, shares_too_much

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpugate.policies.sdk.field import Field

TemplatePath = tuple[str, ...]  # the keys that lead to Pod templates, "*" for every element or member

_RAY_CLUSTER = (("headGroupSpec", "template"), ("workerGroupSpecs", "*", "template"))

# (group, kind) -> paths of Pod templates; "*" stands for every element of a list or member of an object.
TEMPLATES: dict[tuple[str, str], tuple[tuple[str, ...], ...]] = {
    ("apps", "Deployment"): (("spec", "template"),),
    ("apps", "ReplicaSet"): (("spec", "template"),),
    ("apps", "StatefulSet"): (("spec", "template"),),
    ("apps", "DaemonSet"): (("spec", "template"),),
    ("apps.nvidia.com", "NIMService"): (("spec",),),
    ("argoproj.io", "ClusterWorkflowTemplate"): (("spec", "templates", "*"),),
    ("argoproj.io", "CronWorkflow"): (("spec", "workflowSpec", "templates", "*"),),
    ("argoproj.io", "Workflow"): (("spec", "templates", "*"),),
    ("argoproj.io", "WorkflowTemplate"): (("spec", "templates", "*"),),
    ("batch", "Job"): (("spec", "template"),),
    ("batch", "CronJob"): (("spec", "jobTemplate", "spec", "template"),),
    ("batch.volcano.sh", "Job"): (("spec", "tasks", "*", "template"),),
    ("flink.apache.org", "FlinkDeployment"): (("spec", "jobManager"), ("spec", "taskManager")),
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
    DYNAMO: (("spec", "services", "*"), ("spec", "components", "*")),
    ("production-stack.vllm.ai", "VLLMRuntime"): (("spec", "deploymentConfig"),),
    ("ray.io", "RayCluster"): tuple(("spec", *path) for path in _RAY_CLUSTER),
    ("ray.io", "RayCronJob"): tuple(("spec", "jobTemplate", "rayClusterSpec", *path) for path in _RAY_CLUSTER),
    ("ray.io", "RayJob"): tuple(("spec", "rayClusterSpec", *path) for path in _RAY_CLUSTER),
    ("ray.io", "RayService"): tuple(("spec", "rayClusterConfig", *path) for path in _RAY_CLUSTER),
    ("sagemaker.amazonaws.com", "HyperPodPyTorchJob"): (("spec", "replicaSpecs", "*", "template"),),
    ("serving.kserve.io", "InferenceService"): (
        ("spec", "predictor"),
        ("spec", "predictor", "workerSpec"),
        ("spec", "transformer"),
        ("spec", "explainer"),
    ),
    ("serving.kserve.io", "LLMInferenceService"): tuple(
        ("spec", *owner, name) for owner in ((), ("prefill",)) for name in ("template", "worker")
    ),
    ("sparkoperator.k8s.io", "ScheduledSparkApplication"): (
        ("spec", "template", "driver"),
        ("spec", "template", "executor"),
    ),
    ("sparkoperator.k8s.io", "SparkApplication"): (("spec", "driver"), ("spec", "executor")),
    ("trainer.kubeflow.org", "ClusterTrainingRuntime"): (
        ("spec", "template", "spec", "replicatedJobs", "*", "template", "spec", "template"),
    ),
    ("trainer.kubeflow.org", "TrainingRuntime"): (
        ("spec", "template", "spec", "replicatedJobs", "*", "template", "spec", "template"),
    ),
    ("workload.codeflare.dev", "AppWrapper"): (("spec", "components", "*", "template"),),
}
# Kinds that contain objects of other kinds, at their paths in `TEMPLATES`.
_NESTING: Final = frozenset({("workload.codeflare.dev", "AppWrapper")})


def pod_templates(group: str, kind: str, root: Field, added: Sequence[TemplatePath] = ()) -> Iterator[Field]:
    """Yield the Pod templates in an object of this type.

    In every shape, `["metadata"]` and `["spec"]` are those of a Pod, and the path of a field is its path in the object.

    Args:
        group: the API group of the object.
        kind: its kind.
        root: the object.
        added: more paths of templates in such objects, from the policy file.
    """
    known = TEMPLATES.get((group, kind), ())
    if (group, kind) in _NESTING:
        for inner in nested(group, kind, root):
            yield from inner.templates
        return
    view = VIEWS.get((group, kind))
    if view and shares_too_much(group, kind, root):
        return
    for path in known:
        for field in _at(root, path):
            template = view(field, root) if view else field
            if template is not None:
                yield template
    for path in added:
        for field in _at(root, path) if path not in known else ():
            template = added_template(field, root)
            if template is not None:
                yield template


class Nested(NamedTuple):
    """An object inside another object, with its type."""

    api_version: str
    kind: str
    root: Field

    @property
    def templates(self) -> Iterator[Field]:
        """The Pod templates of the object; a Pod is one itself."""
        if (self.api_version, self.kind) == ("v1", "Pod"):
            yield self.root
        else:
            yield from pod_templates(self.api_version.rpartition("/")[0], self.kind, self.root)


def nested(group: str, kind: str, root: Field) -> Iterator[Nested]:
    """Yield the objects inside an object of this type, without those that contain objects themselves."""
    for path in TEMPLATES[group, kind] if (group, kind) in _NESTING else ():
        for field in _at(root, path):
            api_version, name = field["apiVersion"].text, field["kind"].text
            if (api_version.rpartition("/")[0], name) not in _NESTING:
                yield Nested(api_version, name, field)


def added_template(field: Field, root: Field) -> Field | None:
    """Return a Pod template, or a view of a Pod spec as one; None for other values.

    The Pods of a bare Pod spec are assumed to have the labels and annotations of the object.
    """
    if isinstance(field["spec"].value, dict):
        return field
    if isinstance(field["containers"].value, list):
        return ObjectView(field, {"metadata": root["metadata"], "spec": field})
    return None


def _at(field: Field, path: TemplatePath) -> Iterator[Field]:
    if not path:
        if isinstance(field.value, dict):
            yield field
    elif path[0] != "*":
        yield from _at(field[path[0]], path[1:])
    else:
        members = [member for _, member in field.items()] or list(field)
        for member in members:
            yield from _at(member, path[1:])
