"""Watches one object by its name, and says when to look at it again; of the object itself nothing is kept.

A watch without a resource version begins with what there is now (`k8s.io/apimachinery` meta/v1 ListOptions, v0.36), and
whoever is told to look reads the object itself, so nothing is listed and no resource version can grow too old. RBAC
allows it by `watch` with `resourceNames`, because of the field selector (kube-apiserver v1.36.3).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.webhook.cluster.backoff import Backoff
from gpugate.webhook.cluster.chance import Chance
from gpugate.webhook.cluster.errors import ApiError, CallError
from gpugate.webhook.cluster.failures import why
from gpugate.webhook.cluster.watch_call import WatchCall

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from gpugate.webhook.cluster.connection import Connection
    from gpugate.webhook.cluster.events import Event
    from gpugate.webhook.cluster.place import Place

# kube-apiserver v1.36.3 sends a bookmark about once a minute.
_SILENCE_SECONDS: Final = 150.0
# A watch that ended sooner did not end of itself.
_SHORT_SECONDS: Final = 60.0
_LONGEST_RETRY_AFTER: Final = 300.0


class NamedWatch:
    """Calls `changed` when an object was added, changed or deleted, or may have been; `lost` when watching failed.

    Both are called in the thread of `run`. `changed` may be called when nothing changed: after each beginning. `lost`
    gets the reason, each time; for as long as nothing is heard, whoever cares must look by himself.
    """

    def __init__(
        self,
        connection: Connection,
        place: Place,
        changed: Callable[[], None],
        lost: Callable[[str], None],
        chance: Chance | None = None,
    ) -> None:
        self.place = place
        self._changed = changed
        self._lost = lost
        self._chance = chance or Chance()
        self._backoff = Backoff(self._chance)
        self._watching = WatchCall(connection, self._chance)

    def step(self) -> float:
        """Watch until the watch ends; return how many seconds to wait then."""
        started = self._chance.clock()
        named = {"fieldSelector": f"metadata.name={self.place.name}"}
        try:
            self._watching.follow(self.place.collection, named, self._changed, self._take, _SILENCE_SECONDS)
        except CallError as error:
            if self._watching.stopped:
                return 0.0
            self._lost(why(error, "watch", self.place) if isinstance(error, ApiError) else str(error))
            return max(self._backoff.next(), min(error.retry_after, _LONGEST_RETRY_AFTER))
        short = self._chance.clock() - started < _SHORT_SECONDS
        return self._backoff.next() if short else 0.0

    def run(self, stopped: threading.Event) -> None:
        """Watch until `stopped` is set; then `stop` ends the watch that is open."""
        pause = 0.0
        while not stopped.wait(pause):
            pause = self.step()

    def stop(self) -> None:
        """End a watch that another thread is in."""
        self._watching.stop()

    def _take(self, event: Event) -> None:
        if event.type != "BOOKMARK":
            self._changed()
