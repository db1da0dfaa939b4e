from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from fleets import NOW, Fleet, Run, Sums, runs_of, write_fleet, write_rows

from gpugate.webhook.audit.tables import SCHEMA
from gpugate.webhook.fleet.evaluate import report_of_engine, report_of_files

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from gpugate.webhook.audit.tables import Suffix
    from gpugate.webhook.fleet.model import FleetReport

SILENT = dt.timedelta(hours=36)
FLEET = Fleet(clusters=4, days=9, objects=30)


def report(*paths: Path, now: dt.datetime = NOW, days: int = 30) -> FleetReport:
    return report_of_files([str(path) for path in paths], now, days, SILENT)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Sums]:
    path = tmp_path_factory.mktemp("fleet")
    return path, write_fleet(path, FLEET)


@pytest.fixture(scope="module")
def of_fleet(fleet: tuple[Path, Sums]) -> FleetReport:
    return report(fleet[0])


def test_clusters_count_with_their_last_run(fleet: tuple[Path, Sums], of_fleet: FleetReport) -> None:
    _, sums = fleet
    assert {row.cluster: row.spend_usd for row in of_fleet.clusters} == pytest.approx(sums.spend)
    assert {row.cluster: row.deny for row in of_fleet.clusters} == sums.denied


def test_teams_are_summed_over_clusters(fleet: tuple[Path, Sums], of_fleet: FleetReport) -> None:
    assert {row.name: row.allocated_usd for row in of_fleet.teams} == pytest.approx(fleet[1].teams)


@pytest.mark.parametrize(
    "figure", ["spend_usd", "allocated_usd", "idle_usd", "at_risk_usd", "deny", "unbounded", "gpus"]
)
def test_clusters_and_regions_add_up_to_the_total(of_fleet: FleetReport, figure: str) -> None:
    total = getattr(of_fleet.totals, figure)
    for rows in (of_fleet.clusters, of_fleet.regions):
        assert sum(getattr(row, figure) for row in rows) == pytest.approx(total)


def test_the_days_have_one_run_of_each_cluster(of_fleet: FleetReport) -> None:
    assert [day.clusters for day in of_fleet.daily] == [FLEET.clusters] * FLEET.days


def test_the_worst_objects_are_those_that_lose_most(of_fleet: FleetReport) -> None:
    losses = []
    for number in range(FLEET.clusters):
        *_, last = runs_of(FLEET, number)
        objects = last.tables["objects"]
        for action, usd, idle, parked in zip(
            *(objects[name] for name in ("action", "usd", "idle_usd", "parked_usd")), strict=True
        ):
            losses.append(max(usd if action == "deny" else 0.0, idle + parked))
    assert [row.loss_usd for row in of_fleet.worst if row.loss_usd] == pytest.approx(
        [loss for loss in sorted(losses, reverse=True)[:20] if loss]
    )


def test_a_denied_object_is_listed_with_a_policy(of_fleet: FleetReport) -> None:
    assert all(row.policy for row in of_fleet.worst if row.action == "deny")


def test_ndjson_gives_the_report_of_parquet(tmp_path: Path, of_fleet: FleetReport) -> None:
    write_fleet(tmp_path, replace(FLEET, suffix="ndjson"))
    assert without_source(report(tmp_path)) == without_source(of_fleet)


def test_a_copy_of_a_path_counts_once(fleet: tuple[Path, Sums], of_fleet: FleetReport) -> None:
    assert without_source(report(fleet[0], fleet[0])) == without_source(of_fleet)


def test_an_engine_with_the_tables_gives_the_report_of_files(
    fleet: tuple[Path, Sums], of_fleet: FleetReport, tmp_path: Path
) -> None:
    import duckdb  # noqa: PLC0415 -- only this test makes a database

    file = tmp_path / "fleet.duckdb"
    with duckdb.connect(str(file)) as database:
        for table in ("runs", "money", "objects", "findings", "exemptions"):
            files = f"{fleet[0]}/{table}/*/*/*.parquet"
            database.read_parquet(files, hive_partitioning=False).create(table)
    from_engine = report_of_engine(f"duckdb://{file}", NOW, 30, SILENT)
    assert without_source(from_engine) == pytest.approx(without_source(of_fleet))


