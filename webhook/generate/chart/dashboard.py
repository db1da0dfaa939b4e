"""A Grafana dashboard on the metrics of the webhook. Source: Grafana v12 dashboard JSON model, schema version 39."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Panel:
    """A graph: its title, what it shows, how lines are called, and the unit."""

    title: str
    expression: str
    legend: str
    unit: str = "short"


PANELS: Final = (
    Panel("Reviews", "sum by (phase, decision) (rate(gpugate_reviews_total[5m]))", "{{phase}} {{decision}}", "reqps"),
    Panel(
        "Time of a review, 99th percentile",
        "histogram_quantile(0.99, sum by (phase, le) (rate(gpugate_review_duration_seconds_bucket[5m])))",
        "{{phase}}",
        "s",
    ),
    Panel(
        "What policies find",
        "topk(10, sum by (policy, decision) (increase(gpugate_policy_outcomes_total[1h])))",
        "{{policy}} {{decision}}",
    ),
    Panel("Reviews without a verdict", "sum by (code) (rate(gpugate_refused_reviews_total[5m]))", "{{code}}", "reqps"),
    Panel("Connections", "sum by (pod) (gpugate_connections)", "{{pod}}"),
    Panel(
        "Refused, shed, timed out",
        'sum by (event) (rate(gpugate_front_events_total{event!="accepted"}[5m]))',
        "{{event}}",
        "cps",
    ),
    Panel(
        "Certificate ends in", "min by (pod) (gpugate_certificate_expiry_timestamp_seconds) - time()", "{{pod}}", "s"
    ),
    Panel("Objects that are known", "max by (kind) (gpugate_facts_objects)", "{{kind}}"),
    Panel("Age of what is known", "max by (kind) (gpugate_facts_age_seconds)", "{{kind}}", "s"),
    Panel("Workers replaced", "sum by (pod) (increase(gpugate_worker_restarts_total[1h]))", "{{pod}}"),
)
_COLUMNS: Final = 2
_WIDTH: Final = 24 // _COLUMNS
_HEIGHT: Final = 8


def dashboard() -> str:
    """Return the file."""
    source = {"type": "prometheus", "uid": "${datasource}"}
    chosen = {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source"}
    described: dict[str, Any] = {
        "title": "gpugate",
        "uid": "gpugate",
        "schemaVersion": 39,
        "editable": False,
        "refresh": "1m",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": [chosen]},
        "panels": [_panel(number, panel, source) for number, panel in enumerate(PANELS)],
    }
    return f"{json.dumps(described, indent=2)}\n"


def _panel(number: int, panel: Panel, source: dict[str, str]) -> dict[str, Any]:
    row, column = divmod(number, _COLUMNS)
    return {
        "id": number + 1,
        "type": "timeseries",
        "title": panel.title,
        "datasource": source,
        "gridPos": {"x": column * _WIDTH, "y": row * _HEIGHT, "w": _WIDTH, "h": _HEIGHT},
        "fieldConfig": {"defaults": {"unit": panel.unit}, "overrides": []},
        "targets": [
            {"refId": "A", "datasource": source, "expr": panel.expression, "legendFormat": panel.legend},
        ],
    }
