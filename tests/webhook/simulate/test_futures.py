"""What would become of Pods that do not exist yet, and of those whose node is removed."""

from __future__ import annotations

import datetime as dt
import json
from typing import TYPE_CHECKING, Any

import pytest
from simulate.cluster_objects import OBJECTS, cron_job, pool, ray_cluster, scaled_object, workload

from gpugate.policies.catalog import CATALOG
from gpugate.policies.data.instance_types import load_instance_types
from gpugate.policies.engine.config import PolicyConfig
from gpugate.policies.engine.ruleset import bind
from gpugate.policies.sdk.field import Field
from gpugate.webhook.audit.cost.prices import Prices
from gpugate.webhook.audit.dump import DumpSource
from gpugate.webhook.audit.model import Action
from gpugate.webhook.audit.scan import scan
from gpugate.webhook.audit.selection import Options
from gpugate.webhook.simulate.futures import Futures, next_starts, next_window
from gpugate.webhook.simulate.model import Change, PolicyChange

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gpugate.webhook.simulate.model import ScaleUp

# A Monday.
NOW = dt.datetime(2026, 11, 23, 18, 44, tzinfo=dt.UTC)
OF_PODS = "pods/wildcard-toleration"
OF_DEPLOYMENTS = "pods/surging-rollout"
OF_JOBS = "pods/endless-job"
POLICIES = [policy for policy in CATALOG if policy.id in {OF_PODS, OF_DEPLOYMENTS, OF_JOBS}]


@pytest.fixture
def futures(tmp_path: Path) -> Callable[..., Futures]:
    """Return what becomes of the Pods of all owners, if one policy newly denies them."""

    def made(*objects: dict[str, Any], policy: str = OF_PODS, current: Action = Action.WARN) -> Futures:
        file = tmp_path / "dump.json"
        file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects or OBJECTS)}))
        source = DumpSource([str(file)])
        scanned = scan(source, bind(CATALOG, PolicyConfig()), Options(NOW))
        changes = tuple(
            Change(
                owner.object,
                "stored",
                current,
                Action.DENY,
                (PolicyChange(policy, current, Action.DENY),),
                pods=owner.pods,
            )
            for owner in scanned.report.audited
        )
        return Futures(changes, POLICIES, source, scanned.inventory, Prices(load_instance_types()), NOW)

    return made


def test_pods_of_a_removed_node_do_not_come_back_if_their_owner_is_newly_denied(
    futures: Callable[..., Futures],
) -> None:
    found = {risk.node: risk for risk in futures().nodes()}
    assert {name: (risk.pods, risk.gpus, [owner.kind for owner in risk.owners]) for name, risk in found.items()} == {
        "n1": (2, 1.0, ["DaemonSet", "Deployment"]),
        "n2": (3, 6.0, ["Deployment", "StatefulSet"]),
        "n3": (1, 4.0, ["StatefulSet"]),
    }
    assert (found["n2"].node_pool, found["n3"].node_pool) == ("large", "small")
    per_gpu = found["n2"].usd_per_hour or 0.0
    assert per_gpu > 0
    assert found["n1"].usd_per_hour == pytest.approx(per_gpu / 6)


def test_the_risks_of_a_pool_are_those_of_its_nodes(futures: Callable[..., Futures]) -> None:
    made = futures()
    large, small = sorted(made.pools(made.nodes()), key=lambda risk: risk.node_pool)
    assert (large.nodes, large.pods, large.gpus) == (2, 5, 7.0)
    assert (small.nodes, small.pods, small.gpus) == (1, 1, 4.0)
    assert large.window is not None
    assert (large.window.opens, large.window.closes, large.window.nodes) == (
        dt.datetime(2026, 11, 23, 22, tzinfo=dt.UTC),
        dt.datetime(2026, 11, 24, 6, tzinfo=dt.UTC),
        1,
    )
    assert small.window is not None
    assert small.window.opens is None


@pytest.mark.parametrize(
    ("policy", "current"),
    [(OF_DEPLOYMENTS, Action.WARN), (OF_PODS, Action.DENY)],
    ids=["not the Pods", "denied already"],
)
def test_pods_come_back_if_the_candidate_changes_nothing_for_them(
    futures: Callable[..., Futures], policy: str, current: Action
) -> None:
    made = futures(policy=policy, current=current)
    assert (made.nodes(), made.runs(), made.scale_ups()) == ((), (), ())


def test_runs_are_those_of_the_next_days_in_the_zone_of_the_object(futures: Callable[..., Futures]) -> None:
    runs = {entry.object.name: entry for entry in futures().runs()}
    nightly = runs["nightly"]
    assert (nightly.runs, nightly.first, nightly.gpus) == (7, dt.datetime(2026, 11, 24, 2, tzinfo=dt.UTC), 16.0)
    assert (runs["paused"].suspended, runs["paused"].runs, runs["paused"].first) == (True, 0, None)
    assert (runs["odd"].runs, runs["odd"].schedules) == (None, ("@every 1h",))
    assert futures().runs()[0].object.name == "nightly"


