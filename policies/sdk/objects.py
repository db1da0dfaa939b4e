"""Kinds, requests and their subjects: the object, and each Pod template inside it."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Final

from gpugate.policies.sdk.field import Field, Json, TemplateField, UnknownValueError
from gpugate.policies.sdk.pod_templates import TEMPLATES, TemplatePath, nested, pod_templates
from gpugate.policies.sdk.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


class GroupVersionKind(Struct, frozen=True):
    """The type of one object as written in its apiVersion and kind."""

    group: str
    version: str
    kind: str

    @classmethod
    def of(cls, api_version: str, kind: str) -> GroupVersionKind:
        """Return the type of an apiVersion such as `apps/v1` and a kind."""
        group, _, version = api_version.rpartition("/")
        return cls(group, version, kind)

    @property
    def api_version(self) -> str:
        """Group and version as a manifest writes them."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def is_other_version_of(self, other: GroupVersionKind) -> bool:
        """Tell whether this is the same kind of the same group in another version."""
        return self != other and (self.group, self.kind) == (other.group, other.kind)

    def __str__(self) -> str:
        return f"{self.api_version} {self.kind}"


class Kind(Struct, frozen=True):
    """A kind in the versions that policies can read alike.

    With a `subresource`, it stands for requests to that subresource. Their objects are of this kind too, or of the kind that
    all resources share for it: `autoscaling/v1` Scale for `scale`.
    """

    group: str
    versions: tuple[str, ...]
    name: str
    plural: str
    namespaced: bool = True
    subresource: str = ""

    def covers(self, gvk: GroupVersionKind) -> bool:
        """Tell whether an object of this type is of this kind."""
        return gvk.kind == self.name and gvk.group == self.group and gvk.version in self.versions


POD = Kind("", ("v1",), "Pod", "pods")
# An UPDATE of the whole Pod, in which nothing but `spec.ephemeralContainers` can change.
POD_EPHEMERAL_CONTAINERS = Kind("", ("v1",), "Pod", "pods", subresource="ephemeralcontainers")
NAMESPACE = Kind("", ("v1",), "Namespace", "namespaces", namespaced=False)
NODE = Kind("", ("v1",), "Node", "nodes", namespaced=False)
RESOURCE_QUOTA = Kind("", ("v1",), "ResourceQuota", "resourcequotas")
LIMIT_RANGE = Kind("", ("v1",), "LimitRange", "limitranges")
PERSISTENT_VOLUME = Kind("", ("v1",), "PersistentVolume", "persistentvolumes", namespaced=False)
PERSISTENT_VOLUME_CLAIM = Kind("", ("v1",), "PersistentVolumeClaim", "persistentvolumeclaims")
SERVICE = Kind("", ("v1",), "Service", "services")
STORAGE_CLASS = Kind("storage.k8s.io", ("v1",), "StorageClass", "storageclasses", namespaced=False)

DEPLOYMENT = Kind("apps", ("v1",), "Deployment", "deployments")
STATEFUL_SET = Kind("apps", ("v1",), "StatefulSet", "statefulsets")
REPLICA_SET = Kind("apps", ("v1",), "ReplicaSet", "replicasets")
DAEMON_SET = Kind("apps", ("v1",), "DaemonSet", "daemonsets")
JOB = Kind("batch", ("v1",), "Job", "jobs")
CRON_JOB = Kind("batch", ("v1",), "CronJob", "cronjobs")

# Only v1: in v1beta1 the same names contain other fields (Karpenter v0.32 to v1.0), which the legacy policy reports.
NODE_POOL = Kind("karpenter.sh", ("v1",), "NodePool", "nodepools", namespaced=False)
# An UPDATE sets `spec.replicas`, as `kubectl scale` does. The object is a Scale, which has no other field of the NodePool.
NODE_POOL_SCALE = Kind("karpenter.sh", ("v1",), "NodePool", "nodepools", namespaced=False, subresource="scale")
NODE_CLAIM = Kind("karpenter.sh", ("v1",), "NodeClaim", "nodeclaims", namespaced=False)
NODE_OVERLAY = Kind("karpenter.sh", ("v1alpha1",), "NodeOverlay", "nodeoverlays", namespaced=False)
EC2_NODE_CLASS = Kind("karpenter.k8s.aws", ("v1",), "EC2NodeClass", "ec2nodeclasses", namespaced=False)
AUTO_MODE_NODE_CLASS = Kind("eks.amazonaws.com", ("v1",), "NodeClass", "nodeclasses", namespaced=False)

