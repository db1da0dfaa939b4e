"""What Python and other libraries say, in the shape of the log's own lines, and without what they may quote.

Messages of exceptions and representations of objects may hold content of what was judged; their types and the line of
ours they came from do not.
"""

from __future__ import annotations

import logging
import sys
import threading
import traceback
from contextlib import suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from types import TracebackType

    from gpugate.webhook.admission.log import Level, Log

_PACKAGE: Final = __name__.partition(".")[0]


def capture_libraries(log: Log) -> None:
    """Send warnings and worse of every library, and exceptions that nobody caught, to a log; for the whole process."""

    def uncaught(where: str, error: BaseException | None) -> None:
        log.event("error", f"uncaught exception in {where}", error=located(error) if error else "")

    def in_main(_type: type[BaseException], error: BaseException, _traceback: TracebackType | None) -> None:
        uncaught("the main thread", error)

    root = logging.getLogger()
    root.handlers[:] = [_ToLog(log)]
    root.setLevel(logging.WARNING)
    logging.captureWarnings(capture=True)
    sys.excepthook = in_main
    threading.excepthook = lambda args: uncaught("a thread", args.exc_value)
    sys.unraisablehook = lambda args: uncaught("a finalizer", args.exc_value)


def located(error: BaseException) -> str:
    """Name an exception and the last line of ours on its way, such as `KeyError at gpu_demand.py:12`."""
    name = type(error).__name__
    frames = list(traceback.walk_tb(error.__traceback__))
    ours = [f for f in frames if str(f[0].f_globals.get("__name__", "")).partition(".")[0] == _PACKAGE] or frames
    if not ours:
        return name
    frame, number = ours[-1]
    return f"{name} at {frame.f_code.co_filename.rpartition('/')[2]}:{number}"


class _ToLog(logging.Handler):
    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record as one line."""
        error = record.exc_info[1] if record.exc_info else None
        fields = {"error": located(error)} if error else {}
        level: Level = "error" if record.levelno >= logging.ERROR else "warning"
        self._log.event(level, _message(record), logger=record.name, **fields)


def _message(record: logging.LogRecord) -> str:
    """Return the first line of a message; asyncio puts representations of tasks, and their exceptions, in the others."""
    message = str(record.msg)
    if record.args:
        args = record.args if isinstance(record.args, tuple) else ()
        # Without arguments that do not fit a message still says what happened.
        with suppress(TypeError, ValueError):
            message %= tuple(arg if isinstance(arg, str | int | float) else type(arg).__name__ for arg in args)
    return next(iter(message.splitlines()), "")
