"""A review that is large or takes long is evaluated by another process, so that a worker can answer other reviews."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from typing import TYPE_CHECKING, Any

import pytest
from pod_reviews import pod_review, scope

from gpugate.policies.engine.config import PolicyConfig
from gpugate.policies.engine.ruleset import bind
from gpugate.policies.sdk.facts import NoFacts
from gpugate.policies.sdk.findings import Violation
from gpugate.policies.sdk.objects import POD
from gpugate.policies.sdk.policy import Policy, validates
from gpugate.webhook.admission.asgi import AdmissionAsgi
from gpugate.webhook.admission.cpu_budget import CpuBudget
from gpugate.webhook.admission.front.handover import HandOver
from gpugate.webhook.admission.front.limits import Limits
from gpugate.webhook.admission.front.load import Load, Turns
from gpugate.webhook.admission.front.server import Front
from gpugate.webhook.admission.gate import Gate, Rules
from gpugate.webhook.admission.shared import now

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.policy import AnyContext
    from gpugate.webhook.admission.decisions import Observation

SLOW = {"slow": "yes"}
LARGE = {"a": "x" * 300_000}
TRACE = b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@validates(POD)
def takes_long(pod: Field, _ctx: AnyContext) -> Iterator[Violation]:
    end = time.thread_time() + (0.1 if pod["metadata", "annotations", "slow"] else 0)
    while time.thread_time() < end:
        pass
    yield Violation((), "is a Pod")


RULES = Rules(bind((Policy("pods/takes-long", "A policy.", (takes_long,)),), PolicyConfig()), "g")


class Process:
    """The application of a process, and the reviews that it evaluated."""

    def __init__(self, budget: CpuBudget, hand_over: HandOver | None, limits: Limits | None = None) -> None:
        self.observed: list[Observation] = []
        self.traced: list[bytes] = []
        gate = Gate(RULES, NoFacts(), now, self.observed.append, budget)
        self._limits = limits or Limits()
        self.load = Load(self._limits)

        def application(load: Load, turns: Turns) -> AdmissionAsgi:
            # Only reviews are sent, so no other application is needed.
            return AdmissionAsgi(gate, None, load, turns, lambda _: None, self.traced.append, hand_over=hand_over)  # type: ignore[arg-type] -- as said

        self.application = application

    def front(self) -> Front:
        return Front(self.application, self._limits, lambda _: None)

    async def ask(self, body: bytes) -> tuple[int, dict[bytes, bytes], bytes]:
        loop = asyncio.get_running_loop()
        self.load.waiting += 1
        sent: list[Any] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body}

        async def send(message: Any) -> None:
            sent.append(message)

        request = scope("/validate", "10s")
        request["headers"].append((b"traceparent", TRACE))
        app = self.application(self.load, Turns(loop, self.load))
        await app({**request, "state": {"complete": loop.time()}}, receive, send)
        self.load.waiting -= 1
        return sent[0]["status"], dict(sent[0]["headers"]), sent[1]["body"]


@pytest.fixture
def budget() -> Iterator[CpuBudget]:
    # The first review of a process takes many times the CPU time of others.
    Gate(RULES, NoFacts(), now).validate(review({}))
    # One for both, because they are one process here.
    before = signal.getsignal(signal.SIGPROF)
    yield CpuBudget()
    signal.setitimer(signal.ITIMER_PROF, 0)
    signal.signal(signal.SIGPROF, before)


@pytest.fixture
def hand_over(tmp_path: Path) -> Iterator[HandOver]:
    created = HandOver(tmp_path / "socket")
    yield created
    created.listener.close()


def review(annotations: dict[str, str]) -> bytes:
    metadata = {"name": "p", "namespace": "n", "annotations": annotations}
    return pod_review({"apiVersion": "v1", "kind": "Pod", "metadata": metadata}, "n")


def asked(worker: Process, other: Process | None, hand_over: HandOver, body: bytes) -> Any:
    """Send a review to a worker while the other process, if there is one, accepts what it hands over."""

    async def run() -> Any:
        front = other.front() if other else None
        if front:
            front.accept_from(hand_over.listener, None)
        else:
            hand_over.listener.close()
        answer = await worker.ask(body)
        if front:
            await front.leave(1)
        return answer

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("annotations", "by_worker", "by_other"),
    [
        pytest.param({}, 1, 0, id="usual"),
        pytest.param({"a": "x" * 200_000}, 1, 0, id="larger than usual"),
        pytest.param(LARGE, 0, 1, id="large"),
        pytest.param(SLOW, 0, 1, id="small, and takes long"),
        pytest.param(SLOW | LARGE, 0, 1, id="large, and takes long"),
    ],
)
def test_expensive_reviews_are_evaluated_by_the_other_process(
    budget: CpuBudget, hand_over: HandOver, annotations: dict[str, str], by_worker: int, by_other: int
) -> None:
    worker, other = Process(budget, hand_over), Process(budget, None)
    status, headers, content = asked(worker, other, hand_over, review(annotations))
    response = json.loads(content)["response"]
    assert (status, response["allowed"], response["status"]["code"]) == (200, False, 403)
    assert (len(worker.observed), len(other.observed)) == (by_worker, by_other)
    assert (worker.traced, other.traced) == ([TRACE] * by_worker, [TRACE] * by_other)
    assert headers == {b"content-type": b"application/json", b"content-length": b"%d" % len(content)}


@pytest.mark.parametrize("annotations", [LARGE, SLOW], ids=["large", "takes long"])
def test_a_worker_evaluates_them_if_there_is_no_other_process(
    budget: CpuBudget, hand_over: HandOver, annotations: dict[str, str]
) -> None:
    worker = Process(budget, hand_over)
    status, _, content = asked(worker, None, hand_over, review(annotations))
    assert (status, json.loads(content)["response"]["status"]["code"], len(worker.observed)) == (200, 403, 1)


def test_the_client_retries_if_the_other_process_is_overloaded(budget: CpuBudget, hand_over: HandOver) -> None:
    # No time to wait: the other process sheds every review.
    worker, other = Process(budget, hand_over), Process(budget, None, Limits(waiting=-1))
    status, headers, _ = asked(worker, other, hand_over, review(LARGE))
    assert (status, headers[b"retry-after"], len(other.observed)) == (429, b"1", 0)


def test_other_reviews_are_answered_meanwhile(budget: CpuBudget, hand_over: HandOver) -> None:
    worker = Process(budget, hand_over)

    async def run() -> tuple[int, bool, int]:
        # Nothing accepts the connection yet.
        expensive = asyncio.create_task(worker.ask(review(LARGE)))
        await asyncio.sleep(0.05)
        queued = worker.load.waiting
        usual, *_ = await worker.ask(review({}))
        waits = not expensive.done() and not queued
        other = Process(budget, None).front()
        other.accept_from(hand_over.listener, None)
        answered, *_ = await expensive
        await other.leave(1)
        assert worker.load.waiting == 0
        return usual, waits, answered

    assert asyncio.run(run()) == (200, True, 200)
