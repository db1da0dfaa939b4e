from __future__ import annotations

import msgspec
import pytest

from gpugate.policies.sdk import durations
from gpugate.policies.sdk.durations import HOUR, MINUTE, Duration, DurationError

SECOND = 10**9


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("30m", 30 * MINUTE),
        ("1h30m", 90 * MINUTE),
        ("24h0m0s", 24 * HOUR),
        ("1.5h", 90 * MINUTE),
        (".5s", SECOND // 2),
        ("1.s", SECOND),
        ("100ms", SECOND // 10),
        ("7us", 7_000),
        ("7\u00b5s", 7_000),
        ("7\u03bcs", 7_000),
        ("1ns", 1),
        ("0.9ns", 0),
        ("0", 0),
        ("+2s", 2 * SECOND),
        ("-5m", -5 * MINUTE),
        ("2562047h", 2562047 * HOUR),
        ("9223372036854775807ns", 2**63 - 1),
        ("1.25h", 75 * MINUTE),
        ("0" * 255 + "s", 0),
    ],
)
def test_a_duration_is_read_as_go_reads_it(text: str, nanoseconds: int) -> None:
    assert durations.parse(text) == nanoseconds


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-",
        "1",
        "m",
        ".s",
        "1d",
        "1H",
        "1h 2m",
        "1h-2m",
        "--1h",
        "1e3s",
        "1hm",
        "Never",
        "2562048h",
        "9223372036854775808ns",
        "0" * 256 + "s",
    ],
)
def test_what_go_does_not_read_is_refused(text: str) -> None:
    with pytest.raises(DurationError):
        durations.parse(text)


@pytest.mark.parametrize("text", ["30m", "1h", "1h30m", "90s", "2h5s", "0s"])
def test_configuration_takes_hours_minutes_and_seconds(text: str) -> None:
    assert durations.parse(msgspec.convert(text, Duration)) >= 0


@pytest.mark.parametrize("text", ["", "1", "1d", "1.5h", "-1h", "30m1h", "Never", "1h\n"])
def test_configuration_takes_nothing_else(text: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(text, Duration)
