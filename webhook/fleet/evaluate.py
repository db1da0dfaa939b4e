"""From tables to a fleet report: which files are read, and the views that become its rows."""

from __future__ import annotations

import datetime as dt
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pyarrow.parquet as pq

from gpugate import __version__
from gpugate.webhook.audit.tables import TABLES
from gpugate.webhook.fleet.engine import Engine
from gpugate.webhook.fleet.files import (
    PATIENCE,
    FileError,
    arrow_schema,
    open_source,
    read_all,
    runs_of,
    without_credentials,
)
from gpugate.webhook.fleet.model import VIEWS, FleetReport
from gpugate.webhook.fleet.views import COLUMNS, Window, selected_runs, views

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gpugate.webhook.audit.tables import TableName
    from gpugate.webhook.fleet.files import RunFile

_OF_LAST: Final[tuple[TableName, ...]] = ("objects", "findings", "gpus", "exemptions")


def report_of_files(
    paths: Sequence[str],
    now: dt.datetime,
    days: int,
    silent_after: dt.timedelta,
    engine_url: str = "",
    patience: float = PATIENCE,
) -> FleetReport:
    """Return the report of the tables in directories and buckets.

    The runs of the window are read first. Of the other tables only the files of the last run of each cluster are read, and of
    `money` those of the run a week before. A path that does not answer for `patience` seconds is a problem of the report.

    Raises:
        EngineError: the engine cannot be used.
    """
    problems: list[str] = []
    listed: list[RunFile] = []
    for path in paths:
        try:
            # Tomorrow too: a clock that is ahead writes there.
            listed += runs_of(open_source(path, patience), (now - dt.timedelta(days=days)).date(), dt.date.max)
        except FileError as error:
            problems.append(str(error))
    # A path may be named twice, or be a copy of another one.
    runs = list({(run.cluster, run.run_id): run for run in listed}.values())
    window = _window(now, days, silent_after)
    with tempfile.TemporaryDirectory(prefix="gpugate-fleet-") as folder:
        scratch = Path(folder)
        staged = {"runs": _stage(scratch, "runs", runs, problems)}
        engine = Engine.at(engine_url) if engine_url else Engine.embedded(scratch)
        of_runs = selected_runs(engine.stage(staged)["runs"], window)
        current, base = (_named(engine, of_runs[name], runs) for name in ("current", "base"))
        staged["money"] = _stage(scratch, "money", [*current, *base], problems)
        for table in _OF_LAST:
            staged[table] = _stage(scratch, table, current, problems)
        return _report(
            engine,
            engine.stage(staged),
            window,
            _Header(tuple(map(without_credentials, paths)), now, days, tuple(problems)),
        )


def report_of_engine(engine_url: str, now: dt.datetime, days: int, silent_after: dt.timedelta) -> FleetReport:
    """Return the report of the tables that an engine has.

    Raises:
        EngineError: the engine cannot be used, or lacks a table.
    """
    engine = Engine.at(engine_url)
    header = _Header((f"the tables of {engine.name}",), now, days)
    return _report(engine, engine.tables(), _window(now, days, silent_after), header)


class _Header(msgspec.Struct, frozen=True):
    sources: tuple[str, ...]
    time: dt.datetime
    days: int
    problems: tuple[str, ...] = ()


def _window(now: dt.datetime, days: int, silent_after: dt.timedelta) -> Window:
    return Window(int(now.timestamp()), days, int(silent_after.total_seconds()))


def _report(engine: Engine, tables: Mapping[str, Any], window: Window, header: _Header) -> FleetReport:
    fields: dict[str, Any] = {}
    for name, view in views(tables, window).items():
        field, row = VIEWS[name]
        rows = tuple(msgspec.convert(values, row) for values in engine.rows(view))
        fields[field] = rows[0] if name == "fleet_totals" else rows
    return FleetReport(gpugate=__version__, engine=engine.name, **msgspec.structs.asdict(header), **fields)


def _stage(scratch: Path, table: TableName, runs: Sequence[RunFile], problems: list[str]) -> Path:
    """Write the rows of many small files to one, and return it."""
    columns = [column for column in TABLES[table].columns if column.name in COLUMNS[table]]
    path = scratch / f"{table}-{len(list(scratch.iterdir()))}.parquet"
    with pq.ParquetWriter(path, arrow_schema(columns)) as writer:
        for rows in read_all(runs, table, COLUMNS[table], problems):
            writer.write_table(rows)
    return path


def _named(engine: Engine, view: Any, runs: Iterable[RunFile]) -> list[RunFile]:
    rows = engine.rows(view.select("cluster", "run_id", "findings", "allocated_gpus", "use_coverage"))
    filled = {
        (row["cluster"], row["run_id"]): _filled(row["findings"], row["allocated_gpus"], row["use_coverage"])
        for row in rows
    }
    return [run._replace(filled=filled[run.cluster, run.run_id]) for run in runs if (run.cluster, run.run_id) in filled]


def _filled(findings: int, allocated_gpus: float | None, use_coverage: float | None) -> frozenset[str]:
    """Return the tables in which a run with these figures has rows."""
    of_findings = {"money", "objects", "findings"} if findings else set()
    of_gpus = {"money", "objects"} if allocated_gpus else set()
    of_use = {"gpus"} if allocated_gpus and use_coverage else set()
    return frozenset(of_findings | of_gpus | of_use)
