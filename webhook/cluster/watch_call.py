"""One watch: the call, how long it may last and be silent, and its end from another thread."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.webhook.cluster.errors import ShortWatchError
from gpugate.webhook.cluster.events import events

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gpugate.webhook.cluster.chance import Chance
    from gpugate.webhook.cluster.connection import Connection
    from gpugate.webhook.cluster.events import Event
    from gpugate.webhook.cluster.stream import Stream

# The server ends a watch after this long; at random, so that not all come back at once.
_WATCH_SECONDS: Final = (300.0, 600.0)
# How much longer it may be silent before the connection is taken for dead.
_MARGIN_SECONDS: Final = 30.0
_SHORTEST_WATCH: Final = 1.0


class WatchCall:
    """Makes one watch after another, each from `follow` until it ends; `stop` ends one that another thread is in."""

    def __init__(self, connection: Connection, chance: Chance) -> None:
        self._connection = connection
        self._chance = chance
        self._stream: Stream | None = None
        self.stopped = False

    def follow(
        self,
        path: str,
        parameters: Mapping[str, str],
        opened: Callable[[], None],
        take: Callable[[Event], None],
        silence: float = float("inf"),
    ) -> None:
        """Watch what is at a path; `opened` is called when the server has begun, `take` with each event.

        More than `silence` seconds without a byte end it.

        Raises:
            ApiError: the server answered with an error, or ended the watch with one.
            UnreachableError: it did not answer, the watch broke off or fell silent, or a line is no event.
            ShortWatchError: the watch ended within a second and without an event.
        """
        seconds = self._chance.between(_WATCH_SECONDS)
        longest = seconds + _MARGIN_SECONDS
        wanted = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            **parameters,
            "timeoutSeconds": str(int(seconds)),
        }
        started, heard = self._chance.clock(), False
        with self._connection.stream(path, wanted, silence=min(longest, silence)) as stream:
            self._stream = stream
            if self.stopped:
                return
            opened()
            for event in events(stream):
                heard = True
                take(event)
                if self._chance.clock() - started > longest:
                    break
        self._stream = None
        if not heard and self._chance.clock() - started < _SHORTEST_WATCH:
            raise ShortWatchError("the watch ended at once")

    def stop(self) -> None:
        """End a watch that another thread is in, and begin no other."""
        self.stopped = True
        stream = self._stream
        if stream is not None:
            stream.shutdown()
