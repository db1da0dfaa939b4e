"""How many workers: the same load on servers with one to four, in turns."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

import servers
from figures import Measured, figure
from processes import memory, tree
from served import CONNECTIONS, cases, send

if TYPE_CHECKING:
    from collections.abc import Iterator

COUNTS: Final = (1, 2, 3, 4)
REPETITIONS: Final = 9


def measure() -> Iterator[Measured]:
    """Measure rate, latency, CPU and memory for each number of workers."""
    runs: dict[str, list[float]] = defaultdict(list)
    sent = [case for case in cases() if case.name in {"/mutate 6 KB", "/validate 6 KB"}]
    with tempfile.TemporaryDirectory() as folder, ExitStack() as running:
        started = {count: running.enter_context(servers.gpugate(Path(folder), count)) for count in COUNTS}
        for repetition in range(-1, REPETITIONS):
            for count, server in started.items():
                for case in sent:
                    found = send(server, case, CONNECTIONS)
                    if repetition >= 0:
                        runs[f"{count} {case.name} rate"].append(found.load.rate)
                        runs[f"{count} {case.name} cpu"].append(found.cpu)
                        runs[f"{count} {case.name} p99"].append(found.latency(0.99))
                        runs["others"].append(100 * found.others)
        for count, server in started.items():
            where = f"{count} worker{'s' * (count > 1)}"
            for case in sent:
                key = f"{count} {case.name}"
                yield Measured(figure(f"{where}: {case.name}, {CONNECTIONS} connections", runs[f"{key} rate"], "/s"))
                yield Measured(figure(f"{where}: {case.name}, CPU", runs[f"{key} cpu"], "us"))
                yield Measured(figure(f"{where}: {case.name}, p99", runs[f"{key} p99"], "ms"))
            taken = [memory(process) for process in tree(server.pid)]
            shares = [sum(process.proportional for process in taken)]
            yield Measured(figure(f"{where}: memory, shared pages once", shares, "MB"))
            yield Measured(figure(f"{where}: resident memory", [sum(process.resident for process in taken)], "MB"))
        yield Measured(figure("share of the machine that others took", runs["others"], "%"))
