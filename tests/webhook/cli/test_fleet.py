"""`gpugate fleet report` of the tables that `gpugate audit` writes: both commands as users run them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Ran

    Run = Callable[..., Ran]

DUMP = str(Path(__file__).parents[2] / "fixtures" / "dumps" / "ml-platform")


def reported(gpugate: Run, *tables: str) -> dict[str, Any]:
    """Return the report of those tables."""
    ran = gpugate("fleet", "report", *tables, "-o", "json")
    assert ran.code == 0, ran.err
    report: dict[str, Any] = json.loads(ran.out)
    return report


@pytest.mark.parametrize("form", ["parquet", "ndjson"])
def test_the_report_has_the_figures_of_the_audits(form: str, gpugate: Run, tmp_path: Path) -> None:
    audits = {}
    for cluster in ("prod-eu", "prod-us"):
        ran = gpugate(
            *("audit", "--from", DUMP, "--cluster-name", cluster, "-o", "json", "-o", f"{form}={tmp_path / 'tables'}")
        )
        assert ran.code == 0, ran.err
        audits[cluster] = json.loads(ran.out)

    report = reported(gpugate, str(tmp_path / "tables"))

    rows = {row["cluster"]: row for row in report["clusters"]}
    assert report["problems"] == []
    assert rows.keys() == audits.keys()
    for cluster, audit in audits.items():
        assert rows[cluster]["run_id"] == audit["run_id"]
        assert (rows[cluster]["deny"], rows[cluster]["warn"]) == (audit["summary"]["deny"], audit["summary"]["warn"])
        assert rows[cluster]["allocated_usd"] == pytest.approx(audit["cost"]["allocated"])
        assert rows[cluster]["at_risk_usd"] == pytest.approx(audit["cost"]["at_risk"])
        assert rows[cluster]["unbounded"] == len(audit["cost"]["unbounded"])
    assert report["totals"]["allocated_usd"] == pytest.approx(
        sum(audit["cost"]["allocated"] for audit in audits.values())
    )


def test_the_same_audit_is_the_same_report_in_both_formats(gpugate: Run, tmp_path: Path) -> None:
    outputs = [f"{form}={tmp_path / form}" for form in ("parquet", "ndjson")]
    assert gpugate("audit", "--from", DUMP, "--cluster-name", "prod", "-o", outputs[0], "-o", outputs[1]).code == 0

    reports = [reported(gpugate, str(tmp_path / form)) for form in ("parquet", "ndjson")]

    for report in reports:
        del report["sources"], report["time"]
    assert reports[0] == reports[1]
