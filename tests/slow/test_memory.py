"""Processes do not grow with the number of answered reviews."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness.processes import megabytes

if TYPE_CHECKING:
    from collections.abc import Callable

# The memory that the allocator may keep after its peak.
GROWTH_MEGABYTES = 12


def test_memory_does_not_grow(
    serve: Callable[..., Any], load: Callable[..., Any], counts: Callable[[int, int], int], show: Callable[..., None]
) -> None:
    server = serve()
    requests, connections = counts(20_000, 200_000), counts(500, 5_000)
    warming = load(server, rate=0, fresh=0.02)
    warming.pass_calls(3_000)
    assert warming.finish().faults() == []
    pids = [server.pid, *server.workers()]
    before = {pid: megabytes(pid) for pid in pids}
    running = load(server, rate=0, fresh=connections / requests)
    running.pass_calls(requests, patience=900)
    report = running.finish()
    after = {pid: megabytes(pid) for pid in pids}
    per_second = report.answered / (sum(report.seconds) / 16)
    sizes = " ".join(f"{before[pid]:.1f}->{after[pid]:.1f}" for pid in pids)
    show("soak", {**report.figures(), "per_second": f"{per_second:.0f}", "MB": sizes})
    grown = max(after[pid] - before[pid] for pid in pids)
    assert (report.faults(), grown < GROWTH_MEGABYTES) == ([], True)
