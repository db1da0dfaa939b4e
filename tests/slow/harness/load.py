"""A steady load of reviews with a check of every response.

It retries like the API server: only after 429 or 5xx with an integer `Retry-After`, at most 10 times, within the
timeout (`k8s.io/client-go` rest/with_retry.go, v0.36). Every other failure is a lost call.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.cases import Case, WrongAnswerError, usual
from harness.http_client import Connection, LostError, Pool, Response, Trust
from harness.published_trust import Published, PublishedTrust
from harness.report import Lost, Progress, Report

if TYPE_CHECKING:
    from pathlib import Path

RETRIES = 10
# The reason of a call that was retried until its time limit.
SHED = "shed until its deadline"


@dataclass(frozen=True, slots=True)
class Plan:
    """The requests of a load and their destination.

    Attributes:
        address: host and port.
        ca_file: the trusted authorities; ignored if `published` is set.
        client: the client certificate with its key, if the server requires one.
        cases: the requests, sent in turn.
        rate: calls to start per second, independent of earlier calls; 0 is the fastest rate with `at_once` calls.
        at_once: the number of concurrent calls without a rate.
        fresh: the share of calls on a new connection.
        timeout: the time limit of a call in seconds, sent as `?timeout=`.
    """

    address: tuple[str, int]
    ca_file: Path
    cases: tuple[Case, ...] = ()
    rate: float = 100
    at_once: int = 16
    fresh: float = 0.25
    timeout: int = 5
    client: Path | None = None
    published: Published | None = None


class Load:
    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._cases = plan.cases or usual()
        self._pool = Pool(
            plan.address, PublishedTrust(plan.published) if plan.published else Trust(plan.ca_file, plan.client)
        )
        self._report = Report()
        self._stopping = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        if self._plan.rate:
            self._spawn(self._steadily())
        for _ in range(0 if self._plan.rate else self._plan.at_once):
            self._spawn(self._one_after_the_other())

    async def stop(self) -> None:
        """Start no more calls."""
        self._stopping.set()

    async def progress(self) -> Progress:
        return Progress(*(getattr(self._report, name) for name in Progress.__dataclass_fields__))

    async def finish(self) -> Report:
        """Start no more calls, wait for those in progress, and return the results."""
        await self.stop()
        while self._tasks:
            await asyncio.gather(*self._tasks)
        self._pool.close()
        return self._report

    def _spawn(self, work: object) -> None:
        task = asyncio.ensure_future(work)  # type: ignore[arg-type] -- a coroutine
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _steadily(self) -> None:
        started = time.monotonic()
        while not self._stopping.is_set():
            behind = time.monotonic() - started - self._report.sent / self._plan.rate
            if behind < 0:
                await asyncio.sleep(-behind)
                continue
            self._spawn(self._call())
            # A task starts at the next await.
            await asyncio.sleep(0)

    async def _one_after_the_other(self) -> None:
        while not self._stopping.is_set():
            await self._call()

    async def _call(self) -> None:
        report, number = self._report, self._report.sent
        report.sent += 1
        report.in_flight += 1
        case = self._cases[number % len(self._cases)]
        uid = f"00000000-0000-4000-8000-{number:012}"
        fresh = int((number + 1) * self._plan.fresh) > int(number * self._plan.fresh)
        began = time.monotonic()
        shed: list[Response] = []
        try:
            async with asyncio.timeout(self._plan.timeout):
                response = await self._until_answered(self._request(case, uid), shed, fresh=fresh)
            report.generations[case.check(uid, response.body)] += 1
            report.answered += 1
            report.seconds.append(time.monotonic() - began)
        except TimeoutError:
            report.lost.append(Lost(SHED if shed else "no answer in time", began, time.monotonic()))
        except LostError as error:
            report.lost.append(Lost(str(error), began, time.monotonic()))
        except (WrongAnswerError, LookupError, ValueError) as error:
            report.wrong.append(f"{type(error).__name__}: {error}")
        finally:
            report.in_flight -= 1

    def _request(self, case: Case, uid: str) -> bytes:
        body = case.body(uid)
        head = (
            f"POST {case.path}?timeout={self._plan.timeout}s HTTP/1.1\r\nHost: gpugate.gpugate.svc\r\n"
            "User-Agent: kube-apiserver-admission\r\nAccept: application/json, */*\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body

    async def _until_answered(self, request: bytes, shed: list[Response], *, fresh: bool) -> Response:
        for _ in range(RETRIES + 1):
            response = await self._exchange(request, fresh=fresh)
            if response.status == 200:
                return response
            wait = response.headers.get("retry-after", "")
            if not (response.status == 429 or response.status >= 500) or not wait.isdigit():
                raise LostError(f"status {response.status} with Retry-After {wait!r}")
            self._report.shed += 1
            shed.append(response)
            await asyncio.sleep(int(wait))
        raise LostError(f"shed {RETRIES + 1} times")

    async def _exchange(self, request: bytes, *, fresh: bool) -> Response:
        began = time.monotonic()
        connection = (None if fresh else self._pool.idle()) or await self._connect()
        try:
            response = await connection.exchange(request)
        except BaseException:
            connection.close()
            raise
        finally:
            self._report.longest_exchange = max(self._report.longest_exchange, time.monotonic() - began)
        last = response.headers.get("connection", "").lower() == "close"
        self._report.told_to_close += last
        if fresh or last:
            connection.close()
        else:
            self._pool.put_back(connection)
        return response

    async def _connect(self) -> Connection:
        connection = await self._pool.connect()
        self._report.connections += 1
        self._report.certificates[connection.certificate] += 1
        return connection
