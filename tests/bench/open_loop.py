"""Latency at a constant rate: requests are sent when they are due, whether or not earlier ones have been answered.

A client that waits for each answer sends nothing while the server is slow, and so measures a stall once instead of for
each request that it would have sent. Here a latency counts from the time when the request was due, so requests that
wait behind a stall count too (coordinated omission is avoided).
"""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
import time
from collections import defaultdict, deque
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast
from urllib.parse import urlsplit

import servers
import uvloop
from captured import review
from figures import Measured, figure
from load_generator import Load, LoadError, length_of, trust_of
from processes import cpu_seconds, machine_seconds
from served import CONNECTIONS, WORKERS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from load_generator import Target

# Requests a second, and the requests of one round: the share of 0.1 % has to contain some.
RATES: Final = {20: 600, 100: 2_000, 300: 6_000}
ROUNDS: Final = 5
_SHARES: Final = {"p50": 0.5, "p99": 0.99}
# A server that hangs must not hang the measurement.
_PATIENCE_SECONDS: Final = 120
_BEFORE_FIRST_SECONDS: Final = 0.05


@dataclass(frozen=True, slots=True)
class Schedule:
    """When requests are due: `rate` in a second, the first at `start`, a time of `time.perf_counter`."""

    rate: float
    start: float

    def time_of(self, number: int) -> float:
        """Return when a request is due; the first is number 0."""
        return self.start + number / self.rate

    def due(self, now: float) -> int:
        """Return how many requests are due. A timer may fire a little early, so that half an interval is tolerated."""
        return max(0, int((now - self.start) * self.rate + 1.5))


def constant_rate(target: Target, request: bytes, *, rate: float, requests: int, connections: int) -> Load:
    """Send so many requests at a constant rate over connections that stay open; call it in the main thread.

    A request that is due while no connection is free waits for one, and the wait is a part of its latency.

    Raises:
        LoadError: an answer is neither 200 nor 201, or does not come.
    """
    return uvloop.run(_constant_rate(target, request, rate, requests, connections))


def measure() -> Iterator[Measured]:
    """Measure the latency of both webhooks at each rate, in turns."""
    bodies = {f"/{name}": review(f"pod-create-by-job.{name}", 6144) for name in ("validate", "mutate")}
    runs: dict[tuple[str, int], list[Load]] = defaultdict(list)
    others: list[float] = []
    with tempfile.TemporaryDirectory() as name, servers.gpugate(Path(name), WORKERS) as server:
        for round_ in range(-1, ROUNDS):
            for rate, requests in RATES.items():
                for path, body in bodies.items():
                    request = server.target.request(path, body)
                    sent = requests if round_ >= 0 else rate
                    before, began = _machine_without(server.pid), time.perf_counter()
                    load = constant_rate(server.target, request, rate=rate, requests=sent, connections=CONNECTIONS)
                    taken, seconds = _machine_without(server.pid) - before, time.perf_counter() - began
                    if round_ >= 0:
                        runs[path, rate].append(load)
                        others.append(max(0.0, 100 * taken / seconds / (os.cpu_count() or 1)))
    for (path, rate), loads in runs.items():
        for name, share in _SHARES.items():
            latencies = [load.latency(share) for load in loads]
            yield Measured(figure(f"{path} 6 KB at {rate} reviews/s, {name}", latencies, "ms"))
        together = Load([seconds for load in loads for seconds in load.latencies])
        yield Measured(figure(f"{path} 6 KB at {rate} reviews/s, p99.9, all rounds", [together.latency(0.999)], "ms"))
        behind = [load.seconds * rate / len(load.latencies) for load in loads]
        yield Measured(figure(f"{path} 6 KB at {rate} reviews/s, time, times that planned", behind, "x"))
    yield Measured(figure("share of the machine that others took", others, "%"))


def _machine_without(pid: int) -> float:
    """Return the CPU seconds of everything on this machine, except for a server and this process."""
    return machine_seconds() - cpu_seconds(pid) - time.process_time()


async def _constant_rate(target: Target, request: bytes, rate: float, requests: int, connections: int) -> Load:
    sender = _Sender(request, requests)
    loop, trust, address = asyncio.get_running_loop(), trust_of(target), urlsplit(target.url)
    for _ in range(connections):
        await loop.create_connection(
            lambda: _Connection(sender), address.hostname or "", address.port or 443, ssl=trust
        )
    # Timers of the event loop have a resolution of a millisecond, which is longer than most reviews take.
    loop.add_signal_handler(signal.SIGALRM, sender.send_due)
    sender.begin(Schedule(rate, time.perf_counter() + _BEFORE_FIRST_SECONDS))
    signal.setitimer(signal.ITIMER_REAL, _BEFORE_FIRST_SECONDS, 1 / rate)
    try:
        async with asyncio.timeout(requests / rate + _PATIENCE_SECONDS):
            return await sender.done
    except TimeoutError:
        raise LoadError(f"the server did not answer {requests} requests in time") from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        loop.remove_signal_handler(signal.SIGALRM)
        sender.close()


class _Sender:
    """Sends requests over free connections when they are due."""

    def __init__(self, request: bytes, requests: int) -> None:
        self.done: asyncio.Future[Load] = asyncio.get_running_loop().create_future()
        self.free: deque[_Connection] = deque()
        self.opened: list[_Connection] = []
        self._request = request
        self._requests = requests
        self._sent = 0
        self._load = Load()
        self._schedule = Schedule(1, 0)

    def begin(self, schedule: Schedule) -> None:
        """Start the schedule."""
        self._schedule = schedule

    def send_due(self) -> None:
        """Send what is due, as far as connections are free."""
        due = min(self._schedule.due(time.perf_counter()), self._requests)
        while self._sent < due and self.free:
            now = time.perf_counter()
            self.free.popleft().send(self._request, min(self._schedule.time_of(self._sent), now))
            self._sent += 1

    def answered(self, connection: _Connection, seconds: float) -> None:
        """Record an answer and use its connection for the next request."""
        self._load.latencies.append(seconds)
        self.free.append(connection)
        if len(self._load.latencies) < self._requests:
            self.send_due()
        elif not self.done.done():
            self._load.seconds = time.perf_counter() - self._schedule.start
            self.done.set_result(self._load)

    def fail(self, what: str) -> None:
        """End the measurement."""
        if not self.done.done():
            self.done.set_exception(LoadError(f"the server {what}"))

    def close(self) -> None:
        """Close all connections."""
        self.done.cancel()
        for connection in self.opened:
            connection.close()


class _Connection(asyncio.Protocol):
    """A connection with at most one request at a time."""

    def __init__(self, sender: _Sender) -> None:
        self._sender = sender
        self._answer = b""
        self._due = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.WriteTransport", transport)
        self._sender.opened.append(self)
        self._sender.free.append(self)

    def send(self, request: bytes, due: float) -> None:
        """Send a request that was due at a time of `time.perf_counter`."""
        self._answer, self._due = b"", due
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._answer += data
        end = length_of(self._answer)
        if end < 0:
            head, _, body = self._answer.partition(b"\r\n\r\n")
            self._sender.fail(f"answered {head[:60]!r}: {body[:300]!r}")
        elif 0 < end <= len(self._answer):
            self._sender.answered(self, time.perf_counter() - self._due)

    def connection_lost(self, exc: Exception | None) -> None:
        self._sender.fail(f"closed the connection ({exc})")

    def close(self) -> None:
        """Close without waiting for the other side."""
        self._transport.close()
