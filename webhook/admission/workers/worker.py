"""One worker: serves until it is told to leave, and says that it is alive."""

from __future__ import annotations

import asyncio
import os
import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import uvloop

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Sequence

    from gpugate.webhook.admission.front.server import Context, Front
    from gpugate.webhook.admission.workers.board import Board

_TICK_SECONDS: Final = 1.0
# For how long a worker without facts lets the others answer; when the cluster cannot be asked at all, that is nobody.
_FACTS_SECONDS: Final = 5.0
# Below what Kubernetes gives a Pod to end, together with the time of accepting.
_LEAVE_SECONDS: Final = 15.0


@dataclass(frozen=True, slots=True)
class Duties:
    """What a worker does besides serving.

    `missing` says what it still misses to be of use; `tick` is called once a second with the front, `reload` when a
    SIGHUP came; `stop` at the end.
    """

    missing: Callable[[], Sequence[str]]
    tick: Callable[[Front], None]
    reload: Callable[[], None]
    stop: Callable[[], None]


class Worker:
    """Serves on listeners that all workers share."""

    def __init__(self, number: int, board: Board, drain_seconds: float) -> None:
        self._number = number
        self._board = board
        self._drain_seconds = drain_seconds
        self._parent = os.getppid()

    def run(
        self,
        front: Callable[[], Front],
        admission: tuple[socket.socket, Context],
        health: socket.socket,
        duties: Duties,
    ) -> None:
        """Serve until a SIGTERM or SIGINT, or until the supervisor is gone."""
        uvloop.run(self._run(front, admission, health, duties))

    async def _run(
        self,
        make_front: Callable[[], Front],
        admission: tuple[socket.socket, Context],
        health: socket.socket,
        duties: Duties,
    ) -> None:
        front = make_front()
        leave: asyncio.Future[int] = front.loop.create_future()
        for number in (signal.SIGTERM, signal.SIGINT):
            front.loop.add_signal_handler(number, _settle, leave, number)
        front.loop.add_signal_handler(signal.SIGHUP, duties.reload)
        keeping_time = asyncio.create_task(front.keep_time())
        front.accept_from(health, None)
        await self._wait_for_facts(duties, leave)
        front.accept_from(*admission)
        ticking = asyncio.create_task(self._tick(front, duties, leave))
        asked = await leave
        if asked == signal.SIGTERM:
            # Others have not heard yet that this one is about to leave.
            front.drain()
            await self._wait(self._drain_seconds)
        await front.leave(_LEAVE_SECONDS)
        for task in (ticking, keeping_time):
            task.cancel()
        duties.stop()

    async def _wait_for_facts(self, duties: Duties, leave: asyncio.Future[int]) -> None:
        end = asyncio.get_running_loop().time() + _FACTS_SECONDS
        while duties.missing() and not leave.done() and asyncio.get_running_loop().time() < end:  # noqa: ASYNC110 -- threads fill the facts
            await asyncio.sleep(0.05)

    async def _tick(self, front: Front, duties: Duties, leave: asyncio.Future[int]) -> None:
        while True:
            if os.getppid() != self._parent:
                # Nobody would start it again, nor end it.
                _settle(leave, signal.SIGINT)
            duties.tick(front)
            self._board.beat(self._number, duties.missing())
            await asyncio.sleep(_TICK_SECONDS)

    async def _wait(self, seconds: float) -> None:
        """Wait, but not longer than there is a supervisor."""
        end = asyncio.get_running_loop().time() + seconds
        while os.getppid() == self._parent and (left := end - asyncio.get_running_loop().time()) > 0:  # noqa: ASYNC110 -- a process that ends tells nobody
            await asyncio.sleep(min(left, _TICK_SECONDS))


def _settle(leave: asyncio.Future[int], number: int) -> None:
    # The supervisor decides what a second signal means.
    if not leave.done():
        leave.set_result(number)
