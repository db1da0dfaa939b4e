"""The SQL of the views of a fleet report, for questions of one's own."""

from __future__ import annotations

from operator import methodcaller
from typing import TYPE_CHECKING, Any, Final

import ibis

from gpugate.webhook.audit.tables import TABLES
from gpugate.webhook.fleet.files import FileError, SourceError
from gpugate.webhook.fleet.views import COLUMNS, Window, views

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterator, Mapping

    from gpugate.webhook.audit.tables import Table
    from gpugate.webhook.fleet.files import Source

_IBIS: Final[Mapping[str, str]] = {
    "string": "string",
    "integer": "int64",
    "number": "float64",
    "boolean": "boolean",
    "time": "timestamp('UTC')",
    "date": "date",
}
_DUCKDB: Final[Mapping[str, str]] = {
    "string": "VARCHAR",
    "integer": "BIGINT",
    "number": "DOUBLE",
    "boolean": "BOOLEAN",
    "time": "TIMESTAMP WITH TIME ZONE",
    "date": "DATE",
    "labels": "MAP(VARCHAR, VARCHAR)",
}


def statements(dialect: str, source: Source | None, days: int, silent_after: int, at: dt.datetime | None) -> str:
    """Return statements that define the views, and for DuckDB the tables over the Parquet files of a source first.

    Args:
        dialect: the engine that the SQL is for.
        source: a directory or bucket; None if the engine has the tables.
        days: the days that the views read.
        silent_after: from which age of its last run on a cluster does not report, in seconds.
        at: the time of the report; None for the time of the query.

    Raises:
        FileError: the source cannot be listed.
    """
    now = int(at.timestamp()) if at else ibis.now().epoch_seconds().cast("int64")
    tables: dict[str, Any] = {name: ibis.table(_schema(TABLES[name]), name=name) for name in COLUMNS}
    lines = ["SET TimeZone = 'UTC'"] if dialect == "duckdb" else []
    lines += [*_tables(source)] if source else []
    for name, view in views(tables, Window(now, days, silent_after)).items():
        lines.append(f"CREATE OR REPLACE VIEW {name} AS\n{ibis.to_sql(view, dialect=dialect)}")
    return "".join(f"{line};\n\n" for line in lines)


def _schema(table: Table) -> dict[str, Any]:
    names = COLUMNS[table.name]
    return {column.name: _IBIS[column.type] for column in table.columns if column.name in names}


def _tables(source: Source) -> Iterator[str]:
    """Yield the definition of each table; one without files is empty.

    Raises:
        FileError: the path cannot be listed.
    """
    for name, table in TABLES.items():
        files = f"{source.root}/{name}/*/*/*.parquet"
        try:
            has_files = bool(source.ask(methodcaller("glob", files)))
        except SourceError:
            raise
        except Exception as error:
            raise FileError(f"{source.name}: cannot be listed: {type(error).__name__}") from error
        if has_files:
            pattern = f"{source.name.rstrip('/')}/{name}/*/*/*.parquet".replace("'", "''")
            rows = f"SELECT * FROM read_parquet('{pattern}', union_by_name = true, hive_partitioning = false)"  # noqa: S608 -- the quoted path of the user, who runs it
        else:
            nulls = ", ".join(f"CAST(NULL AS {_DUCKDB[column.type]}) AS {column.name}" for column in table.columns)
            rows = f"SELECT {nulls} WHERE false"
        yield f"CREATE OR REPLACE VIEW {name} AS\n{rows}"
