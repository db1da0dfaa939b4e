"""The history of audits: what a record contains, and what is read of a directory."""

from __future__ import annotations

import datetime as dt
import os
from typing import TYPE_CHECKING

import msgspec
import pytest
from audit_reports import audit
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gpugate.webhook.audit import history as recorded
from gpugate.webhook.audit.history import MOST_GROUPS, NO_TEAM, OTHER, Counts, HistoryError, Run, append, prepare, read
from gpugate.webhook.audit.model import Spend, Summary, Usage, Use, Used

if TYPE_CHECKING:
    from pathlib import Path

NOW = dt.datetime(2026, 11, 23, 15, tzinfo=dt.UTC)
RUN = Run("0.1.0", NOW, 1.0, Summary(1, 2, 3, 4, 5), "prod")
LINE = msgspec.json.encode(RUN)


def test_a_record_has_the_figures_of_the_report() -> None:
    report = audit()
    assert report.cost
    used = (Used(Use.BUSY, 1.0, 6.0), Used(Use.IDLE, 1.0, 4.0), Used(Use.PARKED, 1.0, 1.5))
    spending = (Spend("team", "", 3.0, 11.5, used), Spend("team", "ml", 1.0, None))
    cost = replace(report.cost, spend=20.0, allocated=11.5, unallocated=8.5, used=used, spending=spending)
    run = Run.of(replace(report, cost=cost, usage=Usage("http://p", 86400, 10, 0.9)), cluster="prod")

    assert run.objects == report.summary
    assert run.usd_per_hour == {
        "spend": 20.0, "at risk": report.cost.at_risk, "busy": 6.0, "idle": 4.0, "parked": 1.5, "unallocated": 8.5,
    }  # fmt: skip
    assert run.teams == {NO_TEAM: Counts(usd_per_hour=11.5, idle_or_parked_usd_per_hour=5.5), "ml": Counts()}
    assert run.use_coverage == 0.9
    assert sum(counts.deny for counts in run.namespaces.values()) == report.summary.deny


def test_groups_beyond_the_most_share_one() -> None:
    report = audit()
    assert report.cost
    spending = tuple(Spend("team", f"t{n}", 1.0, 2.0) for n in range(MOST_GROUPS + 3))
    run = Run.of(replace(report, cost=replace(report.cost, spending=spending)))

    assert len(run.teams) == MOST_GROUPS + 1
    assert run.teams[OTHER].usd_per_hour == 6.0


@given(st.lists(st.integers(0, 80), max_size=8))
def test_records_are_read_as_they_were_appended(days: list[int]) -> None:
    import tempfile  # noqa: PLC0415 -- hypothesis needs a directory for each example
    from pathlib import Path  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as name:
        directory = Path(name) / "history"
        runs = [replace(RUN, time=NOW - dt.timedelta(days=age), coverage=age / 100) for age in days]
        prepare(directory, NOW)
        for run in runs:
            append(directory, run)

        assert read(directory, NOW) == (tuple(sorted(runs, key=lambda run: run.time)), ())


@pytest.mark.parametrize(
    ("content", "records", "problem"),
    [
        pytest.param(LINE + b"\n", 1, "", id="one-record"),
        pytest.param(b"", 0, "", id="an-empty-file"),
        pytest.param(LINE + b"\n" + LINE[:40], 1, ":2: an incomplete record", id="a-write-was-interrupted"),
        pytest.param(LINE[:40] + b"\n" + LINE + b"\n", 1, ":1: not a record", id="the-next-audit-ended-the-line"),
        pytest.param(
            b'{"schema": "gpugate.dev/audit/v1"}\n' + LINE + b"\n", 1, ":1: not a record", id="another-document"
        ),
        pytest.param(LINE.replace(b"history/v1", b"history/v2") + b"\n", 0, "does not read", id="a-later-version"),
        pytest.param(LINE.replace(b'"deny":1', b'"deny":"x"') + b"\n", 0, ":1: not a record", id="a-wrong-type"),
        pytest.param(b"\xff\n" + LINE + b"\n", 1, ":1: not a record", id="not-utf-8"),
        pytest.param(b"[" * 100_000 + b"\n" + LINE + b"\n", 1, ":1: not a record", id="deep"),
        pytest.param(
            LINE[:-1] + b',"later":' + b"[" * 100_000 + b"\n" + LINE + b"\n", 1, ":1: not a record", id="a-deep-field"
        ),
        pytest.param(b"x" * (recorded.MOST_LINE + 9) + b"\n" + LINE + b"\n", 1, ":1: not a record", id="a-long-line"),
        pytest.param(LINE.replace(b"{", b'{"later": [1], ', 1) + b"\n", 1, "", id="a-field-of-a-later-version"),
    ],
)
def test_a_line_that_is_no_record_is_named_and_passed_over(
    content: bytes, records: int, problem: str, tmp_path: Path
) -> None:
    (tmp_path / "2026-11.ndjson").write_bytes(content)

    runs, problems = read(tmp_path, NOW)

    assert len(runs) == records
    assert [problem in text for text in problems] == ([True] if problem else [])


