"""Pods that do not exist yet and that the candidate would deny.

They are those of the next runs of schedules, those of scale-ups to the maximum, and those that controllers create again after a node
is removed.

Only policies that evaluate these Pods count (of a CronJob also those that evaluate its Jobs), because a finding in a Deployment does
not stop its ReplicaSets from creating Pods. A Pod without a controller is not created again, whatever the policies say.

Sources: Kubernetes v1.36 `pkg/controller/cronjob` (schedules are parsed by robfig/cron v3, in the time zone of the controller manager
unless `spec.timeZone` names one); KubeRay v1.7.0 `ray-operator/apis/ray/v1` (RayCronJob, `enableInTreeAutoscaling`, `maxReplicas`,
`numOfHosts`); Argo Workflows v3.6 `cron_workflow_types.go`; Spark operator v2.1 `scheduledsparkapplication_types.go`; Karpenter v1.14.1
`pkg/apis/v1/nodepool.go` (budgets).
"""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo

from gpugate.policies.nodepools import _disruption_windows as disruption
from gpugate.policies.sdk.field import Field, render
from gpugate.webhook.audit.cost.gpu_nodes import gpu_node, holdings
from gpugate.webhook.audit.cost.scalers import gpus_per_pod, scalers_of
from gpugate.webhook.audit.model import Action
from gpugate.webhook.audit.source import NotReadError
from gpugate.webhook.simulate.model import DisruptionWindow, NodeRisk, PoolRisk, ScaleUp, ScheduledRuns

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from gpugate.policies.sdk.field import Json
    from gpugate.policies.sdk.policy import Policy
    from gpugate.webhook.audit.cost.prices import Prices
    from gpugate.webhook.audit.inventory import Inventory
    from gpugate.webhook.audit.source import Source
    from gpugate.webhook.report.located import ObjectName
    from gpugate.webhook.simulate.model import Change

DAYS: Final = 7
MOST_DAYS: Final = 31
# A CronWorkflow has a list of schedules, of any length.
_MOST_SCHEDULES: Final = 50
_POD: Final = ("", "Pod")
_QUARTER: Final = dt.timedelta(minutes=15)
# Karpenter disrupts nodes without Pods for the reason Empty; nobody misses Pods of those.
_REASONS: Final = ("Underutilized", "Drifted")
# (group, kind) -> the kinds that each run creates; all of them state `spec.schedule` or `spec.schedules`.
_SCHEDULED: Final = {
    ("batch", "CronJob"): frozenset({_POD, ("batch", "Job")}),
    ("argoproj.io", "CronWorkflow"): frozenset({_POD, ("argoproj.io", "Workflow")}),
    ("ray.io", "RayCronJob"): frozenset({_POD, ("ray.io", "RayJob"), ("ray.io", "RayCluster")}),
    ("sparkoperator.k8s.io", "ScheduledSparkApplication"): frozenset(
        {_POD, ("sparkoperator.k8s.io", "SparkApplication")}
    ),
}
_RAY: Final = {
    ("ray.io", "RayCluster"): ("spec",),
    ("ray.io", "RayJob"): ("spec", "rayClusterSpec"),
    ("ray.io", "RayService"): ("spec", "rayClusterConfig"),
}
# The default of the CRD for a group without `maxReplicas`, which is no limit.
_NO_LIMIT: Final = 2**31 - 1