def without_source(of: FleetReport) -> dict[str, Any]:
    import msgspec  # noqa: PLC0415 -- as above

    rows = msgspec.to_builtins(of)
    flat: dict[str, Any] = {}

    def flatten(name: str, value: Any) -> None:
        if isinstance(value, dict | list | tuple):
            for key, part in value.items() if isinstance(value, dict) else enumerate(value):
                flatten(f"{name}.{key}", part)
        else:
            # Engines add up floats in different orders.
            flat[name] = round(value, 6) if isinstance(value, float) else value

    flatten("", {key: value for key, value in rows.items() if key != "sources"})
    return flat


def run(cluster: str = "prod", at: dt.datetime = NOW - dt.timedelta(hours=1), run_id: str = "", **values: Any) -> Run:
    figures = {
        "schema_name": SCHEMA,
        "policy_hash": "8c1f00aa93b2",
        "policy_mode": "as-is",
        "coverage": 1.0,
        "spend_usd": 10.0,
        "idle_usd": 2.0,
        "use_coverage": 0.9,
        **values,
    }
    name = run_id or f"{at:%Y%m%dT%H%M%S}"
    return Run(
        cluster, name, at, {"runs": {key: [value] for key, value in figures.items()}, "money": {}, "objects": {}}
    )


def write(path: Path, *runs: Run, suffix: Suffix = "parquet") -> None:
    for each in runs:
        for table in ("runs", "money", "objects", "findings", "exemptions"):
            whole = replace(each, tables={**each.tables, table: each.tables.get(table, {})})
            write_rows(path, whole, table, suffix)


HOUR, DAY = dt.timedelta(hours=1), dt.timedelta(days=1)


FAULTS = [
    pytest.param([run(), run(at=NOW + 3 * HOUR)], [("prod", "future", 1)], 1, id="a run from the future"),
    pytest.param([run(clock_ahead_seconds=7200.0)], [("prod", "clock", 1)], 1, id="a clock that is off"),
    pytest.param([run(clock_ahead_seconds=-7200.0)], [("prod", "clock", 1)], 1, id="a clock that is behind"),
    pytest.param([run(), run(at=NOW - 5 * HOUR)], [("prod", "repeated", 1)], 1, id="two runs a day"),
    pytest.param([run(), run(at=NOW - 30 * HOUR)], [], 1, id="two runs on two days"),
    pytest.param([run(), run(at=NOW - HOUR / 2, selection="-n ml")], [("prod", "selection", 1)], 1, id="a run of a namespace"),
    pytest.param([run(), run(at=NOW - HOUR / 2, schema_name="gpugate.dev/audit-tables/v9")], [("prod", "schema", 1)], 1, id="a later schema"),
    pytest.param(
        [run(cluster_uid="a"), run(at=NOW - 30 * HOUR, cluster_uid="b")], [("prod", "identity", 2)], 1, id="two clusters of one name"
    ),
    pytest.param([run(clock_ahead_seconds=1.0, cluster_uid="a"), run(at=NOW - DAY - HOUR, cluster_uid="a")], [], 1, id="no fault"),
]  # fmt: skip


@pytest.mark.parametrize(("runs", "faults", "clusters"), FAULTS)
def test_faults_are_named_and_the_others_counted(
    tmp_path: Path, runs: Sequence[Run], faults: Sequence[tuple[str, str, int]], clusters: int
) -> None:
    write(tmp_path, *runs, run("other"))
    result = report(tmp_path)
    assert [(fault.cluster, fault.fault, fault.runs) for fault in result.faults] == faults
    assert result.totals.clusters == clusters + 1
    assert result.totals.spend_usd == pytest.approx(20.0)


def test_a_vanished_cluster_is_in_no_sum(tmp_path: Path) -> None:
    write(tmp_path, run("gone", at=NOW - 3 * DAY, spend_usd=99.0), run("here"))
    result = report(tmp_path)
    assert [(row.cluster, row.spend_usd) for row in result.silent] == [("gone", 99.0)]
    assert [row.cluster for row in result.clusters] == ["here"]
    assert result.totals.spend_usd == pytest.approx(10.0)


def test_a_cluster_that_vanished_before_the_window_is_unknown(tmp_path: Path) -> None:
    write(tmp_path, run("gone", at=NOW - 40 * DAY), run("here"))
    assert report(tmp_path).silent == ()
    assert [row.cluster for row in report(tmp_path, days=60).silent] == ["gone"]


