"""Facts of a live cluster, for as long as a process runs: a thread for each kind that policies look up."""

from __future__ import annotations

import threading
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Final

import msgspec

from gpugate.webhook.cluster.chance import Chance
from gpugate.webhook.cluster.facts import ClusterFacts
from gpugate.webhook.cluster.projection import Projection
from gpugate.webhook.cluster.reflector import Reflector
from gpugate.webhook.cluster.reporter import Reporter
from gpugate.webhook.cluster.state import KindState, Standing

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpugate.policies.engine.needs import Needs
    from gpugate.policies.sdk.kinds import Kind
    from gpugate.webhook.cluster.connection import Connection

_LEAVE_SECONDS: Final = 2.0
# Objects that stay decoded after they were looked at; some 5 MB.
_REMEMBERED: Final = 1024


class ClusterWatch:
    """Keeps `facts` up to date from `start` to `stop`, both called in the process that uses them.

    `told` hears of every change of a kind's state, in the thread of that kind.
    """

    def __init__(
        self, connection: Connection, needs: Needs, told: Callable[[KindState], None], chance: Chance | None = None
    ) -> None:
        self.facts = ClusterFacts()
        self._connection = connection
        self._needs = needs
        self._told = told
        self._chance = chance or Chance()
        self._decode = lru_cache(_REMEMBERED)(msgspec.msgpack.decode)
        self._running: dict[Kind, _Thread] = {}
        self._ready = False

    def start(self) -> None:
        """Begin to list and watch every kind."""
        self.need(self._needs)

    def need(self, needs: Needs) -> None:
        """Look up what these need from now on, as after a change of configuration.

        A kind of which more or less is read than before is listed again; until that is done, policies see of it what
        was kept before. `behind` names such kinds: whoever can wait uses new rules only when there is none.
        """
        self._needs = needs
        projections = {kind: Projection(kind, needs, self._decode) for kind in needs.kinds}
        for kind in [kind for kind, thread in self._running.items() if projections.get(kind) != thread.projection]:
            self._running.pop(kind).stop()
            if kind not in projections:
                self.facts.forget(kind)
        for kind, projection in projections.items():
            if kind not in self._running:
                self._running[kind] = self._thread(kind, projection)

    def missing(self) -> tuple[str, ...]:
        """Say what readiness waits for: kinds not read yet.

        A kind that the cluster does not serve, or does not let us read, is not waited for. What was once ready stays
        so: neither an outage of the API server nor a new configuration stops decisions.
        """
        missing = () if self._ready else self.behind()
        self._ready = not missing
        return missing

    def behind(self) -> tuple[str, ...]:
        """Name every kind that has not been read yet as it is needed now, with the reason where there is one."""
        threads = [self._running.get(kind) for kind in self._needs.kinds]
        states = [
            thread.reporter.state if thread else KindState(kind, Standing.UNREAD)
            for kind, thread in zip(self._needs.kinds, threads, strict=True)
        ]
        return tuple(
            f"facts: {state.resource} not listed yet" + (f" ({state.reason})" if state.reason else "")
            for state in states
            if state.standing is Standing.UNREAD
        )

    def ages(self) -> dict[Kind, float]:
        """Return for each kind how many seconds ago it was last known to be up to date; 0 while it is watched."""
        return {kind: thread.reporter.age() for kind, thread in self._running.items()}

    def stop(self) -> None:
        """End all watches; the facts stay as they are."""
        threads = list(self._running.values())
        self._running.clear()
        for thread in threads:
            thread.stop()
        for thread in threads:
            thread.join(_LEAVE_SECONDS)
        self._connection.close()

    def _thread(self, kind: Kind, projection: Projection) -> _Thread:
        writer = object()
        self.facts.admit(kind, writer)
        put = partial(self.facts.put, kind, writer)
        reporter = Reporter(kind, put, self._told, self._chance.clock)
        return _Thread(Reflector(kind, projection, self._connection, reporter, self._chance))


class _Thread:
    """A reflector at work; a daemon, so that a call that hangs does not keep the process from leaving."""

    def __init__(self, reflector: Reflector) -> None:
        self._reflector = reflector
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"facts-{reflector.kind.plural}", daemon=True)
        self.projection = reflector.projection
        self.reporter = reflector.reporter
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._reflector.stop()

    def join(self, seconds: float) -> None:
        self._thread.join(seconds)

    def _run(self) -> None:
        pause = 0.0
        while not self._stopped.wait(pause):
            pause = self._reflector.step()
