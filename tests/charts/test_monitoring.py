"""Alerts and graphs are about metrics that exist, with labels that they have."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpugate.webhook.admission.decisions import OUTCOME_DECISIONS
from gpugate.webhook.admission.front.limits import FrontEvent
from gpugate.webhook.admission.metrics import METRICS

CHART = Path(__file__).parents[2] / "charts" / "gpugate"
ALERTS: list[dict[str, Any]] = yaml.safe_load((CHART / "files" / "alerts.yaml").read_text())["alerts"]
PANELS: list[dict[str, Any]] = json.loads((CHART / "files" / "dashboard.json").read_text())["panels"]
EXPRESSIONS = {each["alert"]: each["expr"] for each in ALERTS} | {
    each["title"]: target["expr"] for each in PANELS for target in each["targets"]
}
VALUES = {
    "decision": OUTCOME_DECISIONS,
    "code": ("400", "413", "422", "500", "504", "other"),
    "event": tuple(event.value for event in FrontEvent),
}


@pytest.mark.parametrize("expression", EXPRESSIONS.values(), ids=EXPRESSIONS)
def test_every_metric_exists(expression: str) -> None:
    known = {each.name for each in METRICS}
    named = {re.sub("_bucket$", "", name) for name in re.findall(r"\bgpugate_\w+", expression)}

    assert named
    assert named <= known


@pytest.mark.parametrize("expression", EXPRESSIONS.values(), ids=EXPRESSIONS)
def test_every_label_is_one_that_its_metric_has(expression: str) -> None:
    """Prometheus puts `namespace`, `job` and `pod` on whatever it scrapes; a histogram has `le`."""
    labels = {label for each in METRICS if each.name in expression for label in each.labels}
    grouped = {name for names in re.findall(r"by \((.*?)\)", expression) for name in names.split(", ")}
    chosen = dict(re.findall(r'(\w+)[=!]~?"(.*?)"', expression))

    assert grouped <= labels | {"namespace", "job", "pod", "le"}
    assert chosen.keys() <= labels
    for label, pattern in chosen.items():
        assert [value for value in VALUES[label] if re.fullmatch(pattern, value)], f"{label} is never {pattern}"


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert["alert"])
def test_a_summary_names_labels_that_the_alert_has(alert: dict[str, Any]) -> None:
    named = set(re.findall(r"\$labels\.(\w+)", alert["annotations"]["summary"]))
    grouped = re.match(r"\w+ by \((.*?)\)", alert["expr"])
    there = {label for each in METRICS if each.name in alert["expr"] for label in each.labels} | {"pod"}

    assert named <= (set(grouped[1].split(", ")) if grouped else there)


def test_a_legend_names_labels_that_the_graph_has() -> None:
    targets = {(each["title"], target["expr"], target["legendFormat"]) for each in PANELS for target in each["targets"]}
    wrong = {
        title
        for title, expression, legend in targets
        for grouped in [set(re.findall(r"by \((.*?)\)", expression)[0].split(", "))]
        if not set(re.findall(r"{{(\w+)}}", legend)) <= grouped
    }

    assert len(targets) == len(PANELS)
    assert wrong == set()


def test_an_alert_says_what_is_wrong() -> None:
    assert all(alert["annotations"]["summary"].endswith(".") for alert in ALERTS)
    assert len({(alert["alert"], alert.get("self")) for alert in ALERTS}) == len(ALERTS)


def test_the_documentation_advises_the_same_alerts() -> None:
    table = (CHART.parents[1] / "docs" / "metrics.md").read_text().partition("## What to alert on")[2]
    advised = re.findall(r"^\|.*\| `([^`]+)`", table, re.MULTILINE)

    assert {each.replace("\\|", "|") for each in advised} == {alert["expr"] for alert in ALERTS}


def test_the_chart_says_of_itself_what_helm_needs() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())

    assert {key: chart[key] for key in ("apiVersion", "name", "type", "kubeVersion")} == {
        "apiVersion": "v2",
        "name": "gpugate",
        "type": "application",
        "kubeVersion": ">=1.30.0-0",
    }
