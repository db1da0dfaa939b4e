"""The class of a Pod: training, inference, batch, interactive or system.

Labels of Jobs: Kubernetes v1.36 (`batch/v1` well-known labels).

Sources: Kubeflow training-operator v1.9.4 (`pkg/apis/kubeflow.org/v1`) and mpi-operator v0.6.0 (`training.kubeflow.org`
labels), Kubeflow trainer v2.3.0 (its Pods are a JobSet's), JobSet v0.12.0 (`jobset_controller.go`), KubeRay v1.7.0
(`controllers/ray/common/pod.go`), LeaderWorkerSet v0.10.0, Volcano v1.15.1, KServe, Zero to JupyterHub.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, cast, get_args

from gpugate.policies.sdk import formats, objects
from gpugate.policies.sdk.commands import Strength, command_sign
from gpugate.policies.sdk.facts import Need, may_come, named
from gpugate.policies.sdk.findings import Skip, Stance
from gpugate.policies.sdk.gpu_demand import CLAIM_NEEDS, gpu_demand
from gpugate.policies.sdk.platform import WorkloadClass
from gpugate.policies.sdk.scheduling import selected
from gpugate.policies.sdk.structs import Struct, replace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpugate.policies.sdk.commands import Sign
    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.objects import Wrapper
    from gpugate.policies.sdk.policy import AnyContext

RAY_CLUSTER_NEED: Final = Need(objects.RAY_CLUSTER, ("metadata.labels",))


class Mark(Struct, frozen=True):
    """The evidence of a framework: a label of its Pods, or the workload of a template.

    The Pods of a template do not have the label yet.

    `needs_gpu`: the framework also creates Pods of other classes, which request no accelerator. `certain`: the
    framework creates only Pods of this class. Others also run benchmarks, batch inference and data processing.
    """

    name: WorkloadClass
    source: str
    needs_gpu: bool = False
    certain: bool = True


_MPI_JOB: Final = Mark("training", "an MPIJob", certain=False)
_TRAIN_JOB: Final = Mark("training", "a TrainJob", needs_gpu=True)
_KINDS: Final[dict[tuple[str, str], Mark]] = {
    ("apps.nvidia.com", "NIMService"): Mark("inference", "a NIMService"),
    ("batch.volcano.sh", "Job"): Mark("training", "a Volcano Job", certain=False),
    ("jobset.x-k8s.io", "JobSet"): Mark("training", "a JobSet", needs_gpu=True, certain=False),
    ("kubeflow.org", "JAXJob"): Mark("training", "a JAXJob"),
    ("kubeflow.org", "MPIJob"): _MPI_JOB,
    ("kubeflow.org", "Notebook"): Mark("interactive", "a Notebook"),
    ("kubeflow.org", "PaddleJob"): Mark("training", "a PaddleJob"),
    ("kubeflow.org", "PyTorchJob"): Mark("training", "a PyTorchJob"),
    ("kubeflow.org", "TFJob"): Mark("training", "a TFJob"),
    ("kubeflow.org", "XGBoostJob"): Mark("training", "an XGBoostJob"),
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): Mark("inference", "a LeaderWorkerSet"),
    ("nvidia.com", "DynamoGraphDeployment"): Mark("inference", "a DynamoGraphDeployment", needs_gpu=True),
    ("production-stack.vllm.ai", "VLLMRuntime"): Mark("inference", "a VLLMRuntime"),
    ("ray.io", "RayCronJob"): Mark("training", "a RayCronJob", certain=False),
    ("ray.io", "RayJob"): Mark("training", "a RayJob", certain=False),
    ("ray.io", "RayService"): Mark("inference", "a RayService"),
    ("sagemaker.amazonaws.com", "HyperPodPyTorchJob"): Mark("training", "a HyperPodPyTorchJob"),
    ("serving.kserve.io", "InferenceService"): Mark("inference", "an InferenceService"),
    ("serving.kserve.io", "LLMInferenceService"): Mark("inference", "an LLMInferenceService"),
    ("trainer.kubeflow.org", "ClusterTrainingRuntime"): Mark("training", "a ClusterTrainingRuntime", needs_gpu=True),
    ("trainer.kubeflow.org", "TrainingRuntime"): Mark("training", "a TrainingRuntime", needs_gpu=True),
}
_LABELS: Final[dict[str, Mark]] = {
    "training.kubeflow.org/job-name": Mark("training", "label training.kubeflow.org/job-name"),
    "jobset.sigs.k8s.io/jobset-name": Mark(
        "training", "label jobset.sigs.k8s.io/jobset-name", needs_gpu=True, certain=False
    ),
    "volcano.sh/job-name": Mark("training", "label volcano.sh/job-name", certain=False),
    "serving.kserve.io/inferenceservice": Mark("inference", "label serving.kserve.io/inferenceservice"),
    "leaderworkerset.sigs.k8s.io/name": Mark("inference", "label leaderworkerset.sigs.k8s.io/name"),
    "notebook-name": Mark("interactive", "label notebook-name"),
}
_HUB: Final = Mark("interactive", "label component=singleuser-server")
# KubeRay labels the RayCluster, and not its Pods, with the object for which the cluster was created.
_RAY_ORIGIN: Final = "ray.io/originated-from-crd"
_RAY: Final[dict[str, Mark]] = {
    "RayJob": Mark("training", "a RayCluster of a RayJob", certain=False),
    "RayService": Mark("inference", "a RayCluster of a RayService"),
}
_LAUNCHER: Final = ("training.kubeflow.org/replica-type", "training.kubeflow.org/job-role")
# The operators of MPIJobs: `mpi-operator` and training-operator.
_OPERATOR: Final = "training.kubeflow.org/operator-name"
_MPI_OPERATORS: Final = frozenset({"mpi-operator", "mpijob-controller"})


def framework(pod: Field, labels: Mapping[str, str], ctx: AnyContext) -> Mark | None:
    """Return the mark of the framework of a Pod or Pod template; None if there is none."""
    mark = _of_workload(ctx.wrapper) if ctx.wrapper else None
    mark = mark or _of_labels(labels, ctx)
    if mark and (mark.needs_gpu or _launches(pod, labels)) and not ctx.derived(gpu_demand):
        return None
    return mark


def _of_workload(wrapper: Wrapper) -> Mark | None:
    group, kind = wrapper.kind.group, wrapper.kind.kind
    if (group, kind) == ("ray.io", "RayCluster"):
        return _RAY.get(wrapper.root["metadata", "labels", _RAY_ORIGIN].text)
    owners = wrapper.root["metadata", "ownerReferences"] if kind == "JobSet" else ()
    if any(owner["kind"].text == "TrainJob" for owner in owners):
        return _TRAIN_JOB
    return _KINDS.get((group, kind))


def _of_labels(labels: Mapping[str, str], ctx: AnyContext) -> Mark | None:
    if labels.get(_OPERATOR) in _MPI_OPERATORS:
        return _MPI_JOB
    for key, mark in _LABELS.items():
        if key in labels:
            return mark
    if labels.get("component") == "singleuser-server":
        return _HUB
    cluster = labels.get("ray.io/cluster")
    if cluster is None:
        return None
    cluster_object = named(ctx.facts.list(objects.RAY_CLUSTER, ctx.request.namespace), cluster)
    return _RAY.get(cluster_object["metadata", "labels", _RAY_ORIGIN].text) if cluster_object else None


def framework_doubt(labels: Mapping[str, str], ctx: AnyContext) -> Skip | None:
    """Return a skip if the object with the class of the framework is unknown, else None."""
    cluster = labels.get("ray.io/cluster")
    clusters = ctx.facts.list(objects.RAY_CLUSTER, ctx.request.namespace)
    if cluster is None or named(clusters, cluster):
        return None
    reason = f"RayCluster {cluster} was not found, and may train or serve"
    return Skip(reason, may_come(clusters, cluster))


def _launches(pod: Field, labels: Mapping[str, str]) -> bool:
    """Tell whether a Pod only starts the computing Pods, like the launcher of an MPIJob."""
    return "Launcher" in pod.path or any(labels.get(key, "").lower() == "launcher" for key in _LAUNCHER)


CLASS_LABEL: Final = "gpugate.dev/workload-class"
CLASSES: Final[frozenset[str]] = frozenset(get_args(WorkloadClass))

# The needs of a policy that reads the class of a Pod.
CLASS_NEEDS: Final = (
    *CLAIM_NEEDS,
    Need(objects.NAMESPACE, ("metadata.labels",)),
    Need(objects.JOB, ("spec.completionMode", "spec.parallelism")),
    RAY_CLUSTER_NEED,
)


class Classified(Struct, frozen=True):
    """The class of a workload, or None without evidence.

    `source` names the evidence. `conflict` is the class of its framework, if that is another one. `possible` is a
    class with weak evidence: enough to protect a Pod, too little to report a finding about it. `doubt` names missing
    data that could change the class: a Pod may be evaluated before its owner is known.
    """

    name: WorkloadClass | None
    source: str = ""
    conflict: WorkloadClass | None = None
    possible: WorkloadClass | None = None
    doubt: Skip | None = None


def workload_class(pod: Field, ctx: AnyContext) -> Classified:
    """Return the class of a Pod or Pod template.

    The first evidence in this order counts:

    1. the label `gpugate.dev/workload-class` of the Pod, then of its namespace;
    2. the labels, node selectors (or required node affinities) and namespace names of the platform's configuration;
    3. a framework that serves or is interactive;
    4. a launcher of distributed training in the command, such as `torchrun`: training;
    5. a framework that trains only, such as a PyTorchJob, unless its command runs a benchmark, a server or inference;
    6. a framework that also trains (RayJob, MPIJob, JobSet, Volcano) or an indexed or parallel Job: training if the
      name of its script indicates training, otherwise possibly training; neither if its command or name indicates
      another use;
    7. another Job: batch, and possibly training if the name of its script indicates training;
    8. a DaemonSet: system;
    9. a Deployment, ReplicaSet or StatefulSet whose containers have ports or probes: inference;
    10. a bare Pod whose script has a name that indicates training: possibly training.
    """
    labels = pod["metadata", "labels"].labels
    classified = _classified(pod, labels, ctx)
    namespace = ctx.request.namespace
    if classified.doubt or not namespace or labels.get(CLASS_LABEL, "") in CLASSES:
        return classified
    if may_come(ctx.facts.list(objects.NAMESPACE), namespace):
        reason = f"namespace {namespace} was not found, and its label {CLASS_LABEL} may name another class"
        return replace(classified, doubt=Skip(reason, coming=True))
    return classified


def _classified(pod: Field, labels: Mapping[str, str], ctx: AnyContext) -> Classified:
    declared = _declared(labels, ctx)
    mark = framework(pod, labels, ctx)
    if declared:
        name, source = declared
        return Classified(name, source, mark.name if mark and mark.certain and mark.name != name else None)
    if mark and mark.name != "training":
        return Classified(mark.name, mark.source)
    sign = command_sign(pod, ctx)
    if sign.strength is Strength.LAUNCHER and not any(_is_probed(c) for c in pod["spec", "containers"]):
        return Classified("training", sign.text)
    if mark:
        return _of_framework(mark, sign, pod, ctx)
    return _of_owner(pod, labels, sign, ctx)


def _of_framework(mark: Mark, sign: Sign, pod: Field, ctx: AnyContext) -> Classified:
    """Return the class of a Pod of a framework that trains."""
    if sign.strength is Strength.OTHER:
        return Classified(None, sign.text)
    if mark.certain:
        return Classified(mark.name, mark.source)
    if sign.strength is Strength.SCRIPT:
        return Classified("training", f"{mark.source} with {sign.text}")
    return Classified(None, mark.source, possible=None if _named_otherwise(pod, ctx) else "training")


def _declared(labels: Mapping[str, str], ctx: AnyContext) -> tuple[WorkloadClass, str] | None:
    own = labels.get(CLASS_LABEL, "")
    if own in CLASSES:
        return cast("WorkloadClass", own), f"label {CLASS_LABEL} of the Pod"
    inherited = namespace_labels(ctx).get(CLASS_LABEL, "")
    if inherited in CLASSES:
        return cast("WorkloadClass", inherited), f"label {CLASS_LABEL} of the namespace"
    rules = ctx.platform.classes
    for key, classes in rules.labels.items():
        # The configuration may contain the empty value, which differs from a missing label.
        if key in labels and labels[key] in classes:
            return classes[labels[key]], f"label {key} of the Pod"
    for key, classes in rules.node_selectors.items():
        selected_classes = {classes[value] for value in selected(key, ctx) if value in classes}
        if len(selected_classes) == 1:
            return selected_classes.pop(), f"node selector {key}"
    for pattern, name in rules.namespaces.items():
        if formats.matches(pattern, ctx.request.namespace):
            return name, f"namespace {ctx.request.namespace}"
    return None


_JOB_LABELS: Final = ("batch.kubernetes.io/job-name", "job-name")
_INDEX: Final = "batch.kubernetes.io/job-completion-index"
# The path of the Job's spec in workloads that create Jobs.
_JOB_SPECS: Final = {
    "Job": ("spec",),
    "CronJob": ("spec", "jobTemplate", "spec"),
    "ScaledJob": ("spec", "jobTargetRef"),
}
_SERVING_OWNERS: Final = frozenset({"Deployment", "ReplicaSet", "StatefulSet"})


def _of_owner(pod: Field, labels: Mapping[str, str], sign: Sign, ctx: AnyContext) -> Classified:
    owner = owner_kind(pod, ctx)
    job = next((labels[key] for key in _JOB_LABELS if key in labels), "")
    if owner in _JOB_SPECS or job:
        return _of_job(pod, labels, job, sign, ctx)
    if owner == "DaemonSet":
        return Classified("system", "a DaemonSet")
    serves = any(c["ports"].value or _is_probed(c) for c in pod["spec", "containers"])
    if owner in _SERVING_OWNERS and serves:
        return Classified("inference", f"a {owner} with ports or probes")
    if not owner and sign.strength is Strength.SCRIPT and not serves:
        return Classified(None, sign.text, possible="training", doubt=framework_doubt(labels, ctx))
    return Classified(None, doubt=framework_doubt(labels, ctx))


def _of_job(pod: Field, labels: Mapping[str, str], job: str, sign: Sign, ctx: AnyContext) -> Classified:
    parallel = _parallel(pod, labels, job, ctx)
    doubt = None
    if parallel is None:
        made_by = f"Job {job}" if job else "its Job"
        reason = f"{made_by} was not found, and may be parallel"
        doubt = Skip(reason, coming=bool(job) and may_come(ctx.facts.list(objects.JOB, ctx.request.namespace), job))
    if sign.strength is Strength.SCRIPT:
        if parallel:
            return Classified("training", f"a parallel or indexed Job with {sign.text}")
        return Classified("batch", f"a Job with {sign.text}", possible="training", doubt=doubt)
    if parallel and sign.strength is not Strength.OTHER and not _named_otherwise(pod, ctx):
        return Classified(None, "a parallel or indexed Job", possible="training")
    return Classified("batch", "a Job", doubt=doubt)


def _is_probed(container: Field) -> bool:
    return any(container[probe] for probe in ("readinessProbe", "livenessProbe", "startupProbe"))


_LONGEST_NAME: Final = 253
_OTHER_NAME: Final = re.compile(
    r"(?<![a-z])(?:infer(?:ence)?|bench(?:mark(?:s|ing)?)?|nvbandwidth|[nr]ccl|eval(?:uation)?)(?![a-z])"
)


def _named_otherwise(pod: Field, ctx: AnyContext) -> bool:
    """Tell whether the name of a Pod, or of a template's workload, indicates a benchmark or inference."""
    metadata = ctx.wrapper.root["metadata"] if ctx.wrapper else pod["metadata"]
    name = metadata["name"].text or metadata["generateName"].text
    return bool(_OTHER_NAME.search(name[:_LONGEST_NAME]))


