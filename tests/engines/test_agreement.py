"""The same expressions on a real Spark, started in this process with Java, and on DuckDB."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import msgspec
import pytest
from fleets import NOW, Fleet, write_fleet

from gpugate.webhook.fleet.evaluate import report_of_files
from gpugate.webhook.fleet.model import VIEWS

if TYPE_CHECKING:
    from pathlib import Path

    from gpugate.webhook.fleet.model import FleetReport

pytestmark = pytest.mark.filterwarnings("ignore")  # Spark's, Java's and pandas'
SILENT = dt.timedelta(hours=36)


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> tuple[FleetReport, FleetReport]:
    path: Path = tmp_path_factory.mktemp("fleet")
    write_fleet(path, Fleet(clusters=60, days=10, objects=60))
    # A cluster that vanished, two runs on a day, a clock that is ahead.
    write_fleet(path, Fleet(clusters=1, days=2, objects=60, end=NOW - dt.timedelta(days=4), seed=7, first=900))
    write_fleet(path, Fleet(clusters=2, days=2, objects=60, end=NOW - dt.timedelta(hours=6), seed=8))
    write_fleet(path, Fleet(clusters=1, days=1, objects=60, end=NOW + dt.timedelta(days=1), seed=9, first=901))
    of_duckdb = report_of_files([str(path)], NOW, 30, SILENT)
    of_spark = report_of_files([str(path)], NOW, 30, SILENT, "pyspark://")
    return of_duckdb, of_spark


def test_the_engines_are_two(reports: tuple[FleetReport, FleetReport]) -> None:
    assert [report.engine for report in reports] == ["duckdb", "pyspark"]


@pytest.mark.parametrize("view", VIEWS)
def test_each_view_has_equal_rows_in_equal_order(reports: tuple[FleetReport, FleetReport], view: str) -> None:
    field, _ = VIEWS[view]
    of_duckdb, of_spark = (msgspec.to_builtins(getattr(report, field)) for report in reports)
    if field == "totals":
        of_duckdb, of_spark = [of_duckdb], [of_spark]
    assert of_duckdb
    assert len(of_spark) == len(of_duckdb)
    for left, right in zip(of_duckdb, of_spark, strict=True):
        assert left.keys() == right.keys()
        for column, value in left.items():
            # Engines add up floats in different orders.
            expected = pytest.approx(value, rel=1e-9, abs=1e-9) if isinstance(value, float) else value
            assert right[column] == expected, (column, left, right)
