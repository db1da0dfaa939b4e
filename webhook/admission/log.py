"""The JSON log: one line for each review that is not allowed unchanged, and for each event of the server.

The log contains only the kind, namespace and name of an object. The message of an exception may contain content of an
object, so the log contains only its type and the line of gpugate that raised it.
"""

from __future__ import annotations

import datetime as dt
import json
import logging
import os
import select
import sys
import threading
import traceback
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import orjson

from gpugate.webhook.admission.decisions import ALLOW, ERROR, FAILED, decision, denies
from gpugate.webhook.admission.response import cut, plain
from gpugate.webhook.admission.review import UnacceptableError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType

    from gpugate.policies.engine.verdict import Verdict
    from gpugate.policies.sdk.objects import Request
    from gpugate.webhook.admission.decisions import Observation

Value: TypeAlias = "str | int | float | bool | Sequence[str]"

# PIPE_BUF of Linux: writes of other processes to the same pipe never interleave with a write of this size (pipe(7)).
LONGEST_LINE: Final = 4096
# The first is the longest name of an object. The others are for lines that are too long after escaping.
_LONGEST_FIELDS: Final = (253, 64, 16)
_SHORTEST_ITEMS: Final = 8


def line(fields: Mapping[str, Value]) -> bytes:
    """Encode a log line of at most `LONGEST_LINE` bytes, including the newline; long texts are shortened.

    Control, bidirectional and other unprintable characters become Python's escapes, and other characters outside ASCII
    become JSON's. So neither the line nor its parsed fields can change a terminal.
    """
    encoded = b""
    for longest in _LONGEST_FIELDS:
        fitted = {
            # Most fields need no change, and this condition saves them a call.
            key: value
            if isinstance(value, str) and len(value) <= longest and value.isprintable()
            else _fit_value(value, longest)
            for key, value in fields.items()
        }
        encoded = _encode(fitted)
        if len(encoded) <= LONGEST_LINE:
            break
    return encoded


def _encode(fields: dict[str, Value]) -> bytes:
    # orjson takes a tenth of the time of json, but cannot escape characters outside ASCII.
    encoded = orjson.dumps(fields, option=orjson.OPT_APPEND_NEWLINE)
    return encoded if encoded.isascii() else f"{json.dumps(fields, separators=(',', ':'))}\n".encode("ascii")


def _fit_value(value: Value, longest: int) -> Value:
    if isinstance(value, str):
        # Shorten first, because escaping only lengthens a text.
        return cut(plain(value[: longest + 1]), longest)
    # A tuple of types is checked twice as fast as their union.
    if isinstance(value, (int, float)):
        return value
    most = longest // _SHORTEST_ITEMS
    fitted = [cut(plain(item[: longest + 1]), longest) for item in value[:most]]
    return fitted if len(value) <= most else [*fitted, f"and {len(value) - most} more"]


# About 10,000 lines of the usual length.
MOST_BYTES: Final = 4 * 1024 * 1024
_GATHER_SECONDS: Final = 0.02
# The longest wait until a non-blocking descriptor accepts more data.
_RETRY_SECONDS: Final = 0.1


class LineQueue:
    """Writes lines to a file descriptor from a separate thread, and drops lines when the queue is full.

    Before `start` and after `close` there is no thread: a line is written at once if the descriptor accepts it, and
    dropped otherwise. Fork before `start`, because a child process does not inherit the thread.
    """

    def __init__(self, descriptor: int, on_drop: Callable[[int], None], most_bytes: int = MOST_BYTES) -> None:
        """Create a queue.

        Args:
            descriptor: the file descriptor to write to; it stays open.
            on_drop: called from any thread with the number of dropped lines.
            most_bytes: the limit of the queue in bytes.
        """
        self._descriptor = descriptor
        self._on_drop = on_drop
        self._most_bytes = most_bytes
        self._lines: deque[bytes] = deque()
        self._bytes = 0
        self._in_flight = 0
        # The lock is reentrant, because a signal handler may log while the interrupted thread logs.
        self._changed = threading.Condition()
        self._writer: threading.Thread | None = None
        self._closing = False

    def start(self) -> None:
        """Start the thread."""
        # A daemon thread, because a blocked write to a full pipe would prevent the process from exiting.
        self._writer = threading.Thread(target=self._write_all, name="log", daemon=True)
        self._closing = False
        self._writer.start()

    def put(self, line: bytes) -> None:
        """Queue a line of at most `LONGEST_LINE` bytes; never waits."""
        if self._writer is None:
            self._write_at_once(line)
            return
        with self._changed:
            fits = self._bytes + len(line) <= self._most_bytes
            if fits:
                if not self._lines:
                    self._changed.notify()
                self._lines.append(line)
                self._bytes += len(line)
        if not fits:
            self._on_drop(1)

    def close(self, seconds: float) -> None:
        """Write the queued lines for at most `seconds`, and drop the rest."""
        if self._writer is None:
            return
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._writer.join(seconds)
        self._writer = None
        with self._changed:
            # Lines in an unfinished write are dropped too.
            dropped = len(self._lines) + self._in_flight
            self._lines.clear()
            self._bytes = 0
        if dropped:
            self._on_drop(dropped)

    def _write_all(self) -> None:
        while True:
            with self._changed:
                if not self._lines:
                    self._wait_for_lines()
                chunk, self._in_flight = self._take_lines()
            if not chunk:
                return
            if not self._write(chunk):
                self._on_drop(self._in_flight)
            self._in_flight = 0

    def _wait_for_lines(self) -> None:
        while not self._lines and not self._closing:
            self._changed.wait()
        if not self._closing:
            # Waking this thread for every line would take most of the time that the caller spends on a line.
            self._changed.wait(_GATHER_SECONDS)

    def _take_lines(self) -> tuple[bytes, int]:
        """Remove from the queue the lines that fit into one write; return them and their number."""
        lines: list[bytes] = []
        size = 0
        while self._lines and (not lines or size + len(self._lines[0]) <= LONGEST_LINE):
            lines.append(self._lines.popleft())
            size += len(lines[-1])
        self._bytes -= size
        return b"".join(lines), len(lines)

    def _write(self, chunk: bytes) -> bool:
        while chunk:
            try:
                chunk = chunk[os.write(self._descriptor, chunk) :]
            except BlockingIOError:
                # Another process that shares the descriptor may have made it non-blocking.
                self._takes_more(_RETRY_SECONDS)
            except OSError:
                return False
        return True

    def _write_at_once(self, line: bytes) -> None:
        # A pipe that is ready for writing accepts PIPE_BUF bytes.
        if self._takes_more(0):
            with suppress(OSError):
                os.write(self._descriptor, line)
                return
        self._on_drop(1)

    def _takes_more(self, seconds: float) -> bool:
        poll = select.poll()
        poll.register(self._descriptor, select.POLLOUT)
        return any(event & select.POLLOUT for _, event in poll.poll(seconds * 1000))


