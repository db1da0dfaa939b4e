"""The results of audits as tables: their columns with types, units and meanings, and the files that hold the rows.

One run of an audit in one cluster is one file in each table:

    <path>/<table>/dt=YYYY-MM-DD/cluster=<cluster>/<run_id>.parquet

where `dt` is the day of the run in UTC. A file is complete or does not exist, and no file is changed later. A table without rows has
no file. That of `runs` is written last, so all files of a run that has one are there. NDJSON and Parquet hold the same rows. Figures of a cluster, and of its teams, namespaces, NodePools and policies, are in `runs` and `money`; a
report over many days needs the rows of `objects`, `findings` and `gpus` of the last run of each cluster only.

Within a version of the schema, columns are only added, with `since`. A reader treats a column that a file does not have as null.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

SCHEMA: Final = "gpugate.dev/audit-tables/v1"
"""The name of the schema; another number means that columns were removed or changed their meaning."""
MINOR: Final = 0
"""The minor version of the schema, which grows with each added column."""

Type: TypeAlias = Literal["string", "integer", "number", "boolean", "time", "date", "labels"]
"""The type of a column.

| type | NDJSON | Parquet |
|---|---|---|
| string | string | STRING |
| integer | number | INT64 |
| number | number | DOUBLE |
| boolean | boolean | BOOLEAN |
| time | string, RFC 3339 in UTC, such as `2026-11-23T18:30:00.000000Z` | TIMESTAMP(MICROS, UTC) |
| date | string, such as `2026-11-23` | DATE |
| labels | object of strings | MAP<STRING, STRING>, sorted by key |
"""
TableName: TypeAlias = Literal["runs", "money", "objects", "findings", "gpus", "exemptions"]
Value: TypeAlias = "str | int | float | bool | dt.datetime | dt.date | dict[str, str] | None"
Row: TypeAlias = "dict[str, Value]"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Attributes:
        name: its name; no word that SQL reserves.
        type: its type.
        meaning: what a value says.
        unit: the unit of a number; empty for a number without one.
        nullable: whether a value can be unknown, which is null; a string that does not apply is empty.
        since: the minor version of the schema that added it.
    """

    name: str
    type: Type
    meaning: str
    unit: str = ""
    nullable: bool = False
    since: int = 0


@dataclass(frozen=True, slots=True)
class Table:
    """A table; `row` says what a row is."""

    name: TableName
    row: str
    columns: tuple[Column, ...]

    @property
    def column_names(self) -> tuple[str, ...]:
        """The names of its columns, in order."""
        return tuple(column.name for column in self.columns)


_USD: Final = "US dollars per hour"
_GPUS: Final = "GPUs"
_RATIO: Final = "ratio from 0 to 1"


def _usd(name: str, meaning: str) -> Column:
    return Column(name, "number", meaning, _USD, nullable=True)


def _count(name: str, meaning: str) -> Column:
    return Column(name, "integer", meaning)


def _text(name: str, meaning: str) -> Column:
    return Column(name, "string", meaning)


_RUN: Final = (
    _text("cluster", "id of the cluster: its configured name, else the UID of its namespace `kube-system`"),
    _text("run_id", "id of the run, unique within the cluster; ids sort by the time of the run"),
    Column("time", "time", "begin of the run, by the clock of the machine that ran the audit"),
)
_OBJECT: Final = (
    _text("api_version", "`apiVersion` of the top-level owner"),
    _text("kind", "its kind"),
    _text("namespace", "its namespace; empty for an object of the cluster"),
    _text("name", "its name"),
)
_ACTIONS: Final = (
    _count("deny", "objects that the webhook would deny"),
    _count("mutate", "objects that the webhook would patch"),
    _count("warn", "objects that the webhook would allow with a warning"),
    _count("record", "objects whose findings the webhook would only count"),
)
_USES: Final = (
    _usd("busy_usd", "cost of GPUs that worked"),
    _usd("under_used_usd", "cost of GPUs with a mean activity below 20 %"),
    _usd("parked_usd", "cost of GPUs that did not work and whose memory is in use"),
    _usd("idle_usd", "cost of GPUs that did not work"),
    _usd("doubtful_usd", "cost of GPUs whose metrics contradict each other"),
    _usd("unknown_usd", "cost of GPUs whose use is not known"),
)
_DIMENSIONS: Final = "`team`, `namespace`, `pool` (NodePool) or `policy`"

