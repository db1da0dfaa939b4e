"""Alerts and graphs are about metrics that exist, with labels that they have."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from gpugate.webhook.admission.metric_table import METRICS
from gpugate.webhook.generate.chart.alerts import ALERTS
from gpugate.webhook.generate.chart.dashboard import PANELS

EXPRESSIONS = {each.name: each.expression for each in ALERTS} | {each.title: each.expression for each in PANELS}
CHART = Path(__file__).parents[2] / "charts" / "gpugate"


@pytest.mark.parametrize("expression", EXPRESSIONS.values(), ids=EXPRESSIONS)
def test_every_metric_exists(expression: str) -> None:
    known = {each.name for each in METRICS}
    named = {re.sub("_bucket$", "", name) for name in re.findall(r"\bgpugate_\w+", expression)}

    assert named
    assert named <= known


def test_an_alert_says_what_is_wrong() -> None:
    assert all(alert.summary.endswith(".") for alert in ALERTS)
    assert len({(alert.name, alert.kept) for alert in ALERTS}) == len(ALERTS)


def test_the_documentation_advises_the_same_alerts() -> None:
    table = (CHART.parents[1] / "docs" / "metrics.md").read_text().partition("## What to alert on")[2]
    advised = re.findall(r"^\|.*\| `([^`]+)`", table, re.MULTILINE)

    assert {each.replace("\\|", "|") for each in advised} == {alert.expression for alert in ALERTS}


def test_the_chart_says_of_itself_what_helm_needs() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())

    assert {key: chart[key] for key in ("apiVersion", "name", "type", "kubeVersion")} == {
        "apiVersion": "v2",
        "name": "gpugate",
        "type": "application",
        "kubeVersion": ">=1.30.0-0",
    }
