"""The files of a record: compressed JSON lines of reviews, and snapshots of cluster data. Writes and reads them.

Each process writes files of its own. A file can end anywhere, because its process may be killed or the disk be full: readers
pass over what is damaged. Within a version of the format, fields and kinds of lines are only added.
"""

from __future__ import annotations

import datetime as dt
import os
import re
import threading
import zlib
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias

import msgspec

from gpugate.policies.engine.json_text import read_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import BinaryIO

SCHEMA: Final = "gpugate.dev/record/v1"
SUFFIX: Final = ".ndjson.gz"
_PREFIX: Final = "gpugate-"
_NAME: Final = re.compile(r"gpugate-.+-(?:facts|reviews)-([0-9]{8}T[0-9]{6}Z)-[0-9]+\.ndjson\.gz")
_GZIP: Final = 16 + zlib.MAX_WBITS
_READ_BYTES: Final = 64 * 1024
_MOST_DECOMPRESSED: Final = 1 << 20
# The longest line of a file that is read: two objects of 3 MiB, in which each character is escaped.
_LONGEST_LINE: Final = 64 << 20

# Without an offset, times cannot be compared.
Time: TypeAlias = Annotated[dt.datetime, msgspec.Meta(tz=True)]
PhaseName: TypeAlias = Literal["mutate", "validate"]


class Head(msgspec.Struct, frozen=True, tag="head", tag_field="line"):
    """The first line of a file."""

    schema: str
    gpugate: str
    time: Time


class Recorded(msgspec.Struct, frozen=True, tag="review", tag_field="line", omit_defaults=True):
    """A review without what may be secret, and its decision.

    Attributes:
        id: the number of the review in its file.
        time: when it was answered.
        phase: the webhook that received it.
        generation: that of the policy file in force.
        kind: group, version and kind of the object.
        operation: CREATE, UPDATE or DELETE.
        decisions: policy -> decision, of the policies that do not just allow; `skip` if cluster data was missing.
        parent: group, version and kind of the stored object of a subresource, if it is another one.
    """

    id: int
    time: Time
    phase: PhaseName
    generation: str
    kind: tuple[str, str, str]
    operation: Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]
    decisions: dict[str, str] = msgspec.field(default_factory=dict)
    subresource: str = ""
    parent: tuple[str, str, str] | None = None
    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    user: str = ""
    groups: tuple[str, ...] = ()
    object: dict[str, Any] | None = None
    old_object: dict[str, Any] | None = None


class Repeated(msgspec.Struct, frozen=True, tag="repeated", tag_field="line"):
    """Further reviews that differ from an earlier one of the file in nothing that a policy reads; `last` is the time of the last."""

    id: int
    count: int
    last: Time


class FactsOfKind(msgspec.Struct, frozen=True, tag="kind", tag_field="line"):
    """The lines after it are the objects of a kind, or there are none for a reason."""

    group: str
    kind: str
    unavailable: str = ""


class FactsObject(msgspec.Struct, frozen=True, tag="object", tag_field="line"):
    """An object with the fields that policies read."""

    object: dict[str, Any]


class FactsEnd(msgspec.Struct, frozen=True, tag="end", tag_field="line"):
    """The last line of a complete snapshot."""

    objects: int


Line: TypeAlias = "Head | Recorded | Repeated | FactsOfKind | FactsObject | FactsEnd"
_DECODER: Final = msgspec.json.Decoder(Head | Recorded | Repeated | FactsOfKind | FactsObject | FactsEnd)


def encode(line: Line) -> bytes:
    """Return a line with its newline."""
    return msgspec.json.encode(line) + b"\n"


class Damaged(msgspec.Struct, frozen=True):
    """Something that is no line."""

    reason: str


def is_record(path: Path) -> bool:
    """Tell by its name whether a file is one of a record."""
    name = _NAME.fullmatch(path.name)
    return name is not None and _time(name[1]) is not None


def is_snapshot(path: Path) -> bool:
    """Tell by its name whether a file of a record is a snapshot of cluster data."""
    return "-facts-" in path.name


