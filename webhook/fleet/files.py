"""The files of the tables of audits, in directories and buckets: found, checked and read one by one.

A file that is truncated, too large or of another schema is named and left out as a whole, because a part of a run gives wrong sums.
The other files continue.
"""

from __future__ import annotations

import datetime as dt
import re
import stat
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from operator import methodcaller
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Self, TypeVar
from urllib.parse import urlsplit

import fsspec
import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from fsspec.implementations.local import LocalFileSystem

from gpugate.policies.engine.config import GpugateError
from gpugate.policies.engine.json_text import read_json
from gpugate.webhook.audit.table_files import SlowError, each_within, within
from gpugate.webhook.audit.tables import TABLES, file_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from gpugate.webhook.audit.tables import Column, Table, TableName

MOST_BYTES: Final = 256 << 20
"""Larger files are not read."""
MOST_UNPACKED: Final = 1 << 30
"""Parquet files whose columns take more bytes than this are not read."""
_VALUE_BYTES: Final = 8
_BATCH: Final = 256
_BATCH_BYTES: Final = 256 << 20
PATIENCE: Final = 60.0
"""Seconds for each answer of a directory or bucket; libraries of buckets try an unreachable one for minutes."""
_AT_ONCE: Final = 16
"""Requests to a bucket at a time; files of a directory are read one after the other, which is faster there."""
_NAME: Final = re.compile(r"dt=([0-9-]{10})/cluster=([^/]+)/([^/]+)\.(parquet|ndjson)$")
_DAY: Final = re.compile(r"dt=([0-9]{4}-[0-9]{2}-[0-9]{2})$")
_TYPES: Final[Mapping[str, Any]] = {
    "string": pa.string(),
    "integer": pa.int64(),
    "number": pa.float64(),
    "boolean": pa.bool_(),
    "time": pa.timestamp("us", "UTC"),
    "date": pa.date32(),
    "labels": pa.map_(pa.string(), pa.string()),
}
_FITS: Final[Mapping[str, Callable[[Any], bool]]] = {
    "string": lambda kind: pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_dictionary(kind),
    "integer": pa.types.is_integer,
    "number": lambda kind: pa.types.is_floating(kind) or pa.types.is_integer(kind),
    "boolean": pa.types.is_boolean,
    "time": pa.types.is_timestamp,
    "date": pa.types.is_date,
    "labels": pa.types.is_map,
}


class FileError(GpugateError):
    """A file or a path is not read; the message says why."""


class SourceError(FileError):
    """A directory or bucket does not answer; the message names it."""


_T = TypeVar("_T")


class Source:
    """A directory or bucket with tables, and how long it may take to answer.

    A report asks for thousands of files, and a bucket that misses one limit will usually miss the others. It is therefore not
    asked again.

    Attributes:
        name: the path or URL, without credentials.
        root: the path of the tables in it.
        patience: seconds that it may take for each answer: a list of names, or a file.
    """

    def __init__(self, name: str, files: Any, root: str, patience: float) -> None:  # Any: fsspec has no types
        self.name = name
        self.root = root.rstrip("/")
        self.patience = patience
        self._files = files
        self._is_lost = False

    @property
    def is_local(self) -> bool:
        """Whether it is a directory."""
        return isinstance(self._files, LocalFileSystem)

    @property
    def is_remote(self) -> bool:
        """Whether reading waits for a network."""
        protocol = self._files.protocol
        return not {"file", "local", "memory"} & {protocol, *(protocol if isinstance(protocol, tuple) else ())}

    def path(self, file: str) -> str:
        """Return a file with the name of the source."""
        return f"{self.name.rstrip('/')}/{file}"

    def ask(self, request: Callable[[Any], _T]) -> _T:
        """Return the answer to a request, which gets the file system, and raise what it raises.

        Raises:
            SourceError: the source does not answer in time, or did not before.
        """
        if not self._is_lost:
            try:
                return within(self.patience, lambda: request(self._files))
            except SlowError:
                self._is_lost = True
        raise self._lost()

    def ask_each(self, requests: Sequence[Callable[[Any], _T]]) -> Iterator[_T | Exception]:
        """Yield the answer to each request or what it raises, one after the other; `SourceError` from the first without an answer."""
        answered = 0
        if not self._is_lost:
            try:
                for answer in each_within(self.patience, [partial(request, self._files) for request in requests]):
                    answered += 1
                    yield answer
            except SlowError:
                self._is_lost = True
        for _ in requests[answered:]:
            yield self._lost()

    def _lost(self) -> SourceError:
        return SourceError(
            f"{self.name}: no answer within {self.patience:g} s: check the address and the network, or wait longer with "
            "--timeout; its files that were not read yet are left out"
        )


