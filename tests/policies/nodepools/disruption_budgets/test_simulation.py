"""What budgets allow was tried with Karpenter v1.14.1, quarter of an hour by quarter of an hour."""

from __future__ import annotations

from typing import Any

import pytest

from gpugate.policies.nodepools._disruption_windows import UNBOUNDED, BudgetError, Timeline, read, timeline
from gpugate.policies.sdk.field import Field

WEEK = 168


def of(*budgets: dict[str, Any]) -> Timeline:
    return Timeline(tuple(read(Field(budget)) for budget in budgets))


def hours(times: Timeline, reason: str, nodes: int) -> dict[int, float]:
    return {most: when.bit_count() / 4 for most, when in times.allowed(reason, nodes).items()}


ALWAYS = {"nodes": "2"}
DRIFT = {"nodes": "0", "reasons": ["Drifted"]}
OFFICE = {"nodes": "0", "schedule": "0 9 * * MON-FRI", "duration": "8h"}


@pytest.mark.parametrize(
    ("budgets", "reason", "nodes", "wanted"),
    [
        pytest.param([], "Empty", 10, {UNBOUNDED: WEEK}, id="without a budget nothing is bounded"),
        pytest.param([ALWAYS], "Empty", 10, {2: WEEK}, id="without reasons it holds for all"),
        pytest.param([DRIFT], "Empty", 10, {UNBOUNDED: WEEK}, id="with reasons it holds for those alone"),
        pytest.param([{"nodes": "0", "reasons": []}], "Empty", 10, {UNBOUNDED: WEEK}, id="no reasons are none"),
        pytest.param([{"nodes": "0", "reasons": None}], "Empty", 10, {0: WEEK}, id="null reasons are all"),
        pytest.param([ALWAYS, DRIFT], "Drifted", 10, {0: WEEK}, id="the smallest counts"),
        pytest.param([{"nodes": "5%"}], "Empty", 10, {1: WEEK}, id="a percentage is rounded up"),
        pytest.param([{"nodes": "0%"}], "Empty", 10, {0: WEEK}, id="0 per cent is none"),
        pytest.param([{"nodes": "100%"}], "Empty", 7, {7: WEEK}, id="100 per cent are all"),
        pytest.param([{}], "Empty", 20, {2: WEEK}, id="10 per cent is the default"),
        pytest.param([ALWAYS, OFFICE], "Empty", 10, {0: 40, 2: 128}, id="a schedule is active for a time"),
        pytest.param([OFFICE], "Empty", 10, {0: 40, UNBOUNDED: 128}, id="and bounds nothing else"),
        pytest.param(
            [{"nodes": "0", "schedule": "0 20 * * SAT", "duration": "10h"}],
            "Empty",
            10,
            {0: 10, UNBOUNDED: 158},
            id="a window goes on into the next week",
        ),
        pytest.param(
            [{"nodes": "0", "schedule": "0 9,12 * * 1", "duration": "5h"}],
            "Empty",
            10,
            {0: 8, UNBOUNDED: 160},
            id="a start within a window makes it longer",
        ),
        pytest.param(
            [{"nodes": "0", "schedule": "@hourly", "duration": "60m"}],
            "Empty",
            10,
            {0: WEEK},
            id="hour by hour is always",
        ),
        pytest.param(
            [{"nodes": "0", "schedule": "1 * * * *", "duration": "10m"}],
            "Empty",
            10,
            {UNBOUNDED: WEEK},
            id="between quarters of an hour nobody looks",
        ),
        pytest.param(
            [{"nodes": "0", "schedule": "0 0 30 2 *", "duration": "1h"}],
            "Empty",
            10,
            {0: 366 * 24},
            id="a day that never comes is always",
        ),
        pytest.param(
            [{"nodes": "0", "schedule": ", 9 * * *", "duration": "0m"}],
            "Empty",
            10,
            {0: WEEK},
            id="a minute that never comes is always, for no time too",
        ),
        pytest.param(
            [{"nodes": "0", "schedule": "0 9 * * *", "duration": "0h"}],
            "Empty",
            10,
            {UNBOUNDED: WEEK},
            id="a duration of zero is never",
        ),
        pytest.param(
            [{"nodes": "0", "schedule": "0 0 29 2 *", "duration": "24h"}, ALWAYS],
            "Empty",
            10,
            {0: 24, 2: 365 * 24},
            id="days of a month are followed over a leap year",
        ),
        pytest.param(
            [{"nodes": "0", "schedule": "0 0 * * SUN", "duration": "800h"}],
            "Empty",
            10,
            {0: WEEK},
            id="a duration may be longer than a week",
        ),
    ],
)
def test_budgets_allow(budgets: list[dict[str, Any]], reason: str, nodes: int, wanted: dict[int, float]) -> None:
    assert hours(of(*budgets), reason, nodes) == wanted


@pytest.mark.parametrize(
    "budget",
    [
        {"nodes": 0},
        {"nodes": "-1"},
        {"nodes": "101%"},
        {"nodes": "2147483648"},
        {"nodes": "0", "reasons": ["Expired"]},
        {"nodes": "0", "schedule": "0 9 * * *"},
        {"nodes": "0", "duration": "8h"},
        {"nodes": "0", "schedule": "0 9 * * 7", "duration": "8h"},
        {"nodes": "0", "schedule": "0 9 * * *", "duration": "30s"},
        {"nodes": "0", "schedule": "0 9 * * *", "duration": "1d"},
        {"nodes": "0", "schedule": "0 9 * * *", "duration": "9999999h"},
    ],
    ids=str,
)
def test_a_budget_with_a_fault_is_not_read(budget: dict[str, Any]) -> None:
    with pytest.raises(BudgetError):
        read(Field(budget))


def test_one_fault_stops_all_disruption(context: Any) -> None:
    pool = Field({"spec": {"disruption": {"budgets": [{"nodes": "5"}, {"nodes": 0}]}}})
    assert timeline(pool, context({})) is None


@pytest.mark.parametrize(
    ("budget", "when"),
    [
        (OFFICE, "Sun 00:00 UTC"),
        ({"nodes": "0", "schedule": "0 0 * * SUN", "duration": "33h"}, "Mon 09:00 UTC"),
        ({"nodes": "0", "schedule": "0 0 1 1 *", "duration": "800h"}, "02-03 08:00 UTC"),
    ],
)
def test_the_first_time_without_a_bound_is_said(budget: dict[str, Any], when: str) -> None:
    times = of(budget)
    assert times.first(times.allowed("Empty", 1)[UNBOUNDED]) == when


@pytest.mark.parametrize(
    ("budgets", "most"),
    [
        ([OFFICE], 8),
        ([{"nodes": "0", "schedule": "0 18 * * FRI", "duration": "60h"}], 24),
        ([{"nodes": "0", "schedule": "0 20 * * *", "duration": "8h"}], 8),
    ],
)
def test_the_hours_of_the_fullest_day(budgets: list[dict[str, Any]], most: float) -> None:
    times = of(*budgets)
    assert times.most_hours_of_a_day(times.allowed("Empty", 1)[0]) == most
