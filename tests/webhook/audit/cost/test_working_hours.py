"""How much of a window is working time, and what it means for the use of a GPU."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpugate.policies.engine.config import ConfigError, GpugateError, parse_config
from gpugate.policies.sdk.platform import DAYS, WorkingHours
from gpugate.webhook.audit.cost.gpu_metrics import Device, Reading, Signal, Window
from gpugate.webhook.audit.cost.gpu_use import use_of
from gpugate.webhook.audit.cost.working_hours import WorkingTime, check_zones
from gpugate.webhook.audit.model import Use

HOUR = 3600
# 2026-11-23 is a Monday.
MONDAY = dt.datetime(2026, 11, 23, tzinfo=dt.UTC)


def hours(*, namespaces: tuple[str, ...] = ("ml",), **others: Any) -> WorkingHours:
    return WorkingHours(namespaces=namespaces, **others)


@pytest.mark.parametrize(
    ("entry", "end", "window", "expected"),
    [
        pytest.param(hours(), MONDAY.replace(hour=6), 24, 0.0, id="monday-before-work"),
        pytest.param(hours(), MONDAY.replace(hour=9), 24, 1.0, id="monday-after-an-hour"),
        pytest.param(hours(), MONDAY.replace(hour=20), 24, 10.0, id="monday-evening"),
        pytest.param(hours(), MONDAY.replace(hour=20), 7 * 24, 50.0, id="a-week"),
        pytest.param(hours(days=DAYS, start="00:00", end="24:00"), MONDAY.replace(hour=3), 24, 24.0, id="always"),
        pytest.param(hours(time_zone="Asia/Seoul"), MONDAY.replace(hour=1), 24, 2.0, id="in-seoul"),
        pytest.param(hours(), MONDAY.replace(hour=17), 1, 1.0, id="a-short-window"),
        # The clocks went back in Berlin on 2026-10-25 at 3:00, so this night had an hour more.
        pytest.param(hours(days=("sun",), start="00:00", end="06:00", time_zone="Europe/Berlin"),
                     dt.datetime(2026, 10, 25, 12, tzinfo=dt.UTC), 24, 7.0, id="end-of-summer-time"),
    ],
)  # fmt: skip
def test_the_working_time_of_a_window(entry: WorkingHours, end: dt.datetime, window: int, expected: float) -> None:
    assert WorkingTime((entry,), end, window * HOUR).of("ml") == expected * HOUR


@given(
    st.sets(st.sampled_from(DAYS), min_size=1),
    st.datetimes(dt.datetime(2026, 1, 1), dt.datetime(2027, 1, 1)),  # noqa: DTZ001 -- the next argument has the zone
    st.integers(1, 30 * 24),
    st.sampled_from(["UTC", "Europe/Berlin", "America/Los_Angeles", "Australia/Lord_Howe"]),
)
def test_days_divide_the_window(days: set[Any], end: dt.datetime, window: int, zone: str) -> None:
    """Working hours on some days, and all day on the others, are together the whole window."""
    halves = [
        hours(days=tuple(some), start=start, end=stop, time_zone=zone)
        for some, spans in ((days, (("00:00", "09:30"), ("09:30", "24:00"))), ({*DAYS} - days, (("00:00", "24:00"),)))
        for start, stop in spans
        if some
    ]
    whole = [WorkingTime((entry,), end.replace(tzinfo=dt.UTC), window * HOUR).of("ml") or 0.0 for entry in halves]

    assert sum(whole) == pytest.approx(window * HOUR)


def test_a_name_takes_precedence_over_a_pattern() -> None:
    entries = (
        hours(namespaces=("ml-*",)),
        hours(namespaces=("*",), days=("sat",)),
        hours(namespaces=("ml-a",), days=("sun",)),
    )
    found = WorkingTime(entries, MONDAY.replace(hour=20), 24 * HOUR)

    assert [found.of(name) for name in ("ml-a", "ml-b", "web")] == [0.0, 10 * HOUR, 0.0]
    assert WorkingTime(entries[:1], MONDAY, 24 * HOUR).of("web") is None


def test_an_unknown_time_zone_is_refused() -> None:
    for zone in ("Europe/Berlim", "../../etc/passwd", ""):
        with pytest.raises(GpugateError, match="unknown time zone"):
            check_zones((hours(time_zone=zone),))


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"start": "18:00", "end": "08:00"}, "is not after the start 18:00"),
        ({"start": "25:00"}, "start"),
        ({"days": ["Monday"]}, "days"),
        ({"days": []}, "days"),
        ({"namespaces": []}, "namespaces"),
    ],
)
def test_invalid_hours_are_refused(entry: dict[str, Any], message: str) -> None:
    document = {
        "apiVersion": "gpugate.dev/v1",
        "kind": "PolicyConfig",
        "platform": {"working_hours": [{"namespaces": ["ml"], **entry}]},
    }
    with pytest.raises(ConfigError) as error:
        parse_config(document)
    assert message in str(error.value)


IDLE = {Signal.ENGINE_MAX: 0.0, Signal.ENGINE_MEAN: 0.0, Signal.SAMPLES: 288.0}
DAILY = IDLE | {Signal.ENGINE_MAX: 0.9, Signal.ENGINE_MEAN: 0.1}


@pytest.mark.parametrize(
    ("values", "working", "use", "reason"),
    [
        pytest.param(IDLE, None, Use.IDLE, "engine active at most 0.0%", id="no-hours"),
        pytest.param(IDLE, 10 * HOUR, Use.IDLE, "10 working hours in 24h", id="a-working-day"),
        pytest.param(IDLE, 4 * HOUR, Use.IDLE, "4 working hours in 24h", id="just-enough"),
        pytest.param(IDLE, 3 * HOUR, Use.UNKNOWN, "fewer than 4 working hours in the window", id="monday-morning"),
        pytest.param(IDLE, 0.0, Use.UNKNOWN, "fewer than 4 working hours in the window", id="a-weekend"),
        pytest.param(DAILY, None, Use.UNDER_USED, "mean 10.0%", id="under-used-all-day"),
        pytest.param(DAILY, 10 * HOUR, Use.BUSY, "10 working hours in 24h", id="at-most-24-%-within-the-hours"),
        pytest.param(DAILY, 16 * HOUR, Use.UNDER_USED, "16 working hours", id="at-most-15-%-within-the-hours"),
        pytest.param(DAILY, 0.0, Use.UNKNOWN, "fewer than 4 working hours", id="at-night-only"),
    ],
)
def test_a_gpu_is_judged_within_the_working_hours(
    values: dict[Signal, float], working: float | None, use: Use, reason: str
) -> None:
    reading = Reading(Device("GPU-0"), None, None, None, values)

    found, evidence = use_of(reading, None, Window(86400, {}), working=working)

    assert (found, reason in evidence) == (use, True), evidence
