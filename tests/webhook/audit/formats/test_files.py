"""The formats that other programs read."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest
from audit_reports import with_audited
from msgspec.structs import replace
from prometheus_client.parser import text_string_to_metric_families

from gpugate.webhook.audit.formats import csv as audit_csv
from gpugate.webhook.audit.formats import junit as audit_junit
from gpugate.webhook.audit.formats import markdown as audit_markdown
from gpugate.webhook.audit.formats import prometheus as audit_prometheus
from gpugate.webhook.audit.formats import sarif as audit_sarif
from gpugate.webhook.audit.model import Action

if TYPE_CHECKING:
    from gpugate.webhook.audit.formats.presentation import Presentation
    from gpugate.webhook.audit.model import AuditReport


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_csv_has_a_line_for_each_finding(audit: AuditReport, presentation: Presentation) -> None:
    found = rows(audit_csv.render(audit, presentation))

    first = audit.audited[0]
    assert len(found) == sum(len(each.findings) for each in audit.audited)
    assert (found[0]["kind"], found[0]["name"]) == (first.object.kind, first.object.name)
    assert float(found[0]["usd_per_hour"]) == first.allocated[0].usd_per_hour


def test_csv_lists_compliant_objects_when_asked_for(audit: AuditReport, presentation: Presentation) -> None:
    found = rows(audit_csv.render(audit, dataclasses.replace(presentation, include_passed=True)))

    assert sum(row["action"] == "allow" for row in found) == sum(each.action is Action.ALLOW for each in audit.audited)


FORMULAS = [
    "=1+1",
    "+1",
    "-1",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "\n=1",
    " =1",
    "\uff1d1",
    '=HYPERLINK("http://x")',
    '"=1"\n=1',
]


@pytest.mark.parametrize("text", FORMULAS)
def test_csv_starts_no_formula(text: str, audit: AuditReport, presentation: Presentation) -> None:
    first = audit.audited[0]
    evil = replace(first, findings=(replace(first.findings[0], message=text, path=text, hint=text),))

    (found,) = rows(audit_csv.render(with_audited(audit, (evil,)), presentation))

    cells = [found[column].lstrip(" ") for column in ("message", "field", "fix")]
    assert [cell for cell in cells if cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d"))] == []


def sarif_run(report: AuditReport, presentation: Presentation) -> Any:
    return json.loads(audit_sarif.render(report, presentation))["runs"][0]


def test_sarif_places_are_logical(audit: AuditReport, presentation: Presentation) -> None:
    run = sarif_run(audit, presentation)

    first = audit.audited[0]
    name = f"{first.object.api_version}/{first.object}#{first.findings[0].path}"
    assert run["results"][0]["locations"] == [{"logicalLocations": [{"fullyQualifiedName": name, "kind": "object"}]}]
    assert {tuple(result["locations"][0]) for result in run["results"]} == {("logicalLocations",)}


def test_sarif_levels_are_those_of_the_consequence(audit: AuditReport, presentation: Presentation) -> None:
    levels = [result["level"] for result in sarif_run(audit, presentation)["results"]]

    actions = [finding.action for each in audit.audited for finding in each.findings]
    level_of = {Action.DENY: "error", Action.WARN: "warning", Action.MUTATE: "note", Action.RECORD: "note"}
    assert levels == [level_of[action] for action in actions]


def test_sarif_rules_link_to_the_documentation(audit: AuditReport, presentation: Presentation) -> None:
    run = sarif_run(audit, dataclasses.replace(presentation, docs="https://docs.example.com/"))

    rules = run["tool"]["driver"]["rules"]
    assert rules
    assert [rule["helpUri"] for rule in rules if "/" in rule["id"]] == [
        f"https://docs.example.com/docs/policies/{rule['id']}.html" for rule in rules if "/" in rule["id"]
    ]
    without = sarif_run(audit, presentation)["tool"]["driver"]["rules"]
    assert [rule for rule in without if "helpUri" in rule] == []


def test_sarif_says_what_was_not_looked_at(audit: AuditReport, presentation: Presentation) -> None:
    run = sarif_run(audit, presentation)

    (invocation,) = run["invocations"]
    said = [note["message"]["text"] for note in invocation["toolExecutionNotifications"]]
    assert "DeviceClass: the API server does not serve it" in said
    assert run["automationDetails"] == {"id": "gpugate/audit/"}


def test_junit_fails_what_would_be_denied_and_skips_what_was_not_looked_at(
    audit: AuditReport, presentation: Presentation
) -> None:
    root = ET.fromstring(audit_junit.render(audit, presentation))  # noqa: S314 -- what was written a moment ago

    denied = {
        (str(each.object), finding.policy)
        for each in audit.audited
        for finding in each.findings
        if finding.action is Action.DENY
    }
    failed = {
        (case.get("name"), case.get("classname")) for case in root.iter("testcase") if case.find("failure") is not None
    }
    assert failed == denied
    assert root.get("failures") == str(len(denied))
    assert root.get("skipped") == "4"


def test_junit_of_a_clean_cluster_is_not_empty(audit: AuditReport, presentation: Presentation) -> None:
    clean = tuple(each for each in audit.audited if not each.findings)
    root = ET.fromstring(audit_junit.render(with_audited(audit, clean), presentation))  # noqa: S314 -- as above

    assert (root.get("failures"), int(root.get("tests", "0")) > 0) == ("0", True)


def samples(report: AuditReport, presentation: Presentation) -> dict[str, dict[tuple[str, ...], float]]:
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families(audit_prometheus.render(report, presentation)):
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(sample.labels.values())] = sample.value
    return found


def test_prometheus_has_the_figures(audit: AuditReport, presentation: Presentation) -> None:
    found = samples(audit, presentation)

    assert audit.cost is not None
    counted = sum(each.action is Action.DENY for each in audit.audited)
    assert found["gpugate_audit_objects"]["deny",] == counted
    assert found["gpugate_audit_gpu_usd_per_hour"]["at_risk",] == audit.cost.at_risk
    assert found["gpugate_audit_coverage_ratio"] == {(): 0.973}
    assert found["gpugate_audit_time_seconds"] == {(): audit.time.timestamp()}
    assert found["gpugate_audit_pool_gpus"]["mig", "p4d.24xlarge", "idle"] == 6.5


def test_prometheus_has_a_bounded_number_of_series(audit: AuditReport, presentation: Presentation) -> None:
    first = audit.audited[0]
    many = tuple(replace(first, object=replace(first.object, namespace=f"n-{number}")) for number in range(1000))
    found = samples(with_audited(audit, many), presentation)["gpugate_audit_namespace_objects"]

    assert len(found) == audit_prometheus.MOST_NAMESPACES + 1
    assert (found["(other)", "deny"], sum(found.values())) == (800, 1000)


def test_prometheus_takes_every_name(hostile: AuditReport, presentation: Presentation) -> None:
    assert samples(hostile, presentation)["gpugate_audit_objects"]["deny",] == 1


def test_markdown_has_tables_whose_rows_have_as_many_cells_as_their_header(
    hostile: AuditReport, presentation: Presentation
) -> None:
    tables: list[list[str]] = [[]]
    for line in audit_markdown.render(hostile, presentation).split("\n"):
        tables[-1].append(line) if line.startswith("|") else tables.append([])

    cells = [{line.replace("\\|", "").count("|") for line in table} for table in tables if table]
    assert [len(counts) for counts in cells] == [1] * 5


def test_markdown_stays_below_what_a_step_summary_holds(presentation: Presentation, audit: AuditReport) -> None:
    text = audit_markdown.render(with_audited(audit, audit.audited * 50), presentation)

    assert len(text.encode()) < 2**19
