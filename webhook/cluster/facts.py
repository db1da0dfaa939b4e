"""Cluster data for policies, kept up to date by reflectors."""

from __future__ import annotations

import threading
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Final

from gpugate.policies.sdk.facts import Unavailable
from gpugate.webhook.cluster.backoff import Chance
from gpugate.webhook.cluster.discovery import resource_name
from gpugate.webhook.cluster.objects import Objects, Projection, decode
from gpugate.webhook.cluster.reflector import KindState, KindStatus, Reflector, Reporter

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from gpugate.policies.engine.ruleset import Needs
    from gpugate.policies.sdk.facts import Fact
    from gpugate.policies.sdk.objects import Kind
    from gpugate.webhook.cluster.connection import Connection


class ClusterFacts:
    """The watched objects of the cluster, in memory.

    While the API server is unavailable, policies read the last objects, as complete as they were. Decisions continue,
    and a metric reports the age of the data. Readers need no lock, because the objects of a kind are one immutable value
    that is replaced as a whole.
    """

    def __init__(self) -> None:
        self._objects: dict[Kind, Objects | Unavailable] = {}
        self._writers: dict[Kind, Hashable] = {}
        self._writing = threading.Lock()

    def list(self, kind: Kind, namespace: str | None = None) -> Fact:
        """Return the objects of a kind, or those in a namespace; the same `Known` until one of them changes."""
        objects = self._objects.get(kind)
        if isinstance(objects, Objects):
            return objects.list(namespace)
        return objects or Unavailable(f"{resource_name(kind)} not watched")

    def snapshot(self) -> ClusterFacts:
        """Return the objects as they are now, which later changes do not affect; takes the time of a small copy."""
        facts = ClusterFacts()
        facts._objects = self._objects.copy()
        return facts

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds that policies look up."""
        return tuple(self._objects)

    def accept_writer(self, kind: Kind, writer: Hashable) -> None:
        """Accept only this writer for a kind from now on; the objects remain until its first write."""
        with self._writing:
            self._writers[kind] = writer
            self._objects.setdefault(kind, Unavailable(f"{resource_name(kind)} not read yet"))

    def put(self, kind: Kind, writer: Hashable, objects: Objects | Unavailable) -> None:
        """Replace the objects of a kind, unless another writer was accepted since."""
        with self._writing:
            if self._writers.get(kind) == writer:
                self._objects[kind] = objects

    def remove(self, kind: Kind) -> None:
        """Remove a kind that no policy needs any more."""
        with self._writing:
            self._writers.pop(kind, None)
            self._objects.pop(kind, None)


_JOIN_SECONDS: Final = 2.0
# Objects that remain decoded after a lookup; about 5 MB.
_CACHE_SIZE: Final = 1024


class ClusterWatch:
    """Keeps `facts` up to date from `start` to `stop`; call both in the process that reads `facts`.

    `on_change` is called with every change of a kind's state, in the thread of that kind.
    """

    def __init__(
        self, connection: Connection, needs: Needs, on_change: Callable[[KindState], None], chance: Chance | None = None
    ) -> None:
        self.facts = ClusterFacts()
        self._connection = connection
        self._needs = needs
        self._on_change = on_change
        self._chance = chance or Chance()
        self._decode = lru_cache(_CACHE_SIZE)(decode)
        self._running: dict[Kind, _Thread] = {}
        self._ready = False

    def start(self) -> None:
        """Start to list and watch every kind."""
        self.update_needs(self._needs)

    def update_needs(self, needs: Needs) -> None:
        """Watch what these needs declare from now on, such as after a change of the policy file.

        A kind whose needed fields changed is listed again. Until the list is complete, policies read the previous
        objects. `unread` names such kinds: apply new policies when it returns none.
        """
        self._needs = needs
        projections = {kind: Projection(kind, needs, self._decode) for kind in needs.kinds}
        for kind in [kind for kind, thread in self._running.items() if projections.get(kind) != thread.projection]:
            self._running.pop(kind).stop()
            if kind not in projections:
                self.facts.remove(kind)
        for kind, projection in projections.items():
            if kind not in self._running:
                self._running[kind] = self._thread(kind, projection)

    def missing(self) -> tuple[str, ...]:
        """Return what readiness waits for: the kinds that are not read yet, with the reason if there is one.

        Kinds that the cluster does not serve, or that gpugate may not read, are not included. Once it returned none, it
        always does: neither an outage of the API server nor a new policy file stops decisions.
        """
        missing = () if self._ready else self.unread()
        self._ready = not missing
        return missing

    def unread(self) -> tuple[str, ...]:
        """Return the kinds whose needed fields are not read yet, with the reason if there is one."""
        threads = [self._running.get(kind) for kind in self._needs.kinds]
        states = [
            thread.reporter.state if thread else KindState(kind, KindStatus.UNREAD)
            for kind, thread in zip(self._needs.kinds, threads, strict=True)
        ]
        return tuple(
            f"facts: {state.resource} not listed yet" + (f" ({state.reason})" if state.reason else "")
            for state in states
            if state.status is KindStatus.UNREAD
        )

    def ages(self) -> dict[Kind, float]:
        """Return the seconds since each kind was last up to date; 0 while it is watched."""
        return {kind: thread.reporter.age() for kind, thread in self._running.items()}

    def stop(self) -> None:
        """Stop all watches; `facts` keeps the last objects."""
        threads = list(self._running.values())
        self._running.clear()
        for thread in threads:
            thread.stop()
        for thread in threads:
            thread.join(_JOIN_SECONDS)
        self._connection.close()

    def _thread(self, kind: Kind, projection: Projection) -> _Thread:
        writer = object()
        self.facts.accept_writer(kind, writer)
        put = partial(self.facts.put, kind, writer)
        reporter = Reporter(kind, put, self._on_change, self._chance.clock)
        return _Thread(Reflector(kind, projection, self._connection, reporter, self._chance))


class _Thread:
    """A running reflector, in a daemon thread, so that a blocked call does not delay the end of the process."""

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
