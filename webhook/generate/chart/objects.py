"""Every object of the chart, in the order in which they are applied."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpugate.webhook.generate.chart.access import rights, service_account
from gpugate.webhook.generate.chart.audit import audit
from gpugate.webhook.generate.chart.certificates import certificates
from gpugate.webhook.generate.chart.claims import mig_claims
from gpugate.webhook.generate.chart.deployment import deployment
from gpugate.webhook.generate.chart.hooks import cleanup, waiting
from gpugate.webhook.generate.chart.kept import kept
from gpugate.webhook.generate.chart.monitoring import dashboard_config_map, prometheus_rule, service_monitor
from gpugate.webhook.generate.chart.policy import policy
from gpugate.webhook.generate.chart.registration import configuration
from gpugate.webhook.generate.chart.traffic import network_policy, scaling, service

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpugate.webhook.generate.chart.terms import Node


def objects() -> Mapping[str, Sequence[Node]]:
    """Return what is applied with Helm and without: what they are about -> objects.

    Webhook configurations come last, when there is somebody to ask.
    """
    return {
        "service-account": [service_account()],
        "rbac": [*rights()],
        "policy": [policy()],
        "certificates": [*certificates()],
        "kept": [*kept()],
        "service": [service()],
        "deployment": [deployment()],
        "scaling": [*scaling()],
        "network-policy": [network_policy()],
        "service-monitor": [service_monitor()],
        "prometheus-rule": [prometheus_rule()],
        "dashboard": [dashboard_config_map()],
        "mig-claims": [mig_claims()],
        "audit": [*audit()],
        "mutating-webhooks": [configuration("mutate")],
        "validating-webhooks": [configuration("validate")],
    }


def helm_objects() -> Mapping[str, Sequence[Node]]:
    """Return what only Helm runs, by its hooks."""
    return {"hooks/wait": [*waiting()], "hooks/cleanup": [*cleanup()]}
