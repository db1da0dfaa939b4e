from __future__ import annotations

import datetime as dt
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from fleets import NOW, Fleet, Run, Sums, runs_of, write_fleet, write_rows

from gpugate.webhook.audit.tables import SCHEMA, TABLES
from gpugate.webhook.fleet.evaluate import report_of_engine, report_of_files

if TYPE_CHECKING:
    from pathlib import Path

    from gpugate.webhook.fleet.model import FleetReport

SILENT = dt.timedelta(hours=36)
FLEET = Fleet(clusters=4, days=9, objects=150)


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


@pytest.mark.parametrize("by", ["teams", "policies"])
def test_teams_and_policies_are_summed_over_clusters(fleet: tuple[Path, Sums], of_fleet: FleetReport, by: str) -> None:
    assert {row.name: row.allocated_usd for row in getattr(of_fleet, by)} == pytest.approx(getattr(fleet[1], by))


@pytest.mark.parametrize("by", ["teams", "policies"])
@pytest.mark.parametrize("figure", ["gpus", "spend_usd", "idle_usd", "parked_usd", "at_risk_usd", "unbounded"])
def test_every_figure_of_teams_and_policies_is_known(of_fleet: FleetReport, by: str, figure: str) -> None:
    values = [getattr(row, figure) for row in getattr(of_fleet, by)]
    assert None not in values
    assert sum(values) > 0


def test_unbounded_objects_add_up_over_teams(of_fleet: FleetReport) -> None:
    assert sum(row.unbounded or 0 for row in of_fleet.teams) == of_fleet.totals.unbounded


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
        for table in TABLES:
            files = f"{fleet[0]}/{table}/*/*/*.parquet"
            database.read_parquet(files, hive_partitioning=False).create(table)
    from_engine = report_of_engine(f"duckdb://{file}", NOW, 30, SILENT)
    assert without_source(from_engine) == pytest.approx(without_source(of_fleet))


def test_columns_that_are_never_null_give_the_report_of_files(
    fleet: tuple[Path, Sums], of_fleet: FleetReport, tmp_path: Path
) -> None:
    import duckdb  # noqa: PLC0415 -- an extra

    file = tmp_path / "strict.duckdb"
    with duckdb.connect(file) as database:
        for table in TABLES:
            files = f"{fleet[0]}/{table}/*/*/*.parquet"
            database.read_parquet(files, hive_partitioning=False).create(table)
            for column in TABLES[table].columns:
                if not column.nullable:
                    database.execute(f"ALTER TABLE {table} ALTER {column.name} SET NOT NULL")
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


def write(path: Path, *runs: Run) -> None:
    for each in runs:
        for table in each.tables:
            write_rows(path, each, table)


HOUR, DAY = dt.timedelta(hours=1), dt.timedelta(days=1)


FUTURE, LATER, BEFORE = NOW + 3 * HOUR, NOW - HOUR / 2, NOW - 5 * HOUR
NEXT_SCHEMA = "gpugate.dev/audit-tables/v9"
# The cluster, its runs, and its faults with the number of runs. Each cluster is counted once, with $10.
FAULTS: dict[str, tuple[list[dict[str, Any]], list[tuple[str, int]]]] = {
    "a run from the future": ([{}, {"at": FUTURE}], [("future", 1)]),
    "a clock that is ahead": ([{"clock_ahead_seconds": 7200.0}], [("clock", 1)]),
    "a clock that is behind": ([{"clock_ahead_seconds": -7200.0}], [("clock", 1)]),
    "two runs a day": ([{}, {"at": BEFORE, "spend_usd": 70.0}], [("repeated", 1)]),
    "two runs on two days": ([{}, {"at": NOW - 30 * HOUR, "spend_usd": 70.0}], []),
    "a run of a namespace": ([{}, {"at": LATER, "selection": "-n ml", "spend_usd": 70.0}], [("selection", 1)]),
    "a later schema": ([{}, {"at": LATER, "schema_name": NEXT_SCHEMA, "spend_usd": 70.0}], [("schema", 1)]),
    "two clusters of a name": ([{"cluster_uid": "a"}, {"at": NOW - 30 * HOUR, "cluster_uid": "b"}], [("identity", 2)]),
    "no fault": ([{"clock_ahead_seconds": 1.0, "cluster_uid": "a"}, {"at": NOW - 30 * HOUR, "cluster_uid": "a"}], []),
}