@dataclass(frozen=True)
class Futures:
    """What becomes of the Pods that the candidate newly denies.

    Attributes:
        changes: the owners that the candidate treats differently.
        policies: the candidate's policies.
        source: the objects.
        inventory: the Pods, nodes, templates and autoscalers among them.
        prices: the prices of nodes.
        now: the current time, with its time zone.
        days: for how long runs and disruption windows are computed.
    """

    changes: Sequence[Change]
    policies: Sequence[Policy]
    source: Source
    inventory: Inventory
    prices: Prices
    now: dt.datetime
    days: int = DAYS

    def nodes(self) -> tuple[NodeRisk, ...]:
        """Return the nodes with Pods that would not come back, the highest cost first."""
        lost = self._owners_without(frozenset({_POD}))
        allocated = self._allocated
        risks = []
        for node, owners in self.inventory.placed.items():
            # A Pod without a controller is its own owner.
            denied = {owner: pods for owner, pods in owners.items() if owner in lost and owner.kind != "Pod"}
            if denied:
                parts = [allocated[node, owner] for owner in denied if (node, owner) in allocated]
                names = tuple(sorted(denied, key=str))
                pool = self._pool_of.get(node, "")
                risks.append(NodeRisk(node, pool, sum(denied.values()), names, *_added(parts)))
        return tuple(sorted(risks, key=lambda risk: (-(risk.usd_per_hour or 0), -risk.gpus, -risk.pods, risk.node)))

    def pools(self, nodes: Iterable[NodeRisk]) -> tuple[PoolRisk, ...]:
        """Return these nodes by NodePool, the highest cost first, with the time at which budgets next allow a disruption."""
        groups: defaultdict[str, list[NodeRisk]] = defaultdict(list)
        for risk in nodes:
            groups[risk.node_pool].append(risk)
        documents = {pool["metadata", "name"].text: pool for pool in map(_field, self.inventory.node_pools)}
        sizes: defaultdict[str, int] = defaultdict(int)
        for node in self.inventory.nodes:
            sizes[node.node_pool] += 1
        risks = (
            PoolRisk(
                name,
                len(members),
                sum(member.pods for member in members),
                *_added((member.gpus, member.usd_per_hour) for member in members),
                next_window(documents[name], sizes[name], self.now, self.days) if name in documents else None,
            )
            for name, members in groups.items()
        )
        return tuple(
            sorted(risks, key=lambda risk: (-(risk.usd_per_hour or 0), -risk.gpus, -risk.pods, risk.node_pool))
        )

    def runs(self) -> tuple[ScheduledRuns, ...]:
        """Return the next runs of owners with a schedule whose runs would be denied, the soonest first."""
        late = dt.datetime.max.replace(tzinfo=dt.UTC)
        runs = [
            self._runs_of(name, obj)
            for pair, created in _SCHEDULED.items()
            for name, obj in self._objects(pair, self._owners_without(created))
        ]
        return tuple(sorted(runs, key=lambda run: (run.first or late, str(run.object))))

    def scale_ups(self) -> tuple[ScaleUp, ...]:
        """Return the autoscalers whose further Pods would be denied, those with the most GPUs first."""
        lost = self._owners_without(frozenset({_POD}))
        targets = {(name.namespace, name.kind, name.name): name for name in lost}
        scale_ups = []
        for scaler in scalers_of(self.inventory.scalers):
            name = targets.get(scaler.target)
            if name is not None:
                gpus = sum((per_pod for _, per_pod in self._templates.get(name, ())), Fraction(0))
                most = scaler.most_pods
                scale_ups.append(ScaleUp(name, scaler.name, lost[name].pods, most, float(most * gpus)))
        for pair, path in _RAY.items():
            scale_ups += [
                self._ray_scale_up(name, obj[path], lost[name].pods)
                for name, obj in self._objects(pair, lost)
                if obj[path]["enableInTreeAutoscaling"].value is True
            ]
        return tuple(sorted(scale_ups, key=lambda up: (up.most_gpus is not None, -(up.most_gpus or 0), str(up.object))))

    def _runs_of(self, name: ObjectName, obj: Field) -> ScheduledRuns:
        spec = obj["spec"]
        schedules = (*spec["schedules"].texts, *([spec["schedule"].text] if spec["schedule"] else []))
        zone = spec["timeZone"].text or spec["timezone"].text
        suspended = spec["suspend"].value is True
        gpus = None
        if name.kind == "CronJob":
            parallel = spec["jobTemplate", "spec", "parallelism"].integer
            per_pod = sum((gpus for _, gpus in self._templates.get(name, ())), Fraction(0))
            gpus = float(per_pod * (1 if parallel is None else parallel))
        starts = () if suspended else next_starts(schedules, zone, self.now, self.days)
        if starts is None:
            return ScheduledRuns(name, schedules, zone, suspended, None, None, gpus)
        return ScheduledRuns(name, schedules, zone, suspended, len(starts), starts[0] if starts else None, gpus)

    def _ray_scale_up(self, name: ObjectName, spec: Field, pods: int) -> ScaleUp:
        per_pod = dict(self._templates.get(name, ()))
        head = render(spec["headGroupSpec", "template"].path)
        most, gpus = 1, per_pod.get(head, Fraction(0))
        for group in spec["workerGroupSpecs"]:
            replicas, hosts = group["maxReplicas"].integer, group["numOfHosts"].integer
            if replicas is None or replicas >= _NO_LIMIT:
                return ScaleUp(name, name, pods, None, None)
            members = replicas * (1 if hosts is None else hosts)
            most += members
            gpus += members * per_pod.get(render(group["template"].path), Fraction(0))
        return ScaleUp(name, name, pods, most, float(gpus))

    def _objects(
        self, pair: tuple[str, str], wanted: Mapping[ObjectName, Change]
    ) -> Iterator[tuple[ObjectName, Field]]:
        """Yield the objects of a kind that are wanted; those that the source does not contain are left out."""
        names = {(name.namespace, name.name): name for name in wanted if _pair(name) == pair}
        if not names:
            return
        api_version = next(iter(names.values())).api_version
        try:
            for stored in self.source.read(self.source.find(api_version, pair[1])):
                obj = Field(stored.object)
                key = obj["metadata", "namespace"].text, obj["metadata", "name"].text
                if key in names:
                    yield names[key], obj
        except NotReadError:
            return

    def _owners_without(self, created: frozenset[tuple[str, str]]) -> dict[ObjectName, Change]:
        """Return the newly denied owners of which the candidate denies objects of these kinds."""
        known = {
            policy.id for policy in self.policies if any((kind.group, kind.name) in created for kind in policy.kinds)
        }
        owners: dict[ObjectName, Change] = {}
        for change in self.changes:
            denying = {entry.policy for entry in change.policies if entry.candidate is Action.DENY}
            # Of a log and a dump, the dump knows the Pods.
            if change.newly_denied and denying & known and (change.object not in owners or change.pods):
                owners[change.object] = change
        return owners

    @cached_property
    def _pool_of(self) -> dict[str, str]:
        return {node.name: node.node_pool for node in self.inventory.nodes}

    @cached_property
    def _templates(self) -> dict[ObjectName, list[tuple[str, Fraction]]]:
        """The templates with GPUs of each owner: the path, and the GPUs of one Pod."""
        templates: defaultdict[ObjectName, list[tuple[str, Fraction]]] = defaultdict(list)
        for template in self.inventory.templates:
            templates[template.object].append((template.path, gpus_per_pod(template.demand)))
        return dict(templates)

    @cached_property
    def _allocated(self) -> dict[tuple[str, ObjectName], tuple[float, float | None]]:
        """The GPUs that are allocated to the Pods of each owner on each node, and their cost."""
        nodes = {node.name: known for node in self.inventory.nodes if (known := gpu_node(node, self.prices))}
        parts: defaultdict[tuple[str, ObjectName], list[tuple[float, float | None]]] = defaultdict(list)
        for holding in holdings(self.inventory, nodes):
            usd = None if holding.usd is None else float(holding.usd)
            parts[holding.pod.node, holding.pod.owner].append((float(holding.gpus), usd))
        return {key: _added(figures) for key, figures in parts.items()}


