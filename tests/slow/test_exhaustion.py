"""Standard error is not read, or no file descriptor is free: requests are answered, and the server recovers."""

from __future__ import annotations

import contextlib
import subprocess
import time
from typing import TYPE_CHECKING, Any

from harness.cases import case, usual
from harness.one_connection import OneConnection
from harness.processes import cpu_seconds

if TYPE_CHECKING:
    from collections.abc import Callable

# A pipe holds 64 KiB (pipe(7)); this many denied reviews log more.
LINES = 1_000


def test_an_unread_log_does_not_block(
    serve: Callable[..., Any], load: Callable[..., Any], counts: Callable[[int, int], int], show: Callable[..., None]
) -> None:
    server = serve(stderr=subprocess.PIPE)
    denied = case("nodepool-create-unlimited.validate", "/validate", denied="nodepools/missing-gpu-limit")
    filling = load(server, cases=(denied,), rate=500)
    filling.pass_calls(LINES)
    filled = filling.finish()
    running = load(server, cases=(denied, *usual()))
    running.pass_calls(counts(300, 2_000))
    report = running.finish()
    show("log pipe full", report.figures())
    assert filled.faults() + report.faults() == []


def test_file_descriptors_run_out_and_come_back(
    serve: Callable[..., Any],
    load: Callable[..., Any],
    stall: Callable[..., Any],
    counts: Callable[[int, int], int],
    show: Callable[..., None],
) -> None:
    server = serve(before=("prlimit", "--nofile=256:256", "--"), workers=1)
    (worker,) = server.workers()
    with contextlib.closing(OneConnection(server.address, server.ca_file)) as opened:
        stalls = stall(server, "tcp-only", 400)
        burnt, started = cpu_seconds(worker), time.monotonic()
        for _ in range(counts(500, 5_000)):
            opened.review()
        busy = (cpu_seconds(worker) - burnt) / (time.monotonic() - started)
    stalls.close()
    running = load(server)
    running.pass_calls(200)
    report = running.finish()
    show("out of file descriptors, then", {**report.figures(), "cpu_before": f"{busy:.0%}"})
    assert (report.faults(), worker in server.workers()) == ([], True)