def start_of(path: Path) -> dt.datetime:
    """Return when a file of a record (`is_record`) was begun, by its name."""
    time = _time(path.name.rsplit("-", 2)[1])
    assert time is not None, path  # noqa: S101 -- `is_record` checked it
    return time


def _time(text: str) -> dt.datetime | None:
    try:
        return dt.datetime.strptime(text, "%Y%m%dT%H%M%SZ").replace(tzinfo=dt.UTC)
    except ValueError:
        return None


def record_files(path: Path) -> tuple[Path, ...]:
    """Return the files of a record: of a directory, or the file itself; none if it is something else.

    Raises:
        OSError: the directory cannot be read.
    """
    files = path.iterdir() if path.is_dir() else iter([path])
    return tuple(sorted(file for file in files if is_record(file) and file.is_file()))


def read_lines(path: Path) -> Iterator[Line | Damaged]:
    """Yield the lines of a file in order; a file that is not complete ends with its last complete line.

    Raises:
        OSError: the file cannot be read.
    """
    with path.open("rb") as file:
        for line in _raw_lines(file):
            try:
                yield read_json(_DECODER.decode, line)
            except (msgspec.DecodeError, UnicodeDecodeError):
                yield Damaged("the line is damaged")


def _raw_lines(file: BinaryIO) -> Iterator[bytes]:
    decompressor = zlib.decompressobj(_GZIP)
    remainder = b""
    with suppress(zlib.error):
        while chunk := file.read(_READ_BYTES):
            while chunk:
                *lines, remainder = (remainder + decompressor.decompress(chunk, _MOST_DECOMPRESSED)).split(b"\n")
                yield from lines
                chunk = decompressor.unconsumed_tail
                if len(remainder) > _LONGEST_LINE:
                    return


@dataclass(frozen=True, slots=True)
class Folder:
    """Where a process writes, and how much.

    Attributes:
        path: the directory; it is created if it is missing.
        name: what distinguishes the files of this process, such as the host and the number of the process.
        most_bytes: the limit of all files of records in the directory, of all processes.
        file_bytes: the size at which a file is complete.
    """

    path: Path
    name: str
    most_bytes: int
    file_bytes: int

    def create(self, content: Literal["facts", "reviews"], time: dt.datetime, number: int) -> tuple[Path, int]:
        """Create a file that only this user can read; return it and its descriptor.

        Raises:
            OSError: it cannot be created.
        """
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self.path / f"{_PREFIX}{self.name}-{content}-{time:%Y%m%dT%H%M%SZ}-{os.getpid()}{number:04d}{SUFFIX}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        return path, os.open(path, flags, 0o600)

    def make_room(self, size: int, current: Path) -> None:
        """Remove the oldest files of records until so many more bytes fit.

        Raises:
            OSError: the directory cannot be read.
        """
        sizes: dict[Path, int] = {}
        with os.scandir(self.path) as entries:
            for entry in entries:
                path = Path(entry.path)
                # Another process may remove the same file.
                with suppress(FileNotFoundError):
                    if is_record(path) and entry.is_file(follow_symlinks=False):
                        sizes[path] = entry.stat(follow_symlinks=False).st_size
        total = sum(sizes.values()) + size
        for path in sorted(sizes.keys() - {current}, key=lambda file: (start_of(file), file.name)):
            if total <= self.most_bytes:
                return
            path.unlink(missing_ok=True)
            total -= sizes[path]


Count: TypeAlias = "Callable[[str, int], None]"
RECORDED: Final = "recorded"
FAILED: Final = "failed"
DROPPED: Final = "dropped"
# Lines in memory that the disk has not accepted yet.
_MOST_QUEUED: Final = 8 << 20
# Lines are gathered for so long, because each flush costs compression.
_GATHER_SECONDS: Final = 1.0
_CLOSE_SECONDS: Final = 1.0