class RunFile(NamedTuple):
    """The files of a run in all tables.

    Attributes:
        source: where they are.
        day: the day of the run in UTC, as `2026-11-23`.
        cluster: the id of the cluster.
        run_id: the id of the run.
        suffix: the format, `parquet` or `ndjson`.
        filled: the tables that must have rows by the figures of the run; a table without rows has no file.
    """

    source: Source
    day: str
    cluster: str
    run_id: str
    suffix: Literal["parquet", "ndjson"]
    filled: frozenset[str] = frozenset({"runs"})

    def of(self, table: TableName) -> str:
        """Return the path of its file of a table, relative to the source."""
        time = dt.datetime.fromisoformat(self.day).replace(tzinfo=dt.UTC)
        return file_of(table, time, self.cluster, self.run_id, self.suffix)


def open_source(name: str, patience: float = PATIENCE) -> Source:
    """Return a directory, or a bucket by its URL.

    Args:
        name: its path or URL.
        patience: seconds that it may take for each answer.

    Raises:
        FileError: the URL is of an unknown kind, or its library is not installed.
    """
    try:
        files, root = fsspec.core.url_to_fs(name)
    except Exception as error:  # noqa: BLE001 -- each library of a bucket has errors of its own
        raise FileError(f"{without_credentials(name)}: {_one_line(error)}") from None
    return Source(without_credentials(name), files, root, patience)


def without_credentials(path: str) -> str:
    """Return a path or URL as reports may contain it: without user, password and query."""
    if "://" not in path:
        return path
    url = urlsplit(path)
    return url._replace(netloc=url.netloc.rpartition("@")[2], query="", fragment="").geturl()


def runs_of(source: Source, first: dt.date, last: dt.date) -> list[RunFile]:
    """Return the runs of the days from `first` to `last`, ordered; of a run in both formats the Parquet files.

    Raises:
        FileError: the source cannot be listed, or has no table of runs.
    """
    runs: dict[tuple[str, str, str], RunFile] = {}
    try:
        days = source.ask(methodcaller("ls", f"{source.root}/runs", detail=False))
        for folder in days:
            day = _DAY.search(folder.rstrip("/"))
            if day is None or not first.isoformat() <= day[1] <= last.isoformat() or not _is_date(day[1]):
                continue
            for path in source.ask(methodcaller("find", folder)):
                name = _NAME.search(path)
                if name is None or name[1] != day[1]:
                    continue
                run = RunFile(source, name[1], name[2], name[3], "parquet" if name[4] == "parquet" else "ndjson")
                key = run.day, run.cluster, run.run_id
                if key not in runs or run.suffix == "parquet":
                    runs[key] = run
    except FileNotFoundError:
        raise FileError(
            f"{source.name}: no table `runs`: `gpugate audit -o parquet={source.name}` writes the tables"
        ) from None
    except SourceError:
        raise
    except Exception as error:  # noqa: BLE001 -- each library of a bucket has errors of its own
        raise FileError(f"{source.name}: cannot be listed: {_one_line(error)}") from None
    return [runs[key] for key in sorted(runs)]


def _is_date(text: str) -> bool:
    try:
        dt.date.fromisoformat(text)
    except ValueError:
        return False
    return True


def read_all(
    runs: Sequence[RunFile], table: TableName, columns: Sequence[str], problems: list[str]
) -> Iterator[pa.Table]:
    """Yield the rows of runs in one table, many files at a time; files that cannot be used are added to `problems`."""
    wanted = _Wanted.of(TABLES[table], columns)

    def read(run: RunFile) -> tuple[RunFile, pa.Table] | FileError:
        try:
            return _decoded(run, wanted, run.source.ask(partial(_content, run, table)))
        except Exception as error:  # noqa: BLE001 -- each library of a bucket has errors of its own
            return _decoded(run, wanted, error)

    here = [run for run in runs if not run.source.is_remote]
    yield from _without(_checked(_in_order(here, wanted), wanted), problems)
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        remote = [run for run in runs if run.source.is_remote]
        yield from _without(_checked(_ahead(threads, read, remote), wanted), problems)


