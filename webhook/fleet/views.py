"""The views over the tables of audits, as expressions that any engine of Ibis evaluates.

A cluster counts with its last run in the window, if it is recent enough: earlier runs, runs of selected objects and runs from the
future are in no sum. Times are whole seconds since 1970 in UTC, because engines differ in what a time zone means.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import ibis

from gpugate.webhook.audit.tables import SCHEMA

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpugate.webhook.audit.tables import TableName

DAY: Final = 86_400
WEEK: Final = 7 * DAY
TOLERANCE: Final = 600
"""Seconds by which clocks of two machines may differ."""
WORST: Final = 20
_CENT: Final = 0.005
_PART: Final = 1e-6
"""GPUs; less is a rounding error."""

# What the views read of each table: files are staged with these columns only.
_RUN: Final = ("cluster", "run_id", "time")
_ACTIONS: Final = ("deny", "warn")
COLUMNS: Final[Mapping[TableName, tuple[str, ...]]] = {
    "runs": (
        *_RUN, "schema_name", "gpugate", "cluster_uid", "region", "policy_hash", "policy_mode", "selection", "coverage",
        "use_coverage", "clock_ahead_seconds", *_ACTIONS, "findings", "pending_pods", "gpus", "allocated_gpus", "spend_usd", "allocated_usd",
        "unallocated_usd", "at_risk_usd", "parked_usd", "idle_usd", "unbounded", "unbounded_usd",
    ),
    "money": (
        *_RUN, "dimension", "name", *_ACTIONS, "gpus", "usd", "at_risk_usd", "parked_usd", "idle_usd", "unbounded",
        "unbounded_usd",
    ),
    "objects": (
        *_RUN, "api_version", "kind", "namespace", "name", "team", "action", "findings", "gpus", "gpu_model", "usd",
        "parked_usd", "idle_usd",
    ),
    "findings": (*_RUN, "api_version", "kind", "namespace", "name", "policy", "action"),
    "gpus": (*_RUN, "api_version", "kind", "namespace", "name", "verdict", "gpus"),
    "exemptions": (
        *_RUN, "position", "policies", "kinds", "namespaces", "names", "owner", "reason", "expires", "state",
    ),
}  # fmt: skip

Tables = dict[str, Any]  # Any: Ibis has no types


@dataclass(frozen=True, slots=True)
class Window:
    """Which runs a report counts.

    Attributes:
        now: the time of the report in seconds since 1970; a number, or an expression for views that are evaluated later.
        days: how many days before it are read.
        silent_after: a cluster whose last run is older than this many seconds does not report.
    """

    now: Any
    days: int = 30
    silent_after: int = 36 * 3600


def selected_runs(runs: Any, window: Window) -> Tables:
    """Return the views of runs: `counted`, `last`, `current` (last and recent), `silent` and `base` (a week before the last)."""
    timed = runs.mutate(at=runs.time.epoch_seconds().cast("int64"))
    timed = timed.mutate(day=_floor_day(timed.at)).filter(timed.at > window.now - window.days * DAY)
    ours = timed.filter(timed.schema_name == SCHEMA)
    counted = ours.filter(ours.at <= window.now + TOLERANCE, ours.selection == "")
    last = _latest(counted, ["cluster"])
    is_recent = last.at > window.now - window.silent_after
    mark = last.select("cluster", last_at=last.at, last_id=last.run_id)
    before = counted.join(mark, "cluster")
    before = before.filter(before.at <= before.last_at - WEEK)
    return {
        "timed": timed,
        "counted": counted,
        "last": last,
        "current": last.filter(is_recent),
        "silent": last.filter(~is_recent),
        "base": _latest(before.drop("last_at", "last_id"), ["cluster"]),
    }


def views(tables: Mapping[str, Any], window: Window) -> Tables:
    """Return the views of a report by name, over tables of Ibis that have at least `COLUMNS`."""
    runs = selected_runs(tables["runs"], window)
    gpus = _gpus(tables, runs["current"])
    current, base = runs["current"], runs["base"]
    money = tables["money"].join(current.select("cluster", "run_id"), ["cluster", "run_id"])
    return {
        "fleet_totals": current.aggregate(
            clusters=current.count(),
            without_cost=current.spend_usd.isnull().cast("int64").sum().coalesce(0),
            # ClickHouse has 0 for the minimum of no rows of a column that is never null.
            coverage=(current.count() > 0).ifelse(current.coverage.min(), ibis.null("float64")),
            **_sums(current, "spend_usd", "allocated_usd", "unallocated_usd"),
        ),
        "fleet_clusters": current.select(
            "cluster", "region", "run_id", "at", "gpugate", "policy_hash", "policy_mode", "coverage", "use_coverage", "gpus",
            "spend_usd", "allocated_usd", "unallocated_usd", "idle_usd", "parked_usd", "at_risk_usd", "unbounded",
            "unbounded_usd", "deny", "warn",
        ).order_by(_most(current.spend_usd), "cluster"),
        "fleet_regions": _ordered(
            current.group_by(name=current.region).aggregate(
                clusters=current.count(), **_sums(current, "spend_usd", "allocated_usd", "unallocated_usd")
            )
        ),
        "fleet_teams": _groups(money, "team"),
        "fleet_policies": _groups(money, "policy"),
        "fleet_gpu_models": _by_model(gpus, [], clusters=gpus.cluster.nunique()),
        "fleet_gpu_teams": _by_model(gpus, ["team"], clusters=gpus.cluster.nunique()),
        "fleet_gpu_clusters": _by_model(gpus, ["cluster", "region"]),
        "fleet_worst_objects": _worst_objects(tables, current),
        "fleet_regressions": _regressions(current, base),
        "fleet_policy_regressions": _policy_regressions(tables["money"], current, base),
        "fleet_silent_clusters": runs["silent"].select("cluster", "region", "at", "spend_usd").order_by("at", "cluster"),
        "fleet_policy_versions": _policy_versions(current),
        "fleet_expired_exemptions": _expired(tables["exemptions"], current, window),
        "fleet_daily": _daily(runs["counted"]),
        "fleet_faults": _faults(runs["timed"], window),
    }  # fmt: skip


def _floor_day(at: Any) -> Any:
    return ((at - at % DAY) / DAY).cast("int64")


def _union(*parts: Any) -> Any:
    """Return the rows of all parts, whose columns may differ in whether they can be null.

    Ibis refuses a union of such columns, and engines differ in them: the tables of ClickHouse declare what is never null.
    """
    types = {name: kind.copy(nullable=True) for name, kind in parts[0].schema().items()}
    return ibis.union(*(part.select(**{name: part[name].cast(kind) for name, kind in types.items()}) for part in parts))


def _latest(runs: Any, by: list[str]) -> Any:
    """Return the last run of each group; runs of the same second are in the order of their ids."""
    order = ibis.window(group_by=by, order_by=[ibis.desc("at"), ibis.desc("run_id")])
    ranked = runs.mutate(rank=ibis.row_number().over(order))
    return ranked.filter(ranked["rank"] == 0).drop("rank")


def _sums(rows: Any, spend: str, allocated: str, unallocated: str | None) -> Tables:
    return {
        "gpus": rows.gpus.sum(),
        "spend_usd": rows[spend].sum(),
        "allocated_usd": rows[allocated].sum(),
        "unallocated_usd": rows[unallocated].sum() if unallocated else ibis.null("float64"),
        "idle_usd": rows.idle_usd.sum(),
        "parked_usd": rows.parked_usd.sum(),
        "at_risk_usd": rows.at_risk_usd.sum(),
        "unbounded": rows.unbounded.sum(),
        "unbounded_usd": rows.unbounded_usd.max(),
        "deny": rows.deny.sum().coalesce(0),
        "warn": rows.warn.sum().coalesce(0),
    }


def _most(amount: Any) -> Any:
    return ibis.desc(amount.coalesce(0))


def _ordered(groups: Any) -> Any:
    order = (groups.spend_usd, groups.at_risk_usd, groups.deny, groups.warn)
    return groups.order_by(*map(_most, order), "name")


def _groups(money: Any, dimension: str) -> Any:
    """Return the sums of a dimension whose groups have allocated GPUs only, so that they spend what is allocated."""
    rows = money.filter(money.dimension == dimension)
    return _ordered(rows.group_by("name").aggregate(clusters=rows.cluster.nunique(), **_sums(rows, "usd", "usd", None)))


_OBJECT: Final = ("cluster", "run_id", "api_version", "kind", "namespace", "name")


# Verdict of a GPU -> the column of the GPUs that have it.
_USES: Final = {verdict: verdict.replace("-", "_") for verdict in ("busy", "under-used", "parked", "idle", "doubtful")}


def _gpus(tables: Mapping[str, Any], current: Any) -> Any:
    """Return the objects that have GPUs, with the number of these GPUs by their use.

    A GPU without a row in the table of devices has an unknown use, as all in a cluster whose audit reads no metrics.
    """
    objects = tables["objects"].join(current.select("cluster", "run_id", "region"), ["cluster", "run_id"])
    objects = objects.filter(objects.gpus > 0)
    devices = tables["gpus"]
    devices = devices.group_by(list(_OBJECT)).aggregate(
        **{
            column: ibis.ifelse(devices.verdict == verdict, devices.gpus, 0.0).sum()
            for verdict, column in _USES.items()
        }
    )
    used = objects.left_join(devices, list(_OBJECT))
    known = {column: used[column].coalesce(0.0) for column in _USES.values()}
    unknown = used.gpus - sum(known.values(), ibis.literal(0.0))
    return used.select(
        "cluster", "region", "team", "usd", "idle_usd", "parked_usd", model=used.gpu_model, allocated=used.gpus, **known,
        # Shares of a GPU do not add up exactly.
        unknown=ibis.ifelse(unknown > _PART, unknown, 0.0),
    )  # fmt: skip


def _by_model(gpus: Any, by: list[str], **others: Any) -> Any:
    sums = ("allocated", *_USES.values(), "unknown", "usd", "idle_usd", "parked_usd")
    groups = gpus.group_by([*by, "model"]).aggregate(**others, **{name: gpus[name].sum() for name in sums})
    lost = groups.idle_usd.coalesce(0.0) + groups.parked_usd.coalesce(0.0)
    # Engines add up floats in different orders, so sums that are equal differ in their last digits.
    order = (lost, groups.idle + groups.parked, groups.allocated)
    return groups.order_by(*(ibis.desc(amount.round(3)) for amount in order), *by[:1], "model")


def _worst_objects(tables: Mapping[str, Any], current: Any) -> Any:
    objects = tables["objects"].join(current.select("cluster", "run_id"), ["cluster", "run_id"])
    wasted = objects.idle_usd.coalesce(0) + objects.parked_usd.coalesce(0)
    at_risk = ibis.ifelse(objects.action == "deny", objects.usd.coalesce(0), 0.0)
    rated = objects.mutate(
        gpus=objects.gpus.coalesce(0), idle_or_parked_usd=wasted, loss_usd=ibis.greatest(wasted, at_risk)
    )
    rated = rated.filter((rated.loss_usd > _CENT) | (rated.action == "deny"))
    order = [ibis.desc("loss_usd"), ibis.desc("gpus"), ibis.desc("findings"), *_OBJECT]
    worst = rated.order_by(order).limit(WORST)
    findings = tables["findings"].join(worst.select(*_OBJECT, "action"), [*_OBJECT, "action"])
    deciding = findings.group_by(list(_OBJECT)).aggregate(policy=findings.policy.min())
    named = worst.left_join(deciding, list(_OBJECT))
    return named.order_by(order).select(
        "cluster", "kind", "namespace", "name", "team", "action", "gpus", "usd", "loss_usd", "idle_or_parked_usd", "findings",
        policy=named.policy.coalesce(""),
    )  # fmt: skip


def _regressions(current: Any, base: Any) -> Any:
    """Return what grew by more than a cent or an object in a cluster, and coverage that fell."""
    then = base.rename(lambda name: name if name == "cluster" else f"then_{name}")
    pair = current.join(then, "cluster")
    # Of runs with other modes, the numbers of denied objects say nothing about the cluster.
    pair = pair.filter(pair.policy_mode == pair.then_policy_mode)
    caveat = ibis.cases(
        (pair.coverage > pair.then_coverage + _CENT, "more was evaluated than then"),
        (pair.policy_hash != pair.then_policy_hash, "the policy file changed"),
        (pair.gpugate != pair.then_gpugate, "gpugate changed"),
        else_="",
    )
    measured = pair.use_coverage > pair.then_use_coverage + _CENT
    of_use = ibis.ifelse(measured.coalesce(False), "the use of more GPUs is known than then", caveat)
    wasted, wasted_then = (
        pair.idle_usd + pair.parked_usd.coalesce(0),
        pair.then_idle_usd + pair.then_parked_usd.coalesce(0),
    )
    figures = (
        ("idle or parked, USD per hour", wasted_then, wasted, of_use),
        ("at risk, USD per hour", pair.then_at_risk_usd, pair.at_risk_usd, caveat),
        ("unallocated, USD per hour", pair.then_unallocated_usd, pair.unallocated_usd, ibis.literal("")),
        ("objects that would be denied", pair.then_deny, pair.deny, caveat),
        ("Pods that wait for a node", pair.then_pending_pods, pair.pending_pods, ibis.literal("")),
        ("unbounded NodePools and autoscalers", pair.then_unbounded, pair.unbounded, ibis.literal("")),
    )
    rows = [
        pair.select(
            "cluster",
            figure=ibis.literal(figure),
            before=before.cast("float64"),
            now=now.cast("float64"),
            change=now.cast("float64") - before.cast("float64"),
            caveat=why,
        )
        for figure, before, now, why in figures
    ]
    fell = pair.select(
        "cluster", figure=ibis.literal("coverage, percent"), before=pair.then_coverage * 100, now=pair.coverage * 100,
        change=(pair.then_coverage - pair.coverage) * 100, caveat=ibis.literal(""),
    )  # fmt: skip
    worse = _union(*rows, fell)
    worse = worse.filter(worse.change > _CENT)
    worse = worse.mutate(change=worse.now - worse.before)
    return worse.order_by("figure", ibis.desc(worse.change.abs()), "cluster")


def _policy_regressions(money: Any, current: Any, base: Any) -> Any:
    both = current.join(base.select("cluster", then_id=base.run_id, then_mode=base.policy_mode), "cluster")
    both = both.filter(both.policy_mode == both.then_mode)
    policies = money.filter(money.dimension == "policy")
    objects = policies.deny + policies.warn
    zero = ibis.literal(0, "int64")

    def of(run_ids: Any, **counts: Any) -> Any:
        return policies.mutate(**counts).join(run_ids, ["cluster", "run_id"])[["cluster", "name", "before", "now"]]

    rows = _union(
        of(both.select("cluster", "run_id"), before=zero, now=objects),
        of(both.select("cluster", run_id=both.then_id), before=objects, now=zero),
    )
    grown = rows.group_by(["cluster", "name"]).aggregate(before=rows.before.sum(), now=rows.now.sum())
    grown = grown.filter(grown.now > grown.before)
    by_policy = grown.group_by(policy=grown.name).aggregate(
        clusters=grown.count(), before=grown.before.sum(), now=grown.now.sum(), change=(grown.now - grown.before).sum()
    )
    return by_policy.order_by(ibis.desc("change"), "policy")


def _policy_versions(current: Any) -> Any:
    groups = current.group_by(["policy_hash", "gpugate", "policy_mode"]).aggregate(
        clusters=current.count(), example=current.cluster.min()
    )
    return groups.order_by(ibis.desc("clusters"), "policy_hash", "gpugate", "policy_mode")


def _expired(exemptions: Any, current: Any, window: Window) -> Any:
    rows = exemptions.join(current.select("cluster", "run_id"), ["cluster", "run_id"])
    # The last day of an exemption counts whole, so it has expired when the next one begins.
    end = rows.expires.cast("timestamp").epoch_seconds().cast("int64") + DAY
    rows = rows.filter((rows.state == "expired") | (end <= window.now))
    by = ["policies", "kinds", "namespaces", "names", "owner", "reason", "expires"]
    groups = rows.group_by(by).aggregate(clusters=rows.cluster.nunique(), example=rows.cluster.min())
    return groups.order_by("expires", ibis.desc("clusters"), *by[:-1])


def _daily(counted: Any) -> Any:
    runs = _latest(counted, ["cluster", "day"])
    wasted = runs.idle_usd + runs.parked_usd.coalesce(0)
    days = runs.group_by("day").aggregate(
        clusters=runs.count(),
        spend_usd=runs.spend_usd.sum(),
        idle_or_parked_usd=wasted.sum(),
        at_risk_usd=runs.at_risk_usd.sum(),
        deny=runs.deny.sum(),
    )
    return days.order_by("day")


def _number_of(rows: Any) -> Any:
    """Return the number of rows as a signed integer: a union of those and of the unsigned counts of ClickHouse has neither type."""
    return rows.cluster.notnull().cast("int64").sum()


def _faults(timed: Any, window: Window) -> Any:
    def grouped(rows: Any, fault: str, detail: Any, by: str = "cluster") -> Any:
        return rows.group_by(cluster=rows[by]).aggregate(
            fault=ibis.literal(fault), runs=_number_of(rows), detail=detail(rows)
        )

    foreign = timed.filter(timed.schema_name != SCHEMA)
    ours = timed.filter(timed.schema_name == SCHEMA)
    future = ours.filter(ours.at > window.now + TOLERANCE)
    clock = ours.filter(ours.clock_ahead_seconds.abs() > TOLERANCE)
    partial = ours.filter(ours.selection != "")
    whole = ours.filter(ours.at <= window.now + TOLERANCE, ours.selection == "")
    by_day = whole.group_by(["cluster", "day"]).aggregate(on_day=whole.count())
    more = by_day.filter(by_day.on_day > 1)
    repeated = more.group_by("cluster").aggregate(
        fault=ibis.literal("repeated"), runs=(more.on_day - 1).sum(), detail=more.count().cast("string")
    )
    known = whole.filter(whole.cluster_uid != "")
    uids = known.group_by("cluster").aggregate(
        fault=ibis.literal("identity"), runs=_number_of(known), number=known.cluster_uid.nunique()
    )
    several = uids.filter(uids.number > 1)
    faults = _union(
        grouped(foreign, "schema", lambda rows: rows.schema_name.min()),
        grouped(future, "future", lambda rows: rows.at.max().cast("string")),
        grouped(clock, "clock", lambda rows: rows.clock_ahead_seconds.max().round().cast("int64").cast("string")),
        grouped(partial, "selection", lambda rows: rows.selection.min()),
        repeated,
        several.select("cluster", "fault", "runs", detail=several.number.cast("string")),
    )
    return faults.order_by("fault", "cluster")
