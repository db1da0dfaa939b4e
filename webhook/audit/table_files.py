"""Files with the rows of an audit, as NDJSON or Parquet, in a directory or a bucket.

A file is written under another name and renamed, so that a reader never sees half of one; an object store shows an object when it
is complete. The packages for Parquet and for buckets are imported on first use, because they are an extra.
"""

from __future__ import annotations

import contextlib
import os
import queue
import threading
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, TypeVar, cast
from urllib.parse import urlsplit

import msgspec

from gpugate.policies.engine.config import GpugateError
from gpugate.webhook.audit.tables import SCHEMA, TABLES, file_of
from gpugate.webhook.manifests.within import refuse_link
from gpugate.webhook.report.plain import plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from gpugate.webhook.audit.model import AuditReport
    from gpugate.webhook.audit.rows import Rows
    from gpugate.webhook.audit.tables import Row, Table, TableName

_INSTALL: Final = "install the extra `fleet`: run `pip install '.[fleet]'` in a checkout of gpugate"
_PATIENCE: Final = 120.0
"""Seconds for all files of a run; clients of object stores try an unreachable one for minutes."""
# An object of these stores exists when all of it was received.
_ATOMIC: Final = frozenset({"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl", "oss", "memory"})
# The packages with a file system of fsspec, for a hint.
_PACKAGES: Final = {"s3": "s3fs", "s3a": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "az": "adlfs", "abfs": "adlfs"}
_LONGEST: Final = 300


class TablesError(GpugateError):
    """Tables cannot be written; the message names the output, the reason and what to do."""


class _Store(Protocol):
    """Where files are written."""

    def put(self, path: str, data: bytes) -> None:
        """Write a file with a path relative to the tables; it exists completely or not at all."""
        ...


def check_output(suffix: str, path: str) -> None:
    """Check, before an audit, that an output can be written: the path is given, and the packages are installed.

    Raises:
        LinkError: the directory is a link out of the repository.
        TablesError: something is missing.
    """
    output = f"-o {suffix}={_printable(path)}"
    if not path:
        raise TablesError(f"-o {suffix} writes many files: add a directory or a bucket, such as -o {suffix}=audits")
    if suffix == "parquet" and find_spec("pyarrow") is None:
        raise TablesError(f"{output} needs pyarrow: {_INSTALL}, or write -o ndjson={_printable(path)}")
    protocol = _protocol(path)
    if not protocol:
        refuse_link(Path(path), "the tables")
        if Path(path).exists() and not Path(path).is_dir():
            raise TablesError(f"{output}: this is a file: write the path of a directory")
        return
    if find_spec("fsspec") is None:
        raise TablesError(f"{output} needs fsspec: {_INSTALL}")
    from fsspec import get_filesystem_class  # type: ignore[import-untyped,unused-ignore]  # noqa: PLC0415 -- an extra, without types

    try:
        get_filesystem_class(protocol)
    except ImportError:
        package = _PACKAGES.get(protocol)
        raise TablesError(
            f"{output} needs {f'the package {package}' if package else 'a package'}, which is not installed"
        ) from None
    except ValueError:
        raise TablesError(
            f"{output}: unknown protocol {protocol}: write a directory, s3://, gs:// or abfs://"
        ) from None


def write_tables(suffix: str, path: str, report: AuditReport, rows: Rows, patience: float = _PATIENCE) -> None:
    """Write the rows of a run: a file for each table that has some, and that of `runs` last.

    Args:
        suffix: the format.
        path: a directory, which is created, or a URL that fsspec knows.
        report: the audit, for the names of the files.
        rows: the rows.
        patience: seconds after which a store counts as unreachable.

    Raises:
        TablesError: the cluster has no id, or a file cannot be written; then there is no row of this run in `runs`.
    """
    output = f"-o {suffix}={_printable(path)}"
    cluster = report.cluster
    if not cluster.id:
        raise TablesError(
            f"{output}: the id of the cluster is unknown, because its namespace kube-system was not read: add --cluster-name NAME, "
            "or platform.cluster.name to the policy file"
        )
    files = {
        file_of(name, report.time, cluster.id, report.run_id, suffix): (TABLES[name], rows[name])
        for name in _last_runs(rows)
        if rows[name]
    }
    encode = _ENCODERS[suffix]

    def write() -> None:
        store = _store(path)
        for file, (table, of_table) in files.items():
            store.put(file, encode(table, of_table))

    try:
        within(patience, write)
    except SlowError:
        raise TablesError(f"{output}: no answer within {patience:g} s: check the address and the network") from None
    except Exception as error:  # noqa: BLE001 -- each file system raises errors of its own libraries
        raise TablesError(f"{output}: {_reason(error)}") from None


def _last_runs(rows: Rows) -> Sequence[TableName]:
    return sorted(rows, key=lambda name: name == "runs")


def _protocol(path: str) -> str:
    """Return the protocol of a URL; empty for a path."""
    protocol, separator, _ = path.partition("://")
    return protocol.lower() if separator else ""


def _printable(path: str) -> str:
    """Return a path without credentials."""
    if not _protocol(path):
        return plain(path)
    url = urlsplit(path)
    return plain(url._replace(netloc=url.netloc.rpartition("@")[2], query="", fragment="").geturl())