@pytest.fixture(scope="module")
def of_faults(tmp_path_factory: pytest.TempPathFactory) -> FleetReport:
    path = tmp_path_factory.mktemp("faults")
    write(path, *(run(cluster, **values) for cluster, (runs, _) in FAULTS.items() for values in runs))
    return report(path)


@pytest.mark.parametrize("cluster", FAULTS)
def test_a_fault_is_named_and_the_cluster_counted_without_it(of_faults: FleetReport, cluster: str) -> None:
    named = [(fault.fault, fault.runs) for fault in of_faults.faults if fault.cluster == cluster]
    assert named == FAULTS[cluster][1]
    assert [row.spend_usd for row in of_faults.clusters if row.cluster == cluster] == [10.0]


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


IDLE, DENIED, COVERAGE = "idle or parked, USD per hour", "objects that would be denied", "coverage, percent"
# The cluster, its figures a week ago and now, and what got worse with its caveat.
REGRESSIONS: dict[str, tuple[dict[str, Any], dict[str, Any], list[tuple[Any, ...]]]] = {
    "more idle": ({"idle_usd": 1.0}, {"idle_usd": 5.0}, [(IDLE, 1.0, 5.0, "")]),
    "less idle": ({"idle_usd": 5.0}, {"idle_usd": 1.0}, []),
    "not measured then": ({"idle_usd": None}, {"idle_usd": 5.0}, []),
    "more measured": (
        {"idle_usd": 1.0, "use_coverage": 0.1},
        {"idle_usd": 5.0},
        [(IDLE, 1.0, 5.0, "the use of more GPUs is known than then")],
    ),
    "more denied": ({"deny": 1}, {"deny": 3}, [(DENIED, 1.0, 3.0, "")]),
    "other modes": ({"deny": 1, "policy_mode": "enforce"}, {"deny": 3}, []),
    "another policy file": (
        {"deny": 1, "policy_hash": "77d2b5c10e4f"},
        {"deny": 3},
        [(DENIED, 1.0, 3.0, "the policy file changed")],
    ),
    "less coverage": ({"coverage": 1.0}, {"coverage": 0.5}, [(COVERAGE, 100.0, 50.0, "")]),
    "more coverage": ({"coverage": 0.5}, {"coverage": 1.0}, []),
}


@pytest.fixture(scope="module")
def of_regressions(tmp_path_factory: pytest.TempPathFactory) -> FleetReport:
    path = tmp_path_factory.mktemp("regressions")
    # Runs of the last days, and those before, say nothing about a week ago.
    others = {"idle_usd": 100.0, "deny": 100, "coverage": 0.01}
    for cluster, (then, now, _) in REGRESSIONS.items():
        old, recent = (run(cluster, at=NOW - days * DAY, **others) for days in (9, 3))
        write(path, old, run(cluster, at=NOW - 7 * DAY - 2 * HOUR, **then), recent, run(cluster, **now))
    return report(path)


@pytest.mark.parametrize("cluster", REGRESSIONS)
def test_regressions_compare_with_the_last_run_a_week_ago(of_regressions: FleetReport, cluster: str) -> None:
    rows = [row for row in of_regressions.regressions if row.cluster == cluster]
    assert [(row.figure, row.before, row.now, row.caveat) for row in rows] == REGRESSIONS[cluster][2]


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


def test_exemptions_expire_after_their_last_day(tmp_path: Path) -> None:
    exemptions = {
        "policies": ["yesterday", "today", "tomorrow", "expired in the run"],
        "expires": [dt.date(2026, 11, day) for day in (22, 23, 24, 30)],
        "state": ["valid", "valid", "unused", "expired"],
    }
    write(tmp_path, *(replace(each, tables={**each.tables, "exemptions": exemptions}) for each in (run("a"), run("b"))))
    assert [(row.policies, row.clusters) for row in report(tmp_path).expired] == [
        ("yesterday", 2),
        ("expired in the run", 2),
    ]


