"""The figures of a simulation."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from msgspec import structs

from gpugate.webhook.audit.model import Action, NotEvaluated
from gpugate.webhook.report.located import ObjectName
from gpugate.webhook.simulate.model import Change, Coverage, PolicyChange, Requests, Simulation
from gpugate.webhook.simulate.summary import summarized

START = dt.datetime(2026, 11, 1, tzinfo=dt.UTC)
WEEK = Coverage(requests=1000, evaluated=1000, stored=10, first=START, last=START + dt.timedelta(days=10))


def owner(name: str) -> ObjectName:
    return ObjectName("apps/v1", "Deployment", "ml", name)


def policy(current: Action, candidate: Action, name: str = "a") -> PolicyChange:
    return PolicyChange(name, current, candidate)


def change(name: str, *policies: PolicyChange, **fields: Any) -> Change:
    current = min((entry.current for entry in policies), key=list(Action).index)
    candidate = min((entry.candidate for entry in policies), key=list(Action).index)
    return structs.replace(Change(owner(name), "stored", current, candidate, policies), **fields)


def simulation(*changes: Change, coverage: Coverage = WEEK, gaps: tuple[NotEvaluated, ...] = ()) -> Simulation:
    made = Simulation("1", "old.yaml", "new.yaml", ("x",), coverage, changes, gaps=gaps)
    return summarized(made, has_live_data=False)


NEWLY = policy(Action.WARN, Action.DENY)


def test_an_owner_that_log_and_dump_show_counts_once_with_the_figures_of_both() -> None:
    requests = change("x", NEWLY, source="requests", requests=Requests(people=20, controllers=30))
    stored = change("x", NEWLY, pods=2, gpus=8.0, usd_per_hour=12.0)
    denied = simulation(requests, stored).denied
    assert (denied.owners, denied.people, denied.controllers, denied.per_day) == (1, 20, 30, 5.0)
    assert (denied.gpus, denied.usd_per_hour) == (8.0, 12.0)


def test_the_cost_is_unknown_if_that_of_an_owner_is() -> None:
    denied = simulation(
        change("x", NEWLY, gpus=1.0, usd_per_hour=3.0), change("y", NEWLY, gpus=1.0), change("z", NEWLY)
    ).denied
    assert (denied.gpus, denied.usd_per_hour) == (2.0, None)


def test_policies_count_the_owners_whose_decision_changes() -> None:
    made = simulation(
        change("x", NEWLY),
        change("y", NEWLY, policy(Action.DENY, Action.DENY, "b")),
        change("z", policy(Action.DENY, Action.WARN, "b")),
        change("v", policy(Action.WARN, Action.ALLOW, "b")),
    )
    assert [(entry.policy, entry.denied.owners, entry.allowed, entry.others) for entry in made.policies] == [
        ("a", 1, 0, 1),
        ("b", 0, 1, 2),
    ]


GAPS = tuple(NotEvaluated(f"kind{number}", "may not list") for number in range(7))
CONFIDENCE: dict[str, tuple[dict[str, Any], tuple[NotEvaluated, ...], str, list[str]]] = {
    "a week and a dump": ({}, (), "high", []),
    "no dump": ({"stored": 0}, (), "low", ["no cluster data"]),
    "no requests": ({"requests": 0, "first": None, "last": None}, (), "medium", ["no recorded requests"]),
    "three hours": ({"last": START + dt.timedelta(hours=3)}, (), "low", ["those of 3.0 hours"]),
    "three days": ({"last": START + dt.timedelta(days=3)}, (), "medium", ["those of 3.0 days"]),
    "few not evaluated": ({"not_evaluated": {"x": 50}}, (), "high", []),
    "some not evaluated": ({"not_evaluated": {"x": 60, "y": 60}}, (), "medium", ["12% of the recorded requests"]),
    "many not evaluated": ({"not_evaluated": {"x": 300}}, (), "low", ["30% of the recorded requests"]),
    "kinds not read": ({}, GAPS, "medium", ["not all was read: kind0, kind1, kind2, kind3, kind4 and 2 more"]),
    "the worst counts": ({"stored": 0}, GAPS, "low", ["no cluster data", "not all was read"]),
}


@pytest.mark.parametrize(("changed", "gaps", "level", "reasons"), CONFIDENCE.values(), ids=CONFIDENCE)
def test_the_confidence_has_reasons(
    changed: dict[str, Any], gaps: tuple[NotEvaluated, ...], level: str, reasons: list[str]
) -> None:
    found = simulation(coverage=structs.replace(WEEK, **changed), gaps=gaps).confidence
    assert (found.level, len(found.reasons)) == (level, len(reasons))
    assert all(part in reason for part, reason in zip(reasons, found.reasons, strict=True))


def test_servers_have_the_data_of_their_cluster() -> None:
    made = Simulation("1", "old", "new", ("x",), structs.replace(WEEK, stored=0), ())
    assert summarized(made, has_live_data=True).confidence.level == "high"
