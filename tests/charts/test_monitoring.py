"""Test that alerts and panels use existing metrics with their labels."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from audit_reports import audit
from msgspec.structs import replace
from prometheus_client.parser import text_string_to_metric_families

from gpugate.policies.catalog import CATALOG
from gpugate.webhook.admission.decisions import OUTCOME_DECISIONS
from gpugate.webhook.admission.front.limits import FrontEvent
from gpugate.webhook.admission.metrics import METRICS
from gpugate.webhook.admission.shadow_table import DECISIONS
from gpugate.webhook.audit.formats.presentation import Presentation
from gpugate.webhook.audit.formats.prometheus import render
from gpugate.webhook.audit.model import Action, Spend, Use, Used
from gpugate.webhook.registration.drift_reasons import Reason

CHART = Path(__file__).parents[2] / "charts" / "gpugate"
ALERTS: list[dict[str, Any]] = yaml.safe_load((CHART / "files" / "alerts.yaml").read_text())["alerts"]
PANELS: list[dict[str, Any]] = json.loads((CHART / "files" / "dashboard.json").read_text())["panels"]
FLEET_DASHBOARD: dict[str, Any] = json.loads((CHART / "files" / "fleet-dashboard.json").read_text())


def _rules(file: str) -> list[dict[str, Any]]:
    groups = yaml.safe_load((CHART / "files" / file).read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


OF_CLUSTER = _rules("recording-rules.yaml")
ACROSS = _rules("fleet-rules.yaml")
RECORDED = {rule["record"] for rule in (*OF_CLUSTER, *ACROSS) if "record" in rule}
EXPRESSIONS = (
    {alert["alert"]: alert["expr"] for alert in ALERTS}
    | {panel["title"]: target["expr"] for panel in PANELS for target in panel["targets"]}
    | {f"{rule['record']} {rule.get('labels', '')}": rule["expr"] for rule in OF_CLUSTER}
)
# What Prometheus and API servers add: labels of the target, the label of buckets, and the metric of API servers.
_ADDED = {"namespace", "job", "pod", "le", "cluster", "region", "instance", "name"}


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
FAIL_OPEN = {"apiserver_admission_webhook_fail_open_count": {"name", "type"}}
LABELS = {metric.name: set(metric.labels) for metric in METRICS} | AUDIT | FAIL_OPEN


def _metrics_in(expression: str) -> set[str]:
    return {re.sub("_bucket$", "", name) for name in re.findall(r"\b(?:gpugate|apiserver)_\w+", expression)}


def _labels_in(expression: str) -> set[str]:
    return {label for name in _metrics_in(expression) for label in LABELS.get(name, ())}


VALUES = {
    "decision": OUTCOME_DECISIONS,
    "code": ("400", "413", "422", "500", "504", "other"),
    "event": tuple(event.value for event in FrontEvent),
    "from": DECISIONS,
    "to": DECISIONS,
    "name": ("pods.mutate.gpugate.dev",),
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
    selected = dict(re.findall(r'(\w+)[=!]~?"(.*?)"', re.sub(r"\[\w+\]", "", expression)))

    assert grouped <= labels | _ADDED
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


LEVEL = re.compile(r"(?P<level>[a-z_]+):(?P<metric>(?:gpugate|apiserver)_\w+):(?P<operation>[a-z0-9_]+)")
_RECORDED = re.compile(r"\b[a-z_]+:(?:gpugate|apiserver)_\w+:\w+")


@pytest.mark.parametrize("rule", OF_CLUSTER, ids=lambda rule: f"{rule['record']} {rule.get('labels', '')}")
def test_a_recorded_series_has_the_labels_that_its_name_says(rule: dict[str, Any]) -> None:
    name = LEVEL.fullmatch(rule["record"])
    assert name
    grouped = [names.split(", ") for names in re.findall(r"(?:by|count_values by) \((.*?)\)", rule["expr"])]
    inner = _RECORDED.search(rule["expr"])
    labels = grouped[0] if grouped else [*_level(inner[0]) - {"le"}] if inner else []
    added = {*rule.get("labels", {})} | {*re.findall(r'count_values by .*? \("(\w+)"', rule["expr"])}

    assert {*labels, *added} - {"region"} == _level(rule["record"])
    assert "region" in labels or not grouped
    assert name["metric"] in {re.sub("_total$", "", metric) for metric in re.findall(r"\w+_\w+", rule["expr"])} | (
        {"gpugate_review_duration_seconds"} if inner else set()
    )


def _level(record: str) -> set[str]:
    return {*record.partition(":")[0].split("_")}


@pytest.mark.parametrize(
    "rule",
    ACROSS,
    ids=lambda rule: (
        f"{rule.get('record', rule.get('alert'))} {rule['labels']}" if "labels" in rule else rule["record"]
    ),
)
def test_rules_across_clusters_read_only_recorded_series(rule: dict[str, Any]) -> None:
    read = _RECORDED.findall(rule["expr"])

    assert read
    assert {*read} <= RECORDED
    assert not re.search(r"(?<![:\w])gpugate_", rule["expr"])
    if "record" in rule:
        assert LEVEL.fullmatch(rule["record"])


def test_the_dashboard_of_clusters_reads_recorded_series_of_the_selected_clusters() -> None:
    panels = FLEET_DASHBOARD["panels"]
    variables = [variable["name"] for variable in FLEET_DASHBOARD["templating"]["list"]]
    legends = {(panel["targets"][0]["expr"], panel["targets"][0]["legendFormat"]) for panel in panels}

    assert variables == ["datasource", "region", "cluster"]
    assert len({panel["id"] for panel in panels}) == len({panel["title"] for panel in panels}) == len(panels)
    for expression, legend in legends:
        assert {*_RECORDED.findall(expression)} <= RECORDED
        assert expression.count("$cluster") == len(_RECORDED.findall(expression))
        grouped = [names.split(", ") for names in re.findall(r"by \((.*?)\)", expression)]
        assert not grouped or {*re.findall(r"{{(\w+)}}", legend)} <= {*grouped[0]}


def test_panels_of_clusters_do_not_overlap() -> None:
    covered = [
        (x, y)
        for panel in FLEET_DASHBOARD["panels"]
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]

    assert len(covered) == len({*covered})
    assert max(x for x, _ in covered) < 24


def test_the_number_of_recorded_series_of_a_cluster_is_bounded() -> None:
    """One version, policy file and node; all policies of the library have all decisions."""
    page = (CHART.parents[1] / "docs" / "how-to" / "fleet-metrics.md").read_text()
    values = {
        "policy": len(CATALOG) + 2,
        "decision": 6,
        "phase": 2,
        "le": 17,
        "event": len(FrontEvent),
        "code": len(VALUES["code"]),
        "reason": len(Reason),
        "from": len(DECISIONS),
        "to": len(DECISIONS),
        "state": 3,
        "action": len(Action),
        "name": 20,
    }
    series = sum(math.prod(values.get(label, 1) for label in _level(rule["record"])) for rule in OF_CLUSTER)
    stated = int(re.findall(r"at most ([0-9,]+) recorded series", page)[0].replace(",", ""))

    assert stated * 0.8 < series <= stated


def test_the_page_lists_the_recorded_series_of_a_cluster_and_the_alerts_across_clusters() -> None:
    page = (CHART.parents[1] / "docs" / "how-to" / "fleet-metrics.md").read_text()

    assert re.findall(r"^\| `([a-z_]+:\w+:\w+)` \|", page, re.MULTILINE) == [
        *dict.fromkeys(rule["record"] for rule in OF_CLUSTER)
    ]
    assert re.findall(r"^\| (Gpugate\w+) \|", page, re.MULTILINE) == [
        rule["alert"] for rule in ACROSS if "alert" in rule
    ]
