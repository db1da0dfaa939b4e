"""Ends a review that takes more CPU than any review needs, wherever it is: in a policy, or while its answer is written.

A worker answers in its event loop, so one expensive review delays all others. Policies are linear and objects are
bounded (`policies/engine/bounds.py`); what is left is a policy that is not linear, such as one of your own. It is ended
by a timer signal of the process's CPU time. Python runs signal handlers in the main thread only, which is where reviews
are evaluated, so the exception cannot reach anything else; and CPU time rather than wall time is counted, so that a
node without CPU to spare does not end reviews that are cheap.

A single call into C, such as a regular expression on a long text, is not interrupted.
"""

from __future__ import annotations

import signal
from contextlib import contextmanager
from time import thread_time
from typing import TYPE_CHECKING, Final

from gpugate.policies.engine.config import OutOfTimeError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

# A review of 6 KB takes half a millisecond; the largest that is evaluated some 100 ms.
MOST_CPU_SECONDS: Final = 0.25
# How soon an exception is raised again that a policy has caught.
_AGAIN_SECONDS: Final = 0.01


class CpuBudget:
    """The CPU time of one review at a time; made in the main thread of a process."""

    def __init__(self, seconds: float = MOST_CPU_SECONDS) -> None:
        self._seconds = seconds
        # The CPU time of this thread at which the review ends; None while there is none to end.
        self._end: float | None = None
        signal.signal(signal.SIGPROF, self._expired)

    def start(self) -> None:
        """Count from now on.

        Raises:
            OutOfTimeError: later, from anywhere in this thread, until `stop` is called.
        """
        self._end = thread_time() + self._seconds
        signal.setitimer(signal.ITIMER_PROF, self._seconds, _AGAIN_SECONDS)

    def stop(self) -> None:
        """Raise nothing from now on.

        The timer may expire while this is called, and then `OutOfTimeError` comes from here. So it is called within the
        `try` of whoever catches that, and once more after it: the timer does not expire again so soon.
        """
        self._end = None
        signal.setitimer(signal.ITIMER_PROF, 0)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Leave out what is not done for this review alone, such as values derived from all watched objects.

        They are kept for the next reviews. Ended half way, they would be computed again by each, and never be done.
        """
        end, self._end = self._end, None
        started = thread_time()
        try:
            yield
        finally:
            self._end = None if end is None else end + thread_time() - started

    def _expired(self, _number: int, _frame: FrameType | None) -> None:
        if self._end is not None and thread_time() >= self._end:
            raise OutOfTimeError
