"""Makes a call to an API server again when another try may go better."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from gpugate.webhook.cluster.backoff import Backoff, Chance
from gpugate.webhook.cluster.errors import ApiError, CallError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpugate.webhook.audit.sources.throttle import Throttle

# With the waits of `Backoff` a minute or two: a rolling upgrade of an API server is over by then.
TRIES: Final = 6
_LONGEST_RETRY_AFTER: Final = 60.0
_Answer = TypeVar("_Answer")


def retried(
    call: Callable[[], _Answer], throttle: Throttle, chance: Chance | None = None, tries: int = TRIES
) -> _Answer:
    """Return what a call answers; each try keeps to the rate.

    No answer, too many requests and faults of the server are waited out. After a 401 the connection has read its
    credentials again, so that one more try shows whether the token had only expired.

    Raises:
        CallError: what the last try met, or what no other try would change.
    """
    backoff = Backoff(chance or Chance())
    renewed = False
    for left in reversed(range(tries)):
        throttle.wait()
        try:
            return call()
        except CallError as error:
            if isinstance(error, ApiError) and error.code == 401 and not renewed:
                renewed = True
                continue
            if not left or not _passing(error):
                raise
            throttle.sleep(max(backoff.next(), min(error.retry_after, _LONGEST_RETRY_AFTER)))
    raise UnreachableError("the API server kept refusing our credentials")


def _passing(error: CallError) -> bool:
    if isinstance(error, ApiError):
        return error.code == 429 or error.code >= 500
    return isinstance(error, UnreachableError)
