"""The values of the chart: their types, defaults and meaning. `values.yaml` and its schema are written from here."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from gpugate.policies.engine.config import EXCLUDED_NAMESPACES
from gpugate.webhook.generate.chart.value_types import Count, NamespaceName, Object, Section, ShortName, Texts
from gpugate.webhook.generate.chart.values_of_audit import Audit
from gpugate.webhook.generate.chart.values_of_pods import (
    Autoscaling,
    Image,
    PodDisruptionBudget,
    Pods,
    Rbac,
    Server,
    ServiceAccount,
)
from gpugate.webhook.generate.chart.values_of_webhooks import Certificates, ClientAuthentication, Webhooks

# Whatever a policy file holds beside apiVersion and kind; the schema of the values has its schema.
Policy = dict[str, Any]
Cidr = Annotated[str, msgspec.Meta(pattern=r"^[0-9A-Fa-f.:]+/[0-9]{1,3}\Z")]
# Of an API server, which may listen on 443.
ServedPort = Annotated[int, msgspec.Meta(ge=1, le=65535)]
Profile = Annotated[str, msgspec.Meta(pattern=r"^[1-9]g\.[0-9]+gb(\+[a-z]+(\.[a-z]+)*)?\Z")]


class NetworkPolicy(Section, frozen=True):
    """A NetworkPolicy for the Pods of the webhook.

    Attributes:
        enabled: Whether there is a NetworkPolicy. As shipped it lets in connections to the two ports of the webhook only;
            in a namespace that denies by default it is what lets the API server in.
        api_server_cidrs: Networks of the API servers, or of the konnectivity agents that call for them. When given, only they
            may connect to the port of the webhook; a NetworkPolicy cannot select an API server by itself.
        metrics_from: Peers that may scrape metrics, as in `from` of a NetworkPolicy; kubelets always may.
        restrict_egress: Let the webhook connect only to DNS, to `apiServerPorts`, and where `egress` says.
        api_server_ports: Ports of the API servers themselves, to which the Service `kubernetes` leads, for restrictEgress.
        egress: More rules for restrictEgress, as in `egress` of a NetworkPolicy, such as one to a collector of traces.
    """

    enabled: bool = True
    api_server_cidrs: list[Cidr] = msgspec.field(default_factory=list)
    metrics_from: list[Object] = msgspec.field(default_factory=lambda: [{"namespaceSelector": {}}])
    restrict_egress: bool = False
    api_server_ports: list[ServedPort] = msgspec.field(default_factory=lambda: [443, 6443])
    egress: list[Object] = msgspec.field(default_factory=list)


class Monitor(Section, frozen=True):
    """An object for monitoring.

    Attributes:
        enabled: Whether there is one.
        labels: Labels by which Prometheus or Grafana finds it.
    """

    enabled: bool = False
    labels: Texts = msgspec.field(default_factory=dict)


class Metrics(Section, frozen=True):
    """What watches the webhook.

    Attributes:
        service_monitor: A ServiceMonitor; needs the CRDs of the Prometheus operator.
        prometheus_rule: A PrometheusRule with alerts; needs the same CRDs.
        dashboard: A ConfigMap with a dashboard, for Grafana's sidecar.
    """

    service_monitor: Monitor = Monitor()
    prometheus_rule: Monitor = Monitor()
    dashboard: Monitor = Monitor(labels={"grafana_dashboard": "1"})


class WaitHook(Section, frozen=True):
    """A Job after an install or upgrade, which waits until the API server reaches the webhook, or says why not.

    Attributes:
        enabled: Whether there is such a Job, and a `helm test`.
        timeout_seconds: Seconds that it waits.
    """

    enabled: bool = True
    timeout_seconds: Count = 60


class CleanupHook(Section, frozen=True):
    """A Job before an uninstall, which takes the webhook configurations away first, where requests wait for the webhook.

    Attributes:
        enabled: Whether there is such a Job.
    """

    enabled: bool = True


class Hooks(Section, frozen=True):
    """Jobs of Helm.

    Attributes:
        wait: After an install or upgrade: waits until the API server reaches the webhook, or says why not.
        cleanup: Before an uninstall, where a failure policy is Fail: takes away both webhook configurations first.
    """

    wait: WaitHook = WaitHook()
    cleanup: CleanupHook = CleanupHook()


class Values(Section, frozen=True):
    """Everything.

    Attributes:
        enabled: For a chart that has this one as a part; nothing here looks at it.
        global_: Values that charts share; nothing here looks at them.
        fullname_override: What the objects are called (default: by the name of the release).
        image: The image of every container.
        policy: What policy.yaml says; `gpugate config schema` describes it. `mode: audit` lets everything pass and records it,
            `warn` shows warnings, `enforce` refuses and changes; it is a ceiling for all policies that have no mode of
            their own, and null takes it away. One policy: `policies: {pods/missing-gpu-toleration: {mode: enforce}}`.
        webhooks: What the API server sends.
        certificates: How the webhook gets its certificate.
        client_authentication: Whether the API server must show a certificate.
        replica_count: Number of Pods.
        autoscaling: A HorizontalPodAutoscaler.
        pod_disruption_budget: A PodDisruptionBudget.
        server: The process in each Pod.
        pods: The Pods.
        service_account: The ServiceAccount of the Pods.
        rbac: Rights of the ServiceAccount.
        network_policy: A NetworkPolicy for what comes in.
        metrics: Monitoring.
        mig_namespaces: MIG profiles by namespace, such as `inference: [1g.10gb]`; for each of them there will be a
            ResourceClaimTemplate, which policy pods/mig-without-claim gives Pods claims of. The namespaces must be there,
            and Kubernetes be 1.34 or newer.
        audit: An audit of what is stored already, again and again.
        hooks: Jobs of Helm.
    """

    enabled: bool = True
    global_: Object = msgspec.field(name="global", default_factory=dict)
    fullname_override: ShortName = ""
    image: Image = Image()
    policy: Policy = msgspec.field(
        default_factory=lambda: {"mode": "audit", "excluded_namespaces": list(EXCLUDED_NAMESPACES)}
    )
    webhooks: Webhooks = Webhooks()
    certificates: Certificates = Certificates()
    client_authentication: ClientAuthentication = ClientAuthentication()
    replica_count: Count = 2
    autoscaling: Autoscaling = Autoscaling()
    pod_disruption_budget: PodDisruptionBudget = PodDisruptionBudget()
    server: Server = Server()
    pods: Pods = Pods()
    service_account: ServiceAccount = ServiceAccount()
    rbac: Rbac = Rbac()
    network_policy: NetworkPolicy = NetworkPolicy()
    metrics: Metrics = Metrics()
    mig_namespaces: dict[NamespaceName, list[Profile]] = msgspec.field(default_factory=dict)
    audit: Audit = Audit()
    hooks: Hooks = Hooks()