class RecordWriter:
    """Compresses and writes lines in a thread; nothing that the disk does delays or fails the caller.

    A file that cannot be written is given up, with all lines that were meant for it: `broken` is its number. The caller begins
    another file when it wants to.
    """

    def __init__(self, folder: Folder, content: Literal["facts", "reviews"], count: Count, head: Head) -> None:
        """Create a writer; `start` begins its thread, after the last fork.

        Args:
            folder: where to write.
            content: what the files contain.
            count: called from any thread with a result and a number of lines with `Recorded` or `Repeated`.
            head: the first line, whose time is replaced by that of the file.
        """
        self._folder = folder
        self._content = content
        self._count = count
        self._head = head
        self._lines: deque[tuple[int, bytes, dt.datetime, int]] = deque()
        self._bytes = 0
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closing = False
        self.broken = -1
        self.full = -1

    def start(self) -> None:
        """Start the thread."""
        self._thread = threading.Thread(target=self._run, name=f"record-{self._content}", daemon=True)
        self._thread.start()

    def put(self, file: int, line: bytes, time: dt.datetime, reviews: int) -> bool:
        """Queue a line; return whether there was room for it. Never waits.

        Args:
            file: the number of the file that it belongs to; numbers only increase.
            line: the line.
            time: when the file begins, if this is its first line.
            reviews: how many reviews the line stands for.
        """
        with self._changed:
            if self._bytes + len(line) > _MOST_QUEUED and self._lines:
                return False
            if not self._lines:
                self._changed.notify()
            self._lines.append((file, line, time, reviews))
            self._bytes += len(line)
        return True

    def close(self) -> None:
        """Write what is queued, for a limited time."""
        if self._thread is not None:
            with self._changed:
                self._closing = True
                self._changed.notify()
            self._thread.join(_CLOSE_SECONDS)

    def _run(self) -> None:
        current: _File | None = None
        while True:
            with self._changed:
                while not self._lines and not self._closing:
                    self._changed.wait()
                if not self._closing:
                    self._changed.wait_for(lambda: self._closing, _GATHER_SECONDS)
                lines = list(self._lines)
                self._lines.clear()
                self._bytes = 0
                is_last = self._closing
            for file in dict.fromkeys(number for number, _, _, _ in lines):
                current = self._write(file, [line for line in lines if line[0] == file], current)
            if is_last:
                if current is not None:
                    current.close()
                return

    def _write(
        self, number: int, lines: list[tuple[int, bytes, dt.datetime, int]], current: _File | None
    ) -> _File | None:
        """Write lines of a file; return the open file."""
        reviews = sum(count for _, _, _, count in lines)
        if number <= self.broken:
            self._count(FAILED, reviews)
            return current
        try:
            if current is None or current.number != number:
                if current is not None:
                    current.close()
                    current = None
                time = lines[0][2]
                current = _File(number, self._folder, self._content, time)
                current.write([encode(msgspec.structs.replace(self._head, time=time))])
            current.write([line for _, line, _, _ in lines])
            if current.size >= self._folder.file_bytes:
                self.full = number
        except Exception:  # noqa: BLE001 -- such as MemoryError: the thread has to write the files after this one
            self.broken = number
            if current is not None:
                current.close()
            self._count(FAILED, reviews)
            return None
        self._count(RECORDED, reviews)
        return current


class _File:
    """A file that is being written."""

    def __init__(self, number: int, folder: Folder, content: Literal["facts", "reviews"], time: dt.datetime) -> None:
        self.number = number
        self.size = 0
        self._folder = folder
        self._compressor = zlib.compressobj(6, zlib.DEFLATED, _GZIP)
        self._path, self._descriptor = folder.create(content, time, number)

    def write(self, lines: list[bytes]) -> None:
        """Write lines so that a reader sees them, even if the process is killed right after.

        Raises:
            OSError: they were not written.
        """
        data = b"".join(map(self._compressor.compress, lines)) + self._compressor.flush(zlib.Z_SYNC_FLUSH)
        self._append(data)

    def close(self) -> None:
        # A file that is given up for another reason than the disk may be closed in any state.
        with suppress(Exception):
            self._append(self._compressor.flush(zlib.Z_FINISH))
        with suppress(OSError):
            os.close(self._descriptor)

    def _append(self, data: bytes) -> None:
        if not os.fstat(self._descriptor).st_nlink:
            raise FileNotFoundError(self._path)
        self._folder.make_room(len(data), self._path)
        self.size += len(data)
        while data:
            data = data[os.write(self._descriptor, data) :]
