"""Ten times the possible load: excess requests are rejected, no request waits without a response, and the server recovers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness.cases import heavy
from harness.load import SHED
from harness.processes import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

TIMES = 10


def test_a_burst_is_shed_and_passes(
    serve: Callable[..., Any], load: Callable[..., Any], counts: Callable[[int, int], int], show: Callable[..., None]
) -> None:
    # All requests come from one address, like those of API servers behind a proxy.
    server = serve("--max-connections", "4096", "--max-connections-per-source", "4096")
    measuring = load(server, cases=(heavy(),), rate=0, at_once=8, fresh=0)
    seconds = wait_until(lambda: measuring.progress().answered >= 200, "the capacity is known")
    capacity = measuring.finish().answered / seconds

    burst = load(server, cases=(heavy(),), rate=TIMES * capacity, fresh=0.05)
    burst.pass_calls(int(TIMES * capacity * counts(3, 30)))
    during = burst.finish()
    longest = f"{during.longest_exchange:.2f}s"
    show("burst of 10x capacity", {**during.figures(), "capacity": f"{capacity:.0f}/s", "longest_exchange": longest})
    after = load(server)
    after.pass_calls(200)
    recovered = after.finish()
    show("after the burst", recovered.figures())

    assert during.wrong == []
    assert {lost.reason for lost in during.lost} <= {SHED}
    assert during.shed > 0
    assert recovered.faults() == []