def owner_kind(pod: Field, ctx: AnyContext) -> str:
    """Return the kind of a template's workload, or of the controller that created and owns a Pod.

    Anyone can write an owner into a Pod. It counts only if `is_made_for` accepts it.
    """
    # Most policies ask for the owner of the subject, and there are about ten of them for each GPU Pod.
    return ctx.derived(_owner_kind) if pod is ctx.subject else _owner_kind(pod, ctx)


def _owner_kind(pod: Field, ctx: AnyContext) -> str:
    if ctx.wrapper:
        return ctx.wrapper.kind.kind
    controllers = (o for o in pod["metadata", "ownerReferences"] if o["controller"].value is True)
    return next((owner["kind"].text for owner in controllers if is_made_for(owner, ctx)), "")


def ceiling_of_templates(ctx: AnyContext) -> Stance:
    """Return the highest stance of a finding of a policy that does not evaluate Pods with an owner.

    For a template it is a warning, because its Pods are admitted without a finding and never denied.
    """
    return Stance.WARN if ctx.wrapper else Stance.ENFORCE


# The user name of each controller that creates Pods (Kubernetes v1.36
# `plugin/pkg/auth/authorizer/rbac/bootstrappolicy/controller_policy.go`), and the one of all controllers if they have
# no ServiceAccounts of their own (`--use-service-account-credentials=false`, the default of kube-controller-manager).
_CONTROLLERS: Final = {
    "DaemonSet": "system:serviceaccount:kube-system:daemon-set-controller",
    "Job": "system:serviceaccount:kube-system:job-controller",
    "ReplicaSet": "system:serviceaccount:kube-system:replicaset-controller",
    "ReplicationController": "system:serviceaccount:kube-system:replication-controller",
    "StatefulSet": "system:serviceaccount:kube-system:statefulset-controller",
}
# The prefix of the user names of ServiceAccounts.
SERVICE_ACCOUNT: Final = "system:serviceaccount:"
CONTROLLER_MANAGER: Final = "system:kube-controller-manager"
DAEMON_SET_CONTROLLER: Final = _CONTROLLERS["DaemonSet"]
_OWN_GROUPS: Final = ("apps/", "batch/", "v1")


