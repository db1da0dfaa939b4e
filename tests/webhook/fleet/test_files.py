from __future__ import annotations

import datetime as dt
import json
import math
import os
import socket
import threading
from typing import TYPE_CHECKING, Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from buckets import Answer, Bucket
from fleets import NOW, Fleet, Run, write_fleet, write_rows
from fsspec.implementations.local import LocalFileSystem

from gpugate.webhook.audit.tables import SCHEMA, file_of
from gpugate.webhook.fleet.evaluate import report_of_files
from gpugate.webhook.fleet.files import FileError, Source, SourceError, open_source, read_all, runs_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


SILENT = dt.timedelta(hours=36)


def truncate(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-20])


def empty(file: Path) -> None:
    file.write_bytes(b"")


def damage(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[4 : len(data) // 2] = b"\xff" * (len(data) // 2 - 4)
    file.write_bytes(data)


def foreign(file: Path) -> None:
    pq.write_table(pa.table({"a": [1]}), file)


def retype(file: Path) -> None:
    rows = pq.read_table(file)
    index = rows.schema.get_field_index("spend_usd")
    pq.write_table(rows.set_column(index, "spend_usd", pa.array(["free"] * len(rows))), file)


def rename(file: Path) -> None:
    rows = pq.read_table(file)
    index = rows.schema.get_field_index("cluster")
    pq.write_table(rows.set_column(index, "cluster", pa.array(["another"] * len(rows))), file)


def changed(column: str, values: Callable[[int], pa.Array]) -> Callable[[Path], None]:
    def harm(file: Path) -> None:
        rows = pq.read_table(file)
        index = rows.schema.get_field_index(column)
        pq.write_table(rows.set_column(index, column, values(len(rows))), file)

    return harm


def encode_wrongly(rows: int) -> pa.Array:
    return pa.Array.from_buffers(pa.string(), rows, pa.array([b"\xff"] * rows, pa.binary()).buffers())


def repeat_a_long_text(file: Path) -> None:
    # Less than a megabyte in the file, and two gigabytes in memory.
    rows = pq.read_table(file).slice(0, 1)
    rows = pa.concat_tables([rows] * 4096).combine_chunks()
    text = pa.DictionaryArray.from_arrays(pa.array([0] * len(rows), pa.int32()), pa.array(["x" * (512 << 10)]))
    pq.write_table(rows.set_column(rows.schema.get_field_index("region"), "region", text), file)


def repeat_rows(file: Path) -> None:
    pq.write_table(pa.table({"cluster": pa.nulls(30_000_000, pa.int8())}), file)


def make_a_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def count_too_far(file: Path) -> None:
    (line,) = file.read_bytes().splitlines()
    file.write_bytes(json.dumps({**json.loads(line), "findings": 2**63}).encode() + b"\n")


def remove_newline(file: Path) -> None:
    file.write_bytes(file.read_bytes().rstrip(b"\n"))


def add_text(file: Path) -> None:
    file.write_bytes(file.read_bytes() + b"not JSON\n")


def drop_column(file: Path) -> None:
    file.write_bytes(file.read_bytes().replace(b'"region"', b'"place"'))


@pytest.mark.parametrize(
    ("suffix", "harm", "problem"),
    [
        ("parquet", truncate, "truncated or damaged: "),
        ("parquet", empty, "truncated or damaged: "),
        ("parquet", damage, "truncated or damaged: "),
        ("parquet", foreign, "foreign schema: no column `cluster` and "),
        ("parquet", retype, "foreign schema: column `spend_usd` is string instead of number"),
        ("parquet", rename, "foreign: its rows have another cluster than its path"),
        (
            "parquet",
            changed("region", lambda rows: pa.nulls(rows, pa.string())),
            "foreign: column `region` has no value in some rows",
        ),
        (
            "parquet",
            changed("spend_usd", lambda rows: pa.array([math.nan] * rows)),
            "foreign: column `spend_usd` has a value that is not ",
        ),
        (
            "parquet",
            changed("spend_usd", lambda rows: pa.array([math.inf] * rows)),
            "foreign: column `spend_usd` has a value that is not ",
        ),
        ("parquet", changed("region", encode_wrongly), "truncated or damaged: "),
        ("parquet", repeat_a_long_text, "its columns take more than 1024 MiB"),
        ("parquet", repeat_rows, "its columns take more than 1024 MiB"),
        ("parquet", make_a_pipe, "not a regular file"),
        ("ndjson", count_too_far, "foreign schema: "),
        ("ndjson", truncate, "truncated: its last line, 1, is incomplete"),
        ("ndjson", remove_newline, "truncated: its last line, 1, is incomplete"),
        ("ndjson", add_text, "foreign schema or damaged: line 2: "),
        ("ndjson", drop_column, "foreign schema or damaged: line 1: Object missing required field `region`"),
    ],
)
def test_a_file_that_cannot_be_read_is_named_and_the_others_read(
    tmp_path: Path, suffix: str, harm: Callable[[Path], None], problem: str
) -> None:
    write_fleet(tmp_path, Fleet(clusters=2, days=1, objects=4, suffix=suffix, tables=("runs",)))
    file = next((tmp_path / "runs").rglob(f"cluster=cluster-000/*.{suffix}"))
    harm(file)
    problems: list[str] = []
    runs = runs_of(open_source(str(tmp_path)), NOW.date(), NOW.date())
    tables = [*read_all(runs, "runs", ("cluster", "run_id", "region", "findings", "spend_usd"), problems)]
    assert [table["cluster"].to_pylist() for table in tables] == [["cluster-001"]]
    assert [text.partition(problem)[:2] for text in problems] == [(f"{file}: ", problem)]


@pytest.mark.parametrize(
    "path",
    [
        pytest.param("dt=2026-13-45/cluster=a/r.parquet", id="no-day"),
        pytest.param("dt=2026-11-23/dt=2026-13-45/cluster=a/r.parquet", id="no-day-below-a-day"),
        pytest.param("dt=\uff12\uff10\uff12\uff16-11-23/cluster=a/r.parquet", id="digits-of-another-script"),
    ],
)
def test_a_path_that_no_audit_writes_is_passed_over(tmp_path: Path, path: str) -> None:
    write_fleet(tmp_path, Fleet(clusters=2, days=1, objects=4))
    file = tmp_path / "runs" / path
    file.parent.mkdir(parents=True)
    file.write_bytes(b"")
    assert report_of_files([str(tmp_path)], NOW, 30, SILENT).totals.clusters == 2


def test_a_missing_file_of_a_table_is_named(tmp_path: Path) -> None:
    write_fleet(tmp_path, Fleet(clusters=2, days=1, objects=10))
    file = next((tmp_path / "money").rglob("cluster=cluster-000/*.parquet"))
    file.unlink()
    report = report_of_files([str(tmp_path)], NOW, 30, SILENT)
    assert report.problems == (f"{file}: missing, but the run has rows in this table",)
    assert report.totals.clusters == 2
    assert {row.clusters for row in report.teams} == {1}


def test_an_unreachable_path_is_named_and_the_others_counted(tmp_path: Path) -> None:
    write_fleet(tmp_path / "here", Fleet(clusters=1, days=1, objects=10))
    missing, unknown = tmp_path / "missing", "nowhere://bucket"
    report = report_of_files([str(missing), unknown, str(tmp_path / "here")], NOW, 30, SILENT)
    assert report.totals.clusters == 1
    assert report.problems == (
        f"{missing}: no table `runs`: `gpugate audit -o parquet={missing}` writes the tables",
        "nowhere://bucket: Protocol not known: nowhere",
    )


@pytest.fixture
def bucket(tmp_path: Path) -> Iterator[Bucket]:
    write_fleet(tmp_path / "bucket", Fleet(clusters=3, days=2, objects=10))
    with Bucket(tmp_path / "bucket").served() as served:
        yield served


@pytest.fixture
def here(tmp_path: Path) -> str:
    write_fleet(tmp_path / "here", Fleet(clusters=1, days=1, objects=10, first=7))
    return str(tmp_path / "here")


def test_a_bucket_over_a_socket_gives_the_report_of_its_directory(bucket: Bucket, tmp_path: Path) -> None:
    of_bucket, of_directory = (report_of_files([each], NOW, 30, SILENT) for each in (bucket.url, f"{tmp_path}/bucket"))
    assert of_bucket.problems == ()
    assert (of_bucket.clusters, of_bucket.worst) == (of_directory.clusters, of_directory.worst)


@pytest.mark.parametrize(
    ("answer", "reason"), [("forbidden", "403, message='Forbidden'"), ("hang up", "Server disconnected")]
)
def test_a_bucket_that_refuses_is_named_and_the_others_counted(
    bucket: Bucket, here: str, answer: Answer, reason: str
) -> None:
    bucket.answers = answer
    report = report_of_files([bucket.url, here], NOW, 30, SILENT)
    assert [row.cluster for row in report.clusters] == ["cluster-007"]
    assert [problem.partition(reason)[:2] for problem in report.problems] == [
        (f"{bucket.url}: cannot be listed: ", reason)
    ]


def test_an_address_without_a_bucket_is_named_and_the_others_counted(here: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/audits"
    report = report_of_files([url, here], NOW, 30, SILENT)
    assert [row.cluster for row in report.clusters] == ["cluster-007"]
    assert [problem.startswith(f"{url}: cannot be listed: Cannot connect ") for problem in report.problems] == [True]


def test_a_bucket_that_refuses_files_is_named_by_file(bucket: Bucket) -> None:
    runs = runs_of(open_source(bucket.url), NOW.date(), NOW.date())
    bucket.answers = "forbidden"
    problems: list[str] = []
    assert [*read_all(runs, "money", ("cluster",), problems)] == []
    assert [problem.startswith(f"{bucket.url}/{run.of('money')}: cannot be read: 403") for problem, run in zip(problems, runs, strict=True)] == [True] * 3  # fmt: skip


def test_a_bucket_that_does_not_answer_is_given_up(bucket: Bucket) -> None:
    bucket.answers = "nothing"
    source = open_source(bucket.url, patience=0.1)
    for _ in range(2):
        with pytest.raises(
            SourceError, match=rf"^{bucket.url}: no answer within 0\.1 s: .* or wait longer with --timeout"
        ):
            runs_of(source, NOW.date(), NOW.date())
    assert len(bucket.asked) <= 1


def test_a_bucket_that_no_longer_answers_is_one_problem_and_the_others_are_read(bucket: Bucket, here: str) -> None:
    source = open_source(bucket.url)
    runs = [each for path in (source, open_source(here)) for each in runs_of(path, dt.date.min, dt.date.max)]
    bucket.answers, source.patience = "nothing", 0.1
    problems: list[str] = []
    for table in ("runs", "money"):
        (rows,) = read_all(runs, table, ("cluster", "run_id"), problems)
        assert {*rows["cluster"].to_pylist()} == {"cluster-007"}
    assert [problem.partition(": ")[0] for problem in problems] == [bucket.url]


class Stuck(LocalFileSystem):
    """A directory of a network whose server stops answering after some files."""

    cachable = False

    def __init__(self, answered: int) -> None:
        super().__init__()
        self.answered = answered
        self.release = threading.Event()

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **_: Any) -> bytes:
        if self.answered == 0:
            self.release.wait()
        self.answered -= 1
        return bytes(super().cat_file(path, start, end))


def test_a_directory_that_no_longer_answers_is_one_problem_and_its_first_files_are_read(
    tmp_path: Path, here: str
) -> None:
    write_fleet(tmp_path, Fleet(clusters=3, days=1, objects=10))
    stuck = Stuck(answered=2)
    source = Source(str(tmp_path), stuck, str(tmp_path), patience=0.2)
    runs = [each for path in (source, open_source(here)) for each in runs_of(path, dt.date.min, dt.date.max)]
    problems: list[str] = []
    (rows,) = read_all(runs, "runs", ("cluster", "run_id"), problems)
    stuck.release.set()

    assert rows["cluster"].to_pylist() == ["cluster-000", "cluster-001", "cluster-007"]
    assert [problem.partition(": ")[0] for problem in problems] == [str(tmp_path)]


def test_of_many_files_only_the_bad_ones_are_left_out(tmp_path: Path) -> None:
    clusters = [f"c-{number:03}" for number in range(300)]
    for cluster in clusters:
        spend = float("nan") if cluster == "c-007" else 1.0
        values = {"schema_name": [SCHEMA], "coverage": [1.0], "policy_mode": ["as-is"], "spend_usd": [spend]}
        write_rows(tmp_path, Run(cluster, "r", NOW, {"runs": values}), "runs")
    foreign = tmp_path / file_of("runs", NOW, "c-299", "r", "parquet")
    foreign.write_bytes((tmp_path / file_of("runs", NOW, "c-000", "r", "parquet")).read_bytes())
    problems: list[str] = []
    runs = runs_of(open_source(str(tmp_path)), NOW.date(), NOW.date())
    read = [
        name
        for rows in read_all(runs, "runs", ("cluster", "run_id", "spend_usd"), problems)
        for name in rows["cluster"].to_pylist()
    ]

    assert sorted(read) == [cluster for cluster in clusters if cluster not in {"c-007", "c-299"}]
    assert [problem.partition(": ")[2] for problem in problems] == [
        "foreign: column `spend_usd` has a value that is not a finite number",
        "foreign: its rows have another cluster than its path",
    ]


def test_a_bucket_gives_the_rows_of_a_directory(tmp_path: Path) -> None:
    write_fleet(tmp_path, Fleet(clusters=1, days=2, objects=10))
    bucket = fsspec.filesystem("memory")
    name = f"memory://{tmp_path.name}-bucket"
    bucket.put(str(tmp_path), name.removeprefix("memory:/"), recursive=True)
    from_bucket = report_of_files([name], NOW, 30, SILENT)
    assert from_bucket.problems == ()
    assert from_bucket.clusters == report_of_files([str(tmp_path)], NOW, 30, SILENT).clusters


def test_only_days_in_the_window_and_finished_files_are_listed(tmp_path: Path) -> None:
    write_fleet(tmp_path, Fleet(clusters=1, days=5, objects=5))
    folder = next((tmp_path / "runs").glob("dt=2026-11-23/*"))
    (folder / "x.parquet.part").write_bytes(b"")
    (tmp_path / "runs" / "README").write_text("ours")
    runs = runs_of(open_source(str(tmp_path)), dt.date(2026, 11, 22), dt.date(2026, 11, 23))
    assert [run.day for run in runs] == ["2026-11-22", "2026-11-23"]


def test_a_run_in_both_formats_is_read_once_from_parquet(tmp_path: Path) -> None:
    for suffix in ("parquet", "ndjson"):
        write_fleet(tmp_path, Fleet(clusters=1, days=1, objects=5, suffix=suffix))
    runs = runs_of(open_source(str(tmp_path)), dt.date(2026, 11, 1), dt.date(2026, 11, 30))
    assert [run.suffix for run in runs] == ["parquet"]


def test_a_bucket_whose_library_is_missing_says_which() -> None:
    # s3fs is in no environment of the tests.
    with pytest.raises(FileError, match=r"^s3://bucket: Install s3fs to access S3"):
        open_source("s3://bucket")


def test_a_table_without_rows_has_no_file(tmp_path: Path) -> None:
    write_fleet(
        tmp_path, Fleet(clusters=1, days=1, objects=10, tables=("runs", "money", "objects", "findings", "gpus"))
    )
    report = report_of_files([str(tmp_path)], NOW, 30, SILENT)
    assert (report.problems, report.expired) == ((), ())


def test_credentials_in_a_url_are_not_reported() -> None:
    report = report_of_files(["nowhere://user:secret@bucket/path?token=secret"], NOW, 30, SILENT)
    assert report.sources == ("nowhere://bucket/path",)
    assert "secret" not in "".join(report.problems)
