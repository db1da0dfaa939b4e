"""How Pods are reached, how many there are, and how many stay: Service, autoscaler, budget, network policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpugate.webhook.generate.chart.names import FULL_NAME, metadata, selector
from gpugate.webhook.generate.chart.terms import Each, If, Node, Value, Variable, no

if TYPE_CHECKING:
    from collections.abc import Iterator


def service() -> Node:
    """Return the Service that the API server asks, and Prometheus scrapes."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(),
        "spec": {
            "selector": selector(),
            "ports": [
                {"name": "https", "port": 443, "targetPort": "reviews", "protocol": "TCP"},
                {"name": "metrics", "port": Value("server.healthPort"), "targetPort": "health", "protocol": "TCP"},
            ],
        },
    }


def scaling() -> Iterator[Node]:
    """Yield the HorizontalPodAutoscaler and the PodDisruptionBudget."""
    autoscaler: Node = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": metadata(),
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": FULL_NAME},
            "minReplicas": Value("autoscaling.minReplicas"),
            "maxReplicas": Value("autoscaling.maxReplicas"),
            "metrics": [
                {
                    "type": "Resource",
                    "resource": {
                        "name": "cpu",
                        "target": {"type": "Utilization", "averageUtilization": Value("autoscaling.targetCpuPercent")},
                    },
                }
            ],
        },
    }
    yield If(Value("autoscaling.enabled"), autoscaler)
    least = Value("podDisruptionBudget.minAvailable")
    budget: Node = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata(),
        "spec": {
            "selector": {"matchLabels": selector()},
            "minAvailable": If(least, least),
            "maxUnavailable": If(no(least), Value("podDisruptionBudget.maxUnavailable")),
            # One that does not become ready must not keep its node from being drained.
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
        },
    }
    yield If(Value("podDisruptionBudget.enabled"), budget)


def network_policy() -> Node:
    """Return what says who may connect to the webhook, and where it may connect to."""
    servers = Value("networkPolicy.apiServerCidrs")
    scrapers = Value("networkPolicy.metricsFrom")
    restricted = Value("networkPolicy.restrictEgress")
    made: Node = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": metadata(),
        "spec": {
            "podSelector": {"matchLabels": selector()},
            "policyTypes": ["Ingress", If(restricted, "Egress")],
            "ingress": [
                {
                    "ports": [{"port": "reviews", "protocol": "TCP"}],
                    "from": If(servers, [Each(("cidr",), servers, {"ipBlock": {"cidr": Variable("cidr")}})]),
                },
                If(scrapers, {"ports": [{"port": "health", "protocol": "TCP"}], "from": scrapers}),
            ],
            "egress": If(restricted, _egress()),
        },
    }
    return If(Value("networkPolicy.enabled"), made)


def _egress() -> list[Node]:
    # Policies see a connection after the Service's port was replaced by the Pod's; OpenShift's DNS Pods listen on 5353.
    dns: list[Node] = [{"port": port, "protocol": protocol} for port in (53, 5353) for protocol in ("UDP", "TCP")]
    ports = Value("networkPolicy.apiServerPorts")
    return [
        {"ports": dns},
        If(ports, {"ports": [Each(("port",), ports, {"port": Variable("port"), "protocol": "TCP"})]}),
        Each(("rule",), Value("networkPolicy.egress"), Variable("rule")),
    ]