# Removed from Karpenter; `gpugate.policies.data.legacy_apis` says when.
PROVISIONER = Kind(
    "karpenter.sh", ("v1alpha3", "v1alpha4", "v1alpha5"), "Provisioner", "provisioners", namespaced=False
)
PROVISIONING_PROVISIONER = Kind("provisioning.karpenter.sh", ("v1alpha1",), "Provisioner", "provisioners")
MACHINE = Kind("karpenter.sh", ("v1alpha5",), "Machine", "machines", namespaced=False)
AWS_NODE_TEMPLATE = Kind(
    "karpenter.k8s.aws",
    ("v1alpha1",),
    "AWSNodeTemplate",
    "awsnodetemplates",
    namespaced=False,
)
NODE_POOL_V1BETA1 = Kind("karpenter.sh", ("v1beta1",), "NodePool", "nodepools", namespaced=False)
NODE_CLAIM_V1BETA1 = Kind("karpenter.sh", ("v1beta1",), "NodeClaim", "nodeclaims", namespaced=False)
EC2_NODE_CLASS_V1BETA1 = Kind("karpenter.k8s.aws", ("v1beta1",), "EC2NodeClass", "ec2nodeclasses", namespaced=False)
SCALABLE_NODE_GROUP = Kind("karpenter.sh", ("v1alpha1",), "ScalableNodeGroup", "scalablenodegroups")
HORIZONTAL_AUTOSCALER = Kind("karpenter.sh", ("v1alpha1",), "HorizontalAutoscaler", "horizontalautoscalers")
METRICS_PRODUCER = Kind("karpenter.sh", ("v1alpha1",), "MetricsProducer", "metricsproducers")

SCALED_OBJECT = Kind("keda.sh", ("v1alpha1",), "ScaledObject", "scaledobjects")
SCALED_JOB = Kind("keda.sh", ("v1alpha1",), "ScaledJob", "scaledjobs")
HORIZONTAL_POD_AUTOSCALER = Kind("autoscaling", ("v1", "v2"), "HorizontalPodAutoscaler", "horizontalpodautoscalers")

# Only v1: Kubernetes 1.25 removed v1beta1, whose empty selector selected nothing.
POD_DISRUPTION_BUDGET = Kind("policy", ("v1",), "PodDisruptionBudget", "poddisruptionbudgets")

