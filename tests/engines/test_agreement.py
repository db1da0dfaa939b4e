"""The same expressions on DuckDB, and on a real Spark, ClickHouse and Trino.

Spark runs in this process with Java. ClickHouse is its engine in this process (chDB), which the client of Ibis reaches as it reaches
a server, by a URL. Trino is a server that `TRINO` names, such as `trino://me@127.0.0.1:8080/memory/default`; its tables are replaced.
"""

from __future__ import annotations

import datetime as dt
import os
from typing import TYPE_CHECKING, Any, Final

import ibis
import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fleets import NOW, Fleet, Run, write_fleet, write_rows

from gpugate.webhook.audit.tables import SCHEMA, TABLES
from gpugate.webhook.fleet.evaluate import report_of_engine, report_of_files
from gpugate.webhook.fleet.model import VIEWS
from gpugate.webhook.fleet.sql import statements
from gpugate.webhook.fleet.views import COLUMNS

if TYPE_CHECKING:
    from pathlib import Path

    from gpugate.webhook.audit.tables import Column, TableName
    from gpugate.webhook.fleet.model import FleetReport

pytestmark = pytest.mark.filterwarnings("ignore")  # Spark's, Java's and pandas'
SILENT = dt.timedelta(hours=36)
HOUR, DAY = dt.timedelta(hours=1), dt.timedelta(days=1)
ENGINES = ("pyspark", "clickhouse", "trino")
# When the report is made: with all that a fleet has, when all clusters are silent, and when no run is in the window.
TIMES = {"today": NOW, "all silent": NOW + 5 * DAY, "nothing": NOW + 400 * DAY}
NO_COST = dict.fromkeys(("gpus", "allocated_gpus", "spend_usd", "allocated_usd", "unallocated_usd", "at_risk_usd",
                         "parked_usd", "idle_usd", "unbounded", "unbounded_usd", "use_coverage"))  # fmt: skip
