"""The files of tables: equal rows in both formats, whole files, and outputs that cannot be written."""

from __future__ import annotations

import datetime as dt
import io
import json
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fsspec
import msgspec
import pytest
from audit_reports import TIME, audit
from fsspec.implementations.memory import MemoryFileSystem
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from pyarrow import parquet as pq

from gpugate.webhook.audit.model import Cluster
from gpugate.webhook.audit.rows import RunSettings, rows_of
from gpugate.webhook.audit.table_files import (
    SlowError,
    TablesError,
    check_output,
    each_within,
    ndjson,
    parquet,
    write_tables,
)
from gpugate.webhook.audit.tables import SCHEMA, TABLES, Row, Table, Type
from gpugate.webhook.manifests.within import LinkError

if TYPE_CHECKING:
    from collections.abc import Iterator

REPORT = replace(audit(), cluster=Cluster("x", id="prod-1"), run_id="20260824T101700Z-1")
ROWS = rows_of(REPORT, RunSettings())
VALUES: dict[Type, st.SearchStrategy[Any]] = {
    "string": st.text(),
    "integer": st.integers(-(2**63), 2**63 - 1),
    "number": st.floats(allow_nan=False, allow_infinity=False),
    "boolean": st.booleans(),
    "time": st.datetimes(dt.datetime(1970, 1, 2), dt.datetime(2200, 1, 1), timezones=st.just(dt.UTC)),  # noqa: DTZ001 -- hypothesis adds the zone
    "date": st.dates(dt.date(1970, 1, 1), dt.date(2200, 1, 1)),
    "labels": st.dictionaries(st.text(), st.text(), max_size=3),
}


def rows(table: Table) -> st.SearchStrategy[list[Row]]:
    columns = {
        column.name: VALUES[column.type] | st.none() if column.nullable else VALUES[column.type]
        for column in table.columns
    }
    return st.lists(st.fixed_dictionaries(columns), min_size=1, max_size=3)


TABLES_AND_ROWS = st.sampled_from(list(TABLES.values())).flatmap(lambda table: st.tuples(st.just(table), rows(table)))


@settings(max_examples=40)
@given(TABLES_AND_ROWS)
def test_ndjson_and_parquet_have_the_same_rows(of_table: tuple[Table, list[Row]]) -> None:
    table, given_rows = of_table

    lines = [json.loads(line) for line in ndjson(table, given_rows).splitlines()]
    file = pq.ParquetFile(io.BytesIO(parquet(table, given_rows)))

    columns = [
        msgspec.to_builtins(dict(zip(row, map(as_json, row.values()), strict=True))) for row in file.read().to_pylist()
    ]
    assert columns == lines
    assert (file.metadata.metadata[b"schema"], file.metadata.metadata[b"table"]) == (
        SCHEMA.encode(),
        table.name.encode(),
    )


def as_json(value: Any) -> Any:
    """Return a value of Arrow as JSON has it: a map is read as pairs."""
    return dict(value) if isinstance(value, list) else value


