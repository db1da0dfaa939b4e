"""What scrapes the webhook, and what shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.webhook.generate.chart.alerts import ALERTS
from gpugate.webhook.generate.chart.names import FULL_NAME, IS_SELF, labelled, labels
from gpugate.webhook.generate.chart.terms import File, If, Node, Value, no, text

if TYPE_CHECKING:
    from gpugate.webhook.generate.chart.alerts import Alert

DASHBOARD: Final = "files/dashboard.json"


def service_monitor() -> Node:
    """Return the ServiceMonitor."""
    made: Node = {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "ServiceMonitor",
        "metadata": labelled("metrics.serviceMonitor.labels", FULL_NAME),
        "spec": {"selector": {"matchLabels": labels()}, "endpoints": [{"port": "metrics", "path": "/metrics"}]},
    }
    return If(Value("metrics.serviceMonitor.enabled"), made)


def prometheus_rule() -> Node:
    """Return the PrometheusRule with the alerts."""
    made: Node = {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": labelled("metrics.prometheusRule.labels", FULL_NAME),
        "spec": {"groups": [{"name": "gpugate", "rules": [_rule(alert) for alert in ALERTS]}]},
    }
    return If(Value("metrics.prometheusRule.enabled"), made)


def _rule(alert: Alert) -> Node:
    rule: Node = {
        "alert": alert.name,
        "expr": alert.expression,
        "for": alert.lasting,
        "labels": {"severity": alert.severity},
        "annotations": {"summary": alert.summary},
    }
    if alert.kept is None:
        return rule
    return If(IS_SELF if alert.kept else no(IS_SELF), rule)


def dashboard_config_map() -> Node:
    """Return the ConfigMap with the dashboard."""
    made: Node = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": labelled("metrics.dashboard.labels", text(FULL_NAME, "-dashboard")),
        "data": {"gpugate.json": File(DASHBOARD)},
    }
    return If(Value("metrics.dashboard.enabled"), made)
