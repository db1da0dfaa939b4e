"""Kinds, requests, and the Pod templates inside the objects of requests.

A TrainJob has no template; its runtime does.

Sources of templates: `kubernetes/api` v0.36; Kubeflow training-operator v1.9.4 (`pkg/apis/kubeflow.org/v1`), JobSet v0.12.0,
LWS v0.10.0, KubeRay v1.7.0, Volcano v1.15.1, KEDA v2.20.2. Sources of templates that need a view: KServe v0.19.0
(`pkg/apis/serving/v1beta1/predictor.go`, `transformer.go`, `explainer.go`,
`pkg/controller/v1beta1/inferenceservice/components/predictor.go`), Argo Workflows v3.7.3
(`pkg/apis/workflow/v1alpha1/workflow_types.go`, `workflow/controller/workflowpod.go`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Final

from gpugate.policies.sdk.field import Field, Json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from gpugate.policies.sdk.field import Path


@dataclass(frozen=True, slots=True)
class GroupVersionKind:
    """The type of one object as written in its apiVersion and kind."""

    group: str
    version: str
    kind: str

    @classmethod
    def of(cls, api_version: str, kind: str) -> GroupVersionKind:
        """Read `apps/v1` or `v1` beside a kind."""
        group, _, version = api_version.rpartition("/")
        return cls(group, version, kind)

    @property
    def api_version(self) -> str:
        """Group and version as a manifest writes them."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def __str__(self) -> str:
        return f"{self.api_version} {self.kind}"


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind in the versions that have one shape for a policy's purposes.

    With a `subresource`, what is meant are requests to that subresource, whose objects are of this kind too.
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

DEPLOYMENT = Kind("apps", ("v1",), "Deployment", "deployments")
STATEFUL_SET = Kind("apps", ("v1",), "StatefulSet", "statefulsets")
REPLICA_SET = Kind("apps", ("v1",), "ReplicaSet", "replicasets")
DAEMON_SET = Kind("apps", ("v1",), "DaemonSet", "daemonsets")
JOB = Kind("batch", ("v1",), "Job", "jobs")
CRON_JOB = Kind("batch", ("v1",), "CronJob", "cronjobs")

# Only v1: in v1beta1 the same names hold other fields (Karpenter v0.32 to v1.0), which is the legacy policy's business.
NODE_POOL = Kind("karpenter.sh", ("v1",), "NodePool", "nodepools", namespaced=False)
NODE_CLAIM = Kind("karpenter.sh", ("v1",), "NodeClaim", "nodeclaims", namespaced=False)
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

# Only v1: v1beta1 left with Kubernetes 1.25, and its empty selector selected nothing.
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
RAY_CLUSTER = Kind("ray.io", ("v1",), "RayCluster", "rayclusters")
# How NVIDIA's GPU operator sets a cluster's GPUs up; there is one.
CLUSTER_POLICY = Kind("nvidia.com", ("v1",), "ClusterPolicy", "clusterpolicies", namespaced=False)


_KINDS: Final = frozenset((kind.group, kind.name) for kind in tuple(globals().values()) if isinstance(kind, Kind))


class ObjectView(Field):
    """An object whose members stand in several places.

    A member that is not among `members` is looked up in `home`, whose path is that of the whole.
    """

    __slots__ = ("_home", "_members")

    def __init__(self, home: Field, members: Mapping[str, Field]) -> None:
        present = {key: member for key, member in members.items() if member}
        values = {key: member.value for key, member in present.items()}
        super().__init__({**home.mapping, **values} if home or values else None)
        self._home = home
        self._members = members

    def __getitem__(self, key: str | int | Path) -> Field:
        """Return the field that stands for a member, or for what is at the end of a path below it."""
        first, *rest = key if isinstance(key, tuple) else (key,)
        member = self._members[first] if isinstance(first, str) and first in self._members else self._home[first]
        return member[tuple(rest)] if rest else member

    def items(self) -> Iterator[tuple[str, Field]]:
        """Yield key and field of each member that is present."""
        yield from ((key, self[key]) for key in self.mapping)

    @property
    def path(self) -> Path:
        """The path of `home`."""
        return self._home.path


