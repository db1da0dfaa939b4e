"""Stop a review that exceeds its CPU budget, both in a policy and while the response is encoded.

A worker answers in its event loop, so one expensive review delays all others. Policies are linear and objects are
bounded (`policies/engine/bounds.py`). A user's own policy may still not be linear. A timer signal of the process's CPU
time stops it. Python runs signal handlers only in the main thread, where reviews are evaluated, so the exception cannot
reach other code. The budget counts CPU time and not wall time, so a busy node does not stop cheap reviews.

The signal does not interrupt a single call into C, such as a regular expression on a long text.
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

# A review of 6 KB takes half a millisecond, the largest allowed review about 100 ms.
MOST_CPU_SECONDS: Final = 0.25
# The exception is raised again after this CPU time, in case a policy catches it.
_AGAIN_SECONDS: Final = 0.01


class CpuBudget:
    """Limits the CPU time of one review at a time; create it in the main thread of a process.

    Attributes:
        is_spent: whether the last started budget has expired.
    """

    def __init__(self, seconds: float = MOST_CPU_SECONDS) -> None:
        self._seconds = seconds
        self.is_spent = False
        # The CPU time of this thread at which the budget expires; None while no review is limited.
        self._end: float | None = None
        signal.signal(signal.SIGPROF, self._expired)

    def start(self, seconds: float | None = None) -> None:
        """Start the budget of a review.

        Args:
            seconds: a smaller budget for this review; None is the usual one.

        Raises:
            OutOfTimeError: when the budget expires, from any later code in this thread until `stop` is called.
        """
        most = self._seconds if seconds is None else min(seconds, self._seconds)
        self.is_spent = False
        self._end = thread_time() + most
        signal.setitimer(signal.ITIMER_PROF, most, _AGAIN_SECONDS)

    def stop(self) -> None:
        """Stop the budget.

        The timer may expire during this call, which then raises `OutOfTimeError`. So call it inside the `try` that
        catches the error and again in its handler, which takes less CPU time than the error needs to be raised again.
        """
        self._end = None
        signal.setitimer(signal.ITIMER_PROF, 0)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Exclude work that serves more than this review, such as values derived from all watched objects.

        These values are cached for later reviews. If the budget stopped their computation, each review would start it
        again and none would complete it.
        """
        end, self._end = self._end, None
        started = thread_time()
        try:
            yield
        finally:
            self._end = None if end is None else end + thread_time() - started

    def _expired(self, _number: int, _frame: FrameType | None) -> None:
        # The timer counts the CPU time of all threads. One that is busy while this thread reaches `stop` must not raise the
        # exception again, so that what is counted until then is the time of this thread.
        if self._end is not None and (spent := thread_time()) >= self._end:
            self.is_spent = True
            self._end = spent + _AGAIN_SECONDS
            raise OutOfTimeError