_DRA_VERSIONS = ("v1alpha3", "v1beta1", "v1beta2", "v1")
RESOURCE_CLAIM = Kind("resource.k8s.io", _DRA_VERSIONS, "ResourceClaim", "resourceclaims")
RESOURCE_CLAIM_TEMPLATE = Kind("resource.k8s.io", _DRA_VERSIONS, "ResourceClaimTemplate", "resourceclaimtemplates")
# Removed from Kubernetes with another shape; `claims/removed-api` says when.
_OLD_DRA_VERSIONS = ("v1alpha1", "v1alpha2")
OLD_RESOURCE_CLAIM = Kind("resource.k8s.io", _OLD_DRA_VERSIONS, "ResourceClaim", "resourceclaims")
OLD_RESOURCE_CLAIM_TEMPLATE = Kind(
    "resource.k8s.io", _OLD_DRA_VERSIONS, "ResourceClaimTemplate", "resourceclaimtemplates"
)
RESOURCE_CLASS = Kind("resource.k8s.io", _OLD_DRA_VERSIONS, "ResourceClass", "resourceclasses", namespaced=False)
DEVICE_CLASS = Kind("resource.k8s.io", _DRA_VERSIONS, "DeviceClass", "deviceclasses", namespaced=False)
RESOURCE_SLICE = Kind("resource.k8s.io", _DRA_VERSIONS, "ResourceSlice", "resourceslices", namespaced=False)
CLUSTER_TRAINING_RUNTIME = Kind(
    "trainer.kubeflow.org", ("v1alpha1",), "ClusterTrainingRuntime", "clustertrainingruntimes", namespaced=False
)
CLUSTER_WORKFLOW_TEMPLATE = Kind(
    "argoproj.io", ("v1alpha1",), "ClusterWorkflowTemplate", "clusterworkflowtemplates", namespaced=False
)
RAY_CLUSTER = Kind("ray.io", ("v1",), "RayCluster", "rayclusters")
RAY_CRON_JOB = Kind("ray.io", ("v1",), "RayCronJob", "raycronjobs")
RAY_JOB = Kind("ray.io", ("v1",), "RayJob", "rayjobs")
JOB_SET = Kind("jobset.x-k8s.io", ("v1alpha2",), "JobSet", "jobsets")
JAX_JOB = Kind("kubeflow.org", ("v1",), "JAXJob", "jaxjobs")
# v1 belongs to the training operator, v2beta1 to the MPI operator.
MPI_JOB = Kind("kubeflow.org", ("v1", "v2beta1"), "MPIJob", "mpijobs")
PADDLE_JOB = Kind("kubeflow.org", ("v1",), "PaddleJob", "paddlejobs")
PYTORCH_JOB = Kind("kubeflow.org", ("v1",), "PyTorchJob", "pytorchjobs")
TF_JOB = Kind("kubeflow.org", ("v1",), "TFJob", "tfjobs")
XGBOOST_JOB = Kind("kubeflow.org", ("v1",), "XGBoostJob", "xgboostjobs")
LOCAL_QUEUE = Kind("kueue.x-k8s.io", ("v1beta1", "v1beta2"), "LocalQueue", "localqueues")
CLUSTER_QUEUE = Kind("kueue.x-k8s.io", ("v1beta1", "v1beta2"), "ClusterQueue", "clusterqueues", namespaced=False)
RESOURCE_FLAVOR = Kind("kueue.x-k8s.io", ("v1beta1", "v1beta2"), "ResourceFlavor", "resourceflavors", namespaced=False)
# Of the Prometheus Operator.
PROMETHEUS_RULE = Kind("monitoring.coreos.com", ("v1",), "PrometheusRule", "prometheusrules")
SERVICE_MONITOR = Kind("monitoring.coreos.com", ("v1",), "ServiceMonitor", "servicemonitors")
# The configuration of NVIDIA's GPU operator; a cluster has one.
CLUSTER_POLICY = Kind("nvidia.com", ("v1",), "ClusterPolicy", "clusterpolicies", namespaced=False)


_KINDS: Final = frozenset((kind.group, kind.name) for kind in tuple(globals().values()) if isinstance(kind, Kind))


_BY_RESOURCE: Final = {
    (kind.group, version, kind.plural): GroupVersionKind(kind.group, version, kind.name)
    for kind in tuple(globals().values())
    if isinstance(kind, Kind)
    for version in kind.versions
}


def kind_of_resource(group: str, version: str, plural: str) -> GroupVersionKind | None:
    """Return the type of the objects of a resource; None if policies do not know it."""
    return _BY_RESOURCE.get((group, version, plural))


# Kinds whose objects contain no Pods to evaluate: definitions of kinds, and descriptions of other objects.
_NO_PODS: Final = frozenset(
    {
        "apiextensions.k8s.io",
        "admissionregistration.k8s.io",
        "kyverno.io",
        "policies.kyverno.io",
        "templates.gatekeeper.sh",
    }
    | {"constraints.gatekeeper.sh", "mutations.gatekeeper.sh", "gpugate.dev"}
)


def is_known(group: str, kind: str) -> bool:
    """Tell whether a kind is known, with or without Pod templates."""
    return (group, kind) in TEMPLATES or (group, kind) in _KINDS or group in _NO_PODS


_POD: Final = GroupVersionKind("", "v1", "Pod")


class Operation(StrEnum):
    """The operation of the request on the object."""

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    CONNECT = "CONNECT"


@dataclass(frozen=True, slots=True)
class Wrapper:
    """The workload that contains a Pod template: its type, the object, and the paths that the policy file adds.

    `memo` contains values that a policy computes once for the whole workload rather than for each template.
    """

    kind: GroupVersionKind
    root: Field
    added: Sequence[TemplatePath] = ()
    memo: dict[object, object] = field(default_factory=dict, compare=False, repr=False)

    @property
    def templates(self) -> Iterator[Field]:
        """All Pod templates of the workload."""
        return pod_templates(self.kind.group, self.kind.kind, self.root, self.added)


class Subject(Struct, frozen=True):
    """A part of a request that policies of one kind evaluate: the object itself, or a Pod template in it."""

    kind: GroupVersionKind
    field: Field
    wrapper: Wrapper | None = None


