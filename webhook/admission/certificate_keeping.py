"""The process that keeps the certificates: it alone has the keys of the authorities, and answers nobody.

Whatever fails here, the workers go on with the certificate they have.
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from gpugate.certs.keeper import Cluster, Keeper
from gpugate.policies.engine.breakage import described
from gpugate.webhook.admission.drift_report import DriftReport
from gpugate.webhook.admission.keeper_report import KeeperReport
from gpugate.webhook.admission.server_clock import ServerClock, awake_or_asleep
from gpugate.webhook.admission.wakeful import wait
from gpugate.webhook.cluster import place
from gpugate.webhook.cluster.chance import Chance
from gpugate.webhook.cluster.connection import connect
from gpugate.webhook.cluster.errors import ClusterError
from gpugate.webhook.cluster.lease import CALL_SECONDS, LeaderElection, own_identity
from gpugate.webhook.cluster.live_registration import LiveRegistration
from gpugate.webhook.cluster.named_watch import NamedWatch
from gpugate.webhook.cluster.secret_store import NamedSecret

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpugate.certs.keeper import State
    from gpugate.certs.leaf import Leaf
    from gpugate.webhook.admission.options import Keeping
    from gpugate.webhook.admission.shared import Shared
    from gpugate.webhook.cluster.options import ClusterOptions

# Watches tell of changes; this is for what they miss, and for what is due.
_LOOK_AGAIN_SECONDS: Final = (55.0, 65.0)
_TRY_AGAIN_SECONDS: Final = 5.0
# However much is due, API servers are not asked more often.
_SHORTEST_SECONDS: Final = 0.2
_BEAT_SECONDS: Final = 1.0
_SOON_SECONDS: Final = 0.05
_LEAVE_SECONDS: Final = 5.0


def run_keeper(number: int, shared: Shared, keeping: Keeping) -> None:
    """Keep the certificates until told to leave; called in a process of its own.

    Raises:
        ClusterError: there is no cluster, or it is not configured so that it can be used.
    """
    if shared.options.cluster is None:
        raise ClusterError("certificates are kept in a cluster, and there is none")
    _Keeping(number, shared, keeping, shared.options.cluster).run()


class _Keeping:
    """The keeper and the threads that wake it; the main thread says that all of this is alive."""

    def __init__(self, number: int, shared: Shared, keeping: Keeping, cluster: ClusterOptions) -> None:
        shared.log.start()
        self._number = number
        self._shared = shared
        self._parent = os.getppid()
        self._stopped = threading.Event()
        self._wake = threading.Event()
        # Where another died, the workers have a certificate.
        self._missing = "" if shared.leafs.version else "not looked at yet"
        self._connection = connect(cluster)
        registration = LiveRegistration(self._connection, keeping.configuration, keeping.namespace)
        secret = NamedSecret(self._connection, keeping.namespace, keeping.secret)
        # A clock that goes on while a machine is suspended: who wakes up does not lead any more.
        self._election = LeaderElection(
            connect(cluster, CALL_SECONDS), keeping.namespace, keeping.lease, own_identity(), Chance(awake_or_asleep)
        )
        self._now = clock = ServerClock(self._connection)
        self._keeper = Keeper(
            Cluster(secret, registration, self._election),
            keeping.certified_names,
            keeping.periods,
            clock,
            lambda: random.uniform(-1, 1),  # noqa: S311 -- spreads load, keeps no secret
        )
        self._leaf: Leaf | None = None
        self._report = KeeperReport(shared.metrics, shared.log, time.monotonic)
        self._drift = DriftReport(shared, keeping, registration, clock, time.monotonic)
        places = (secret.place, *place.configurations(keeping.configuration).values())
        self._watches = [NamedWatch(self._connection, each, self._wake.set, self._unwatched) for each in places]

    def run(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self._stopped.set())
        signal.signal(signal.SIGHUP, lambda *_: self._wake.set())
        runs = [self._keep, self._election.run, *(each.run for each in self._watches)]
        threads = [threading.Thread(target=self._go_on, args=(each,), daemon=True) for each in runs]
        for thread in threads:
            thread.start()
        while os.getppid() == self._parent:
            missing = self._missing
            self._shared.board.beat(self._number, [missing] if missing else [])
            # Others wait for this one to have a certificate that is trusted.
            if self._stopped.wait(_SOON_SECONDS if missing else _BEAT_SECONDS):
                break
        self._leave(threads)

    def _leave(self, threads: list[threading.Thread]) -> None:
        self._stopped.set()
        self._wake.set()
        for watch in self._watches:
            watch.stop()
        end = time.monotonic() + _LEAVE_SECONDS
        for thread in threads:
            thread.join(max(0.0, end - time.monotonic()))
        self._shared.log.close()

    def _go_on(self, run: Callable[[threading.Event], None]) -> None:
        """Run until told to leave: credentials that cannot be read now, or a bug, must not end what renews certificates."""
        while not self._stopped.is_set():
            try:
                run(self._stopped)
            except Exception as error:  # noqa: BLE001 -- see above
                reason = str(error) if isinstance(error, ClusterError) else f"keeping broke: {described(error)}"
                self._report.broke(reason, leads=self._election.held)
                self._stopped.wait(_TRY_AGAIN_SECONDS)

    def _keep(self, stopped: threading.Event) -> None:
        while not stopped.is_set():
            self._wake.clear()
            before = self._leading()
            pause = self._step()
            wait(pause, self._wake, lambda before=before: stopped.is_set() or self._leading() != before)  # type: ignore[misc] # bound now

    def _leading(self) -> tuple[bool, str]:
        """Return whether this replica leads, and what is wrong with that; who begins to lead has something to do."""
        return self._election.held, self._election.trouble

    def _unwatched(self, reason: str) -> None:
        # A watch that we end ourselves is none that was lost.
        if not self._stopped.is_set():
            self._report.trouble(reason)
            # Nobody tells of changes any more.
            self._wake.set()

    def _put(self, state: State) -> None:
        if state.leaf is not None and state.leaf is not self._leaf:
            self._leaf = state.leaf
            self._shared.leafs.put(state.leaf.pair)

    def _step(self) -> float:
        """Bring things on; return how many seconds there is nothing to do then, unless something changes."""
        # An API server that answers late must not hold up what is due.
        self._put(self._keeper.renew())
        state = self._keeper.step()
        self._put(state)
        if self._missing:
            # What was ready once stays so: nothing gets better by answering nobody.
            self._missing = state.waiting
        if self._election.trouble:
            state = replace(state, troubles=(*state.troubles, self._election.trouble))
        self._report.tell(state, leads=self._election.held, skew=self._connection.clock_skew)
        self._drift.tell(state.authorities)
        pause = _TRY_AGAIN_SECONDS if state.troubles else random.uniform(*_LOOK_AGAIN_SECONDS)  # noqa: S311 -- as above
        if state.due is not None:
            pause = min(pause, (state.due - self._now()).total_seconds())
        return max(pause, _TRY_AGAIN_SECONDS if state.troubles else _SHORTEST_SECONDS)