def _pair(name: ObjectName) -> tuple[str, str]:
    return name.api_version.rpartition("/")[0], name.kind


def _field(document: Mapping[str, Json]) -> Field:
    return Field(dict(document))


def _added(parts: Iterable[tuple[float, float | None]]) -> tuple[float, float | None]:
    """Add up GPUs and their cost, which is unknown if that of some GPUs is."""
    gpus, usd, is_priced = 0.0, 0.0, True
    for part, price in parts:
        gpus += part
        usd += price or 0.0
        is_priced = is_priced and (price is not None or not part)
    return gpus, usd if gpus and is_priced else None


def next_window(pool: Field, nodes: int, now: dt.datetime, days: int) -> DisruptionWindow:
    """Return when the budgets of a NodePool next allow Karpenter to disrupt nodes with Pods, to the quarter of an hour.

    Args:
        pool: the NodePool.
        nodes: the number of its nodes.
        now: the current time.
        days: how many days are looked at; a window that opens later is unknown.
    """
    start = now.astimezone(dt.UTC)
    # Karpenter disrupts no node of a pool with an invalid budget.
    closed = DisruptionWindow(None)
    entries = list(pool["spec", "disruption", "budgets"])
    if len(entries) > disruption.MOST_BUDGETS:
        return closed
    try:
        budgets = tuple(disruption.read(entry) for entry in entries)
    except disruption.BudgetError:
        return closed
    timeline = disruption.Timeline(budgets, disruption.Stretch(start.date(), days + 1))
    midnight = start.replace(hour=0, minute=0, second=0, microsecond=0)
    passed = (start - midnight) // _QUARTER
    allowed = [
        (most, times >> passed)
        for reason in _REASONS
        for most, times in timeline.allowed(reason, nodes).items()
        if most
    ]
    times = 0
    for _, quarters in allowed:
        times |= quarters
    if not times:
        return closed
    first = (times & -times).bit_length() - 1
    ends = ~(times >> first)
    length = (ends & -ends).bit_length() - 1
    is_open_ended = passed + first + length >= timeline.stretch.days * disruption.QUARTERS_PER_DAY
    most = max(most for most, quarters in allowed if quarters >> first & 1)
    return DisruptionWindow(
        max(start, midnight + (passed + first) * _QUARTER),
        None if is_open_ended else midnight + (passed + first + length) * _QUARTER,
        None if most >= disruption.UNBOUNDED else most,
    )