_PACKAGE: Final = __name__.partition(".")[0]


def capture_libraries(log: Log) -> None:
    """Write warnings and errors of all libraries and uncaught exceptions to a log; changes the whole process."""

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
    """Return an exception's type and the last line of gpugate in its traceback, such as `KeyError at gpu_demand.py:12`."""
    name = type(error).__name__
    frames = list(traceback.walk_tb(error.__traceback__))
    own_frames = [f for f in frames if str(f[0].f_globals.get("__name__", "")).partition(".")[0] == _PACKAGE] or frames
    if not own_frames:
        return name
    frame, number = own_frames[-1]
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
        # If the arguments do not fit the format, the unformatted message is still useful.
        with suppress(TypeError, ValueError):
            message %= tuple(arg if isinstance(arg, str | int | float) else type(arg).__name__ for arg in args)
    return next(iter(message.splitlines()), "")


Level: TypeAlias = Literal["info", "warning", "error"]

_FLUSH_SECONDS: Final = 2.0


def _now() -> dt.datetime:
    return dt.datetime.now(tz=dt.UTC)


def _uncounted(_: int) -> None:
    """Count nothing."""


class Log:
    """Writes lines to standard error without waiting for it; lines that it does not accept are dropped and counted.

    From `start` on a thread writes the lines, so fork before `start`.
    """

    def __init__(
        self,
        on_drop: Callable[[int], None] = _uncounted,
        descriptor: int | None = None,
        clock: Callable[[], dt.datetime] = _now,
    ) -> None:
        """Create a log.

        Args:
            on_drop: called from any thread with the number of dropped lines.
            descriptor: the file descriptor to write to; None is standard error.
            clock: the time in UTC.
        """
        self._queue = LineQueue(sys.stderr.fileno() if descriptor is None else descriptor, on_drop)
        self._clock = clock

    def start(self) -> None:
        """Start the thread that writes; call it in each process after the last fork."""
        self._queue.start()

    def close(self, seconds: float = _FLUSH_SECONDS) -> None:
        """Write the queued lines for at most `seconds`."""
        self._queue.close(seconds)

    def observe(self, observation: Observation) -> None:
        """Log a review, unless it was allowed unchanged."""
        review_decision = decision(observation)
        if review_decision != ALLOW:
            fields = self._head(_level(review_decision, observation), "review")
            _add_review(fields, review_decision, observation)
            self._queue.put(line(fields))

    def event(self, level: Level, message: str, **fields: Value) -> None:
        """Log an event of the server; `fields` must not contain content of objects or files."""
        self._queue.put(line(self._head(level, message) | fields))

    def _head(self, level: Level, message: str) -> dict[str, Value]:
        # RFC 3339 allows Z for UTC.
        time = self._clock().isoformat(timespec="milliseconds")[: -len("+00:00")] + "Z"
        return {"time": time, "level": level, "message": message}


def _level(review_decision: str, observation: Observation) -> Level:
    if review_decision == ERROR or (observation.error is not None and observation.error.code >= 500):
        return "error"
    return "warning" if review_decision == FAILED else "info"


def _add_review(fields: dict[str, Value], review_decision: str, observation: Observation) -> None:
    review, verdict, error = observation.review, observation.verdict, observation.error
    fields["decision"] = review_decision
    fields["phase"] = observation.phase.value
    if review is not None:
        fields["uid"] = review.uid
        _add_request(fields, review.request)
    elif isinstance(error, UnacceptableError):
        fields["uid"] = error.uid
    if verdict is not None:
        _add_deciding(fields, verdict)
    if error is not None:
        fields["code"] = error.code
        fields["error"] = error.message
    fields["generation"] = observation.generation
    fields["milliseconds"] = round(observation.seconds * 1000, 3)


def _add_request(fields: dict[str, Value], request: Request) -> None:
    fields["kind"] = str(request.stored_kind)
    fields["namespace"] = request.namespace
    fields["name"] = request.shown_name
    fields["operation"] = request.operation.value
    fields["user"] = request.user
    fields["dry_run"] = request.dry_run


def _add_deciding(fields: dict[str, Value], verdict: Verdict) -> None:
    """Add the policies that patched, denied or raised an error, and the strictest of their modes."""
    policies, modes = [], []
    for outcome in verdict.outcomes:
        if outcome.patches or outcome.error or denies(outcome):
            policies.append(outcome.policy)
            modes.append(outcome.stance)
    fields["policies"] = policies
    if modes:
        fields["mode"] = max(modes).word