ODD: dict[str, list[dict[str, Any]]] = {
    "without-cost": [{**NO_COST, "deny": 7}, {**NO_COST, "deny": 2, "at": NOW - 8 * DAY}],
    "with-a-clock": [{"clock_ahead_seconds": -7200.4}],
    "of-the-future": [{}, {"at": NOW + 3 * HOUR}],
    "twice": [{}, {"at": NOW - 5 * HOUR}],
    "selected": [{}, {"at": NOW - HOUR / 2, "selection": "-n ml"}],
    "foreign": [{}, {"at": NOW - HOUR / 2, "schema_name": "gpugate.dev/audit-tables/v9"}],
    "of-two": [{"cluster_uid": "a"}, {"at": NOW - 30 * HOUR, "cluster_uid": "b"}],
    "quoted": [{"region": "eu 'west'; -- <b>\\", "spend_usd": 1e9}],
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("fleet")
    write_fleet(path, Fleet(clusters=12, days=9, objects=20))
    # A cluster that vanished, and a clock that is ahead.
    write_fleet(path, Fleet(clusters=1, days=2, objects=20, end=NOW - 4 * DAY, seed=7, first=900))
    write_fleet(path, Fleet(clusters=1, days=1, objects=20, end=NOW + DAY, seed=9, first=901))
    for cluster, runs in ODD.items():
        for values in runs:
            at = values.get("at", NOW - HOUR)
            figures = {"schema_name": SCHEMA, "policy_mode": "as-is", "coverage": 0.5, "spend_usd": 3.0, **values}
            figures.pop("at", None)
            tables: Any = {"runs": {key: [value] for key, value in figures.items()}}
            write_rows(path, Run(cluster, f"{at:%Y%m%dT%H%M%S}", at, tables), "runs")
    return path


@pytest.fixture(scope="module", params=ENGINES)
def engine(request: pytest.FixtureRequest, files: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the URL of an engine that has the tables, or reads them."""
    if request.param == "clickhouse":
        url = f"clickhouse://localhost/default?interface=chdb&path={tmp_path_factory.mktemp('clickhouse')}"
        load_clickhouse(url, files)
        return url
    if request.param == "trino":
        url = os.environ.get("TRINO", "")
        if not url:
            pytest.skip("trino: no server: name one with TRINO=trino://me@127.0.0.1:8080/memory/default")
        load_trino(url, files)
        return url
    return "pyspark://"


@pytest.fixture(scope="module", params=TIMES)
def reports(request: pytest.FixtureRequest, engine: str, files: Path) -> tuple[FleetReport, FleetReport]:
    now = TIMES[request.param]
    of_duckdb = report_of_files([str(files)], now, 30, SILENT)
    if engine.startswith("pyspark"):
        return of_duckdb, report_of_files([str(files)], now, 30, SILENT, engine)
    return of_duckdb, report_of_engine(engine, now, 30, SILENT)


def test_the_engines_are_two(reports: tuple[FleetReport, FleetReport], engine: str) -> None:
    assert [report.engine for report in reports] == ["duckdb", engine.partition(":")[0]]


@pytest.mark.parametrize("view", VIEWS)
def test_each_view_has_equal_rows_in_equal_order(reports: tuple[FleetReport, FleetReport], view: str) -> None:
    field, _ = VIEWS[view]
    of_duckdb, of_other = (msgspec.to_builtins(getattr(report, field)) for report in reports)
    if field == "totals":
        of_duckdb, of_other = [of_duckdb], [of_other]
    # Otherwise equality would say nothing.
    assert of_duckdb or reports[0].time != NOW
    assert len(of_other) == len(of_duckdb)
    for left, right in zip(of_duckdb, of_other, strict=True):
        assert left.keys() == right.keys()
        for column, value in left.items():
            # Engines add up floats in different orders.
            expected = pytest.approx(value, rel=1e-9, abs=1e-9) if isinstance(value, float) else value
            assert right[column] == expected, (column, left, right)


@pytest.mark.parametrize("view", VIEWS)
def test_the_printed_sql_gives_the_rows_of_the_report(
    engine: str, printed: Any, of_today: FleetReport, view: str
) -> None:
    if engine.startswith("pyspark"):
        pytest.skip("pyspark: `fleet sql` does not print its dialect")
    field, kind = VIEWS[view]
    rows = [msgspec.convert(row, kind) for row in printed.table(view).to_pyarrow().to_pylist()]
    expected = getattr(of_today, field)
    # A view has no order.
    assert sorted(map(_rounded, rows)) == sorted(map(_rounded, [expected] if field == "totals" else expected))


def _rounded(row: Any) -> str:
    values = msgspec.to_builtins(row)
    return repr({name: f"{value:.6g}" if isinstance(value, float) else value for name, value in sorted(values.items())})


@pytest.fixture(scope="module")
def of_today(files: Path) -> FleetReport:
    return report_of_files([str(files)], NOW, 30, SILENT)


@pytest.fixture(scope="module")
def printed(engine: str) -> Any:
    """Return a connection to an engine in which the statements of `fleet sql` were executed."""
    if engine.startswith("pyspark"):
        return None
    connection = ibis.connect(engine)
    text = statements(engine.partition(":")[0], None, 30, int(SILENT.total_seconds()), NOW)
    for statement in filter(None, text.split(";\n\n")):
        connection.raw_sql(statement)
    return connection


_CLICKHOUSE: Final = {
    "string": "String",
    "integer": "Int64",
    "number": "Float64",
    "boolean": "Bool",
    "time": "DateTime64(6, 'UTC')",
    "date": "Date32",
    "labels": "Map(String, String)",
}
_TRINO: Final = {
    "string": "varchar",
    "integer": "bigint",
    "number": "double",
    "time": "timestamp(6) with time zone",
    "date": "date",
}
_ROWS: Final = 500


def load_clickhouse(url: str, files: Path) -> None:
    """Create the tables in the ClickHouse of a URL, and have it read the files itself."""
    connection = ibis.connect(url)
    for name, table in TABLES.items():
        kinds = (
            f"{column.name} {f'Nullable({kind})' if column.nullable else kind}"
            for column in table.columns
            for kind in [_CLICKHOUSE[column.type]]
        )
        connection.raw_sql(f"CREATE TABLE {name} ({', '.join(kinds)}) ENGINE = MergeTree ORDER BY (cluster, run_id)")
        if (files / name).exists():
            # A file path of the tests and names of the schema.
            connection.raw_sql(f"INSERT INTO {name} SELECT * FROM file('{files}/{name}/*/*/*.parquet', Parquet)")  # noqa: S608


def load_trino(url: str, files: Path) -> None:
    """Create the tables that the views read in the Trino of a URL, and insert the rows of the files."""
    connection = ibis.connect(url)
    for name in COLUMNS:
        columns = [column for column in TABLES[name].columns if column.name in COLUMNS[name]]
        connection.raw_sql(f"DROP TABLE IF EXISTS {name}").fetchall()
        kinds = ", ".join(f"{column.name} {_TRINO[column.type]}" for column in columns)
        connection.raw_sql(f"CREATE TABLE {name} ({kinds})").fetchall()
        rows = _rows(files, name, columns)
        for start in range(0, len(rows), _ROWS):
            values = ", ".join(
                f"({', '.join(_literal(row[column.name], column) for column in columns)})"
                for row in rows[start : start + _ROWS]
            )
            connection.raw_sql(f"INSERT INTO {name} VALUES {values}").fetchall()  # noqa: S608 -- rows of the tests


def _rows(files: Path, name: TableName, columns: list[Column]) -> list[dict[str, Any]]:
    names = [column.name for column in columns]
    tables = [
        pq.read_table(file, columns=names, partitioning=None) for file in sorted((files / name).rglob("*.parquet"))
    ]
    return pa.concat_tables(tables).to_pylist() if tables else []


def _literal(value: Any, column: Column) -> str:
    if value is None:
        return "NULL"
    if column.type == "string":
        quoted = value.replace("'", "''")
        return f"'{quoted}'"
    if column.type == "time":
        return f"TIMESTAMP '{value:%Y-%m-%d %H:%M:%S.%f} UTC'"
    if column.type == "date":
        return f"DATE '{value}'"
    return f"DOUBLE '{value!r}'" if column.type == "number" else str(value)