def _in_order(runs: Iterable[RunFile], wanted: _Wanted) -> Iterator[tuple[RunFile, pa.Table] | FileError]:
    """Yield the rows or the error of each run, read one after the other."""
    by_source: defaultdict[Source, list[RunFile]] = defaultdict(list)
    for run in runs:
        by_source[run.source].append(run)
    for source, of_source in by_source.items():
        answers = source.ask_each([partial(_content, run, wanted.table.name) for run in of_source])
        for run, answer in zip(of_source, answers, strict=True):
            yield _decoded(run, wanted, answer)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What is read of a table: its wanted columns, their types in Arrow, and the types of all columns."""

    table: Table
    columns: tuple[Column, ...]
    schema: pa.Schema
    whole: pa.Schema

    @classmethod
    def of(cls, table: Table, names: Sequence[str]) -> Self:
        columns = tuple(column for column in table.columns if column.name in names)
        return cls(table, columns, arrow_schema(columns), arrow_schema(table.columns))


def _named(error: FileError, run: RunFile, table: TableName) -> FileError:
    return error if isinstance(error, SourceError) else FileError(f"{run.source.path(run.of(table))}: {error}")


def _checked(results: Iterable[Any], wanted: _Wanted) -> Iterator[pa.Table | FileError]:
    """Check and join the rows of many files at once, because most are good and each call of Arrow has its price."""
    batch: list[tuple[RunFile, pa.Table]] = []
    size = 0
    for result in results:
        if isinstance(result, FileError):
            yield result
            continue
        batch.append(result)
        size += result[1].nbytes
        if len(batch) == _BATCH or size > _BATCH_BYTES:
            yield from _check_batch(batch, wanted)
            batch, size = [], 0
    if batch:
        yield from _check_batch(batch, wanted)


def _check_batch(batch: Sequence[tuple[RunFile, pa.Table]], wanted: _Wanted) -> Iterator[pa.Table | FileError]:
    """Yield the rows of files; if a check fails, those of each file or its error."""
    try:
        yield _check(batch, wanted.columns)
    except FileError as error:
        if len(batch) == 1:
            yield _named(error, batch[0][0], wanted.table.name)
            return
        for pair in batch:
            yield from _check_batch([pair], wanted)


def _ahead(threads: ThreadPoolExecutor, read: Callable[[RunFile], Any], runs: Sequence[RunFile]) -> Iterator[Any]:
    """Yield results in order, with a bounded number of them in memory."""
    for start in range(0, len(runs), _AT_ONCE * 4):
        yield from threads.map(read, runs[start : start + _AT_ONCE * 4])


def _without(results: Iterable[Any], problems: list[str]) -> Iterator[pa.Table]:
    for result in results:
        if not isinstance(result, FileError):
            yield result
        # A source without an answer is one problem, whatever its files are.
        elif not (isinstance(result, SourceError) and str(result) in problems):
            problems.append(str(result))


def _content(run: RunFile, table: TableName, files: Any) -> bytes:
    """Return the bytes of the file of a run, one more than allowed of a file that is too large."""
    name = f"{run.source.root}/{run.of(table)}"
    if run.source.is_local:
        _refuse_irregular(Path(name))
    # This tells a file that is too large, without a request for its size.
    data: bytes = files.cat_file(name, start=0, end=MOST_BYTES + 1)
    return data


def _decoded(run: RunFile, wanted: _Wanted, answer: bytes | Exception) -> tuple[RunFile, pa.Table] | FileError:
    """Return the rows of a run in the types of the schema, or the error of its file. Values are not checked yet."""
    try:
        return run, _rows(run, wanted, answer)
    except FileError as error:
        return _named(error, run, wanted.table.name)


def _rows(run: RunFile, wanted: _Wanted, answer: bytes | Exception) -> pa.Table:
    if isinstance(answer, FileNotFoundError):
        if wanted.table.name in run.filled:
            raise FileError("missing, but the run has rows in this table")
        return wanted.schema.empty_table()
    if isinstance(answer, FileError):
        raise answer
    if isinstance(answer, Exception):
        raise FileError(f"cannot be read: {_one_line(answer)}")
    if len(answer) > MOST_BYTES:
        raise FileError(f"larger than {MOST_BYTES >> 20} MiB")
    return _parquet(answer, wanted) if run.suffix == "parquet" else _ndjson(answer, wanted)


def _refuse_irregular(path: Path) -> None:
    """Refuse what is not a file: to open a pipe would wait until somebody writes into it."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise FileError("not a regular file")


def _check(files: Sequence[tuple[RunFile, pa.Table]], columns: Iterable[Column]) -> pa.Table:
    """Return the rows of files if their values are valid: of the run in the path, not null where null is not allowed, and finite.

    An invalid value would make an engine fail or a sum wrong, for all clusters.

    Raises:
        FileError: a value in one of the files is invalid.
    """
    rows = pa.concat_tables([table for _, table in files])
    try:
        rows.validate(full=True)
    except pa.ArrowException as error:
        raise FileError(f"truncated or damaged: {_one_line(error)}") from None
    for column in columns:
        values = rows[column.name]
        if values.null_count and not column.nullable and not column.since:
            raise FileError(f"foreign: column `{column.name}` has no value in some rows")
        if column.type == "number" and pc.all(pc.is_finite(values)).as_py() is False:
            raise FileError(f"foreign: column `{column.name}` has a value that is not a finite number")
    for name in ("cluster", "run_id"):
        expected = [pa.repeat(getattr(run, name), len(table)) for run, table in files]
        if not rows[name].equals(pa.chunked_array(expected)):
            raise FileError(f"foreign: its rows have another {name} than its path")
    return rows