# What the first version with a history wrote.
FIRST = (
    b'{"schema":"gpugate.dev/audit-history/v1","gpugate":"0.1.0","time":"2026-11-22T15:00:00Z","coverage":0.5,"objects":'
    b'{"deny":1,"mutate":2,"warn":3,"record":4,"allow":5},"cluster":"prod","selection":"-n ml","usd_per_hour":{"spend":20.0},'
    b'"use_coverage":0.9,"policies":{"pods/x":{"deny":1}},"teams":{"ml":{"usd_per_hour":11.5}}}\n'
)


def test_a_record_of_an_earlier_version_is_read_and_compared(tmp_path: Path) -> None:
    (tmp_path / "2026-11.ndjson").write_bytes(FIRST)

    (first,), problems = read(tmp_path, NOW)

    assert not problems
    assert (first.cluster, first.objects.allow, first.policies["pods/x"].deny) == ("prod", 5, 1)
    assert (first.cluster_id, first.run_id, first.labels) == ("", "", {})
    assert first.is_of(replace(RUN, cluster_id="0b1c"))
    assert not first.is_of(replace(RUN, cluster_id="0b1c", cluster="other"))


def test_a_renamed_context_is_the_same_cluster() -> None:
    assert replace(RUN, cluster_id="0b1c", cluster="admin@prod").is_of(replace(RUN, cluster_id="0b1c"))
    assert not replace(RUN, cluster_id="77aa").is_of(replace(RUN, cluster_id="0b1c"))


def test_records_of_a_wrong_clock_are_named(tmp_path: Path) -> None:
    append(tmp_path, replace(RUN, time=NOW + dt.timedelta(hours=2)))
    append(tmp_path, replace(RUN, time=NOW + dt.timedelta(minutes=1)))

    assert "1 record is of a later time than now" in read(tmp_path, NOW).problems[0]


def test_a_record_after_an_interrupted_one_is_read(tmp_path: Path) -> None:
    (tmp_path / "2026-11.ndjson").write_bytes(LINE + b"\n" + LINE[:40])

    append(tmp_path, RUN)

    assert read(tmp_path, NOW).runs == (RUN, RUN)


def test_many_lines_are_named_once(tmp_path: Path) -> None:
    (tmp_path / "2026-11.ndjson").write_bytes(b"x\n" * 50)

    problems = read(tmp_path, NOW).problems

    assert (len(problems), problems[-1]) == (4, f"{tmp_path}: 47 more lines passed over")


def test_old_records_and_other_files_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "2026-01.ndjson").write_bytes(b"x\n")
    (tmp_path / "notes.ndjson").write_bytes(b"x\n")
    append(tmp_path, replace(RUN, time=NOW - dt.timedelta(days=recorded.DAYS + 1)))

    assert read(tmp_path, NOW) == ((), ())


def test_of_a_large_history_the_newest_records_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for hour in range(20):
        append(tmp_path, replace(RUN, time=NOW - dt.timedelta(hours=20 - hour)))
    monkeypatch.setattr(recorded, "MOST_BYTES", 5 * len(LINE) + 10)

    runs, problems = read(tmp_path, NOW)

    assert runs == tuple(replace(RUN, time=NOW - dt.timedelta(hours=hour)) for hour in (5, 4, 3, 2, 1))[-len(runs) :]
    assert len(runs) >= 4
    assert "delete older records" in problems[0]


def test_a_directory_that_cannot_be_used_is_refused_before_the_audit(tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match=r"--history .*/a/b: no such file or directory"):
        prepare(tmp_path / "a" / "b", NOW)
    (tmp_path / "file").write_text("")
    with pytest.raises(HistoryError, match=r"--history .*/file: (file exists|not a directory)"):
        prepare(tmp_path / "file", NOW)


def test_what_was_written_of_a_record_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    append(tmp_path, RUN)
    write = os.write
    monkeypatch.setattr(os, "write", lambda file, data: write(file, data[:10]))

    with pytest.raises(HistoryError, match="check the free space"):
        append(tmp_path, RUN)

    assert read(tmp_path, NOW) == ((RUN,), ())
