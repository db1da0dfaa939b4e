"""Test that alerts and panels use existing metrics with their labels."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from audit_reports import audit
from msgspec.structs import replace
from prometheus_client.parser import text_string_to_metric_families

from gpugate.webhook.admission.decisions import OUTCOME_DECISIONS
from gpugate.webhook.admission.front.limits import FrontEvent
from gpugate.webhook.admission.metrics import METRICS
from gpugate.webhook.audit.formats.presentation import Presentation
from gpugate.webhook.audit.formats.prometheus import render
from gpugate.webhook.audit.model import Spend, Use, Used

CHART = Path(__file__).parents[2] / "charts" / "gpugate"
ALERTS: list[dict[str, Any]] = yaml.safe_load((CHART / "files" / "alerts.yaml").read_text())["alerts"]
PANELS: list[dict[str, Any]] = json.loads((CHART / "files" / "dashboard.json").read_text())["panels"]
EXPRESSIONS = {alert["alert"]: alert["expr"] for alert in ALERTS} | {
    panel["title"]: target["expr"] for panel in PANELS for target in panel["targets"]
}


def _audit_metrics() -> dict[str, set[str]]:
    """Return each metric of an audit with its labels."""
    report = audit()
    assert report.cost
    used = tuple(Used(use, 1.0, 1.0) for use in Use)
    spending = tuple(Spend(by, "ml", 1.0, 1.0, used) for by in ("team", "namespace"))
    report = replace(report, cost=replace(report.cost, used=used, spending=spending))
    families = text_string_to_metric_families(render(report, Presentation(idle_budget=5.0)))
    return {family.name: {label for sample in family.samples for label in sample.labels} for family in families}


AUDIT = _audit_metrics()
LABELS = {metric.name: set(metric.labels) for metric in METRICS} | AUDIT


def _metrics_in(expression: str) -> set[str]:
    return {re.sub("_bucket$", "", name) for name in re.findall(r"\bgpugate_\w+", expression)}


def _labels_in(expression: str) -> set[str]:
    return {label for name in _metrics_in(expression) for label in LABELS.get(name, ())}


VALUES = {
    "decision": OUTCOME_DECISIONS,
    "code": ("400", "413", "422", "500", "504", "other"),
    "event": tuple(event.value for event in FrontEvent),
}


@pytest.mark.parametrize("expression", EXPRESSIONS.values(), ids=EXPRESSIONS)
def test_every_metric_exists(expression: str) -> None:
    assert _metrics_in(expression)
    assert _metrics_in(expression) <= LABELS.keys()


@pytest.mark.parametrize("expression", EXPRESSIONS.values(), ids=EXPRESSIONS)
def test_every_label_exists_on_its_metric(expression: str) -> None:
    """Prometheus adds `namespace`, `job` and `pod` to all scraped series; a histogram has `le`."""
    labels = _labels_in(expression)
    grouped = {name for names in re.findall(r"by \((.*?)\)", expression) for name in names.split(", ")}
    selected = dict(re.findall(r'(\w+)[=!]~?"(.*?)"', expression))

    assert grouped <= labels | {"namespace", "job", "pod", "le"}
    assert selected.keys() <= labels
    for label, pattern in selected.items():
        assert [value for value in VALUES[label] if re.fullmatch(pattern, value)], f"{label} is never {pattern}"


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert["alert"])
def test_texts_use_labels_of_the_alert(alert: dict[str, Any]) -> None:
    used = set(re.findall(r"\$labels\.(\w+)", " ".join(alert["annotations"].values())))
    grouped = re.match(r"\w+ by \((.*?)\)", alert["expr"])
    existing = _labels_in(alert["expr"]) | {"pod"}

    assert used <= (set(grouped[1].split(", ")) if grouped else existing)


def test_legends_use_labels_of_the_query() -> None:
    targets = {
        (panel["title"], target["expr"], target["legendFormat"]) for panel in PANELS for target in panel["targets"]
    }
    wrong = {
        title
        for title, expression, legend in targets
        for grouped in [set(re.findall(r"by \((.*?)\)", expression)[0].split(", "))]
        if not set(re.findall(r"{{(\w+)}}", legend)) <= grouped
    }

    assert len(targets) == len(PANELS)
    assert wrong == set()


def test_alerts_have_texts_and_unique_names() -> None:
    assert all(alert["annotations"].keys() == {"summary", "description"} for alert in ALERTS)
    assert all(text.endswith((".", ").")) for alert in ALERTS for text in alert["annotations"].values())
    assert {alert["labels"]["severity"] for alert in ALERTS} == {"warning", "critical"}
    assert len({(alert["alert"], alert.get("self")) for alert in ALERTS}) == len(ALERTS)


def test_the_documentation_lists_the_same_alerts() -> None:
    table = (CHART.parents[1] / "docs" / "metrics.md").read_text().partition("## What to alert on")[2]
    documented = re.findall(r"^\|.*\| `([^`]+)`", table, re.MULTILINE)

    assert {expression.replace("\\|", "|") for expression in documented} == {alert["expr"] for alert in ALERTS}


def test_the_documentation_lists_the_metrics_of_the_audit() -> None:
    page = (CHART.parents[1] / "docs" / "metrics.md").read_text()
    rows = re.findall(r"^\| `(gpugate_audit_\w+)` \|(.*?)\|", page, re.MULTILINE)

    assert {name: set(re.findall(r"`(\w+)`", labels)) for name, labels in rows} == AUDIT


def test_the_page_of_alerts_has_a_section_for_each() -> None:
    """The anchor of a section is its heading in lower case, which `runbook_url` names."""
    page = (CHART.parents[1] / "docs" / "alerts.md").read_text()
    sections = re.findall(r"^### (Gpugate\w+)$", page, re.MULTILINE)

    assert sorted(sections) == sorted({alert["alert"] for alert in ALERTS})


def test_the_chart_has_the_metadata_that_helm_requires() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())

    assert {key: chart[key] for key in ("apiVersion", "name", "type", "kubeVersion")} == {
        "apiVersion": "v2",
        "name": "gpugate",
        "type": "application",
        "kubeVersion": ">=1.30.0-0",
    }
