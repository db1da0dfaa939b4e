from __future__ import annotations

import datetime as dt

import pytest

from gpugate.webhook.cluster.connection import ClockSkew

SENT = dt.datetime(2026, 11, 21, 10, 0, 0, tzinfo=dt.UTC)


def measure(header: str | None, elapsed: float) -> float | None:
    skew = ClockSkew(lambda: SENT + dt.timedelta(seconds=elapsed))
    skew.measure(SENT, header)
    return skew.value.total_seconds() if skew.value is not None else None


@pytest.mark.parametrize(
    ("header", "elapsed", "seconds"),
    [
        ("Sat, 21 Nov 2026 10:00:00 GMT", 1.0, 0.0),
        ("Sat, 21 Nov 2026 12:00:00 GMT", 1.0, 7200.0),
        ("Fri, 20 Nov 2026 10:00:00 GMT", 3.0, -86401.0),
        ("Sat, 21 Nov 2026 12:00:00 GMT", 5.1, None),
        ("Sat, 21 Nov 2026 12:00:00 GMT", -1.0, None),
        ("Sat, 21 Nov 2026 12:00:00 -0000", 1.0, None),
        ("yesterday", 1.0, None),
        (None, 1.0, None),
    ],
    ids=["equal", "ahead", "behind", "too slow", "set back meanwhile", "no zone", "no date", "none"],
)
def test_the_skew_is_measured_at_the_middle_of_the_call(
    header: str | None, elapsed: float, seconds: float | None
) -> None:
    assert measure(header, elapsed) == seconds


def test_a_response_without_a_date_keeps_the_last_skew() -> None:
    skew = ClockSkew(lambda: SENT)
    skew.measure(SENT, "Sat, 21 Nov 2026 12:00:00 GMT")
    skew.measure(SENT, None)

    assert skew.value == dt.timedelta(hours=2, milliseconds=500)
