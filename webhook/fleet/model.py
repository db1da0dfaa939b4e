"""A fleet report: its rows, which the JSON document and its published schema have too.

Each list has the rows of one view, and each field of a row is a column of that view. Amounts are US dollars per hour, and null
where no run has them: without prices, without measured use, or where the figure does not apply.
"""

from __future__ import annotations

import datetime as dt
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

SCHEMA: Final = "gpugate.dev/fleet-report/v1"

Usd = Annotated[float | None, Meta(description="US dollars per hour; null if unknown")]


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """The sums over the counted runs of a group."""

    gpus: Annotated[float | None, Meta(description="GPUs; of a team or policy those that are allocated to its objects")]
    spend_usd: Annotated[float | None, Meta(description="cost of all GPUs; of a team or policy that of allocated GPUs")]
    allocated_usd: Usd
    unallocated_usd: Usd
    idle_usd: Usd
    parked_usd: Usd
    at_risk_usd: Annotated[float | None, Meta(description="cost of GPUs of objects that would be denied")]
    unbounded: Annotated[int | None, Meta(description="NodePools and autoscalers without a limit on GPUs")]
    unbounded_usd: Annotated[
        float | None, Meta(description="highest worst-case cost of one of them; worst cases do not add up")
    ]
    deny: Annotated[int, Meta(description="objects that would be denied")]
    warn: Annotated[int, Meta(description="objects that would get a warning")]


class Totals(Figures, frozen=True, kw_only=True):
    """The sums over all clusters that report."""

    clusters: Annotated[int, Meta(description="clusters that report, whose last run is counted")]
    without_cost: Annotated[int, Meta(description="those of them whose run has no cost")]
    coverage: Annotated[float | None, Meta(description="lowest coverage of a counted run")]


class ClusterRow(Figures, frozen=True, kw_only=True):
    """A cluster that reports, by its last run."""

    cluster: str
    region: str
    run_id: str
    at: Annotated[int, Meta(description="begin of the run, seconds since 1970")]
    gpugate: str
    policy_hash: str
    policy_mode: str
    coverage: float
    use_coverage: float | None


class GroupRow(Figures, frozen=True, kw_only=True):
    """A region, a team or a policy in all clusters that report."""

    name: str
    clusters: Annotated[int, Meta(description="clusters in which it has figures")]


class WorstObject(msgspec.Struct, frozen=True, kw_only=True):
    """An object whose GPUs lose most: they are idle or parked, or could not be created again."""

    cluster: str
    kind: str
    namespace: str
    name: str
    team: str
    action: str
    gpus: float
    usd: Usd
    loss_usd: Annotated[float, Meta(description="the higher of the cost of idle and parked GPUs and the cost at risk")]
    idle_or_parked_usd: float
    findings: int
    policy: Annotated[str, Meta(description="a policy whose finding decides the action; empty without one")]


class GpuFigures(msgspec.Struct, frozen=True, kw_only=True):
    """The allocated GPUs of one model, by what they did in the window of the metrics."""

    model: Annotated[str, Meta(description="name of the GPU in the instance catalogue, such as h100; empty if unknown")]
    allocated: Annotated[float, Meta(description="GPUs that are allocated to Pods; the sum of the next six")]
    busy: float
    under_used: float
    parked: float
    idle: float
    doubtful: float
    unknown: Annotated[float, Meta(description="GPUs whose use is not known, as all in a cluster without metrics")]
    usd: Annotated[float | None, Meta(description="cost of the allocated GPUs in US dollars per hour; null if unknown")]
    idle_usd: Usd
    parked_usd: Usd


class GpuModel(GpuFigures, frozen=True, kw_only=True):
    """A model in all clusters that report."""

    clusters: Annotated[int, Meta(description="clusters in which GPUs of the model are allocated")]


class GpuTeam(GpuModel, frozen=True, kw_only=True):
    """A model in the Pods of a team."""

    team: str


class GpuCluster(GpuFigures, frozen=True, kw_only=True):
    """A model in a cluster."""

    cluster: str
    region: str


class Regression(msgspec.Struct, frozen=True, kw_only=True):
    """A figure of a cluster that got worse since its last run that is at least a week older."""

    cluster: str
    figure: str
    before: float
    now: float
    change: float
    caveat: Annotated[str, Meta(description="why the two runs may not be comparable; empty if nothing is known")]


