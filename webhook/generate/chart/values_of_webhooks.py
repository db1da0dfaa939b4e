"""Values about what the API server sends, and how it trusts who answers."""

from __future__ import annotations

from typing import Literal

import msgspec

from gpugate.webhook.generate.chart.value_types import (
    Duration,
    Name,
    NamespaceName,
    Object,
    Section,
    ServiceAccountUser,
    Texts,
    Timeout,
    Url,
)
from gpugate.webhook.generate.registration import KARPENTER_USERS, TIMEOUT_SECONDS

FailurePolicy = Literal["Ignore", "Fail"]


class Advisory(Section, frozen=True):
    """A group that never waits.

    Attributes:
        enabled: Whether requests of this group are sent.
    """

    enabled: bool = True


class Group(Advisory, frozen=True):
    """A group of which requests can be refused.

    Attributes:
        failure_policy: What becomes of a request that could be refused while nobody answers: Ignore lets it pass, Fail
            refuses it.
    """

    failure_policy: FailurePolicy = "Ignore"


class MutatedGroup(Group, frozen=True):
    """A group of which requests can be changed too.

    Attributes:
        mutating_failure_policy: The same for a request that could be changed; it is validated anyway.
    """

    mutating_failure_policy: FailurePolicy = "Ignore"


class Webhooks(Section, frozen=True):
    """What is sent to the webhook.

    Attributes:
        pools: NodePools, EC2NodeClasses, and what Karpenter had before them.
        nodeclaims: NodeClaims that people make; nodes come with them, so that they never wait.
        pods: Pods that ask for GPUs or could reach them.
        workloads: Workloads, whose Pods are judged when they come; they get warnings and never wait.
        scaling: ScaledObjects, ScaledJobs and HorizontalPodAutoscalers.
        claims: ResourceClaims, their templates, DeviceClasses.
        disruption: PodDisruptionBudgets.
        namespaces: Namespaces; only those that open themselves to administrative claims ever wait.
        mutate_timeout_seconds: Seconds that a request waits to be changed.
        validate_timeout_seconds: Seconds that a request waits to be validated.
        only_namespaces: When given, only objects in these namespaces are sent, by exact names; cluster-scoped ones
            always are.
        karpenter_users: Users who write node pools and NodeClaims without the webhook being asked: Karpenter itself.
        fail_on_install: Allow Fail where nothing was installed before; set it where the chart is rendered by something
            else than `helm upgrade`, such as Argo CD, and only once Pods are ready.
        url: Address (https://HOST:PORT) to ask in the place of the Service; the certificate must be for that name.
        annotations: Annotations of both webhook configurations.
    """

    pools: MutatedGroup = MutatedGroup()
    nodeclaims: Advisory = Advisory()
    pods: MutatedGroup = MutatedGroup()
    workloads: Advisory = Advisory()
    scaling: MutatedGroup = MutatedGroup()
    claims: Group = Group()
    disruption: Group = Group()
    namespaces: Group = Group()
    mutate_timeout_seconds: Timeout = TIMEOUT_SECONDS["mutate"]
    validate_timeout_seconds: Timeout = TIMEOUT_SECONDS["validate"]
    only_namespaces: list[NamespaceName] = msgspec.field(default_factory=list)
    karpenter_users: list[ServiceAccountUser] = msgspec.field(default_factory=lambda: list(KARPENTER_USERS))
    fail_on_install: bool = False
    url: Url = ""
    annotations: Texts = msgspec.field(default_factory=dict)


class CertManager(Section, frozen=True):
    """What cert-manager is asked for.

    Attributes:
        issuer_ref: Issuer whose Secrets hold ca.crt, as `name`, `kind`, `group`; without a name an authority is made.
        duration: How long a certificate lasts.
        renew_before: How long before its end it is renewed.
    """

    issuer_ref: Object = msgspec.field(default_factory=dict)
    duration: Duration = "2160h"
    renew_before: Duration = "720h"


class Certificates(Section, frozen=True):
    """How the webhook gets its certificate.

    Attributes:
        mode: self: the webhook has an authority of its own, rotates it and publishes it; certManager: cert-manager makes the
            certificate, and its injector publishes the authority; provided: you keep a Secret.
        secret_name: Name of the Secret with tls.crt and tls.key, for mode provided.
        ca_bundle: Authorities that signed it, PEM, for mode provided.
        cert_manager: What cert-manager is asked for, in mode certManager.
    """

    mode: Literal["self", "certManager", "provided"] = "self"
    secret_name: Name = ""
    ca_bundle: str = ""
    cert_manager: CertManager = CertManager()


class ClientAuthentication(Section, frozen=True):
    """Whether the API server must show a certificate; docs/client-certificates.md says how it gets one.

    Attributes:
        ca_bundle: Authorities of client certificates, PEM. With these, or with configMapName, who shows no certificate of them
            is turned away in the handshake.
        config_map_name: Name of a ConfigMap of your own whose ca.crt holds these authorities, in the place of caBundle.
        names: What the API server is called in its certificate: common name or DNS name.
    """

    ca_bundle: str = ""
    config_map_name: Name = ""
    names: list[str] = msgspec.field(default_factory=lambda: ["kube-apiserver"])