class ListView(Field):
    """A list whose elements stand in several places; its path is that of `home`, where more would be added."""

    __slots__ = ("_elements", "_home")

    def __init__(self, home: Field, elements: Sequence[Field]) -> None:
        super().__init__([element.value for element in elements] if home or elements else None)
        self._home = home
        self._elements = elements

    def __getitem__(self, key: str | int | Path) -> Field:
        """Return the field that stands for an element, or for what is at the end of a path below it."""
        first, *rest = key if isinstance(key, tuple) else (key,)
        known = isinstance(first, int) and 0 <= first < len(self._elements)
        element = self._elements[first] if isinstance(first, int) and known else self._home[first]
        return element[tuple(rest)] if rest else element

    def __iter__(self) -> Iterator[Field]:
        """Yield the elements."""
        yield from self._elements

    @property
    def path(self) -> Path:
        """The path of `home`."""
        return self._home.path


# The members of a component that are a container beside those of its Pod spec: one for each model server.
_MODEL_SERVERS: Final = (
    *("model", "huggingface", "triton", "pytorch", "tensorflow", "onnx"),
    *("sklearn", "xgboost", "lightgbm", "paddle", "pmml", "art"),
)


def kserve_component(component: Field, root: Field) -> Field:
    """See a component of an InferenceService, which is a Pod spec with labels and a model server, as a Pod template.

    What the serving runtime adds is not known here. Its Pods have the labels and annotations of the InferenceService
    too, and those of the predictor are its workers'.
    """
    owner = root["spec", "predictor"] if component.path[-1:] == ("workerSpec",) else component
    servers = [component[name] for name in _MODEL_SERVERS if component[name].mapping]
    spec = ObjectView(component, {"containers": _joined(component["containers"], servers)})
    metadata = ObjectView(
        owner,
        {block: _merged(owner[block], root["metadata", block]) for block in ("labels", "annotations")},
    )
    return ObjectView(component, {"metadata": metadata, "spec": spec})


def argo_template(template: Field, workflow: Field) -> Field | None:
    """See a template of an Argo workflow, which is parts of a Pod, as a Pod template; `workflow` is the workflow's spec.

    Selectors, affinity and tolerations are the template's, or else those of `templateDefaults` or the workflow. None for
    a template that runs no container of the user's, such as a DAG.
    """
    own = [template[kind] for kind in ("container", "script") if template[kind].mapping]
    own += template["containerSet", "containers"]
    if not own:
        return None
    defaults = workflow["templateDefaults"]
    layers = (template, defaults, workflow)
    spec = ObjectView(
        template,
        {
            "containers": _joined(template["container"], [*own, *template["sidecars"]]),
            "volumes": _joined(template["volumes"], [*defaults["volumes"], *workflow["volumes"]]),
            **{name: _first(layers, name) for name in ("nodeSelector", "affinity", "tolerations")},
        },
    )
    metadata = ObjectView(
        template["metadata"],
        {
            block: _merged(template["metadata", block], defaults["metadata", block], workflow["podMetadata", block])
            for block in ("labels", "annotations")
        },
    )
    return ObjectView(template, {"metadata": metadata, "spec": spec})


def _joined(home: Field, more: list[Field]) -> Field:
    """Return a list with more elements; one that is no list stays as it is, so that it is refused."""
    if not more or (home and not isinstance(home.value, list | dict)):
        return home
    return ListView(home, [*home, *more])


def _merged(home: Field, *others: Field) -> Field:
    """Return labels or annotations with those of others that it does not have itself."""
    members = {key: field for other in reversed(others) for key, field in other.items()}
    return ObjectView(home, {**members, **dict(home.items())}) if members else home


def _first(layers: tuple[Field, ...], name: str) -> Field:
    return next((layer[name] for layer in layers if layer[name].value), layers[0][name])


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


# Kinds whose objects hold no Pods that could be evaluated: definitions of kinds, and what describes objects of others.
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
    """Tell whether policies know a kind: where its Pod templates are, or what else it is."""
    return (group, kind) in TEMPLATES or (group, kind) in _KINDS or group in _NO_PODS


