"""How far the API server's clock is from ours: certificates are judged by the API server's."""

from __future__ import annotations

import datetime as dt
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

# A header gives whole seconds, cut off.
_HALF_A_SECOND: Final = dt.timedelta(milliseconds=500)
# Of an answer that took longer nobody knows when its header was written.
_LONGEST: Final = dt.timedelta(seconds=5)


def wall_clock() -> dt.datetime:
    """Return what time this machine believes it is."""
    return dt.datetime.now(tz=dt.UTC)


class ClockSkew:
    """The difference that the last answer showed; `value` is server minus ours, to about a second, None before one.

    Each answer to HTTP/1.1 carries a `Date` (seen of kube-apiserver v1.36.3 on answers, errors and watches).
    """

    def __init__(self, now: Callable[[], dt.datetime]) -> None:
        self.now = now
        self.value: dt.timedelta | None = None

    def measure(self, sent: dt.datetime, header: str | None) -> None:
        """Take the `Date` of an answer whose head has just been read to a request that was sent then."""
        took = self.now() - sent
        # Less than nothing when our clock was put back meanwhile.
        if header is None or not dt.timedelta() <= took <= _LONGEST:
            return
        try:
            said = parsedate_to_datetime(header)
        except ValueError:
            return
        if said.tzinfo is not None:
            self.value = said + _HALF_A_SECOND - (sent + took / 2)
