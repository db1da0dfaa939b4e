"""Large reviews are evaluated by one worker at a time; a real process plays the other worker."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from pod_reviews import pod_review, scope

from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.config import PolicyConfig
from gpugate.policies.engine.ruleset import bind
from gpugate.policies.sdk.facts import NoFacts
from gpugate.webhook.admission.asgi import AdmissionAsgi
from gpugate.webhook.admission.front.limits import Limits
from gpugate.webhook.admission.front.load import LargeReviews, Load, Turns
from gpugate.webhook.admission.gate import Gate, Rules
from gpugate.webhook.admission.shared import now

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HOLDER = """
import sys
from pathlib import Path
from gpugate.webhook.admission.front.load import LargeReviews

with LargeReviews(Path(sys.argv[1])).turn() as taken:
    print(taken, flush=True)
    sys.stdin.read()
"""


@contextmanager
def another_worker(lock: Path) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(  # noqa: S603 -- this interpreter, and a path of this test
        [sys.executable, "-c", HOLDER, str(lock)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "True\n"
        yield process


def review(size: int) -> bytes:
    metadata = {"name": "p", "namespace": "n", "annotations": {"a": "x" * size}}
    return pod_review({"apiVersion": "v1", "kind": "Pod", "metadata": metadata}, "n")


async def ask(lock: LargeReviews, body: bytes, waiting: float = 1) -> int:
    loop = asyncio.get_running_loop()
    load = Load(Limits(waiting=waiting))
    gate = Gate(Rules(bind(CATALOG, PolicyConfig()), "g"), NoFacts(), now)
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body}

    async def send(message: Any) -> None:
        sent.append(message)

    # Only reviews are sent, so no other application is needed.
    app = AdmissionAsgi(gate, None, load, Turns(loop, load), lambda _: None, large=lock)  # type: ignore[arg-type] -- as said
    await app({**scope("/validate", "10s"), "state": {"complete": loop.time()}}, receive, send)
    status: int = sent[0]["status"]
    return status


@pytest.mark.parametrize(
    ("size", "status"),
    [pytest.param(100_000, 200, id="usual: evaluated at once"), pytest.param(300_000, 429, id="large: sent away")],
)
def test_while_another_worker_evaluates_a_large_review(tmp_path: Path, size: int, status: int) -> None:
    with another_worker(tmp_path / "lock"):
        assert asyncio.run(ask(LargeReviews(tmp_path / "lock"), review(size), waiting=0.1)) == status


def test_is_evaluated_once_the_other_worker_is_finished(tmp_path: Path) -> None:
    async def finish_then_answer(worker: subprocess.Popen[str]) -> tuple[bool, int]:
        asked = asyncio.create_task(ask(LargeReviews(tmp_path / "lock"), review(300_000), waiting=60))
        await asyncio.sleep(0.1)
        waits = not asked.done()
        assert worker.stdin is not None
        worker.stdin.close()
        return waits, await asked

    with another_worker(tmp_path / "lock") as worker:
        assert asyncio.run(finish_then_answer(worker)) == (True, 200)


def test_a_worker_that_dies_gives_its_turn_back(tmp_path: Path) -> None:
    lock = LargeReviews(tmp_path / "lock")
    with another_worker(tmp_path / "lock") as worker:
        with lock.turn() as before:
            pass
        worker.send_signal(signal.SIGKILL)
        worker.wait()
        with lock.turn() as after:
            pass
    assert (before, after) == (False, True)


def test_the_turn_is_free_after_an_error(tmp_path: Path) -> None:
    lock = LargeReviews(tmp_path / "lock")
    with pytest.raises(ZeroDivisionError), lock.turn():
        raise ZeroDivisionError
    with another_worker(tmp_path / "lock"):
        pass
