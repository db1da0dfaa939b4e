"""The names and the content of the files of a record, what of a damaged one is read, and which are removed."""

from __future__ import annotations

import datetime as dt
import gzip
import json
import os
import stat
import threading
import tracemalloc
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from eventually import eventually

from gpugate.webhook.admission import record_file
from gpugate.webhook.admission.record_file import (
    DROPPED,
    FAILED,
    RECORDED,
    SCHEMA,
    SUFFIX,
    Damaged,
    FactsEnd,
    FactsObject,
    FactsOfKind,
    Folder,
    Head,
    Recorded,
    RecordWriter,
    Repeated,
    encode,
    is_record,
    is_snapshot,
    read_lines,
    start_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpugate.webhook.admission.record_file import Line

TIME = dt.datetime(2026, 11, 21, 10, 20, 30, tzinfo=dt.UTC)
LATER = TIME + dt.timedelta(hours=1)
HEAD = Head(SCHEMA, "1.2.3", TIME)
FULL = Recorded(
    7,
    TIME,
    "mutate",
    "g",
    ("apps", "v1", "Deployment"),
    "UPDATE",
    {"pods/x": "deny"},
    "scale",
    ("apps", "v1", "ReplicaSet"),
    "n",
    "n-",
    "ml",
    "alice",
    ("a", "b"),
    {"new": 1},
    {"old": 1},
)

# The format is read by other versions: each line as it is written.
WRITTEN: list[tuple[Line, dict[str, Any]]] = [
    (
        HEAD,
        {"line": "head", "schema": "gpugate.dev/record/v1", "gpugate": "1.2.3", "time": "2026-11-21T10:20:30Z"},
    ),
    (
        Recorded(0, TIME, "validate", "g", ("", "v1", "Pod"), "CREATE"),
        {
            "line": "review",
            "id": 0,
            "time": "2026-11-21T10:20:30Z",
            "phase": "validate",
            "generation": "g",
            "kind": ["", "v1", "Pod"],
            "operation": "CREATE",
        },
    ),
    (
        FULL,
        {
            "line": "review",
            "id": 7,
            "time": "2026-11-21T10:20:30Z",
            "phase": "mutate",
            "generation": "g",
            "kind": ["apps", "v1", "Deployment"],
            "operation": "UPDATE",
            "decisions": {"pods/x": "deny"},
            "subresource": "scale",
            "parent": ["apps", "v1", "ReplicaSet"],
            "name": "n",
            "generate_name": "n-",
            "namespace": "ml",
            "user": "alice",
            "groups": ["a", "b"],
            "object": {"new": 1},
            "old_object": {"old": 1},
        },
    ),
    (Repeated(7, 3, LATER), {"line": "repeated", "id": 7, "count": 3, "last": "2026-11-21T11:20:30Z"}),
    (
        FactsOfKind("karpenter.sh", "NodePool"),
        {"line": "kind", "group": "karpenter.sh", "kind": "NodePool", "unavailable": ""},
    ),
    (FactsObject({"a": 1}), {"line": "object", "object": {"a": 1}}),
    (FactsEnd(2), {"line": "end", "objects": 2}),
]


@pytest.mark.parametrize(("line", "written"), WRITTEN)
class TestLines:
    def test_a_line_is_written_as_json(self, line: Line, written: dict[str, Any]) -> None:
        text = encode(line)
        assert (json.loads(text), text.count(b"\n"), text[-1:]) == (written, 1, b"\n")

    def test_a_line_is_read(self, tmp_path: Path, line: Line, written: dict[str, Any]) -> None:
        file = tmp_path / "a.ndjson.gz"
        file.write_bytes(gzip.compress(json.dumps(written).encode() + b"\n"))
        assert list(read_lines(file)) == [line]

    def test_a_line_of_a_later_version_with_more_fields_is_read(
        self, tmp_path: Path, line: Line, written: dict[str, Any]
    ) -> None:
        file = tmp_path / "a.ndjson.gz"
        file.write_bytes(gzip.compress(json.dumps({**written, "more": 1}).encode() + b"\n"))
        assert list(read_lines(file)) == [line]

    def test_a_line_does_not_change(self, line: Line, written: dict[str, Any]) -> None:
        with pytest.raises(AttributeError):
            setattr(line, next(key for key in written if key != "line"), None)


def test_what_is_damaged_does_not_change() -> None:
    with pytest.raises(AttributeError):
        Damaged("").reason = "other"  # type: ignore[misc] -- as it says


def test_a_review_has_nothing_that_its_line_leaves_out() -> None:
    recorded = Recorded(0, TIME, "validate", "g", ("", "v1", "Pod"), "CREATE")
    left_out = {name: getattr(recorded, name) for name in Recorded.__struct_fields__[6:]}
    assert left_out == {
        "decisions": {},
        "subresource": "",
        "parent": None,
        "name": "",
        "generate_name": "",
        "namespace": "",
        "user": "",
        "groups": (),
        "object": None,
        "old_object": None,
    }


def test_the_results_are_labels_of_a_metric() -> None:
    assert (RECORDED, FAILED, DROPPED) == ("recorded", "failed", "dropped")


NAMES: list[tuple[str, bool, bool]] = [
    # name, is of a record, is a snapshot
    ("gpugate-host-0-reviews-20261121T102030Z-120001.ndjson.gz", True, False),
    ("gpugate-host-0-facts-20261121T102030Z-120001.ndjson.gz", True, True),
    ("gpugate-host-0-reviews-20260230T102030Z-120001.ndjson.gz", False, False),
    ("gpugate-host-0-reviews-20261121T102030Z-120001.ndjson", False, False),
    ("xgpugate-host-0-reviews-20261121T102030Z-120001.ndjson.gz", False, False),
    ("gpugate-host-0-other-20261121T102030Z-120001.ndjson.gz", False, False),
    ("gpugate--reviews-20261121T102030Z-120001.ndjson.gz", False, False),
    ("notes.ndjson.gz", False, False),
]


@pytest.mark.parametrize(("name", "of_record", "snapshot"), NAMES, ids=[name for name, *_ in NAMES])
def test_the_name_tells_what_a_file_contains(name: str, of_record: bool, snapshot: bool) -> None:  # noqa: FBT001 -- a table's columns
    path = Path("folder-of-facts-x") / name
    assert (is_record(path), of_record and is_snapshot(path)) == (of_record, snapshot)
    if of_record:
        assert start_of(path) == TIME


@pytest.mark.parametrize("content", ["facts", "reviews"])
def test_a_file_is_named_after_its_process_its_content_its_time_and_its_number(tmp_path: Path, content: Any) -> None:
    folder = Folder(tmp_path / "a" / "b", "host-0", 1, 1)
    path, descriptor = folder.create(content, TIME, 12)
    os.close(descriptor)
    assert path == tmp_path / "a" / "b" / f"gpugate-host-0-{content}-20261121T102030Z-{os.getpid()}0012{SUFFIX}"
    assert (SUFFIX, is_record(path), start_of(path)) == (".ndjson.gz", True, TIME)
    assert (stat.S_IMODE(path.stat().st_mode), stat.S_IMODE(path.parent.stat().st_mode)) == (0o600, 0o700)


def test_an_existing_file_is_never_written_to(tmp_path: Path) -> None:
    folder = Folder(tmp_path, "host-0", 1, 1)
    path, descriptor = folder.create("reviews", TIME, 1)
    os.close(descriptor)
    with pytest.raises(FileExistsError):
        folder.create("reviews", TIME, 1)
    other = tmp_path / "other"
    path.unlink()
    path.symlink_to(other)
    with pytest.raises(FileExistsError):
        folder.create("reviews", TIME, 1)
    assert not other.exists()


class TestRoom:
    """Ten bytes in each file, of an hour each; the third is the current one."""

    @pytest.fixture
    def files(self, tmp_path: Path) -> list[Path]:
        # The name of the host orders the files otherwise than their times do.
        names = [f"gpugate-{host}-reviews-20261121T1{hour}0000Z-10001.ndjson.gz" for hour, host in enumerate("cab")]
        paths = [tmp_path / name for name in names]
        for path in paths:
            path.write_bytes(b"x" * 10)
        (tmp_path / "notes.ndjson.gz").write_bytes(b"x" * 1_000)
        return paths

    @pytest.mark.parametrize(
        ("size", "left"),
        [(0, [0, 1, 2]), (5, [0, 1, 2]), (6, [1, 2]), (15, [1, 2]), (16, [2]), (1_000, [2])],
    )
    def test_the_oldest_are_removed_until_it_fits(
        self, tmp_path: Path, files: list[Path], size: int, left: list[int]
    ) -> None:
        Folder(tmp_path, "host-0", 35, 1).make_room(size, files[2])
        assert [number for number, file in enumerate(files) if file.exists()] == left
        assert (tmp_path / "notes.ndjson.gz").exists()

    def test_of_the_same_time_the_first_by_name_is_removed(self, tmp_path: Path) -> None:
        names = [f"gpugate-{host}-reviews-20261121T100000Z-10001.ndjson.gz" for host in "abcd"]
        for name in reversed(names):
            (tmp_path / name).write_bytes(b"x" * 10)
        Folder(tmp_path, "host-0", 20, 1).make_room(0, tmp_path / names[3])
        assert sorted(path.name for path in tmp_path.iterdir()) == names[2:]

    def test_a_link_is_neither_counted_nor_removed(self, tmp_path: Path, files: list[Path]) -> None:
        large = tmp_path / "large"
        large.write_bytes(b"x" * 1_000)
        link = tmp_path / "gpugate-a-reviews-20251121T100000Z-10001.ndjson.gz"
        link.symlink_to(large)
        Folder(tmp_path, "host-0", 35, 1).make_room(5, files[2])
        assert (link.is_symlink(), all(file.exists() for file in files)) == (True, True)

    @pytest.mark.parametrize("before_its_size_is_read", [True, False])
    def test_a_file_that_another_process_removes_first_is_passed_over(
        self,
        tmp_path: Path,
        files: list[Path],
        monkeypatch: pytest.MonkeyPatch,
        before_its_size_is_read: bool,  # noqa: FBT001 -- a table's column
    ) -> None:
        class Entry:
            """An entry of a file that is removed after the directory was read."""

            def __init__(self, entry: os.DirEntry[str]) -> None:
                self.path = entry.path
                self._entry = entry
                self._is_removed = Path(entry.path) == files[0]
                if self._is_removed and before_its_size_is_read:
                    files[0].unlink()

            def is_file(self, *, follow_symlinks: bool = True) -> bool:
                return self._entry.is_file(follow_symlinks=follow_symlinks)

            def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
                status = self._entry.stat(follow_symlinks=follow_symlinks)
                if self._is_removed:
                    files[0].unlink()
                return status

        class Entries:
            def __init__(self, path: Path) -> None:
                self._entries = scandir(path)

            def __enter__(self) -> Iterator[Entry]:
                return iter([Entry(entry) for entry in self._entries])

            def __exit__(self, *_: object) -> None:
                self._entries.close()

        scandir = os.scandir
        monkeypatch.setattr(record_file.os, "scandir", Entries)
        Folder(tmp_path, "host-0", 20, 1).make_room(0, files[2])
        assert [file.exists() for file in files] == [False, True, True]


LINES = [encode(FactsEnd(number)) for number in range(5)]


class TestDamaged:
    """What is read of a file that is not as it was written."""

    def test_each_complete_line_is_read_and_a_damaged_one_says_so(self, tmp_path: Path) -> None:
        file = tmp_path / "a.ndjson.gz"
        file.write_bytes(gzip.compress(LINES[0] + b"not json\n" + b'{"line": "other"}\n' + LINES[1] + b'{"li'))
        damaged = Damaged("the line is damaged")
        assert list(read_lines(file)) == [FactsEnd(0), damaged, damaged, FactsEnd(1)]

    @pytest.mark.parametrize("read", [1, 7, 1 << 16])
    @pytest.mark.parametrize("decompressed", [1, 7, 1 << 20])
    def test_a_line_may_be_read_in_parts(
        self, tmp_path: Path, read: int, decompressed: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(record_file, "_READ_BYTES", read)
        monkeypatch.setattr(record_file, "_MOST_DECOMPRESSED", decompressed)
        file = tmp_path / "a.ndjson.gz"
        file.write_bytes(gzip.compress(b"".join(LINES)))
        assert list(read_lines(file)) == [FactsEnd(number) for number in range(5)]

    @pytest.mark.parametrize("content", [b"", b"not compressed", zlib.compress(b"{}\n")])
    def test_a_file_that_is_not_compressed_by_gzip_has_no_lines(self, tmp_path: Path, content: bytes) -> None:
        file = tmp_path / "a.ndjson.gz"
        file.write_bytes(content)
        assert list(read_lines(file)) == []

    def test_the_file_ends_at_a_line_that_is_too_long(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(record_file, "_MOST_DECOMPRESSED", 10)
        monkeypatch.setattr(record_file, "_LONGEST_LINE", 100)
        file = tmp_path / "a.ndjson.gz"
        for length, read in ((99, 5), (200, 1)):
            line = b" " * (length - len(LINES[0])) + LINES[0]
            file.write_bytes(gzip.compress(LINES[0] + line + b"".join(LINES[2:])))
            assert len(list(read_lines(file))) == read

    def test_the_longest_line_has_two_objects_of_3_mib_in_which_each_character_is_escaped(self) -> None:
        assert 2 * 3 * 2**20 * len("\\u0000") <= record_file._LONGEST_LINE <= 2 * 2 * 3 * 2**20 * len("\\u0000")

    def test_a_small_file_with_much_content_is_read_in_little_memory(self, tmp_path: Path) -> None:
        file = tmp_path / "a.ndjson.gz"
        line = encode(FactsObject({"a": "x" * 1_000}))
        file.write_bytes(gzip.compress(line * 60_000))
        assert file.stat().st_size < 400_000
        tracemalloc.start()
        try:
            lines = sum(isinstance(line, FactsObject) for line in read_lines(file))
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert (lines, peak < 10 << 20) == (60_000, True)


class Counted:
    """Counts lines by result."""

    def __init__(self) -> None:
        self.results: list[tuple[str, int]] = []

    def __call__(self, result: str, count: int) -> None:
        self.results.append((result, count))


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[Callable[..., RecordWriter]]:
    """What makes writers, with a short time to gather lines; they are closed at the end."""
    writers = []

    def make(count: Callable[[str, int], None] | None = None, *, file_bytes: int = 1 << 20) -> RecordWriter:
        writers.append(
            RecordWriter(Folder(tmp_path, "host-0", 1 << 24, file_bytes), "reviews", count or Counted(), HEAD)
        )
        return writers[-1]

    yield make
    for each in writers:
        each.close()


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.ndjson.gz"), key=lambda file: file.name.rsplit("-")[-1])


class TestWriter:
    def test_lines_are_written_in_order_after_a_head_with_the_time_of_the_file(
        self, tmp_path: Path, writer: Callable[..., RecordWriter]
    ) -> None:
        counted = Counted()
        written = writer(counted)
        for file, number, reviews in ((0, 1, 1), (0, 2, 0), (1, 3, 2)):
            assert written.put(file, encode(FactsEnd(number)), LATER, reviews)
        written.start()
        written.close()
        first, second = files(tmp_path)
        head = msgspec.structs.replace(HEAD, time=LATER)
        assert (list(read_lines(first)), list(read_lines(second))) == (
            [head, FactsEnd(1), FactsEnd(2)],
            [head, FactsEnd(3)],
        )
        assert counted.results == [(RECORDED, 1), (RECORDED, 2)]
        assert (written.broken, written.full) == (-1, -1)

    def test_what_is_closed_is_a_complete_gzip_file(self, tmp_path: Path, writer: Callable[..., RecordWriter]) -> None:
        written = writer()
        written.put(0, encode(FactsEnd(1)), TIME, 1)
        written.put(1, encode(FactsEnd(2)), TIME, 1)
        written.start()
        written.close()
        for file, last in zip(files(tmp_path), (1, 2), strict=True):
            assert gzip.decompress(file.read_bytes()).endswith(encode(FactsEnd(last)))

    def test_lines_are_on_disk_before_the_file_is_closed(
        self, tmp_path: Path, writer: Callable[..., RecordWriter], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(record_file, "_GATHER_SECONDS", 0.001)
        counted = Counted()
        written = writer(counted)
        written.start()
        for number in (1, 2):
            written.put(0, encode(FactsEnd(number)), TIME, 1)
            assert eventually(lambda: len(counted.results) == number)  # noqa: B023 -- called in this round
            (file,) = files(tmp_path)
            assert list(read_lines(file))[-1] == FactsEnd(number)

    @pytest.mark.parametrize(("file_bytes", "full"), [(1, 4), (1 << 20, -1)])
    def test_a_file_is_full_at_its_size(self, writer: Callable[..., RecordWriter], file_bytes: int, full: int) -> None:
        written = writer(file_bytes=file_bytes)
        written.put(4, encode(FactsEnd(1)), TIME, 1)
        written.start()
        written.close()
        assert written.full == full

    def test_a_file_of_exactly_its_size_is_full(self, tmp_path: Path, writer: Callable[..., RecordWriter]) -> None:
        written = writer()
        written.put(0, encode(FactsEnd(1)), TIME, 1)
        written._write(0, list(written._lines), None)
        (file,) = files(tmp_path)
        size = file.stat().st_size
        file.unlink()
        for file_bytes, full in ((size, 0), (size + 1, -1)):
            again = writer(file_bytes=file_bytes)
            again._write(0, list(written._lines), None)
            files(tmp_path)[0].unlink()
            assert again.full == full

    def test_the_lines_of_a_broken_file_are_failed_and_the_next_file_is_written(
        self, tmp_path: Path, writer: Callable[..., RecordWriter], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        counted = Counted()
        written = writer(counted)

        def fail(*_: object) -> int:
            raise OSError

        line = (1, encode(FactsEnd(1)), TIME, 3)
        with monkeypatch.context() as patch:
            patch.setattr(record_file.os, "write", fail)
            assert written._write(1, [line], None) is None
        assert written._write(1, [line, line], None) is None
        assert (written.broken, counted.results) == (1, [(FAILED, 3), (FAILED, 6)])
        current = written._write(2, [line], None)
        assert current is not None
        assert written._write(1, [line], current) is current
        current.close()
        assert counted.results[2:] == [(RECORDED, 3), (FAILED, 3)]
        assert [type(line) for line in read_lines(files(tmp_path)[-1])] == [Head, FactsEnd]

    def test_no_file_stays_open(self, writer: Callable[..., RecordWriter], monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(*_: object) -> int:
            raise OSError

        closed: list[int] = []
        close = os.close

        def closing(descriptor: int) -> None:
            closed.append(descriptor)
            close(descriptor)

        monkeypatch.setattr(record_file.os, "close", closing)
        written = writer()
        first = written._write(0, [(0, b"{}\n", TIME, 1)], None)
        second = written._write(1, [(1, b"{}\n", TIME, 1)], first)
        assert first is not None
        assert second is not None
        assert first._descriptor in closed
        closed.clear()
        monkeypatch.setattr(record_file.os, "write", fail)
        assert written._write(1, [(1, b"{}\n", TIME, 1)], second) is None
        assert second._descriptor in closed

    def test_a_write_that_the_disk_takes_in_parts_is_complete(
        self, tmp_path: Path, writer: Callable[..., RecordWriter], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write = os.write
        monkeypatch.setattr(record_file.os, "write", lambda descriptor, data: write(descriptor, data[:3]))
        written = writer()
        written.put(0, encode(FactsEnd(1)), TIME, 1)
        written.start()
        written.close()
        (file,) = files(tmp_path)
        assert list(read_lines(file)) == [HEAD, FactsEnd(1)]

    def test_old_files_make_room_for_new_bytes(self, tmp_path: Path) -> None:
        old = tmp_path / "gpugate-a-reviews-20251121T100000Z-10001.ndjson.gz"
        old.write_bytes(b"x" * 990)
        written = RecordWriter(Folder(tmp_path, "host-0", 1_000, 1_000), "reviews", Counted(), HEAD)
        current = written._write(0, [(0, encode(FactsEnd(1)), TIME, 1)], None)
        assert current is not None
        assert not old.exists()
        assert current.size == sum(file.stat().st_size for file in files(tmp_path))
        current.close()

    def test_a_line_of_any_size_has_room_in_an_empty_queue(
        self, writer: Callable[..., RecordWriter], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(record_file, "_MOST_QUEUED", 10)
        written = writer()
        sizes = (11, 0, 1)
        assert [written.put(0, b"x" * size, TIME, 1) for size in sizes] == [True, False, False]
        written = writer()
        assert [written.put(0, b"x" * size, TIME, 1) for size in (9, 1, 1)] == [True, True, False]

    def test_lines_of_8_mib_wait(self, writer: Callable[..., RecordWriter]) -> None:
        written = writer()
        assert [written.put(0, bytes(1 << 20), TIME, 1) for _ in range(9)] == [True] * 8 + [False]

    def test_there_is_room_again_after_lines_were_written(
        self, writer: Callable[..., RecordWriter], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(record_file, "_MOST_QUEUED", 10)
        monkeypatch.setattr(record_file, "_GATHER_SECONDS", 0.001)
        counted = Counted()
        written = writer(counted)
        written.start()
        for number in (1, 2):
            assert written.put(0, b"x" * 10, TIME, 1)
            assert eventually(lambda: len(counted.results) == number)  # noqa: B023 -- called in this round

    def test_a_disk_that_does_not_answer_keeps_no_process_alive(
        self, writer: Callable[..., RecordWriter], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        answers = threading.Event()
        monkeypatch.setattr(record_file, "_CLOSE_SECONDS", 0.01)
        monkeypatch.setattr(record_file.os, "write", lambda _, data: answers.wait() and len(data))
        written = writer()
        written.put(0, encode(FactsEnd(1)), TIME, 1)
        written.start()
        written.close()
        (thread,) = (each for each in threading.enumerate() if each.name == "record-reviews")
        assert thread.daemon
        answers.set()
        thread.join()