RUNS: Final = Table(
    "runs",
    "one run of an audit",
    (
        *_RUN,
        _text("schema_name", f"schema of the rows of this run: `{SCHEMA}`"),
        _count("schema_minor", "minor version of the schema"),
        _text("gpugate", "version of gpugate"),
        _text("cluster_uid", "UID of the namespace `kube-system`; empty if it cannot be read"),
        _text("cluster_context", "name of the kubeconfig context, host of the API server, or paths of the dump"),
        _text("region", "region of the cluster; empty if it is not configured"),
        Column("labels", "labels", "labels of the cluster"),
        _text("kubernetes", "version of the API server; empty if unknown"),
        _text("target", "target versions of Kubernetes, Karpenter and KEDA"),
        _text("policy_hash", "first 12 hexadecimal digits of the SHA-256 of the policy file; `shipped` without one"),
        _text("policy_mode", "`--as-mode` of the run: the mode of all policies, or `as-is` for those of the policy file"),
        _text("selection", "flags that select objects and policies; empty for all. Only runs with equal flags compare"),
        Column("coverage", "number", "evaluated share of what should be evaluated", _RATIO),
        Column("use_coverage", "number", "share of allocated GPUs whose use is known", _RATIO, nullable=True),
        Column("window_seconds", "integer", "window of the metrics; null without `--prometheus`", "s", nullable=True),
        Column("clock_ahead_seconds", "number", "how far the clock of the machine is ahead of that of the API server; null "
               "if unknown", "s", nullable=True),
        _count("gaps", "kinds and objects that were not evaluated, without kinds that the cluster does not serve"),
        _text("gap_reasons", "the first of them with their reasons, one a line"),
        _count("objects_read", "objects that were read"),
        *_ACTIONS,
        _count("allow", "objects without a finding"),
        _count("findings", "findings"),
        _count("exempt_findings", "findings with an exemption"),
        _count("expired_exemptions", "exemptions that have expired"),
        _count("unused_exemptions", "exemptions that matched no finding"),
        _count("pending_pods", "Pods with GPUs for which no NodePool can launch a node"),
        _text("prices", "source, region and date of the prices; empty without cost"),
        Column("gpus", "number", "GPUs of all nodes; null without cost", _GPUS, nullable=True),
        Column("allocated_gpus", "number", "GPUs that are allocated to Pods", _GPUS, nullable=True),
        Column("unpriced_gpus", "number", "GPUs without a price, which no amount includes", _GPUS, nullable=True),
        Column("wasted_gpus", "number", "unallocated GPUs that no Pod can use", _GPUS, nullable=True),
        _usd("spend_usd", "cost of all GPUs; null without cost, like the other amounts"),
        _usd("allocated_usd", "cost of GPUs that are allocated to Pods"),
        _usd("unallocated_usd", "cost of GPUs that are allocated to no Pod"),
        _usd("at_risk_usd", "cost of GPUs of objects that the webhook would deny"),
        *_USES,
        Column("unbounded", "integer", "NodePools and autoscalers without a limit on GPUs", nullable=True),
        Column("unbounded_unpriced", "integer", "those whose worst case has no price", nullable=True),
        _usd("unbounded_usd", "highest worst-case cost of one of them. They share nodes, so worst cases do not add up"),
        _usd("idle_budget_usd", "budget of `--idle-budget` for idle and parked GPUs; null without one"),
    ),
)  # fmt: skip
MONEY: Final = Table(
    "money",
    "the figures of one team, namespace, NodePool or policy in one run; a group without GPUs, findings and unbounded objects has "
    "no row. Objects of a team are those with its GPUs, of a NodePool the NodePool itself, and of a policy those with a finding "
    "of it, so that one object can count for several policies",
    (
        *_RUN,
        _text("dimension", _DIMENSIONS),
        _text("name", "name of the group; empty for Pods without a team, nodes without a NodePool, objects of the cluster"),
        *_ACTIONS,
        Column("gpus", "number", "allocated GPUs; of a NodePool all GPUs. Null without cost", _GPUS,
               nullable=True),
        _usd("usd", "cost of these GPUs; null without a price"),
        _usd("at_risk_usd", "cost of GPUs of objects that the webhook would deny, of a policy by its own findings"),
        _usd("unallocated_usd", "of a NodePool: cost of GPUs that no Pod holds, also of those that nodes do not offer; null for others"),
        *_USES,
        Column("unbounded", "integer", "NodePools and autoscalers of this group without a limit on GPUs; null without cost. An "
               "autoscaler belongs to the team of the Pods that it creates, a NodePool to that in the labels of its nodes",
               nullable=True),
        _usd("unbounded_usd", "highest worst-case cost of one of them"),
    ),
)  # fmt: skip
OBJECTS: Final = Table(
    "objects",
    "one top-level owner with its Pods, such as a Deployment, a NodePool or a ScaledObject",
    (
        *_RUN,
        *_OBJECT,
        _text("uid", "UID of the object; empty if a dump does not contain it"),
        _text("team", "team of its Pods with GPUs, by the cost labels; empty if it has none"),
        _text("action", "what the webhook would do if it were created now: `deny`, `mutate`, `warn`, `record` or `allow`"),
        _count("findings", "number of its findings"),
        _count("pods", "its unfinished Pods, including itself if it is one"),
        Column("gpus", "number", "GPUs that are allocated to its Pods; null without cost", _GPUS, nullable=True),
        _text("gpu_model", "the model with the highest cost of these GPUs, such as `h100`; empty if unknown"),
        _usd("usd", "cost of its GPUs; null without a price"),
        *_USES,
        Column("is_unbounded", "boolean", "whether it is a NodePool or an autoscaler without a limit on GPUs; null without "
               "cost", nullable=True),
        _usd("unbounded_usd", "its worst-case cost, if it is unbounded; null if that has no price"),
    ),
)  # fmt: skip
FINDINGS: Final = Table(
    "findings",
    "one finding of one policy in one object or in one of its dependents",
    (
        *_RUN,
        *_OBJECT,
        _text("policy", "id of the policy; `malformed` for a field of the wrong type"),
        _text("policy_mode", "mode of the finding: `enforce`, `warn` or `audit`"),
        _text("action", "what the webhook would do because of this finding: `deny`, `mutate`, `warn` or `record`"),
        Column("is_exempt", "boolean", "whether an exemption lowered its mode"),
        _text("dependent", "namespace/name of the object with the finding, if the owner only owns it; else empty"),
        _text("path", "the field; empty for the whole object"),
        _text("message", "what is wrong"),
        _text("hint", "what to do; empty if nothing is known"),
        _text("note", "why the mode is lower than that of the policy, such as an exemption"),
        Column("has_fix", "boolean", "whether there is an automatic fix"),
        _count("others", "further objects with the same cause"),
    ),
)
GPUS: Final = Table(
    "gpus",
    "one device of one Pod, with the verdict about its use; no rows without `--prometheus`",
    (
        *_RUN,
        *_OBJECT,
        _text("team", "team of the Pod"),
        _text("pod", "namespace/name of the Pod"),
        _text("node", "its node"),
        _text("device", "UUID, and after a slash the id of the MIG slice; empty without series"),
        _text("model", "product name, as the exporter reports it"),
        _text("mig_profile", "MIG profile; empty for a whole GPU"),
        _text("verdict", "`busy`, `under-used`, `parked`, `idle`, `doubtful` or `unknown`"),
        _text("reason", "the evidence for the verdict"),
        Column("gpus", "number", "share of the device that is allocated to the Pod", _GPUS),
        _usd("usd", "cost of this share; null without a price"),
        Column("engine_max", "number", "highest engine activity", _RATIO, nullable=True),
        Column("engine_mean", "number", "mean engine activity", _RATIO, nullable=True),
        Column("utilization_max", "number", "highest utilization", "percent", nullable=True),
        Column("memory_max", "number", "highest share of used memory", _RATIO, nullable=True),
        Column("watts", "number", "mean power; of a MIG slice that of its GPU", "W", nullable=True),
        Column("dram_mean", "number", "mean activity of the memory interface", _RATIO, nullable=True),
        Column("tensor_mean", "number", "mean activity of the tensor cores", _RATIO, nullable=True),
    ),
)
EXEMPTIONS: Final = Table(
    "exemptions",
    "one exemption of the policy file",
    (
        *_RUN,
        _count("position", "its position in the policy file, from 0"),
        _text("policies", "ids or patterns of policies, with a comma between them"),
        _text("kinds", "kinds, with a comma between them"),
        _text("namespaces", "names or patterns of namespaces, with a comma between them"),
        _text("names", "names or patterns of objects, with a comma between them"),
        _text("owner", "the person or team responsible for it"),
        _text("reason", "the reason"),
        Column("expires", "date", "the last day on which it applies"),
        _text("state", "`valid`, `unused` (it matched no finding of this run) or `expired`"),
    ),
)
TABLES: Final[Mapping[TableName, Table]] = {
    table.name: table for table in (RUNS, MONEY, OBJECTS, FINDINGS, GPUS, EXEMPTIONS)
}

