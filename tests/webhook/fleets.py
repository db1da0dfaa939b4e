"""Generate the tables of audits of many clusters: seeded, with the skew of real fleets, and with sums that tests can know.

A few clusters are large, a few teams hold most GPUs, and most objects have no finding. An object lives for many days, so that
consecutive runs differ little.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from gpugate.webhook.audit.tables import SCHEMA, TABLES, file_of
from gpugate.webhook.fleet.files import arrow_schema

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from gpugate.webhook.audit.tables import TableName

NOW: Final = dt.datetime(2026, 11, 23, 12, 0, tzinfo=dt.UTC)
REGIONS: Final = ("eu-central-1", "eu-west-1", "us-east-1", "us-west-2", "ap-south-1")
TEAMS: Final = ("", *(f"team-{number:02}" for number in range(40)))
POLICIES: Final = tuple(
    f"{family}/policy-{number}" for family in ("pods", "nodepools", "scaling") for number in range(12)
)
KINDS: Final = (
    ("apps/v1", "Deployment"),
    ("batch/v1", "Job"),
    ("karpenter.sh/v1", "NodePool"),
    ("keda.sh/v1alpha1", "ScaledObject"),
)
MODELS: Final = (("h100", 6.88), ("a100", 4.10), ("l4", 0.80), ("t4", 0.53))
_EMPTY_TEXT: Final = ""


@dataclass(frozen=True)
class Fleet:
    """The size of a generated fleet; `first` is the number of its first cluster."""

    clusters: int = 3
    days: int = 10
    objects: int = 40
    seed: int = 1
    end: dt.datetime = NOW
    suffix: str = "parquet"
    first: int = 0
    tables: tuple[TableName, ...] = ("runs", "money", "objects", "findings", "gpus", "exemptions")


@dataclass(frozen=True)
class Run:
    """A run of a cluster: table -> column -> values, a value for each row."""

    cluster: str
    run_id: str
    time: dt.datetime
    tables: Mapping[TableName, Mapping[str, Any]] = field(default_factory=dict)


@dataclass
class Sums:
    """What a report over a fleet must say, added up while it is generated."""

    rows: int = 0
    spend: dict[str, float] = field(default_factory=dict)
    teams: dict[str, float] = field(default_factory=dict)
    policies: dict[str, float] = field(default_factory=dict)
    denied: dict[str, int] = field(default_factory=dict)


def write_fleet(path: Path, fleet: Fleet) -> Sums:
    """Write the tables of a fleet and return its sums on the last day."""
    sums = Sums()
    for number in range(fleet.first, fleet.first + fleet.clusters):
        for run in runs_of(fleet, number):
            for table in fleet.tables:
                if len(next(iter(run.tables[table].values()))):  # a table without rows has no file
                    write_rows(path, run, table, fleet.suffix)
            sums.rows += len(run.tables["objects"]["name"])
        sums.spend[run.cluster] = float(run.tables["runs"]["spend_usd"][0])
        sums.denied[run.cluster] = int(run.tables["runs"]["deny"][0])
        money = run.tables["money"]
        for dimension, name, usd in zip(money["dimension"], money["name"], money["usd"], strict=True):
            of = {"team": sums.teams, "policy": sums.policies}[dimension]
            of[name] = of.get(name, 0.0) + usd
    return sums


def write_rows(path: Path, run: Run, table: TableName, suffix: str = "parquet") -> Path:
    """Write one file of a run; columns that it does not have are null or empty."""
    values, cluster, run_id, time = run.tables[table], run.cluster, run.run_id, run.time
    columns = TABLES[table].columns
    count = len(next(iter(values.values()))) if values else 0
    blank = {"string": "", "integer": 0, "number": 0.0, "boolean": False, "labels": [], "time": time, "date": None}
    own = {"cluster": [cluster] * count, "run_id": [run_id] * count, "time": [time] * count}
    arrays = [
        pa.array(
            own.get(column.name, values.get(column.name, [None if column.nullable else blank[column.type]] * count)),
            kind.type,
        )
        for column, kind in zip(columns, arrow_schema(columns), strict=True)
    ]
    rows = pa.table(arrays, schema=arrow_schema(columns))
    file = path / file_of(table, time, cluster, run_id, suffix)
    file.parent.mkdir(parents=True, exist_ok=True)
    if suffix == "parquet":
        pq.write_table(rows, file)
    else:
        file.write_bytes(ndjson(rows))
    return file


def ndjson(rows: pa.Table) -> bytes:
    """Return rows as NDJSON, as the documentation of the tables describes it."""
    import msgspec  # noqa: PLC0415 -- only for this format

    def builtin(value: object) -> object:
        if isinstance(value, dt.datetime):
            return value.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        return dict(value) if isinstance(value, list) else value

    lines = ({key: builtin(value) for key, value in row.items()} for row in rows.to_pylist())
    return b"".join(msgspec.json.encode(line) + b"\n" for line in lines)


def runs_of(fleet: Fleet, number: int) -> Iterator[Run]:
    """Yield the daily runs of a cluster, oldest first."""
    chance = np.random.default_rng([fleet.seed, number])
    cluster = f"cluster-{number:03}"
    # Sizes are log-normal; the mean is the size that was asked for.
    size = max(4, int(fleet.objects * chance.lognormal(-0.32, 0.8))) if fleet.clusters > 5 else fleet.objects
    objects = _objects(chance, size)
    for day in range(fleet.days):
        time = fleet.end - dt.timedelta(days=fleet.days - 1 - day, minutes=int(chance.integers(5, 300)))
        changed = chance.random(size) < 0.03
        objects = {name: np.where(changed, new, objects[name]) for name, new in _objects(chance, size).items()}
        yield Run(cluster, f"{time:%Y%m%dT%H%M%SZ}-{number:04x}", time, _tables(cluster, number, objects))


def _objects(chance: Any, size: int) -> dict[str, Any]:
    kind = chance.choice(len(KINDS), size, p=(0.6, 0.3, 0.03, 0.07))
    model = chance.choice(len(MODELS), size, p=(0.2, 0.2, 0.4, 0.2))
    gpus = np.where((chance.random(size) < 0.3) & (kind < 2), 2.0 ** chance.integers(0, 4, size), 0.0)
    usd = gpus * np.array([price for _, price in MODELS])[model]
    use = chance.choice(4, size, p=(0.55, 0.2, 0.1, 0.15))
    findings = np.where(chance.random(size) < 0.25, 1 + chance.poisson(0.5, size), 0)
    action = np.where(findings > 0, chance.choice(3, size, p=(0.3, 0.6, 0.1)), 3)
    return {
        "id": chance.integers(0, 1 << 40, size),
        "kind": kind,
        "team": np.minimum(chance.zipf(1.5, size) - 1, len(TEAMS) - 1),
        "gpus": gpus,
        "model": model,
        "usd": usd,
        "use": use,
        "findings": findings,
        "action": action,
        "policy": np.minimum(chance.zipf(1.4, size) - 1, len(POLICIES) - 1),
    }


_ACTIONS: Final = np.array(["deny", "warn", "record", "allow"])
VERDICTS: Final = ("busy", "under-used", "parked", "idle")
_USES: Final = ("busy_usd", "under_used_usd", "parked_usd", "idle_usd")


def _tables(cluster: str, number: int, objects: Mapping[str, Any]) -> dict[TableName, dict[str, Any]]:
    kinds = np.array([kind for _, kind in KINDS])[objects["kind"]]
    versions = np.array([version for version, _ in KINDS])[objects["kind"]]
    names = np.array([f"w-{each:010x}" for each in objects["id"]])
    teams = np.array(TEAMS)[objects["team"]]
    namespaces = np.where(objects["kind"] == 2, "", np.char.add("ns-", teams))
    actions = _ACTIONS[objects["action"]]
    uses = {name: np.where(objects["use"] == index, objects["usd"], 0.0) for index, name in enumerate(_USES)}
    unbounded = (objects["kind"] >= 2) & (objects["id"] % 5 == 0)
    found = np.flatnonzero(objects["findings"])
    rows = {
        "api_version": versions,
        "kind": kinds,
        "namespace": namespaces,
        "name": names,
    }
    held = np.flatnonzero(objects["gpus"])
    spend = float(objects["usd"].sum())
    idle_nodes = 0.12 * spend
    policies = np.array(POLICIES)[objects["policy"]]
    return {
        "objects": {
            **rows, "team": teams, "action": actions, "findings": objects["findings"], "gpus": objects["gpus"],
            "gpu_model": np.array([model for model, _ in MODELS])[objects["model"]], "usd": objects["usd"], **uses,
            "is_unbounded": unbounded,
        },
        "findings": {
            **{name: values[found] for name, values in rows.items()}, "policy": policies[found],
            "policy_mode": ["enforce"] * len(found), "action": actions[found], "path": ["spec"] * len(found),
            "message": ["a finding"] * len(found),
        },
        "gpus": {
            **{name: values[held] for name, values in rows.items()}, "team": teams[held],
            "pod": np.char.add(np.char.add(namespaces[held], "/"), names[held]), "node": ["node-1"] * len(held),
            "device": np.char.add("GPU-", names[held]), "model": ["NVIDIA H100 80GB HBM3"] * len(held),
            "verdict": np.array(VERDICTS)[objects["use"]][held], "reason": ["engine active"] * len(held),
            "gpus": objects["gpus"][held], "usd": objects["usd"][held],
        },
        "money": _money(objects, teams, policies, {**uses, "unbounded": unbounded}),
        "runs": {
            "schema_name": [SCHEMA], "gpugate": ["0.9.0" if number % 50 else "0.8.0"],
            "cluster_uid": [f"00000000-0000-0000-0000-{number:012}"], "cluster_context": [cluster],
            "region": [REGIONS[number % len(REGIONS)]], "policy_hash": ["8c1f00aa93b2" if number % 40 else "77d2b5c10e4f"],
            "policy_mode": ["as-is"], "coverage": [1.0], "use_coverage": [0.95], "clock_ahead_seconds": [0.2],
            **{action: [int((actions == action).sum())] for action in ("deny", "warn", "record", "allow")},
            "findings": [int(objects["findings"].sum())], "gpus": [float(objects["gpus"].sum())],
            "allocated_gpus": [float(objects["gpus"].sum())], "spend_usd": [spend + idle_nodes], "allocated_usd": [spend],
            "unallocated_usd": [idle_nodes], "at_risk_usd": [float(objects["usd"][actions == "deny"].sum())],
            **{name: [float(values.sum())] for name, values in uses.items()}, "unbounded": [int(unbounded.sum())],
            "unbounded_usd": [float(unbounded.sum()) * 100 or None],
        },
        "exemptions": {
            "policies": ["pods/policy-1", "pods/policy-2"], "namespaces": ["ns-team-01", "ns-team-02"],
            "owner": ["platform", "platform"], "reason": ["migration", "long training"],
            "expires": [dt.date(2026, 11, 1), dt.date(2027, 3, 1)], "state": ["expired", "valid"], "position": [0, 1],
        },
    }  # fmt: skip


def _money(objects: Mapping[str, Any], teams: Any, policies: Any, figures: Mapping[str, Any]) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {
        name: [] for name in ("dimension", "name", "deny", "warn", "gpus", "usd", "at_risk_usd", *figures)
    }
    actions = _ACTIONS[objects["action"]]
    with_gpus = (objects["gpus"] > 0) | figures["unbounded"]
    for dimension, names, relevant in (("team", teams, with_gpus), ("policy", policies, objects["findings"] > 0)):
        values, index = np.unique(names[relevant], return_inverse=True)

        def total(amounts: Any, index: Any = index, relevant: Any = relevant, values: Any = values) -> list[float]:
            return [float(each) for each in np.bincount(index, amounts[relevant], len(values))]

        columns["dimension"] += [dimension] * len(values)
        columns["name"] += values.tolist()
        for action in ("deny", "warn"):
            columns[action] += [int(each) for each in total((actions == action).astype(float))]
        columns["at_risk_usd"] += total(np.where(actions == "deny", objects["usd"], 0.0))
        for name, amounts in (("gpus", objects["gpus"]), ("usd", objects["usd"]), *figures.items()):
            columns[name] += map(int, total(amounts)) if name == "unbounded" else total(amounts)
    return columns