def test_a_cluster_without_cost_is_counted_and_named(tmp_path: Path) -> None:
    write(tmp_path, run("a", spend_usd=None), run("b"))
    totals = report(tmp_path).totals
    assert (totals.clusters, totals.without_cost, totals.spend_usd) == (2, 1, 10.0)


def test_gpus_are_counted_by_model_team_and_cluster(of_fleet: FleetReport) -> None:
    expected: dict[tuple[str, str], float] = defaultdict(float)
    for number in range(FLEET.clusters):
        *_, last = runs_of(FLEET, number)
        objects = last.tables["objects"]
        for model, gpus, *costs in zip(
            *(objects[name] for name in ("gpu_model", "gpus", "busy_usd", "under_used_usd", "parked_usd", "idle_usd")),
            strict=True,
        ):
            if gpus:
                expected[model, "allocated"] += gpus
                expected[
                    model,
                    next(use for use, usd in zip(("busy", "under_used", "parked", "idle"), costs, strict=True) if usd),
                ] += gpus
    found = {
        (row.model, use): getattr(row, use)
        for row in of_fleet.gpu_models
        for use in ("allocated", "busy", "under_used", "parked", "idle", "doubtful", "unknown")
    }
    assert {key: gpus for key, gpus in found.items() if gpus} == pytest.approx(expected)
    for use in ("allocated", "idle", "usd", "idle_usd"):
        sums = [
            sum(getattr(row, use) for row in rows)
            for rows in (of_fleet.gpu_models, of_fleet.gpu_teams, of_fleet.gpu_clusters)
        ]
        assert sums == pytest.approx([sums[0]] * 3)
    assert sum(row.allocated for row in of_fleet.gpu_models) == pytest.approx(of_fleet.totals.gpus)


# The devices of an object with four GPUs, and the number of its GPUs by use.
USES: dict[str, tuple[list[tuple[str, float]], dict[str, float]]] = {
    "no metrics": ([], {"unknown": 4.0}),
    "all idle": ([("idle", 1.0)] * 4, {"idle": 4.0}),
    "one not measured": ([("busy", 1.0), ("under-used", 1.0), ("idle", 1.0), ("unknown", 1.0)], {"busy": 1.0, "under_used": 1.0, "idle": 1.0, "unknown": 1.0}),
    "one without a row": ([("parked", 1.0), ("doubtful", 2.0)], {"parked": 1.0, "doubtful": 2.0, "unknown": 1.0}),
    "slices": ([("idle", 1 / 7)] * 28, {"idle": 4.0}),
}  # fmt: skip


@pytest.mark.parametrize("case", USES)
def test_a_gpu_without_a_verdict_has_an_unknown_use(case: str, tmp_path: Path) -> None:
    devices, expected = USES[case]
    named = {"api_version": ["apps/v1"], "kind": ["Deployment"], "namespace": ["ml"], "name": ["serve"]}
    of_objects = {**named, "team": ["search"], "gpus": [4.0], "gpu_model": ["h100"], "usd": [27.52]}
    of_devices = {name: values * len(devices) for name, values in named.items()}
    of_devices |= {"verdict": [verdict for verdict, _ in devices], "gpus": [gpus for _, gpus in devices]}
    each = run("a")
    write(tmp_path, replace(each, tables={**each.tables, "objects": of_objects, "gpus": of_devices}))
    (row,) = report(tmp_path).gpu_teams
    assert (row.team, row.model, row.clusters, row.allocated, row.usd) == ("search", "h100", 1, 4.0, 27.52)
    uses = {use: getattr(row, use) for use in ("busy", "under_used", "parked", "idle", "doubtful", "unknown")}
    assert {use: gpus for use, gpus in uses.items() if gpus} == pytest.approx(expected)


def test_a_missing_file_of_devices_is_named(tmp_path: Path) -> None:
    write_fleet(tmp_path, Fleet(clusters=1, days=1, objects=20))
    (file,) = (tmp_path / "gpus").rglob("*.parquet")
    file.unlink()
    result = report(tmp_path)
    assert result.problems == (f"{file}: missing, but the run has rows in this table",)
    assert {row.unknown - row.allocated for row in result.gpu_models} == {0.0}