# The prefix of the user name of a kubelet, which the name of its node follows, and the group of all kubelets.
KUBELET: Final = "system:node:"
KUBELETS: Final = "system:nodes"


class Request(Struct, frozen=True, dict=True):
    """A create, update or delete of one object.

    With a `subresource` the request is to that part of the object, and only policies for that part evaluate it. `kind` is
    the type of `object`; `requested_kind` is the type that the user sent, before the API server converted it. `parent` is
    the type of the stored object if the object of its subresource has another type, as a Scale has. `name` is empty if the
    API server will generate it from `generate_name`. `old_object` is None on CREATE, `object` on DELETE. `added_templates`
    are the paths of Pod templates that the policy file adds to its kind. `is_template` says that the object has `Unknown`
    values.
    """

    kind: GroupVersionKind
    operation: Operation
    object: dict[str, Json] | None
    old_object: dict[str, Json] | None = None
    requested_kind: GroupVersionKind | None = None
    subresource: str = ""
    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    user: str = ""
    groups: tuple[str, ...] = ()
    dry_run: bool = False
    added_templates: tuple[TemplatePath, ...] = ()
    is_template: bool = False
    parent: GroupVersionKind | None = None

    @property
    def stored_kind(self) -> GroupVersionKind:
        """The type of the stored object that the request changes."""
        return self.parent or self.kind

    @property
    def is_from_kubelet(self) -> bool:
        """Whether a kubelet sent the request. The name of a user alone does not show it.

        Source: Kubernetes v1.36 `pkg/auth/nodeidentifier/default.go`.
        """
        return KUBELETS in self.groups and self.user.startswith(KUBELET)

    def kind_among(self, kinds: Iterable[Kind]) -> Kind:
        """Return which of the kinds of a handler the request is evaluated as.

        That is the kind of the object, or the kind that the user sent.
        """
        sent = self.requested_kind or self.kind
        candidates = tuple(kinds)
        for gvk in (self.kind, sent):
            for kind in candidates:
                if kind.covers(gvk):
                    return kind
        raise LookupError(f"none of these kinds is evaluated: {', '.join(kind.name for kind in candidates)}")

    @property
    def shown_name(self) -> str:
        """The name for messages: the stored name, or the prefix of a generated name with a `*`."""
        return self.name or (f"{self.generate_name}*" if self.generate_name else "")

    @cached_property
    def subjects(self) -> tuple[Subject, ...]:
        """The parts to evaluate: the object (the old one on DELETE) and every Pod template in it."""
        evaluated = self.old_object if self.operation is Operation.DELETE else self.object
        return self.subjects_with(evaluated)

    def subjects_with(self, obj: dict[str, Json] | None) -> tuple[Subject, ...]:
        """Return the subjects of another version of the object, such as the one after mutations."""
        return subjects_of(self.kind, obj, self.added_templates, TemplateField if self.is_template else Field)

    @cached_property
    def written(self) -> tuple[Subject, ...]:
        """The same subjects with unknown values as they are written, which have no JSON type."""
        return subjects_of(self.kind, self.object, self.added_templates) if self.is_template else self.subjects

    @cached_property
    def old_subjects(self) -> tuple[Subject, ...]:
        """The subjects of the object before an UPDATE; empty for other operations."""
        return (
            subjects_of(self.kind, self.old_object, self.added_templates) if self.operation is Operation.UPDATE else ()
        )


def subjects_of(
    kind: GroupVersionKind,
    obj: dict[str, Json] | None,
    added: Sequence[TemplatePath] = (),
    reader: type[Field] = Field,
) -> tuple[Subject, ...]:
    """Return an object as a subject, and each Pod template in it as another.

    `added` is as in `pod_templates`; `reader` is the class of their fields.
    """
    if obj is None:
        return ()
    root = reader(obj)
    subjects = [Subject(kind, root)]
    with suppress(UnknownValueError):  # the template, or a value that its view reads, is unknown
        for inner in nested(kind.group, kind.kind, root):
            # One for all templates of the object, because its memo is shared.
            own = Wrapper(GroupVersionKind.of(inner.api_version, inner.kind), inner.root)
            subjects += (Subject(_POD, template, own) for template in inner.templates)
        if len(subjects) == 1:
            wrapper = Wrapper(kind, root, added)
            subjects += (Subject(_POD, template, wrapper) for template in wrapper.templates)
    return tuple(subjects)
