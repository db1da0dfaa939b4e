"""Objects of the largest accepted size are answered, and other reviews do not wait for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness.cases import hostile

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

# The additional wait that other reviews may have, in milliseconds. For few calls it is the CPU budget of one review,
# because two cores also run the clients, and one percent of few calls is one late call.
BUDGET, GOAL = 250, 100
# Records the most CPU time in milliseconds between two passes of a process's event loop, in a file named by its id. A
# review that arrives waits at most this long for its worker to read it. Unlike a duration, CPU time does not depend on
# what else the machine does.
PROBE = """
import os, pathlib, time
from gpugate.webhook.admission.front.server import Front

def probe(front, last, longest):
    now = time.thread_time()
    if now - last > longest:
        longest = now - last
        pathlib.Path({folder!r}, str(os.getpid())).write_text(str(longest * 1000))
    front.loop.call_later(0.001, probe, front, now, longest)

def keep_time(front, keep_time=Front.keep_time):
    # After the start, which imports modules.
    front.loop.call_later(2, lambda: probe(front, time.thread_time(), 0.0))
    return keep_time(front)

Front.keep_time = keep_time
"""


def test_other_reviews_are_answered_in_time(
    serve: Callable[..., Any],
    load: Callable[..., Any],
    counts: Callable[[int, int], int],
    show: Callable[..., None],
    tmp_path: Path,
) -> None:
    server = serve(program=PROBE.format(folder=str(tmp_path)))
    workers = server.workers()[:2]
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
    longest = {int(file.name): float(file.read_text()) for file in tmp_path.iterdir()}
    show("2 clients send objects of 3 MiB", during.figures())
    show("those objects", attacked.figures())
    show("CPU time between passes", {str(pid): f"{longest[pid]:.1f}ms" for pid in longest})

    assert (before.faults(), during.faults(), attacked.faults()) == ([], [], [])
    assert during.percentile(0.99) < before.percentile(0.99) + counts(BUDGET, GOAL) / 1000
    assert max(longest[worker] for worker in workers) < GOAL