class PolicyRegression(msgspec.Struct, frozen=True, kw_only=True):
    """A policy that would deny or warn about more objects than a week ago, in the clusters with a run of then."""

    policy: str
    clusters: Annotated[int, Meta(description="clusters in which the number grew")]
    before: int
    now: int
    change: int


class SilentCluster(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster with runs in the window whose last one is too old; no sum contains it."""

    cluster: str
    region: str
    at: Annotated[int, Meta(description="begin of its last run, seconds since 1970")]
    spend_usd: Usd


class PolicyVersion(msgspec.Struct, frozen=True, kw_only=True):
    """Clusters that were audited with the same policy file, version of gpugate and mode."""

    policy_hash: str
    gpugate: str
    policy_mode: str
    clusters: int
    example: Annotated[str, Meta(description="the first of these clusters by name")]


class ExpiredExemption(msgspec.Struct, frozen=True, kw_only=True):
    """An exemption that has expired, in the policy files of one or more clusters."""

    policies: str
    kinds: str
    namespaces: str
    names: str
    owner: str
    reason: str
    expires: dt.date | None
    clusters: int
    example: Annotated[str, Meta(description="the first of these clusters by name")]


class Day(msgspec.Struct, frozen=True, kw_only=True):
    """The last runs of all clusters on a day in UTC."""

    day: Annotated[int, Meta(description="days since 1970-01-01")]
    clusters: int
    spend_usd: Usd
    idle_or_parked_usd: Usd
    at_risk_usd: Usd
    deny: int


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """Runs of a cluster that are not counted, or not to be trusted without a look."""

    cluster: str
    fault: Annotated[
        str,
        Meta(
            description="`schema`, `future`, `clock`, `selection`, `repeated` or `identity`; docs/how-to/fleet.md has their meanings"
        ),
    ]
    runs: int
    detail: str


class FleetReport(msgspec.Struct, frozen=True, kw_only=True, tag_field="schema", tag=SCHEMA):
    """A report of many clusters by gpugate."""

    gpugate: Annotated[str, Meta(description="version of gpugate that wrote the document")]
    time: Annotated[dt.datetime, Meta(tz=True)]
    sources: tuple[str, ...]
    engine: Annotated[str, Meta(description="what evaluated the tables, such as duckdb")]
    days: Annotated[int, Meta(description="days before `time` that are read")]
    totals: Totals
    clusters: tuple[ClusterRow, ...] = ()
    regions: tuple[GroupRow, ...] = ()
    teams: tuple[GroupRow, ...] = ()
    policies: tuple[GroupRow, ...] = ()
    gpu_models: tuple[GpuModel, ...] = ()
    gpu_teams: tuple[GpuTeam, ...] = ()
    gpu_clusters: tuple[GpuCluster, ...] = ()
    worst: tuple[WorstObject, ...] = ()
    regressions: tuple[Regression, ...] = ()
    policy_regressions: tuple[PolicyRegression, ...] = ()
    silent: tuple[SilentCluster, ...] = ()
    versions: tuple[PolicyVersion, ...] = ()
    expired: tuple[ExpiredExemption, ...] = ()
    daily: tuple[Day, ...] = ()
    faults: tuple[Fault, ...] = ()
    problems: Annotated[
        tuple[str, ...], Meta(description="files and paths that could not be read; no figure contains their rows")
    ] = ()


VIEWS: Final[dict[str, tuple[str, type[msgspec.Struct]]]] = {
    "fleet_totals": ("totals", Totals),
    "fleet_clusters": ("clusters", ClusterRow),
    "fleet_regions": ("regions", GroupRow),
    "fleet_teams": ("teams", GroupRow),
    "fleet_policies": ("policies", GroupRow),
    "fleet_gpu_models": ("gpu_models", GpuModel),
    "fleet_gpu_teams": ("gpu_teams", GpuTeam),
    "fleet_gpu_clusters": ("gpu_clusters", GpuCluster),
    "fleet_worst_objects": ("worst", WorstObject),
    "fleet_regressions": ("regressions", Regression),
    "fleet_policy_regressions": ("policy_regressions", PolicyRegression),
    "fleet_silent_clusters": ("silent", SilentCluster),
    "fleet_policy_versions": ("versions", PolicyVersion),
    "fleet_expired_exemptions": ("expired", ExpiredExemption),
    "fleet_daily": ("daily", Day),
    "fleet_faults": ("faults", Fault),
}
"""View -> the field of the report with its rows, and the type of a row."""


def schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of the document."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": SCHEMA,
        **msgspec.json.schema(FleetReport),
    }