def is_made_for(owner: Field, ctx: AnyContext) -> bool:
    """Tell whether the sender of a Pod may declare a workload as its owner.

    For workloads of Kubernetes only their controller may. Other workloads have controllers with any name, which are
    ServiceAccounts. A file has no sender and is trusted; its Pods are evaluated again when they are created.
    """
    sender = ctx.request.user
    if not sender or sender == CONTROLLER_MANAGER:
        return True
    kind, version = owner["kind"].text, owner["apiVersion"].text
    if kind in _CONTROLLERS and (not version or version.startswith(_OWN_GROUPS)):
        return sender == _CONTROLLERS[kind]
    return sender.startswith(SERVICE_ACCOUNT)


def _parallel(pod: Field, labels: Mapping[str, str], job: str, ctx: AnyContext) -> bool | None:
    if _INDEX in labels or pod["metadata", "annotations", _INDEX]:
        return True
    if ctx.wrapper:
        spec = ctx.wrapper.root[_JOB_SPECS.get(ctx.wrapper.kind.kind, ("spec",))]
    else:
        job_object = named(ctx.facts.list(objects.JOB, ctx.request.namespace), job)
        if job_object is None:
            return None
        spec = job_object["spec"]
    return spec["completionMode"].text == "Indexed" or (spec["parallelism"].integer or 1) > 1


def namespace_labels(ctx: AnyContext) -> dict[str, str]:
    """Return the labels of the request's namespace; empty if the namespace is unknown."""
    if not ctx.request.namespace:
        return {}
    namespace = named(ctx.facts.list(objects.NAMESPACE), ctx.request.namespace)
    return namespace["metadata", "labels"].labels if namespace else {}


def namespace_doubt(ctx: AnyContext) -> Skip | None:
    """Return a skip if the labels of the request's namespace are unknown, else None."""
    namespaces, name = ctx.facts.list(objects.NAMESPACE), ctx.request.namespace
    if named(namespaces, name):
        return None
    return Skip(f"namespace {name or 'default'} was not found, so its labels are unknown", may_come(namespaces, name))
