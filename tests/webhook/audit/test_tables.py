"""The schema of the tables keeps what readers rely on."""

from __future__ import annotations

import datetime as dt

import pytest

from gpugate.webhook.audit.tables import MINOR, TABLES, Table, file_of

# Words that SQL:2016 reserves and that would be tempting here.
RESERVED = {
    "by",
    "end",
    "group",
    "order",
    "user",
    "use",
    "value",
    "values",
    "schema",
    "table",
    "references",
    "start",
    "limit",
}


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
class TestTable:
    def test_every_row_names_cluster_run_and_time(self, table: Table) -> None:
        assert table.column_names[:3] == ("cluster", "run_id", "time")

    def test_a_column_has_a_name_of_its_own(self, table: Table) -> None:
        assert len(set(table.column_names)) == len(table.columns)

    def test_no_column_needs_quotes_in_sql(self, table: Table) -> None:
        assert not RESERVED.intersection(table.column_names)
        assert all(name.isidentifier() and name.islower() for name in table.column_names)

    def test_an_amount_of_money_has_its_unit_and_may_be_unknown(self, table: Table) -> None:
        amounts = [column for column in table.columns if column.name.endswith("usd")]
        assert all(column.unit == "US dollars per hour" and column.nullable for column in amounts)

    def test_no_column_is_newer_than_the_schema(self, table: Table) -> None:
        assert all(column.since <= MINOR for column in table.columns)


def test_the_partition_is_the_day_in_utc() -> None:
    time = dt.datetime(2026, 11, 23, 23, 30, tzinfo=dt.timezone(dt.timedelta(hours=-5)))
    assert file_of("runs", time, "prod-1", "r", "parquet") == "runs/dt=2026-11-24/cluster=prod-1/r.parquet"