def files(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("suffix", ["ndjson", "parquet"])
@pytest.mark.parametrize("scheme", ["{}", "file://{}"], ids=["path", "url"])
def test_each_table_has_a_file_in_its_partition(suffix: str, scheme: str, tmp_path: Path) -> None:
    write_tables(suffix, scheme.format(tmp_path / "audits"), REPORT, ROWS)

    expected = [
        f"{name}/dt=2026-08-24/cluster=prod-1/{REPORT.run_id}.{suffix}" for name in sorted(TABLES) if ROWS[name]
    ]
    assert files(tmp_path / "audits") == expected
    assert "gpus" not in {name.partition("/")[0] for name in expected}


def test_two_runs_of_a_day_are_two_files(tmp_path: Path) -> None:
    for run_id in ("a", "b"):
        report = replace(REPORT, run_id=run_id)
        write_tables("ndjson", str(tmp_path), report, rows_of(report, RunSettings()))

    found = [json.loads(path.read_bytes()) for path in sorted(tmp_path.glob("runs/*/*/*.ndjson"))]
    assert [row["run_id"] for row in found] == ["a", "b"]


def test_a_wrong_clock_only_changes_the_partition(tmp_path: Path) -> None:
    report = replace(REPORT, time=TIME + dt.timedelta(days=3650))
    write_tables("ndjson", str(tmp_path), report, rows_of(report, RunSettings()))

    assert {path.name for path in tmp_path.glob("*/dt=2036-08-21/*/*.ndjson")} == {f"{REPORT.run_id}.ndjson"}


@pytest.fixture
def bucket() -> Iterator[str]:
    """Return the URL of a store in memory."""
    yield "memory://bucket/audits"
    MemoryFileSystem.store.clear()


def test_a_bucket_has_the_same_files(bucket: str, tmp_path: Path) -> None:
    write_tables("parquet", bucket, REPORT, ROWS)
    write_tables("parquet", str(tmp_path), REPORT, ROWS)

    fs = fsspec.filesystem("memory")
    inside = {name.removeprefix("/bucket/audits/"): fs.cat_file(name) for name in fs.find("/bucket/audits")}
    assert inside == {name: (tmp_path / name).read_bytes() for name in files(tmp_path)}


@pytest.mark.parametrize("refuses", ["/money/", "/findings/", "/runs/"])
def test_a_run_that_was_not_written_completely_has_no_row_in_runs(
    refuses: str, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []

    def pipe_file(_: object, path: str, __: bytes) -> None:
        if refuses in path:
            raise PermissionError(13, "Access Denied", path)
        written.append(path)

    monkeypatch.setattr(MemoryFileSystem, "pipe_file", pipe_file)

    with pytest.raises(TablesError, match=r"^-o ndjson=memory://bucket/audits: access denied$"):
        write_tables("ndjson", bucket, REPORT, ROWS)

    assert not [path for path in written if "/runs/" in path]


def test_a_file_that_cannot_be_renamed_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", refuse)

    with pytest.raises(TablesError, match="no space left on device"):
        write_tables("ndjson", str(tmp_path), REPORT, ROWS)

    assert files(tmp_path) == []


def test_a_store_that_does_not_answer_is_given_up(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = threading.Event()

    def pipe_file(*_: object) -> None:
        answer.wait()
        raise ConnectionError

    monkeypatch.setattr(MemoryFileSystem, "pipe_file", pipe_file)

    with pytest.raises(TablesError, match=r"no answer within 0\.1 s: check the address and the network"):
        write_tables("ndjson", bucket, REPORT, ROWS, 0.1)
    answer.set()


def test_without_an_id_the_flag_is_named(tmp_path: Path) -> None:
    with pytest.raises(TablesError, match="add --cluster-name NAME"):
        write_tables("ndjson", str(tmp_path / "x"), replace(REPORT, cluster=Cluster("x")), ROWS)
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    ("suffix", "path", "message"),
    [
        pytest.param("ndjson", "", "add a directory or a bucket", id="no-path"),
        pytest.param(
            "ndjson", "nosuch://user:secret@bucket/x?token=secret", "nosuch://bucket/x: unknown protocol", id="protocol"
        ),
        pytest.param("parquet", __file__, "this is a file: write the path of a directory", id="a-file"),
    ],
)
def test_an_output_that_cannot_be_is_refused_before_the_audit(suffix: str, path: str, message: str) -> None:
    with pytest.raises(TablesError) as raised:
        check_output(suffix, path)
    assert message in str(raised.value)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("suffix", "path", "package"),
    [("parquet", "audits", "pyarrow"), ("ndjson", "s3://bucket", "fsspec"), ("parquet", "s3://bucket", "pyarrow")],
)
def test_a_missing_package_names_the_extra(
    suffix: str, path: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setattr("gpugate.webhook.audit.table_files.find_spec", lambda name: None if name == package else name)

    with pytest.raises(TablesError, match=rf"needs {package}: install the extra `fleet`"):
        check_output(suffix, path)


def test_ndjson_in_a_directory_needs_no_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("pyarrow", "fsspec"):
        monkeypatch.setitem(sys.modules, package, None)

    check_output("ndjson", str(tmp_path))
    write_tables("ndjson", str(tmp_path), REPORT, ROWS)

    assert len(files(tmp_path)) == len([name for name in ROWS if ROWS[name]])


def test_a_link_out_of_the_repository_is_not_followed(tmp_path: Path) -> None:
    repository, outside = tmp_path / "repository", tmp_path / "outside"
    (repository / ".git").mkdir(parents=True)
    outside.mkdir()
    (repository / "audits").symlink_to(outside)

    with pytest.raises(LinkError, match="is a link out of the repository"):
        check_output("ndjson", str(repository / "audits"))


def test_works_of_a_thread_are_answered_in_order() -> None:
    works = [lambda number=number: 1 // number for number in (1, 0, -1) * 100]

    answers = [*each_within(10, works)]

    assert [type(answer) if isinstance(answer, Exception) else answer for answer in answers] == [
        1, ZeroDivisionError, -1,
    ] * 100  # fmt: skip


def test_of_works_until_a_slow_one_the_answers_are_there() -> None:
    release = threading.Event()
    answers = each_within(0.1, [lambda: True, release.wait, lambda: True])

    assert next(answers) is True
    with pytest.raises(SlowError):
        next(answers)
    release.set()


def test_a_caller_that_needs_no_more_answers_ends_the_thread() -> None:
    before = {*threading.enumerate()}
    answers = each_within(10, [lambda: True] * 1000)
    next(answers)
    (thread,) = {*threading.enumerate()} - before
    answers.close()
    thread.join(10)

    assert not thread.is_alive()
