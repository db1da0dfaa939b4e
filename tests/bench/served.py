"""What a review costs over the wire: real servers, TLS, connections that stay open, the sender on the same cores.

Everything is measured on gpugate and on the bare handler in turns, so that a slow minute of the machine meets both. A
run in which others took much of the machine is repeated, and the least disturbed is kept.
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
import time
from collections import defaultdict
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import servers
from captured import review
from figures import Measured, figure
from load_generator import LoadError, fresh_connections, keep_alive
from processes import cpu_seconds, machine_seconds, memory, tree

if TYPE_CHECKING:
    from collections.abc import Iterator

    from load_generator import Load
    from servers import Server

REPETITIONS: Final = 9
STARTS: Final = 5
WORKERS: Final = 2
CONNECTIONS: Final = 16
FRESH: Final = 40
# The share of the machine that others may take, and how often to try for a run in which they take less.
DISTURBED: Final = 0.1
TRIES: Final = 4


class Case(NamedTuple):
    """A review, how many are sent at a time, and its aims: CPU in us, mean in ms, reviews in a second."""

    name: str
    path: str
    body: bytes
    requests: int
    cpu_aim: float
    mean_aim: float | None
    rate_aim: float | None


def cases() -> tuple[Case, ...]:
    """Return the reviews that are sent."""
    mutate, validate = "pod-create-by-job.mutate", "pod-create-by-job.validate"
    patched = "pod-create-gpu-untolerated.mutate"
    return (
        Case("/mutate 6 KB", "/mutate", review(mutate, 6144), 400, 500, 1.2, 2000),
        Case("/mutate 6 KB, patched", "/mutate", review(patched, 6144), 400, 500, 1.2, 2000),
        Case("/validate 6 KB", "/validate", review(validate, 6144), 400, 500, 1.2, 2000),
        Case("/mutate 60 KB", "/mutate", review(mutate, 61440), 120, 2500, None, None),
        Case("/validate 60 KB", "/validate", review(validate, 61440), 120, 2500, None, None),
    )


@dataclass(slots=True)
class Sent:
    """One load, the CPU seconds that a request took of the server, and the share of the machine that others took."""

    load: Load
    cpu: float
    others: float

    def latency(self, share: float) -> float:
        """Seconds that this share of the answers did not exceed."""
        return self.load.latency(share)


def send(server: Server, case: Case, connections: int, *, bare: bool = False) -> Sent:
    """Send one case and look at a sample of the answers.

    Raises:
        LoadError: an answer is no review, or not of this request.
    """
    request = server.target.request("/bare" if bare else case.path, case.body)
    tries: list[Sent] = []
    while not tries or (tries[-1].others > DISTURBED and len(tries) < TRIES):
        tries.append(_once(server, request, connections, case.requests))
        if not bare:
            _check(tries[-1].load, case)
    return min(tries, key=lambda sent: sent.others)


def _once(server: Server, request: bytes, connections: int, requests: int) -> Sent:
    machine, own, served = machine_seconds(), time.process_time(), cpu_seconds(server.pid)
    load = keep_alive(server.target, request, connections=connections, requests=requests)
    taken, own = cpu_seconds(server.pid) - served, time.process_time() - own
    others = machine_seconds() - machine - taken - own
    return Sent(load, taken / requests, max(0.0, others / load.seconds / (os.cpu_count() or 1)))


def measure() -> Iterator[Measured]:
    """Measure time, rate, CPU, handshakes, memory and start."""
    runs: dict[str, list[float]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as name, ExitStack() as running:
        folder = Path(name)
        for _ in range(STARTS):
            with servers.gpugate(folder, WORKERS) as started:
                runs["ready"].append(started.ready_after)
        product = running.enter_context(servers.gpugate(folder, WORKERS))
        bare = running.enter_context(servers.bare(folder, WORKERS))
        yield Measured(figure(f"gpugate serve, {WORKERS} workers, exec to ready", runs["ready"], "s"), 2)
        yield from _memory(product, "at start")
        for repetition in range(-1, REPETITIONS):
            found = _repetition(product, bare)
            if repetition >= 0:
                for key, value in found.items():
                    runs[key].append(value)
        yield from _figures(runs)
        yield from _memory(product, "after load")


def _repetition(product: Server, bare: Server) -> dict[str, float]:
    found: dict[str, float] = {}
    others: list[float] = []
    for case in cases():
        one, many = send(product, case, 1), send(product, case, CONNECTIONS)
        bare_one, bare_many = send(bare, case, 1, bare=True), send(bare, case, CONNECTIONS, bare=True)
        found |= {
            f"{case.name} mean": statistics.fmean(one.load.latencies),
            f"{case.name} p50": one.latency(0.5),
            f"{case.name} p99": one.latency(0.99),
            f"{case.name} cpu 1": one.cpu,
            f"{case.name} cpu": many.cpu,
            f"{case.name} bare": bare_many.cpu,
            f"{case.name} times": many.cpu / bare_many.cpu,
            f"{case.name} times 1": one.cpu / bare_one.cpu,
            f"{case.name} rate": many.load.rate,
            f"{case.name} bare rate": bare_many.load.rate,
        }
        others += [sent.others for sent in (one, many, bare_one, bare_many)]
    first = cases()[0]
    for key, server, path in (("fresh", product, first.path), ("bare fresh", bare, "/bare")):
        before = cpu_seconds(server.pid)
        fresh_connections(server.target, server.target.request(path, first.body), FRESH)
        found[key] = (cpu_seconds(server.pid) - before) / FRESH
    return found | {"others": 100 * statistics.fmean(others)}


def _figures(runs: dict[str, list[float]]) -> Iterator[Measured]:
    many = f"{CONNECTIONS} connections"
    for case in cases():
        name = case.name
        yield Measured(figure(f"{name}, CPU, {many}", runs[f"{name} cpu"], "us"), case.cpu_aim)
        yield Measured(figure(f"{name}, CPU, 1 connection", runs[f"{name} cpu 1"], "us"), case.cpu_aim)
        yield Measured(figure(f"{name}, CPU, {many}, bare handler", runs[f"{name} bare"], "us"))
        yield Measured(figure(f"{name}, CPU, {many}, times the bare", runs[f"{name} times"], "x"))
        yield Measured(figure(f"{name}, CPU, 1 connection, times the bare", runs[f"{name} times 1"], "x"))
        yield Measured(figure(f"{name}, mean, 1 connection", runs[f"{name} mean"], "ms"), case.mean_aim)
        yield Measured(figure(f"{name}, p50, 1 connection", runs[f"{name} p50"], "ms"))
        yield Measured(figure(f"{name}, p99, 1 connection", runs[f"{name} p99"], "ms"))
        yield Measured(figure(f"{name}, {many}", runs[f"{name} rate"], "/s"), case.rate_aim)
        yield Measured(figure(f"{name}, {many}, bare handler", runs[f"{name} bare rate"], "/s"))
    yield Measured(figure("a new connection and one /mutate 6 KB, CPU", runs["fresh"], "us"))
    yield Measured(figure("a new connection and one request, CPU, bare handler", runs["bare fresh"], "us"))
    yield Measured(figure("share of the machine that others took", runs["others"], "%"))


def _memory(server: Server, when: str) -> Iterator[Measured]:
    supervisor, *workers = [memory(process) for process in tree(server.pid)]
    resident = [worker.resident for worker in workers]
    yield Measured(figure(f"resident memory {when}, a worker", resident, "MB"), 90)
    yield Measured(figure(f"resident memory {when}, {WORKERS} workers", [sum(resident)], "MB"), 180)
    yield Measured(figure(f"resident memory {when}, supervisor", [supervisor.resident], "MB"))
    shares = sum(process.proportional for process in (supervisor, *workers))
    yield Measured(figure(f"memory {when}, everything, shared pages once", [shares], "MB"))


def _check(load: Load, case: Case) -> None:
    uid = json.loads(case.body)["request"]["uid"]
    for answer in load.answers:
        response = json.loads(answer)["response"]
        if response["uid"] != uid or not isinstance(response["allowed"], bool):
            raise LoadError(f"answered {case.path} with {answer[:200]!r}")
