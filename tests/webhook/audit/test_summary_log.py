"""The line of the log that an audit ends with."""

from __future__ import annotations

import json

import pytest
from audit.report_objects.audits import audit, deployment, finding
from msgspec.structs import replace

from gpugate.webhook.audit.live import ABSENCE
from gpugate.webhook.audit.model import Action, AuditReport, Cost, Use, Used
from gpugate.webhook.audit.report_writer import Written
from gpugate.webhook.audit.summary_log import summary_line


def test_it_counts_and_names_no_object() -> None:
    report = audit(deployment("web", finding()), deployment("b", finding(action=Action.WARN)), deployment("c"))
    report = replace(
        report,
        counts={"Deployment": 3, "Pod": 9},
        cost=Cost("", 55.04, 60.0, 0.0, spend=70.0, used=(Used(Use.UNDER_USED, 2.0, 13.76),)),
    )
    written = Written("openreports.io", 1, 2, 3, 4, 0, ("reports of openreports.io: ...",))

    assert json.loads(summary_line(report, written)) == {
        "time": "2026-08-24T10:00:00.000Z",
        "level": "info",
        "message": "audit",
        "generation": "abc",
        "cluster": "test",
        "cluster_id": "",
        "region": "",
        "run": "",
        "objects": 12,
        "deny": 1,
        "mutate": 0,
        "warn": 1,
        "record": 0,
        "allow": 1,
        "coverage": 1.0,
        "not_evaluated": [],
        "usd_per_hour": 70.0,
        "usd_per_hour_at_risk": 55.04,
        "usd_per_hour_under_used": 13.76,
        "reports": "openreports.io",
        "reports_created": 1,
        "reports_changed": 2,
        "reports_unchanged": 3,
        "reports_deleted": 4,
        "reports_failed": 0,
        "remarks": [],
    }


@pytest.mark.parametrize(
    ("report", "written"),
    [
        pytest.param(audit(missing="pods"), None, id="not-all-was-read"),
        pytest.param(audit(), Written("", failed=1, remarks=("", "reports are not written")), id="not-all-was-written"),
    ],
)
def test_it_warns_when(report: AuditReport, written: Written | None) -> None:
    line = json.loads(summary_line(report, written))

    assert (line["level"], bool(line["not_evaluated"] or line["remarks"])) == ("warning", True)


def test_what_the_cluster_does_not_serve_is_nothing_to_warn_of() -> None:
    line = json.loads(summary_line(audit(missing="keda.sh", reason=ABSENCE)))

    assert (line["level"], line["not_evaluated"]) == ("info", [])


def test_it_is_one_short_line_whatever_texts_hold() -> None:
    line = summary_line(replace(audit(), remarks=tuple(f"{n}\n\x1b[31m\u202e" + "ü" * 1000 for n in range(100))))

    assert line.isascii()
    assert (line.count("\n"), len(line) < 16384) == (1, True)
    assert json.loads(line)["remarks"][-1] == "and 92 more"
