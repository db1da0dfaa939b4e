"""What a Pod is for: training, inference, batch, interactive work or the system itself.

Labels of frameworks: Kubeflow training-operator v1.9.4, Kubeflow trainer v2.3.0, JobSet v0.12.0, KubeRay v1.7.0
(`controllers/ray/common/pod.go`), LWS v0.10.0, Volcano v1.15.1, Kubernetes v1.36 (`batch/v1` well-known labels).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast, get_args

from gpugate.policies.sdk import globs, kinds
from gpugate.policies.sdk.facts import Known
from gpugate.policies.sdk.gpu_demand import gpu_demand
from gpugate.policies.sdk.platform import WorkloadClass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.kinds import Kind
    from gpugate.policies.sdk.policy import AnyContext

CLASS_LABEL = "gpugate.dev/workload-class"
CLASSES: frozenset[str] = frozenset(get_args(WorkloadClass))


@dataclass(frozen=True, slots=True)
class Classified:
    """The class of a workload, or None when nothing tells it.

    `source` says what told it. `conflict` is the class its framework tells, where that is another one.
    """

    name: WorkloadClass | None
    source: str = ""
    conflict: WorkloadClass | None = None


# Labels that a framework's controller puts on its Pods.
_FRAMEWORK_LABELS: dict[str, WorkloadClass] = {
    "serving.kserve.io/inferenceservice": "inference",
    "leaderworkerset.sigs.k8s.io/name": "inference",
    "notebook-name": "interactive",
    "volcano.sh/job-name": "training",
}
# The workload around a template, which carries no such labels yet.
_FRAMEWORK_KINDS: dict[tuple[str, str], WorkloadClass] = {
    ("kubeflow.org", "JAXJob"): "training",
    ("kubeflow.org", "MPIJob"): "training",
    ("kubeflow.org", "Notebook"): "interactive",
    ("kubeflow.org", "PaddleJob"): "training",
    ("kubeflow.org", "PyTorchJob"): "training",
    ("kubeflow.org", "TFJob"): "training",
    ("kubeflow.org", "XGBoostJob"): "training",
    ("batch.volcano.sh", "Job"): "training",
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): "inference",
    ("ray.io", "RayJob"): "training",
    ("ray.io", "RayService"): "inference",
}
_JOB_LABELS = ("batch.kubernetes.io/job-name", "job-name")
_INDEX = "batch.kubernetes.io/job-completion-index"


def workload_class(pod: Field, ctx: AnyContext) -> Classified:
    """Tell the class of a Pod or Pod template; the first of these that says anything wins.

    1. the label `gpugate.dev/workload-class` of the Pod, then of its namespace;
    2. the labels, node selectors and namespace names of the platform's configuration;
    3. the framework that made the Pod;
    4. a Job: indexed or parallel is training, other is batch;
    5. a DaemonSet: system;
    6. a ReplicaSet or StatefulSet whose containers have ports or probes: inference.
    """
    labels = pod["metadata", "labels"].labels
    declared = _declared(pod, labels, ctx)
    framework = _framework(labels, pod, ctx)
    if declared:
        name, source = declared
        differs = framework is not None and framework[0] != name
        return Classified(name, source, framework[0] if framework and differs else None)
    if framework:
        return Classified(*framework)
    return Classified(*_owner(pod, labels, ctx))


_Found = tuple[WorkloadClass, str] | None


def _declared(pod: Field, labels: Mapping[str, str], ctx: AnyContext) -> _Found:
    own = labels.get(CLASS_LABEL, "")
    if own in CLASSES:
        return cast("WorkloadClass", own), f"label {CLASS_LABEL} of the Pod"
    inherited = namespace_labels(ctx).get(CLASS_LABEL, "")
    if inherited in CLASSES:
        return cast("WorkloadClass", inherited), f"label {CLASS_LABEL} of the namespace"
    rules = ctx.platform.workload_classes
    for key, classes in rules.labels.items():
        if labels.get(key, "") in classes:
            return classes[labels[key]], f"label {key} of the Pod"
    selector = pod["spec", "nodeSelector"].labels
    for key, classes in rules.node_selectors.items():
        if selector.get(key, "") in classes:
            return classes[selector[key]], f"node selector {key}"
    for pattern, name in rules.namespaces.items():
        if globs.matches(pattern, ctx.request.namespace):
            return name, f"namespace {ctx.request.namespace}"
    return None


def _framework(labels: Mapping[str, str], pod: Field, ctx: AnyContext) -> _Found:
    if ctx.wrapper:
        around = (ctx.wrapper.kind.group, ctx.wrapper.kind.kind)
        if around in _FRAMEWORK_KINDS:
            return _FRAMEWORK_KINDS[around], around[1]
        if around == ("jobset.x-k8s.io", "JobSet") and ctx.derived(gpu_demand):
            return "training", "JobSet"
    if "training.kubeflow.org/job-name" in labels:
        launcher = labels.get("training.kubeflow.org/replica-type", "").lower() == "launcher"
        if not launcher or ctx.derived(gpu_demand):
            return "training", "label training.kubeflow.org/job-name"
    if "jobset.sigs.k8s.io/jobset-name" in labels and ctx.derived(gpu_demand):
        return "training", "label jobset.sigs.k8s.io/jobset-name"
    for key, name in _FRAMEWORK_LABELS.items():
        if key in labels:
            return name, f"label {key}"
    if labels.get("component") == "singleuser-server":
        return "interactive", "label component=singleuser-server"
    if "ray.io/cluster" in labels:
        return _ray(labels["ray.io/cluster"], ctx)
    return None


def _ray(cluster: str, ctx: AnyContext) -> _Found:
    """KubeRay labels the RayCluster, not its Pods, with what it was made for."""
    found = _named(kinds.RAY_CLUSTER, cluster, ctx)
    made_for = found["metadata", "labels", "ray.io/originated-from-crd"].text if found else ""
    classes: dict[str, WorkloadClass] = {"RayJob": "training", "RayService": "inference"}
    return (classes[made_for], f"{made_for} of RayCluster {cluster}") if made_for in classes else None


def _owner(pod: Field, labels: Mapping[str, str], ctx: AnyContext) -> tuple[WorkloadClass | None, str]:
    owner = _owner_kind(pod, ctx)
    job = next((labels[key] for key in _JOB_LABELS if key in labels), "")
    if owner in {"Job", "CronJob"} or job:
        return ("training", "a parallel or indexed Job") if _parallel(pod, labels, job, ctx) else ("batch", "a Job")
    if owner == "DaemonSet":
        return "system", "a DaemonSet"
    serving = any(
        c["ports"].value or c["readinessProbe"] or c["livenessProbe"] or c["startupProbe"]
        for c in pod["spec", "containers"]
    )
    if owner in {"ReplicaSet", "StatefulSet", "Deployment"} and serving:
        return "inference", f"a {owner} with ports or probes"
    return None, ""


def _owner_kind(pod: Field, ctx: AnyContext) -> str:
    if ctx.wrapper:
        return ctx.wrapper.kind.kind
    controllers = (r["kind"].text for r in pod["metadata", "ownerReferences"] if r["controller"].value is True)
    return next(controllers, "")


def _parallel(pod: Field, labels: Mapping[str, str], job: str, ctx: AnyContext) -> bool:
    if _INDEX in labels or pod["metadata", "annotations", _INDEX]:
        return True
    if ctx.wrapper:
        root = ctx.wrapper.root
        spec = root["spec", "jobTemplate", "spec"] if ctx.wrapper.kind.kind == "CronJob" else root["spec"]
    else:
        found = _named(kinds.JOB, job, ctx)
        if found is None:
            return False
        spec = found["spec"]
    return spec["completionMode"].text == "Indexed" or (spec["parallelism"].integer or 1) > 1


def namespace_labels(ctx: AnyContext) -> dict[str, str]:
    """Return the labels of the request's namespace; empty when the namespace is not known."""
    if not ctx.request.namespace:
        return {}
    found = _named(kinds.NAMESPACE, ctx.request.namespace, ctx)
    return found["metadata", "labels"].labels if found else {}


def _named(kind: Kind, name: str, ctx: AnyContext) -> Field | None:
    fact = ctx.facts.list(kind, ctx.request.namespace if kind.namespaced else None)
    for item in fact.items if isinstance(fact, Known) else ():
        if item["metadata", "name"].text == name:
            return item
    return None
