"""An object in a separate process, so that the measurement does not affect the server.

`Remote(Load, plan)` creates `Load(plan)` in a new process with uvloop. `remote.call("method", ...)` awaits a method of it
in that process and returns its result; `start` is awaited first, and `stop` last. The process ends with `close`, or when
its pipe closes because the parent has exited.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import traceback
from typing import TYPE_CHECKING, Any

import uvloop

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection

PATIENCE_SECONDS = 300


class Remote:
    def __init__(self, make: Callable[..., Any], *arguments: object) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_run, args=(theirs, make, arguments), daemon=True)
        self._process.start()
        theirs.close()
        self.call("start")

    def call(self, method: str, *arguments: object) -> Any:
        self._pipe.send((method, arguments))
        assert self._pipe.poll(PATIENCE_SECONDS), f"no answer from {method}"
        result, failure = self._pipe.recv()
        assert not failure, failure
        return result

    def close(self) -> None:
        if self._pipe.closed:
            return
        self._pipe.close()
        self._process.join(10)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self._process.close()


def _run(pipe: Connection, make: Callable[..., Any], arguments: tuple[object, ...]) -> None:
    uvloop.run(_serve(pipe, make(*arguments)))


async def _serve(pipe: Connection, served: Any) -> None:
    loop = asyncio.get_running_loop()
    gone = asyncio.Event()
    calls: set[asyncio.Task[None]] = set()

    async def answer(method: str, arguments: tuple[object, ...]) -> None:
        try:
            reply: tuple[object, str] = (await getattr(served, method)(*arguments), "")
        except Exception:  # noqa: BLE001 -- told to the caller
            reply = (None, traceback.format_exc())
        # Watching it for reading made it one that does not block, and would leave a long reply half sent.
        os.set_blocking(pipe.fileno(), True)
        pipe.send(reply)

    def heard() -> None:
        try:
            method, arguments = pipe.recv()
        except (EOFError, OSError):
            loop.remove_reader(pipe.fileno())
            gone.set()
            return
        task = loop.create_task(answer(method, arguments))
        calls.add(task)
        task.add_done_callback(calls.discard)

    loop.add_reader(pipe.fileno(), heard)
    await gone.wait()
    await served.stop()
