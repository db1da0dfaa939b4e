"""The log: one line of JSON for each review that did not pass untouched, and for what happens to the server.

Nothing of an object is ever in it but its kind, namespace and name.
"""

from __future__ import annotations

import datetime as dt
import sys
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from gpugate.webhook.admission.decisions import BROKE, PASSED, REFUSED, decision, denies
from gpugate.webhook.admission.errors import UnacceptableError
from gpugate.webhook.admission.log_line import Value, line
from gpugate.webhook.admission.log_queue import LineQueue

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpugate.policies.engine.verdict import Verdict
    from gpugate.policies.sdk.request import Request
    from gpugate.webhook.admission.gate import Observation

Level: TypeAlias = Literal["info", "warning", "error"]

_FLUSH_SECONDS: Final = 2.0


def _now() -> dt.datetime:
    return dt.datetime.now(tz=dt.UTC)


def _uncounted(_: int) -> None:
    """Count nothing."""


class Log:
    """Writes lines to standard error without ever waiting for it; lines that it does not take are dropped and counted.

    Lines are written one after the other until `start`, from then on by a thread, so a process that forks does so first.
    """

    def __init__(
        self,
        on_drop: Callable[[int], None] = _uncounted,
        descriptor: int | None = None,
        clock: Callable[[], dt.datetime] = _now,
    ) -> None:
        """Make a log.

        Args:
            on_drop: called with a number of lines that were lost; from any thread.
            descriptor: what to write to instead of standard error.
            clock: the time in UTC.
        """
        self._queue = LineQueue(sys.stderr.fileno() if descriptor is None else descriptor, on_drop)
        self._clock = clock

    def start(self) -> None:
        """Write from a thread from now on; call it in each process, after the last fork."""
        self._queue.start()

    def close(self, seconds: float = _FLUSH_SECONDS) -> None:
        """Write what waits, for at most so many seconds."""
        self._queue.close(seconds)

    def observe(self, observation: Observation) -> None:
        """Say what became of a review, unless it went through untouched."""
        decided = decision(observation)
        if decided != PASSED:
            fields = self._head(_level(decided, observation), "review")
            _add_review(fields, decided, observation)
            self._queue.put(line(fields))

    def event(self, level: Level, message: str, **fields: Value) -> None:
        """Say what happened to the server; fields never hold content of objects or files."""
        self._queue.put(line(self._head(level, message) | fields))

    def _head(self, level: Level, message: str) -> dict[str, Value]:
        # UTC, which RFC 3339 writes with a Z.
        time = self._clock().isoformat(timespec="milliseconds")[: -len("+00:00")] + "Z"
        return {"time": time, "level": level, "message": message}


def _level(decided: str, observation: Observation) -> Level:
    if decided == BROKE or (observation.error is not None and observation.error.code >= 500):
        return "error"
    return "warning" if decided == REFUSED else "info"


def _add_review(fields: dict[str, Value], decided: str, observation: Observation) -> None:
    review, verdict, error = observation.review, observation.verdict, observation.error
    fields["decision"] = decided
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
    fields["kind"] = str(request.kind)
    fields["namespace"] = request.namespace
    fields["name"] = request.shown_name
    fields["operation"] = request.operation.value
    fields["user"] = request.user
    fields["dry_run"] = request.dry_run


def _add_deciding(fields: dict[str, Value], verdict: Verdict) -> None:
    """Name the policies that patched, denied or broke, and the strictest of their modes."""
    policies, modes = [], []
    for outcome in verdict.outcomes:
        if outcome.patches or outcome.error or denies(outcome):
            policies.append(outcome.policy)
            modes.append(outcome.stance)
    fields["policies"] = policies
    if modes:
        fields["mode"] = max(modes).word
