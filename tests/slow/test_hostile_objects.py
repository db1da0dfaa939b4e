"""Objects of the largest accepted size are answered, and other reviews do not wait for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness.cases import hostile

if TYPE_CHECKING:
    from collections.abc import Callable

# The additional wait that other reviews may have, in milliseconds: the CPU budget of one review, which the server
# guarantees. The goal is less. Measured with --counts full: 15 to 20 ms if both clients reach one worker, 100 to 120 ms
# if each keeps a worker busy and two cores also run the clients.
BUDGET, GOAL = 250, 100


def test_other_reviews_are_answered_in_time(
    serve: Callable[..., Any], load: Callable[..., Any], counts: Callable[[int, int], int], show: Callable[..., None]
) -> None:
    server = serve()
    calls = counts(500, 5_000)
    usual = load(server)
    usual.pass_calls(calls)
    before = usual.finish()
    show("before", before.figures())

    attack = load(server, cases=hostile(), rate=0, at_once=2, fresh=0, timeout=30)
    usual = load(server)
    usual.pass_calls(calls)
    during = usual.finish()
    attacked = attack.finish()
    show("2 clients send objects of 3 MiB", during.figures())
    show("those objects", attacked.figures())

    assert (before.faults(), during.faults(), attacked.faults()) == ([], [], [])
    assert during.percentile(0.99) < before.percentile(0.99) + counts(BUDGET, GOAL) / 1000
