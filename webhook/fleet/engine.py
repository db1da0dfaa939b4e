"""The engines that evaluate the views: DuckDB in this process, or another one by the URL of Ibis.

DuckDB and Spark read staged Parquet files. Any engine evaluates tables that it has itself, such as external tables over the bucket.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

import ibis

from gpugate.policies.engine.config import GpugateError
from gpugate.webhook.fleet.views import COLUMNS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

MEMORY: Final = "1GB"
"""What DuckDB keeps in memory; more is spilled to the staging directory."""
_READERS: Final = ("duckdb", "pyspark")


class EngineError(GpugateError):
    """An engine cannot be used; the message has no credentials."""


class Engine:
    """A connection to an engine.

    Attributes:
        name: its name in Ibis, such as `duckdb`.
    """

    def __init__(self, connection: Any) -> None:  # Any: Ibis has no types
        self._connection = connection
        self.name: str = connection.name

    @classmethod
    def embedded(cls, scratch: Path) -> Engine:
        """Return DuckDB in this process, which spills to a directory and loads no extensions from the network."""
        connection = ibis.duckdb.connect(
            memory_limit=MEMORY,
            temp_directory=os.fspath(scratch),
            threads=os.cpu_count() or 1,
            autoinstall_known_extensions=False,
        )
        return cls(connection)

    @classmethod
    def at(cls, url: str) -> Engine:
        """Return the engine of a URL such as `clickhouse://host/database`.

        Raises:
            EngineError: there is no such engine, its library is not installed, or it does not answer.
        """
        kind = url.partition("://")[0]
        try:
            return cls(ibis.connect(url))
        except ImportError as error:
            raise EngineError(
                f"--engine {kind}: {error.name or 'its library'} is not installed: install the extra {kind} of ibis-framework"
            ) from None
        except Exception as error:  # noqa: BLE001 -- each engine has errors of its own
            raise EngineError(
                f"--engine {kind}: {type(error).__name__}: check the URL and that the engine answers"
            ) from None

    def stage(self, files: Mapping[str, Path]) -> dict[str, Any]:
        """Return tables over Parquet files by name.

        Raises:
            EngineError: the engine does not read files of this machine.
        """
        if self.name not in _READERS:
            raise EngineError(
                f"--engine {self.name}: it does not read files of this machine: define the tables {', '.join(COLUMNS)} in "
                "the engine, and leave out PATH"
            )
        return {
            name: self._connection.read_parquet(os.fspath(path), table_name=f"gpugate_{name}")
            for name, path in files.items()
        }

    def tables(self) -> dict[str, Any]:
        """Return the tables that the engine has.

        Raises:
            EngineError: one of them, or one of their columns, is missing.
        """
        tables: dict[str, Any] = {}
        for name, columns in COLUMNS.items():
            try:
                table = self._connection.table(name)
            except Exception as error:  # noqa: BLE001 -- each engine has errors of its own
                raise EngineError(f"--engine {self.name}: table {name}: {type(error).__name__}: define it") from None
            missing = [column for column in columns if column not in table.columns]
            if missing:
                raise EngineError(f"--engine {self.name}: table {name} has no column {missing[0]}")
            tables[name] = table[list(columns)]
        return tables

    def rows(self, view: Any) -> list[dict[str, Any]]:  # Any: Ibis has no types
        """Evaluate a view.

        Raises:
            EngineError: the engine failed.
        """
        try:
            rows: list[dict[str, Any]] = self._connection.to_pyarrow(view).to_pylist()
        except Exception as error:
            raise EngineError(f"the engine {self.name} failed: {_first_line(error)}") from error
        return rows


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0][:300] or type(error).__name__
