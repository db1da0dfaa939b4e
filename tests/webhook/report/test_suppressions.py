from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from gpugate.webhook.report import concise, sarif, summary, text
from gpugate.webhook.report import json as json_report
from gpugate.webhook.report.located import (
    BaselineKey,
    BaselineUse,
    Located,
    Location,
    ObjectName,
    Report,
    Severity,
    Sort,
    Suppressed,
    SuppressedBy,
)
from gpugate.webhook.report.view import View

if TYPE_CHECKING:
    from pathlib import Path

POD = ObjectName("v1", "Pod", "default", "a")
FINDING = Located(
    Sort.VIOLATION, Severity.ERROR, "is denied", Location("a.yaml", 3, 1, 4), policy="pods/denied", object=POD
)
BY_COMMENT = Suppressed(FINDING, "agreed")
BY_BASELINE = Suppressed(FINDING, "in b.json", SuppressedBy.BASELINE)
KEY = BaselineKey("pods/denied", "", "Pod", "default", "a", "spec")
USED = Report((), objects=1, files=1, suppressed=(BY_COMMENT, BY_BASELINE), baseline=BaselineUse("b.json", 1))

SUMMARIES = {
    "what is hidden": (USED, ["0 errors, 0 warnings, 0 notes, 1 suppressed, 1 hidden by the baseline"]),
    "an entry of no use": (
        Report((), objects=1, baseline=BaselineUse("b.json", stale=((KEY, 1),))),
        [
            "1 entry of b.json matches no finding; --prune-baseline removes such entries:",
            "  pods/denied Pod/default/a spec",
        ],
    ),
    "entries of what is not here": (
        Report((), objects=1, baseline=BaselineUse("b.json", unseen=((KEY, 1), (KEY, 1)))),
        ["2 entries of b.json are for objects outside the checked files"],
    ),
    "more than anybody reads": (
        Report((), objects=1, baseline=BaselineUse("b.json", stale=((KEY, 1),) * 12)),
        ["  and 2 more; -o json has them all"],
    ),
    "exemptions": (
        Report((), objects=1, expired=("pods/*: expired on 2026-01-01 (o: r)",), unused=("pods/a: applies to no finding (o: r)",)),
        [
            "expired exemption: pods/*: expired on 2026-01-01 (o: r)",
            "unused exemption: pods/a: applies to no finding (o: r)",
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("report", "lines"), SUMMARIES.values(), ids=SUMMARIES)
def test_the_summary_tells(report: Report, lines: list[str]) -> None:
    found = list(summary.summary(report))

    assert [line for line in lines if not any(each.endswith(line) for each in found)] == []


def test_text_shows_what_is_suppressed_on_request() -> None:
    shown = text.write(USED, view=View(quiet=True, suppressed=True))

    assert shown == (
        "suppressed[pods/denied]: is denied\n --> a.yaml:3:1   Pod/default/a\n  = comment: agreed\n\n"
        "suppressed[pods/denied]: is denied\n --> a.yaml:3:1   Pod/default/a\n  = baseline: in b.json\n"
    )
    assert text.write(USED, view=View(quiet=True)) == ""


def test_concise_shows_it_in_a_line() -> None:
    lines = concise.write(USED, view=View(quiet=True, suppressed=True)).splitlines()

    assert lines[0] == "a.yaml:3:1: suppressed[pods/denied] is denied (Pod/default/a): comment: agreed"


def test_json_has_it_always() -> None:
    document = json.loads(json_report.write(USED))

    assert [(each["by"], each["reason"]) for each in document["suppressed"]] == [
        ("comment", "agreed"),
        ("baseline", "in b.json"),
    ]
    assert document["baseline"] == {"file": "b.json", "hidden": 1, "stale": [], "unseen": []}
    assert document["exemptions"] == {"expired": [], "unused": []}


def test_json_has_the_entries_that_are_of_no_use() -> None:
    document = json.loads(json_report.write(Report((), baseline=BaselineUse("b.json", stale=((KEY, 2),)))))

    assert document["baseline"]["stale"] == [
        {
            "policy": "pods/denied",
            "group": "",
            "kind": "Pod",
            "namespace": "default",
            "name": "a",
            "path": "spec",
            "count": 2,
        }
    ]


def test_sarif_says_who_suppressed_what(tmp_path: Path) -> None:
    (run,) = json.loads(sarif.write(USED, (), tmp_path, suppressed=True))["runs"]

    assert [(result.get("baselineState"), result["suppressions"]) for result in run["results"]] == [
        (None, [{"kind": "inSource", "justification": "agreed"}]),
        ("unchanged", [{"kind": "external", "justification": "in b.json"}]),
    ]


def test_sarif_leaves_it_out_by_default(tmp_path: Path) -> None:
    assert json.loads(sarif.write(USED, (), tmp_path))["runs"][0]["results"] == []
