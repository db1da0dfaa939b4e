"""Windows against the same worked out minute by minute."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpugate.policies.nodepools import _disruption_windows
from gpugate.policies.nodepools._disruption_windows import Stretch, Window, window

MINUTES = 1440
WEEK = Stretch(dt.date(2028, 1, 2), 7)
# Long enough for days of a month, and short enough to count every minute of it.
SOME_WEEKS = Stretch(dt.date(2028, 2, 24), 10)


def minute_by_minute(schedule: _disruption_windows.Schedule, minutes: int, stretch: Stretch) -> Window:
    """Karpenter's answer: active when the last start is less than the duration ago."""
    starts = set()
    for place in range(-stretch.days, stretch.days):
        date = stretch.start + dt.timedelta(days=place)
        by_month, by_week = date.day in schedule.days, date.isoweekday() % 7 in schedule.weekdays
        if date.month in schedule.months and (by_month and by_week if schedule.both_days else by_month or by_week):
            starts |= {place * MINUTES + h * 60 + m for h in schedule.hours for m in schedule.minutes}
    total = stretch.days * MINUTES
    if not starts or minutes >= total:
        return Window(stretch.quarters, always=True)
    active, last = [], -2 * total
    for minute in range(-total, total):
        last = minute if minute in starts else last
        active.append(minute - last < minutes)
    quarters = sum(1 << place for place, now in enumerate(active[total::15]) if now)
    return Window(quarters, always=all(active[total:]), never=not any(active))


def part(least: int, most: int) -> st.SearchStrategy[str]:
    numbers = st.integers(least, most)
    spans = st.tuples(numbers, numbers).map(lambda pair: f"{min(pair)}-{max(pair)}")
    steps = st.tuples(st.just("*") | spans, st.integers(1, most)).map(lambda pair: f"{pair[0]}/{pair[1]}")
    return st.just("*") | st.lists(numbers.map(str) | spans | steps, min_size=1, max_size=3).map(",".join)


schedules = st.tuples(part(0, 59), part(0, 23), part(1, 31), part(1, 4), part(0, 6)).map(" ".join)
durations = st.integers(0, 120) | st.integers(0, 3 * MINUTES) | st.integers(0, 12 * MINUTES)


@settings(deadline=None, max_examples=60)
@given(schedules, durations, st.sampled_from([WEEK, SOME_WEEKS]))
def test_a_window_is_what_counting_minutes_gives(text: str, minutes: int, stretch: Stretch) -> None:
    schedule = _disruption_windows.parse(text)
    assert window(schedule, minutes, stretch) == minute_by_minute(schedule, minutes, stretch)


@pytest.mark.parametrize(
    ("text", "minutes"),
    [
        pytest.param("0 9 * * *", 0, id="for-no-time"),
        pytest.param("0 0 * * *", 1439, id="a-minute-less-than-a-day"),
        pytest.param("0 0 * * *", 1440, id="from-day-to-day"),
        pytest.param("30 23 * * *", 1439, id="over-midnight"),
        pytest.param("59 23 * * 6", 1, id="the-last-minute-of-the-stretch"),
        pytest.param("*/15 * * * *", 1, id="only-when-somebody-looks"),
        pytest.param("*/15 * * * *", 15, id="quarter-to-quarter"),
        pytest.param("*/16 * * * *", 15, id="a-minute-short-once"),
        pytest.param("1 * * * *", 14, id="never-when-somebody-looks"),
        pytest.param("1 * * * *", 15, id="until-just-after-the-quarter"),
        pytest.param("14 12 * * 3", 1, id="until-just-before-the-quarter"),
        pytest.param("14 12 * * 3", 2, id="at-one-quarter-only"),
        pytest.param("0 12 * * 3", 7 * MINUTES - 1, id="nearly-a-week"),
        pytest.param("0 12 * * 3", 7 * MINUTES, id="a-week"),
        pytest.param(", 9 * * *", 5, id="a-minute-that-never-comes"),
        pytest.param("0 9 30 2 *", 5, id="a-day-that-never-comes"),
    ],
)
def test_edges(text: str, minutes: int) -> None:
    schedule = _disruption_windows.parse(text)
    assert window(schedule, minutes, WEEK) == minute_by_minute(schedule, minutes, WEEK)


@pytest.mark.parametrize(
    ("text", "minutes"),
    [
        pytest.param("0 9 20 2 *", 5, id="a-start-before-the-stretch-alone"),
        pytest.param("0 9 20 2 *", 5 * MINUTES, id="a-window-into-the-stretch"),
        pytest.param("0 9 26 2 *", 10 * MINUTES, id="as-long-as-the-stretch"),
    ],
)
def test_edges_with_days_of_a_month(text: str, minutes: int) -> None:
    schedule = _disruption_windows.parse(text)
    assert window(schedule, minutes, SOME_WEEKS) == minute_by_minute(schedule, minutes, SOME_WEEKS)
