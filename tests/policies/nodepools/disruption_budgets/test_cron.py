"""The rows of both tables were tried with robfig/cron v3.0.1, as Karpenter v1.14.1 calls it."""

from __future__ import annotations

import datetime as dt
import sys
from typing import TYPE_CHECKING

import pytest

from gpugate.policies.nodepools import _disruption_windows
from gpugate.policies.nodepools._disruption_windows import Schedule, ScheduleError

if TYPE_CHECKING:
    from types import FrameType

SUNDAY = dt.date(2028, 1, 2)


def starts_on(schedule: Schedule, date: dt.date) -> bool:
    by_month, by_week = date.day in schedule.days, date.isoweekday() % 7 in schedule.weekdays
    return date.month in schedule.months and (by_month and by_week if schedule.both_days else by_month or by_week)


def hits(text: str) -> list[str]:
    """The first three starts of a week from Sunday, as day and time."""
    schedule = _disruption_windows.parse(text)
    dates = [SUNDAY + dt.timedelta(days=day) for day in range(7)]
    times = [(hour, minute) for hour in sorted(schedule.hours) for minute in sorted(schedule.minutes)]
    found = [(date.isoweekday() % 7, *time) for date in dates if starts_on(schedule, date) for time in times]
    return [f"{day} {hour:02}:{minute:02}" for day, hour, minute in found[:3]]


@pytest.mark.parametrize(
    ("text", "starts"),
    [
        ("0 9 * * MON-FRI", ["1 09:00", "2 09:00", "3 09:00"]),
        ("0 9 * * 1-5", ["1 09:00", "2 09:00", "3 09:00"]),
        ("0 9 ? * fri", ["5 09:00"]),
        ("*/20 3 * * *", ["0 03:00", "0 03:20", "0 03:40"]),
        ("50/5 3 * * 0", ["0 03:50", "0 03:55"]),
        ("5,1 3 * * 0", ["0 03:01", "0 03:05"]),
        ("0 22-23/2 * JAN Sat,sun", ["0 22:00", "6 22:00"]),
        ("+5 3 * * 0", ["0 03:05"]),
        ("0 9 3 * *", ["1 09:00"]),
        ("0 9 3 * 5", ["1 09:00", "5 09:00"]),
        ("0 9 3 * */1", ["1 09:00"]),
        ("0 9 3 * */5", ["0 09:00", "1 09:00", "5 09:00"]),
        ("0 9 * 2 *", []),
        (", 9 * * *", []),
        (" 0   9\t* * 6 ", ["6 09:00"]),
        ("0 *-nonsense * * *", ["0 00:00", "0 01:00", "0 02:00"]),
        ("@hourly", ["0 00:00", "0 01:00", "0 02:00"]),
        ("@daily", ["0 00:00", "1 00:00", "2 00:00"]),
        ("@midnight", ["0 00:00", "1 00:00", "2 00:00"]),
        ("@weekly", ["0 00:00"]),
        ("@monthly", []),
        ("@yearly", []),
        ("@annually", []),
    ],
)
def test_a_schedule_starts(text: str, starts: list[str]) -> None:
    assert hits(text) == starts


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("", "has 0 fields"),
        ("0 9 * *", "has 4 fields"),
        ("0 0 9 * * *", "has 6 fields"),
        ("every day at nine hours", 'the minute "every"'),
        ("60 9 * * *", 'the minute "60", which is outside 0 to 59'),
        ("0 24 * * *", 'the hour "24", which is outside 0 to 23'),
        ("0 9 0 * *", 'the day of month "0", which is outside 1 to 31'),
        ("0 9 * 13 *", 'the month "13"'),
        ("0 9 * * 7", 'the day of week "7", which is outside 0 to 6'),
        ("0 9 * * MONDAY", 'the day of week "MONDAY", which is not a number or name'),
        ("0 JAN * * *", 'the hour "JAN", which is not a number'),
        ("0 9 * * FRI-MON", 'the day of week "FRI-MON", which is backwards'),
        ("0 9 L * *", 'the day of month "L"'),
        ("0 9 * * 5#2", 'the day of week "5#2"'),
        ("0 9 15W * *", 'the day of month "15W"'),
        ("0 9 * * 1-2-3", 'the day of week "1-2-3"'),
        ("0 1/2/3 * * *", 'the hour "1/2/3"'),
        ("*/0 9 * * *", "a step of 0"),
        ("*/MON 9 * * MON", 'the minute "MON"'),
        ("-1 9 * * *", 'the minute ""'),
        ("\u0660 9 * * *", "which is not a number"),
        ("TZ=Asia/Seoul 0 9 * * *", "names a time zone"),
        ("CRON_TZ=UTC 0 9 * * *", "names a time zone"),
        ("@Daily", "an unknown shorthand"),
    ],
)
def test_what_is_no_schedule_is_refused(text: str, wrong: str) -> None:
    with pytest.raises(ScheduleError) as refused:
        _disruption_windows.parse(text)
    assert wrong in str(refused.value)


@pytest.mark.parametrize("text", ["@every 1h", " @daily"])
def test_what_cron_knows_but_the_api_server_refuses_is_refused(text: str) -> None:
    with pytest.raises(ScheduleError):
        _disruption_windows.parse(text)


def calls_to_read(text: str) -> int:
    """How many functions are called to read a schedule, which was not read before."""
    calls = 0

    def count(frame: FrameType, event: str, _: object) -> None:
        nonlocal calls
        calls += event == "call" and frame.f_code.co_filename == _disruption_windows.__file__

    _disruption_windows.parse.cache_clear()
    sys.setprofile(count)
    try:
        _disruption_windows.parse(text)
    finally:
        sys.setprofile(None)
    return calls


def test_a_part_that_is_repeated_is_read_once() -> None:
    assert calls_to_read("*" + 900 * ",*" + " 9 * * *") == calls_to_read("* 9 * * *") > 0
