"""Values about the Pods of the webhook: how many, where, with what rights and resources."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from gpugate import __version__
from gpugate.webhook.generate.chart.value_types import (
    Count,
    Digest,
    Name,
    Natural,
    Object,
    Percent,
    Port,
    Repository,
    Resources,
    Section,
    Tag,
    Texts,
)

# By the label of NVIDIA's GPU operator, and by that of nodes that Karpenter makes.
_NO_GPU: Final[list[Object]] = [
    {"key": "nvidia.com/gpu.present", "operator": "NotIn", "values": ["true"]},
    {"key": "karpenter.k8s.aws/instance-gpu-count", "operator": "DoesNotExist"},
]
_OFF_GPU_NODES: Final[Object] = {
    "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": _NO_GPU}]}
}


class Image(Section, frozen=True):
    """The image of every container.

    Attributes:
        repository: Registry and name of the image.
        tag: Version of the image.
        digest: Digest of the image (`sha256:...`); wins over the tag.
        pull_policy: When the image is pulled.
        pull_secrets: Secrets with the credentials of the registry, each as `name`.
    """

    repository: Repository = "ghcr.io/gpugate/gpugate"
    tag: Tag = __version__
    digest: Digest = ""
    pull_policy: Literal["Always", "IfNotPresent", "Never"] = "IfNotPresent"
    pull_secrets: list[Object] = msgspec.field(default_factory=list)


class Server(Section, frozen=True):
    """The process.

    Attributes:
        port: Port for reviews, TLS.
        health_port: Port for probes and metrics, plain HTTP.
        workers: Processes that answer.
        drain_seconds: Seconds for which a Pod that ends takes new connections.
        arguments: More flags of `gpugate serve`.
        environment: More environment variables of the container.
    """

    port: Port = 8443
    health_port: Port = 8081
    workers: Count = 2
    drain_seconds: Count = 10
    arguments: list[str] = msgspec.field(default_factory=list)
    environment: list[Object] = msgspec.field(default_factory=list)


class Autoscaling(Section, frozen=True):
    """A HorizontalPodAutoscaler.

    Attributes:
        enabled: Whether there is a HorizontalPodAutoscaler; replicaCount then does nothing.
        min_replicas: The least number of Pods.
        max_replicas: The largest number of Pods.
        target_cpu_percent: CPU that is aimed for, in percent of what the Pods request.
    """

    enabled: bool = False
    min_replicas: Count = 2
    max_replicas: Count = 6
    target_cpu_percent: Percent = 70


class PodDisruptionBudget(Section, frozen=True):
    """A PodDisruptionBudget.

    Attributes:
        enabled: Whether there is a PodDisruptionBudget.
        max_unavailable: How many Pods may go at once.
        min_available: How many Pods must stay; wins over maxUnavailable when it is not 0.
    """

    enabled: bool = True
    max_unavailable: Count = 1
    min_available: Natural = 0


class ServiceAccount(Section, frozen=True):
    """The ServiceAccount of the webhook.

    Attributes:
        create: Whether the ServiceAccount is made; otherwise the one that is named is used.
        name: Name of the ServiceAccount (default: that of the release).
        annotations: Annotations of the ServiceAccount.
    """

    create: bool = True
    name: Name = ""
    annotations: Texts = msgspec.field(default_factory=dict)


class Rbac(Section, frozen=True):
    """The rights of the webhook.

    Attributes:
        create: Whether roles and their bindings are made.
    """

    create: bool = True


class Pods(Section, frozen=True):
    """The Pods.

    Attributes:
        annotations: Annotations of the Pods.
        labels: Labels of the Pods.
        resources: Resources of the container; two workers and the certificate keeper take about 150 MB.
        node_selector: Labels of the nodes that Pods run on; null for any.
        tolerations: Taints that Pods tolerate; leave those of GPU nodes out.
        affinity: Affinity of the Pods; the shipped one keeps them off nodes with GPUs, null takes it away.
        priority_class_name: PriorityClass of the Pods. GKE admits the shipped one where a ResourceQuota of the namespace
            names it; an empty text takes it away.
        host_network: Share the network of the node, for clusters whose API server does not reach Pods (EKS with another
            CNI).
        security_context: Security context of the Pods.
        container_security_context: Security context of their container.
    """

    annotations: Texts = msgspec.field(default_factory=dict)
    labels: Texts = msgspec.field(default_factory=dict)
    resources: Resources = msgspec.field(
        default_factory=lambda: Resources(requests={"cpu": "100m", "memory": "192Mi"}, limits={"memory": "512Mi"})
    )
    node_selector: Texts | None = msgspec.field(default_factory=lambda: {"kubernetes.io/os": "linux"})
    tolerations: list[Object] = msgspec.field(
        default_factory=lambda: [{"key": "CriticalAddonsOnly", "operator": "Exists"}]
    )
    affinity: Object | None = msgspec.field(default_factory=lambda: {"nodeAffinity": _OFF_GPU_NODES})
    priority_class_name: Name = "system-cluster-critical"
    host_network: bool = False
    security_context: Object = msgspec.field(
        default_factory=lambda: {
            "runAsNonRoot": True,
            "runAsUser": 65532,
            "runAsGroup": 65532,
            "fsGroup": 65532,
            "seccompProfile": {"type": "RuntimeDefault"},
        }
    )
    container_security_context: Object = msgspec.field(
        default_factory=lambda: {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
    )
