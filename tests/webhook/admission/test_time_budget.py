from __future__ import annotations

import pytest

from gpugate.webhook.admission.app import seconds_left, timeout_query


@pytest.mark.parametrize(
    ("query", "seconds"),
    [
        pytest.param("timeout=10s", 8, id="as-the-API-server-sends-it"),
        pytest.param("timeout=1s", 0.8, id="shortest"),
        pytest.param("timeout=30s", 24, id="longest"),
        pytest.param("timeout=1m30s", 24, id="capped"),
        pytest.param("timeout=1.5s", 1.2, id="fraction"),
        pytest.param("timeout=500ms", 0.4, id="milliseconds"),
        pytest.param("timeout=0.001h", 2.88, id="hours"),
        pytest.param("timeout=0.1m", 4.8, id="minutes"),
        pytest.param("timeout=1s500ms", 1.2, id="a-sum"),
        pytest.param("timeout=" + "5s".rjust(32, "0"), 4, id="as-long-as-allowed"),
        pytest.param("timeout=" + "5s".rjust(33, "0"), 8, id="longer-than-allowed"),
        pytest.param("", 8, id="missing"),
        pytest.param("timeout=", 8, id="empty"),
        pytest.param("timeout=abc", 8, id="no-duration"),
        pytest.param("timeout=10", 8, id="no-unit"),
        pytest.param("timeout=-1s", 8, id="negative"),
        pytest.param("timeout=0s", 8, id="no-time-at-all"),
        pytest.param("timeout=NaNs", 8, id="not-a-number"),
        pytest.param("timeout=1s and more", 8, id="something-behind"),
        pytest.param("timeout=\u0661s", 8, id="digits-of-another-script"),
        pytest.param("timeout=1e9s", 24, id="far-too-long"),
        pytest.param("timeout=1e999999h", 24, id="out-of-range"),
        pytest.param("timeout=5s&timeout=1s", 4, id="the-first-counts"),
        pytest.param("timeout=abc&timeout=1s", 8, id="the-first-counts-though-it-is-none"),
        pytest.param("a=b&timeout=5s&c=d", 4, id="among-others"),
        pytest.param("xtimeout=5s", 8, id="another-name"),
        pytest.param("timeout=" + "1" * 2**20 + "s", 8, id="a-megabyte"),
        pytest.param("timeout=1s" * 2**18, 8, id="a-megabyte-of-them"),
    ],
)
@pytest.mark.parametrize("kind", [str, bytes])
def test_most_of_the_timeout_is_left(query: str, seconds: float, kind: type[str | bytes]) -> None:
    assert seconds_left(query if kind is str else query.encode(), waited=0) == pytest.approx(seconds)


@pytest.mark.parametrize(("waited", "seconds"), [(0.5, 7.5), (8, 0), (100, 0)])
def test_the_waiting_time_reduces_the_rest(waited: float, seconds: float) -> None:
    assert seconds_left("timeout=10s", waited) == pytest.approx(seconds)


@pytest.mark.parametrize("seconds", [0.001, 0.8, 4.5, 24])
def test_the_query_for_some_seconds_leaves_them(seconds: float) -> None:
    assert seconds_left(timeout_query(seconds), waited=0) == pytest.approx(seconds, abs=0.001)


def test_the_query_for_no_seconds_leaves_nearly_none() -> None:
    # A timeout of 0 would be invalid, for which the default applies.
    assert seconds_left(timeout_query(0), waited=0) < 0.001
