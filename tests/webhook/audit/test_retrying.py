from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from gpugate.webhook.audit.live import TRIES, Throttle, retried
from gpugate.webhook.cluster.backoff import Chance
from gpugate.webhook.cluster.errors import ApiError, CallError, NotServedError, UnreachableError


@dataclass
class Turned:
    """A clock that goes on only while somebody sleeps."""

    now: float = 0.0
    slept: list[float] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        self.slept.append(round(seconds, 3))
        self.now += seconds


@dataclass
class Call:
    """Fails with one error after the other, and then answers."""

    errors: list[CallError]
    made: int = 0

    def __call__(self) -> str:
        self.made += 1
        if self.errors:
            raise self.errors.pop(0)
        return "answer"


def tried(call: Call, clock: Turned | None = None) -> str:
    clock = clock or Turned()
    throttle = Throttle(1000, 1000, lambda: clock.now, clock.sleep)
    return retried(call, throttle, Chance(lambda: clock.now, lambda: 0.5))


@pytest.mark.parametrize(
    "errors",
    [
        pytest.param([UnreachableError("restarting")] * 3, id="server-restarts"),
        pytest.param([ApiError(429, "TooManyRequests", "")], id="too-many-requests"),
        pytest.param([ApiError(503, "", ""), ApiError(500, "InternalError", "etcd")], id="faults-of-the-server"),
        pytest.param([ApiError(401, "Unauthorized", "")], id="expired-token"),
        pytest.param([UnreachableError("x"), ApiError(401, "Unauthorized", "")], id="both"),
    ],
)
def test_what_passes_is_tried_again(errors: list[CallError]) -> None:
    assert tried(Call(list(errors))) == "answer"


@pytest.mark.parametrize(
    ("errors", "made"),
    [
        pytest.param([ApiError(403, "Forbidden", "")] * 9, 1, id="forbidden"),
        pytest.param([ApiError(404, "NotFound", "")] * 9, 1, id="not-found"),
        pytest.param([ApiError(410, "Expired", "")] * 9, 1, id="expired-page"),
        pytest.param([NotServedError("no such kind")] * 9, 1, id="not-served"),
        pytest.param([ApiError(401, "Unauthorized", "")] * 9, 2, id="token-that-stays-expired"),
        pytest.param([UnreachableError("gone")] * 9, TRIES, id="server-that-stays-away"),
    ],
)
def test_what_does_not_pass_is_not(errors: list[CallError], made: int) -> None:
    call = Call(errors)

    with pytest.raises(CallError):
        tried(call)

    assert call.made == made


def test_waits_grow_and_keep_to_what_the_server_says() -> None:
    clock = Turned()

    tried(Call([UnreachableError("x"), ApiError(429, "", "", retry_after=7.0), ApiError(429, "", "", 9999.0)]), clock)

    assert clock.slept == [1.2, 7.0, 60.0]


def test_calls_keep_to_the_rate() -> None:
    clock = Turned()
    throttle = Throttle(10, 3, lambda: clock.now, clock.sleep)

    for _ in range(23):
        throttle.wait()

    assert clock.now == pytest.approx(2.0)
    assert clock.slept[:1] == [0.1]


def test_a_pause_lets_a_burst_through_again() -> None:
    clock = Turned()
    throttle = Throttle(10, 3, lambda: clock.now, clock.sleep)
    for _ in range(3):
        throttle.wait()
    clock.now += 60

    for _ in range(3):
        throttle.wait()

    assert clock.slept == []
