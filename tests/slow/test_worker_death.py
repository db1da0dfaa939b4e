"""The effect of a killed or suspended worker."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING, Any

from harness.processes import alive, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable


def test_a_killed_worker_loses_only_what_it_was_answering(
    serve: Callable[..., Any], load: Callable[..., Any], counts: Callable[[int, int], int], show: Callable[..., None]
) -> None:
    server = serve()
    running = load(server, rate=200)
    processes = len(server.workers())
    deaths, back = [], []
    for _ in range(counts(3, 20)):
        running.pass_calls(300)
        victim = server.workers()[0]
        killed = time.monotonic()
        os.kill(victim, signal.SIGKILL)
        wait_until(lambda pid=victim: not alive(pid), "the worker is dead")
        deaths.append((killed, time.monotonic()))
        wait_until(
            lambda pid=victim: pid not in server.workers() and len(server.workers()) == processes, "it has a heir"
        )
        wait_until(server.ready, "the heir serves")
        back.append(time.monotonic() - killed)
    running.pass_calls(200)
    report = running.finish()
    figures = {"kills": len(deaths), "back": f"{min(back):.2f}-{max(back):.2f}s"}
    show("a worker is killed", {**report.figures(), **figures})
    others = [
        lost for lost in report.lost if not any(lost.began <= dead and lost.ended >= killed for killed, dead in deaths)
    ]
    assert (others, report.wrong, server.process.poll()) == ([], [], None)


def test_a_suspended_worker_gives_no_wrong_responses(
    serve: Callable[..., Any], load: Callable[..., Any], show: Callable[..., None]
) -> None:
    server = serve()
    running = load(server)
    running.pass_calls(100)
    stopped = server.workers()[0]
    os.kill(stopped, signal.SIGSTOP)
    running.pass_calls(300)
    os.kill(stopped, signal.SIGCONT)
    running.pass_calls(200)
    report = running.finish()
    show("a worker stands still for 3 s", report.figures())
    assert (report.faults(), stopped in server.workers()) == ([], True)