def _reason(error: Exception) -> str:
    """Return what an error says, on one line."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    text = plain(" ".join(str(error).split()))[:_LONGEST]
    return f"cannot be written: {type(error).__name__}{f': {text}' if text else ''}"


class SlowError(Exception):
    """Work took too long."""


_T = TypeVar("_T")


def within(seconds: float, work: Callable[[], _T]) -> _T:
    """Do work in a thread, return what it returns, and raise what it raises.

    Raises:
        SlowError: it takes longer. The thread goes on, and does not keep the process alive.
    """
    returned: list[_T] = []
    raised: list[Exception] = []

    def run() -> None:
        try:
            returned.append(work())
        except Exception as error:  # noqa: BLE001 -- raised again by the caller
            raised.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        raise SlowError
    if raised:
        raise raised[0]
    return returned[0]


_AHEAD: Final = 64


def each_within(seconds: float, works: Sequence[Callable[[], _T]]) -> Iterator[_T | Exception]:
    """Do works in one thread, one after the other, and yield what each returns or raises.

    A thread for each takes longer than to read a small file.

    Raises:
        SlowError: one of them takes longer. The thread goes on with this one, and does not keep the process alive.
    """
    answers: queue.Queue[_T | Exception] = queue.Queue(_AHEAD)
    is_over = threading.Event()

    def run() -> None:
        for work in works:
            if is_over.is_set():
                return
            try:
                answers.put(work())
            except Exception as error:  # noqa: BLE001 -- for the caller
                answers.put(error)

    threading.Thread(target=run, daemon=True).start()
    try:
        for _ in works:
            try:
                answer = answers.get(timeout=seconds)
            except queue.Empty:
                raise SlowError from None
            yield answer
    finally:
        is_over.set()
        # The thread may wait for room.
        with contextlib.suppress(queue.Empty):
            while True:
                answers.get_nowait()


class _Directory:
    def __init__(self, path: str) -> None:
        self._path = Path(path)

    def put(self, path: str, data: bytes) -> None:
        target = self._path / path
        target.parent.mkdir(parents=True, exist_ok=True)
        # The name has no suffix of a table, so that no reader takes it for a file.
        unfinished = target.with_name(f".{os.urandom(8).hex()}.unfinished")
        try:
            with unfinished.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(target)
        finally:
            unfinished.unlink(missing_ok=True)


class _Remote:
    def __init__(self, url: str) -> None:
        from fsspec.core import url_to_fs  # type: ignore[import-untyped,unused-ignore]  # noqa: PLC0415 -- an extra, without types

        self._fs, self._path = cast("tuple[Any, str]", url_to_fs(url))
        self._is_atomic = _protocol(url) in _ATOMIC

    def put(self, path: str, data: bytes) -> None:
        target = f"{self._path.rstrip('/')}/{path}"
        folder = target.rpartition("/")[0]
        if self._is_atomic:
            self._fs.pipe_file(target, data)
            return
        self._fs.makedirs(folder, exist_ok=True)
        unfinished = f"{folder}/.{os.urandom(8).hex()}.unfinished"
        try:
            self._fs.pipe_file(unfinished, data)
            self._fs.mv(unfinished, target)
        except BaseException:
            if self._fs.exists(unfinished):
                self._fs.rm_file(unfinished)
            raise


def _store(path: str) -> _Store:
    return _Remote(path) if _protocol(path) else _Directory(path)


def ndjson(_table: Table, rows: Sequence[Row]) -> bytes:
    """Return rows as JSON, one on each line."""
    encoder = msgspec.json.Encoder()
    return b"".join(encoder.encode(row) + b"\n" for row in rows)


def parquet(table: Table, rows: Sequence[Row]) -> bytes:
    """Return rows as a Parquet file, whose metadata has the schema of the tables."""
    import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]  # noqa: PLC0415 -- an extra
    from pyarrow import parquet as writer  # type: ignore[import-untyped,unused-ignore]  # noqa: PLC0415 -- an extra

    types: Mapping[str, Any] = {
        "string": pa.string(),
        "integer": pa.int64(),
        "number": pa.float64(),
        "boolean": pa.bool_(),
        "time": pa.timestamp("us", tz="UTC"),
        "date": pa.date32(),
        "labels": pa.map_(pa.string(), pa.string()),
    }
    fields = [pa.field(column.name, types[column.type], nullable=column.nullable) for column in table.columns]
    schema = pa.schema(fields)
    columns = [pa.array([_arrow(row[field.name]) for row in rows], field.type) for field in fields]
    sink = pa.BufferOutputStream()
    # Arrow's own copy of the schema would be a third of a small file.
    with writer.ParquetWriter(sink, schema, compression="zstd", store_schema=False) as file:
        file.write_table(pa.Table.from_arrays(columns, schema=schema))
        file.add_key_value_metadata({"schema": SCHEMA, "table": table.name})
    return bytes(sink.getvalue().to_pybytes())


def _arrow(value: object) -> object:
    return list(value.items()) if isinstance(value, dict) else value


_Encoder: TypeAlias = "Callable[[Table, Sequence[Row]], bytes]"
_ENCODERS: Final[Mapping[str, _Encoder]] = {"ndjson": ndjson, "parquet": parquet}
