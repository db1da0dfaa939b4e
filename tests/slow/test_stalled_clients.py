"""Clients that open connections and stall do not affect other clients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from harness.processes import megabytes, wait_until
from harness.stall_kinds import kinds

if TYPE_CHECKING:
    from collections.abc import Callable

# Each connection costs the server the responses that its client does not read.
SHARE_OF_SLOW_READERS = 10


@pytest.mark.parametrize("kind", kinds())
def test_other_clients_are_answered_while_connections_stall(
    serve: Callable[..., Any],
    load: Callable[..., Any],
    stall: Callable[..., Any],
    counts: Callable[[int, int], int],
    show: Callable[..., None],
    kind: str,
) -> None:
    server = serve()
    number = counts(200, 2_000) // (SHARE_OF_SLOW_READERS if kind == "slow-reader" else 1)
    stalls = stall(server, kind, number)
    # At the limit on connections the server refuses some.
    assert stalls.counts().opened + stalls.counts().refused >= number
    running = load(server)
    running.pass_calls(counts(500, 2_000))
    report = running.finish()
    largest = max(megabytes(pid) for pid in server.workers())
    show(
        f"stalled {kind}", {**report.figures(), "opened": stalls.counts().opened, "largest_worker": f"{largest:.0f}MB"}
    )
    assert report.faults() == []


def test_a_source_above_its_limit_does_not_affect_others(
    serve: Callable[..., Any],
    load: Callable[..., Any],
    stall: Callable[..., Any],
    counts: Callable[[int, int], int],
    show: Callable[..., None],
) -> None:
    cap = counts(64, 256)
    server = serve("--max-connections-per-source", str(cap))
    running = load(server)
    stalls = stall(server, "tls-only", 6 * cap, ("127.0.0.2",), again=False)
    opened = stalls.counts().opened
    running.pass_calls(counts(200, 1_000))
    report = running.finish()
    show("one source beyond its cap", {**report.figures(), "cap": f"2x{cap}", "opened": opened})
    assert (report.faults(), cap <= opened <= 2 * cap) == ([], True)


def test_slots_are_free_after_connections_close(serve: Callable[..., Any], stall: Callable[..., Any]) -> None:
    server = serve("--max-connections-per-source", "64")
    first = stall(server, "tls-only", 400, ("127.0.0.2",), again=False)
    wait_until(lambda: first.counts().held == 0, "the header deadline has ended all")
    assert stall(server, "tls-only", 60, ("127.0.0.2",), again=False).counts().opened == 60
