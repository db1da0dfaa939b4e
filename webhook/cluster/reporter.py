"""Says what became of one kind: facts to policies, and changes of its state to people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.sdk.facts import Unavailable
from gpugate.webhook.cluster.state import KindState, Standing

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpugate.policies.sdk.kinds import Kind
    from gpugate.webhook.cluster.objects import Objects

# The same trouble is told once a minute at most, and not at all when it was over at once, as in a restart.
_AGAIN_SECONDS: Final = 60.0
_GRACE_SECONDS: Final = 10.0


class Reporter:
    """The state of one kind; `put` takes facts, `told` hears of changes, both in the thread of the reflector."""

    def __init__(
        self,
        kind: Kind,
        put: Callable[[Objects | Unavailable], None],
        told: Callable[[KindState], None],
        clock: Callable[[], float],
    ) -> None:
        self._put = put
        self._told = told
        self._clock = clock
        self._state = KindState(kind, Standing.UNREAD)
        self._told_at = float("-inf")
        self._silent_since: float | None = None

    @property
    def state(self) -> KindState:
        """How it stands now."""
        return self._state

    def age(self) -> float:
        """Return for how many seconds nothing has been heard that keeps the facts up to date; 0 while watching."""
        since = self._silent_since
        return 0.0 if since is None else self._clock() - since

    def read(self, objects: Objects) -> None:
        """Hand out objects that were listed, or changed."""
        self._put(objects)
        self._silent_since = None
        self._tell(Standing.SYNCED, objects.count)

    def watching(self) -> None:
        """Note that a watch is open, so what is held is up to date."""
        self._silent_since = None
        self._tell(Standing.SYNCED, self._state.objects)

    def withhold(self, standing: Standing, reason: str) -> None:
        """Take away what was held: the cluster does not have the kind, or does not let us read it."""
        self._put(Unavailable(reason))
        self._silent()
        self._tell(standing, None, reason)

    def interrupted(self, reason: str) -> None:
        """Note that nothing is heard for now; where something is held, it is told only when that lasts."""
        self._silent()
        objects = self._state.objects
        if objects is not None and self.age() < _GRACE_SECONDS:
            return
        withheld = self._state.standing in {Standing.NOT_SERVED, Standing.FORBIDDEN}
        waiting = self._state.standing if withheld else Standing.UNREAD
        self._tell(waiting if objects is None else Standing.STALE, objects, reason)

    def _silent(self) -> None:
        if self._silent_since is None:
            self._silent_since = self._clock()

    def _tell(self, standing: Standing, objects: int | None, reason: str = "") -> None:
        before, now = self._state, self._clock()
        self._state = KindState(before.kind, standing, objects, reason)
        same = (before.standing, before.objects) == (standing, objects)
        news = not same or (bool(reason) and now - self._told_at >= _AGAIN_SECONDS)
        if news:
            self._told_at = now
            self._told(self._state)