REGRESSIONS = [
    pytest.param(
        {"idle_usd": 1.0}, {"idle_usd": 5.0}, [("idle or parked, USD per hour", 1.0, 5.0, "")], id="more idle"
    ),
    pytest.param({"idle_usd": 5.0}, {"idle_usd": 1.0}, [], id="less idle"),
    pytest.param({"idle_usd": None}, {"idle_usd": 5.0}, [], id="not measured then"),
    pytest.param(
        {"idle_usd": 1.0, "use_coverage": 0.1},
        {"idle_usd": 5.0},
        [("idle or parked, USD per hour", 1.0, 5.0, "the use of more GPUs is known than then")],
        id="more measured",
    ),
    pytest.param({"deny": 1}, {"deny": 3}, [("objects that would be denied", 1.0, 3.0, "")], id="more denied"),
    pytest.param({"deny": 1, "policy_mode": "enforce"}, {"deny": 3}, [], id="runs with other modes"),
    pytest.param(
        {"deny": 1, "policy_hash": "77d2b5c10e4f"},
        {"deny": 3},
        [("objects that would be denied", 1.0, 3.0, "the policy file changed")],
        id="another policy file",
    ),
    pytest.param({"coverage": 1.0}, {"coverage": 0.5}, [("coverage, percent", 100.0, 50.0, "")], id="less coverage"),
    pytest.param({"coverage": 0.5}, {"coverage": 1.0}, [], id="more coverage"),
]


@pytest.mark.parametrize(("then", "now", "regressions"), REGRESSIONS)
def test_regressions_compare_with_the_last_run_a_week_ago(
    tmp_path: Path, then: dict[str, Any], now: dict[str, Any], regressions: Sequence[tuple[Any, ...]]
) -> None:
    # Runs of the last days, and those before, say nothing about a week ago.
    others = {"idle_usd": 100.0, "deny": 100, "coverage": 0.01}
    write(
        tmp_path,
        run(at=NOW - 9 * DAY, **others),
        run(at=NOW - 7 * DAY - 2 * HOUR, **then),
        run(at=NOW - 3 * DAY, **others),
        run(**now),
    )
    assert [(row.figure, row.before, row.now, row.caveat) for row in report(tmp_path).regressions] == regressions


def test_policies_with_more_findings_are_regressions(tmp_path: Path) -> None:
    def counted(cluster: str, at: dt.datetime, **denied: int) -> Run:
        money = {"dimension": ["policy"] * len(denied), "name": list(denied), "deny": list(denied.values())}
        plain = run(cluster, at)
        return replace(plain, tables={**plain.tables, "money": money})

    week = NOW - 8 * DAY
    write(
        tmp_path,
        *(counted(cluster, week, grew=1, fell=5, same=2) for cluster in ("a", "b")),
        *(counted(cluster, NOW - HOUR, grew=4, fell=1, same=2, new=1) for cluster in ("a", "b")),
        counted("without-a-week", NOW - HOUR, grew=70),
    )
    rows = report(tmp_path).policy_regressions
    assert [(row.policy, row.clusters, row.before, row.now) for row in rows] == [("grew", 2, 2, 8), ("new", 2, 0, 2)]


def test_clusters_with_other_policy_files_are_drift(tmp_path: Path) -> None:
    write(tmp_path, run("a"), run("b"), run("c", policy_hash="77d2b5c10e4f"))
    rows = report(tmp_path).versions
    assert [(row.policy_hash, row.clusters, row.example) for row in rows] == [
        ("8c1f00aa93b2", 2, "a"),
        ("77d2b5c10e4f", 1, "c"),
    ]


@pytest.mark.parametrize(
    ("expires", "state", "is_listed"),
    [
        (dt.date(2026, 11, 22), "valid", True),
        (dt.date(2026, 11, 23), "valid", False),
        (dt.date(2026, 11, 24), "unused", False),
        (dt.date(2026, 11, 1), "expired", True),
    ],
)
def test_exemptions_expire_after_their_last_day(
    tmp_path: Path, expires: dt.date, state: str, *, is_listed: bool
) -> None:
    exemption = {"policies": ["pods/x"], "expires": [expires], "state": [state]}
    runs = [replace(each, tables={**each.tables, "exemptions": exemption}) for each in (run("a"), run("b"))]
    write(tmp_path, *runs)
    assert [(row.policies, row.clusters) for row in report(tmp_path).expired] == ([("pods/x", 2)] if is_listed else [])


def test_a_cluster_without_cost_is_counted_and_named(tmp_path: Path) -> None:
    write(tmp_path, run("a", spend_usd=None), run("b"))
    totals = report(tmp_path).totals
    assert (totals.clusters, totals.without_cost, totals.spend_usd) == (2, 1, 10.0)