@lru_cache(maxsize=1024)
def next_starts(schedules: tuple[str, ...], zone: str, now: dt.datetime, days: int) -> tuple[dt.datetime, ...] | None:
    """Return the times at which schedules start in the next days, in UTC; None if a schedule or the time zone cannot be read.

    A time that a change of the clock skips does not start; one that it repeats starts twice, as in robfig/cron.
    """
    if not 0 < len(schedules) <= _MOST_SCHEDULES:
        return None
    try:
        time_zone = ZoneInfo(zone) if zone else dt.UTC
        parsed = [disruption.parse(schedule) for schedule in schedules]
    # A zone may be a path or too long for the name of a file, and without a database every zone is unknown.
    except (disruption.ScheduleError, ValueError, OSError, KeyError):
        return None
    end = now + dt.timedelta(days=days)
    stretch = disruption.Stretch(now.astimezone(time_zone).date(), days + 2)
    starts: set[dt.datetime] = set()
    for schedule in parsed:
        for offset, is_start in enumerate(disruption.start_days(schedule, stretch)[stretch.days :]):
            date = stretch.start + dt.timedelta(days=offset)
            for hour in schedule.hours if is_start else ():
                for minute in schedule.minutes:
                    local = dt.datetime(date.year, date.month, date.day, hour, minute, tzinfo=time_zone)
                    starts.update(time for time in _times_of(local) if now < time <= end)
    return tuple(sorted(starts))


def _times_of(local: dt.datetime) -> tuple[dt.datetime, ...]:
    """Return the times in UTC at which a clock shows a local time: none, one or two."""
    if local.tzinfo is dt.UTC:
        return (local,)
    times = {local.astimezone(dt.UTC), local.replace(fold=1).astimezone(dt.UTC)}
    return tuple(time for time in times if time.astimezone(local.tzinfo).replace(fold=0) == local)