def arrow_schema(columns: Iterable[Column]) -> pa.Schema:
    """Return the types of columns as Arrow has them."""
    return pa.schema([(column.name, _TYPES[column.type]) for column in columns])


def _parquet(data: bytes, wanted: _Wanted) -> pa.Table:
    try:
        file = pq.ParquetFile(pa.BufferReader(data))
        groups = map(file.metadata.row_group, range(file.metadata.num_row_groups))
        smallest = file.metadata.num_rows * len(wanted.columns) * _VALUE_BYTES
        if max(smallest, sum(group.total_byte_size for group in groups)) > MOST_UNPACKED:
            raise _too_large()
        schema = file.schema_arrow
        if not schema.equals(wanted.whole):
            _refuse_foreign(wanted.table, {field.name: field.type for field in schema})
        present = set(schema.names)
        names = [column.name for column in wanted.columns if column.name in present]
        # A text that many rows repeat is in the file once, and stays so until its size in all rows is known.
        is_repeating = file.metadata.num_rows > 1
        if is_repeating:
            texts = [column.name for column in wanted.columns if column.type == "string" and column.name in present]
            file = pq.ParquetFile(pa.BufferReader(data), metadata=file.metadata, read_dictionary=texts)
        rows = file.read(columns=names, use_threads=False)
        if (
            is_repeating
            and sum(_text_bytes(chunk) for column in rows.columns for chunk in column.chunks) > MOST_UNPACKED
        ):
            raise _too_large()
        if rows.schema.equals(wanted.schema):
            return rows
        arrays = [
            rows[field.name].cast(field.type) if field.name in present else pa.nulls(len(rows), field.type)
            for field in wanted.schema
        ]
        return pa.table(arrays, schema=wanted.schema)
    except (pa.ArrowException, OSError) as error:
        raise FileError(f"truncated or damaged: {_one_line(error)}") from None


def _too_large() -> FileError:
    return FileError(f"its columns take more than {MOST_UNPACKED >> 20} MiB")


def _text_bytes(chunk: pa.Array) -> int:
    """Return the bytes of the texts of a part of a column."""
    if not pa.types.is_dictionary(chunk.type):
        return int(chunk.nbytes)
    return pc.sum(pc.take(pc.binary_length(chunk.dictionary), chunk.indices)).as_py() or 0


def _refuse_foreign(table: Table, types: Mapping[str, Any]) -> None:
    missing = [column.name for column in table.columns if not column.since and column.name not in types]
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise FileError(f"foreign schema: no column `{missing[0]}`{more}")
    for column in table.columns:
        kind = types.get(column.name)
        if kind is not None and not _FITS[column.type](kind):
            raise FileError(f"foreign schema: column `{column.name}` is {kind} instead of {column.type}")


_PYTHON: Final[Mapping[str, Any]] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "time": dt.datetime,
    "date": dt.date,
    "labels": dict[str, str],
}


def _ndjson(data: bytes, wanted: _Wanted) -> pa.Table:
    decoder = msgspec.json.Decoder(_row_type(wanted.table))
    values: list[tuple[Any, ...]] = []
    if data and not data.endswith(b"\n"):
        lines = data.count(b"\n") + 1
        raise FileError(f"truncated: its last line, {lines}, is incomplete")
    for number, line in enumerate(data.splitlines(), 1):
        try:
            row = read_json(decoder.decode, line)
        except (msgspec.DecodeError, UnicodeError) as error:
            raise FileError(f"foreign schema or damaged: line {number}: {_one_line(error)}") from None
        values.append(tuple(getattr(row, column.name) for column in wanted.columns))
    by_column = zip(*values, strict=True) if values else [()] * len(wanted.columns)
    try:
        arrays = [pa.array(column, field.type) for column, field in zip(by_column, wanted.schema, strict=True)]
    except (pa.ArrowException, OverflowError) as error:
        raise FileError(f"foreign schema: {_one_line(error)}") from None
    return pa.table(arrays, schema=wanted.schema)


def _row_type(table: Table) -> type[msgspec.Struct]:
    """Return a type for the rows of a table; columns that were added later may be missing, and unknown ones are passed over."""
    required = [(column.name, _kind(column)) for column in table.columns if not column.since]
    added = [(column.name, _kind(column) | None, None) for column in table.columns if column.since]
    return msgspec.defstruct(f"{table.name}_row", [*required, *added])


def _kind(column: Column) -> Any:
    kind = _PYTHON[column.type]
    return kind | None if column.nullable else kind


def _one_line(error: BaseException) -> str:
    first = str(error).strip().partition("\n")[0][:200]
    return first or type(error).__name__