def test_a_run_fails_too_if_its_job_is_denied(futures: Callable[..., Futures]) -> None:
    made = futures(cron_job("nightly", "0 3 * * *"), *workload("Deployment", "web", 1, ("n1",)), policy=OF_JOBS)
    assert [str(entry.object) for entry in made.runs()] == ["CronJob/ml/nightly"]
    assert made.nodes() == ()


def most(scale_ups: tuple[ScaleUp, ...]) -> dict[str, tuple[int, int | None, float | None]]:
    return {str(entry.scaler): (entry.pods, entry.most_pods, entry.most_gpus) for entry in scale_ups}


def test_scale_ups_are_those_to_the_maximum(futures: Callable[..., Futures]) -> None:
    assert most(futures().scale_ups()) == {
        "ScaledObject/ml/web": (3, 40, 40.0),
        # A head without GPUs, and five groups of two hosts.
        "RayCluster/ml/ray": (0, 11, 80.0),
    }


def test_a_scaled_object_without_a_maximum_has_that_of_keda(futures: Callable[..., Futures]) -> None:
    made = futures(*workload("Deployment", "web", 2, ("n1",)), scaled_object("web"))
    assert most(made.scale_ups()) == {"ScaledObject/ml/web": (1, 100, 200.0)}


def test_a_ray_cluster_without_a_maximum_has_none(futures: Callable[..., Futures]) -> None:
    assert most(futures(ray_cluster("ray")).scale_ups()) == {"RayCluster/ml/ray": (0, None, None)}


@pytest.mark.parametrize(
    ("schedule", "zone", "now", "first", "count"),
    [
        ("0 5 * * 1", "", "2026-11-23T18:44", "2026-11-30T05:00", 1),
        ("44 18 * * *", "", "2026-11-23T18:44", "2026-11-24T18:44", 7),
        ("0 0 30 2 *", "", "2026-11-23T18:44", None, 0),
        ("0 0 * * *", "Asia/Tokyo", "2026-11-23T18:44", "2026-11-24T15:00", 7),
        # Clocks go forward from 2:00 to 3:00 on 29 March, and back from 3:00 to 2:00 on 25 October.
        ("30 2 29 3 *", "Europe/Berlin", "2026-03-25T00:00", None, 0),
        ("30 2 25 10 *", "Europe/Berlin", "2026-10-21T00:00", "2026-10-25T00:30", 2),
    ],
)
def test_starts(schedule: str, zone: str, now: str, first: str | None, count: int) -> None:
    starts = next_starts((schedule,), zone, dt.datetime.fromisoformat(f"{now}+00:00"), 7)
    assert starts is not None
    assert (len(starts), f"{starts[0]:%Y-%m-%dT%H:%M}" if starts else None) == (count, first)


@pytest.mark.parametrize(
    ("schedules", "zone"),
    [
        (("@every 1h",), ""),
        (("0 0 * *",), ""),
        (("0 0 * * *",), "Mars/Base"),
        (("0 0 * * *",), "../x"),
        ((), ""),
        (("0 0 * * *",) * 51, ""),
    ],
)
def test_starts_that_cannot_be_read_are_unknown(schedules: tuple[str, ...], zone: str) -> None:
    assert next_starts(schedules, zone, NOW, 7) is None


def test_several_schedules_start_at_one_time_once() -> None:
    assert len(next_starts(("0 0 * * *", "0 0,12 * * *"), "", NOW, 7) or ()) == 14


WINDOWS = {
    "always": ([], 10, NOW, None, None),
    "share of the pool": ([{"nodes": "10%"}], 11, NOW, None, 2),
    "for another reason": ([{"nodes": "0", "reasons": ["Empty"]}], 10, NOW, None, None),
    "for one reason only": ([{"nodes": "0", "reasons": ["Drifted"]}, {"nodes": "3"}], 10, NOW, None, 3),
    "never": ([{"nodes": "0"}], 10, None, None, None),
    "invalid": ([{"nodes": "many"}], 10, None, None, None),
    "open now": (
        [{"nodes": "0", "schedule": "0 20 * * *", "duration": "22h"}, {"nodes": "2"}],
        10,
        NOW,
        dt.datetime(2026, 11, 23, 20, tzinfo=dt.UTC),
        2,
    ),
    "beyond these days": ([{"nodes": "0", "schedule": "0 0 1 * *", "duration": "720h"}], 10, None, None, None),
}


@pytest.mark.parametrize(("budgets", "nodes", "opens", "closes", "most_nodes"), WINDOWS.values(), ids=WINDOWS)
def test_the_next_window(
    budgets: list[dict[str, Any]],
    nodes: int,
    opens: dt.datetime | None,
    closes: dt.datetime | None,
    most_nodes: int | None,
) -> None:
    window = next_window(Field(pool("gpu", *budgets)), nodes, NOW, 5)
    assert (window.opens, window.closes, window.nodes) == (opens, closes, most_nodes)
