"""The kinds of objects that policies judge, as the API server names them."""

from __future__ import annotations

from dataclasses import dataclass


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
DEVICE_CLASS = Kind("resource.k8s.io", _DRA_VERSIONS, "DeviceClass", "deviceclasses", namespaced=False)
RAY_CLUSTER = Kind("ray.io", ("v1",), "RayCluster", "rayclusters")
# How NVIDIA's GPU operator sets a cluster's GPUs up; there is one.
CLUSTER_POLICY = Kind("nvidia.com", ("v1",), "ClusterPolicy", "clusterpolicies", namespaced=False)