TemplatePath = tuple[str, ...]  # the keys that lead to Pod templates, "*" for every element or member


def pod_templates(group: str, kind: str, root: Field, added: Sequence[TemplatePath] = ()) -> Iterator[Field]:
    """Yield the Pod templates in an object of this type; nothing when it holds none.

    Whatever shape the workload gives them, `["metadata"]` and `["spec"]` are those of a Pod, and the path of a field is
    where it stands in the object.

    Args:
        group: the API group of the object.
        kind: its kind.
        root: the object.
        added: more paths of templates in such objects, from the policy file.
    """
    known = TEMPLATES.get((group, kind), ())
    view = _VIEWS.get((group, kind))
    for path in known:
        for found in _at(root, path):
            template = view(found, root) if view else found
            if template is not None:
                yield template
    for path in added:
        for found in _at(root, path) if path not in known else ():
            template = added_template(found, root)
            if template is not None:
                yield template


def added_template(found: Field, root: Field) -> Field | None:
    """See a Pod template, or a Pod spec without one, as a Pod template; None for anything else.

    The Pods of a bare Pod spec are taken to have the labels and annotations of the whole object.
    """
    if isinstance(found["spec"].value, dict):
        return found
    if isinstance(found["containers"].value, list):
        return ObjectView(found, {"metadata": root["metadata"], "spec": found})
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


_POD: Final = GroupVersionKind("", "v1", "Pod")


class Operation(StrEnum):
    """What the API server is asked to do with the object."""

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    CONNECT = "CONNECT"


@dataclass(frozen=True, slots=True)
class Wrapper:
    """The workload that holds a Pod template: its type, its whole object, and the paths that the policy file adds.

    `kept` is what a policy computes of the whole workload, so that it does not do so again for each template.
    """

    kind: GroupVersionKind
    root: Field
    added: Sequence[TemplatePath] = ()
    kept: dict[object, object] = field(default_factory=dict, compare=False, repr=False)

    @property
    def templates(self) -> Iterator[Field]:
        """Every Pod template of the workload."""
        return pod_templates(self.kind.group, self.kind.kind, self.root, self.added)


@dataclass(frozen=True, slots=True)
class Subject:
    """A part of a request that policies of one kind judge: the object itself, or a Pod template in it."""

    kind: GroupVersionKind
    field: Field
    wrapper: Wrapper | None = None


@dataclass(frozen=True)
class Request:
    """A create, update or delete of one object.

    With a `subresource` the request is to that part of the object, and only rules about that part judge it. `kind` is
    the type `object` is in; `requested_kind` the one the user sent, before the API server converted it.
    `name` is empty where the API server has yet to make one from `generate_name`. `old_object` is None on CREATE,
    `object` on DELETE. `added_templates` are the paths of Pod templates that the policy file adds to its kind.
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

    @property
    def shown_name(self) -> str:
        """The name for people: the stored one, or the prefix it will be made from with a `*`."""
        return self.name or (f"{self.generate_name}*" if self.generate_name else "")

    @cached_property
    def subjects(self) -> tuple[Subject, ...]:
        """Everything to judge: the object (the old one on DELETE) and every Pod template in it."""
        judged = self.old_object if self.operation is Operation.DELETE else self.object
        return subjects_of(self.kind, judged, self.added_templates)

    @cached_property
    def old_subjects(self) -> tuple[Subject, ...]:
        """The same for the object before an UPDATE; empty otherwise."""
        return (
            subjects_of(self.kind, self.old_object, self.added_templates) if self.operation is Operation.UPDATE else ()
        )


def subjects_of(
    kind: GroupVersionKind, obj: dict[str, Json] | None, added: Sequence[TemplatePath] = ()
) -> tuple[Subject, ...]:
    """Return an object as a subject, and each Pod template in it as another; `added` as in `pod_templates`."""
    if obj is None:
        return ()
    root = Field(obj)
    wrapper = Wrapper(kind, root, added)
    return (Subject(kind, root), *(Subject(_POD, template, wrapper) for template in wrapper.templates))