Suffix: TypeAlias = Literal["ndjson", "parquet"]
TABLE_FORMATS: Final[tuple[Suffix, ...]] = ("ndjson", "parquet")
"""The formats of the files, which are their suffixes."""


def file_of(table: TableName, time: dt.datetime, cluster: str, run_id: str, suffix: str) -> str:
    """Return the path of the file with the rows of a run, relative to the path of the tables.

    Args:
        table: the name of the table.
        time: the time of the run; its day in UTC is the partition.
        cluster: the id of the cluster, which has only characters that a path and a URL allow.
        run_id: the id of the run.
        suffix: the format, of `TABLE_FORMATS`.
    """
    return f"{table}/dt={time.astimezone(dt.UTC).date().isoformat()}/cluster={cluster}/{run_id}.{suffix}"


_JSON_TYPES: Final[Mapping[Type, Mapping[str, object]]] = {
    "string": {"type": "string"},
    "integer": {"type": "integer"},
    "number": {"type": "number"},
    "boolean": {"type": "boolean"},
    "time": {"type": "string", "format": "date-time"},
    "date": {"type": "string", "format": "date"},
    "labels": {"type": "object", "additionalProperties": {"type": "string"}},
}


def schema() -> dict[str, object]:
    """Return the JSON schema (draft 2020-12) of the lines of NDJSON; each table has a definition."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": SCHEMA,
        "description": "a row of one of the tables",
        "anyOf": [{"$ref": f"#/$defs/{name}"} for name in TABLES],
        "$defs": {table.name: _row_schema(table) for table in TABLES.values()},
    }


def _row_schema(table: Table) -> dict[str, object]:
    return {
        "title": table.name,
        "description": table.row,
        "type": "object",
        "properties": {column.name: _column_schema(column) for column in table.columns},
        "required": [column.name for column in table.columns if not column.since],
    }


def _column_schema(column: Column) -> dict[str, object]:
    of_type = _JSON_TYPES[column.type]
    meaning = column.meaning.replace("`", "")
    described = {"description": f"{meaning} ({column.unit})" if column.unit else meaning}
    return {**described, "anyOf": [of_type, {"type": "null"}]} if column.nullable else {**described, **of_type}
