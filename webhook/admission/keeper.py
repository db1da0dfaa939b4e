"""The certificate keeper: the process that holds the CA keys, renews certificates and repairs the `caBundle`.

An error in this process never stops the workers, which keep their certificate.
"""

from __future__ import annotations

import datetime as dt
import os
import random
import signal
import threading
import time
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Protocol

from gpugate.certs.keeper import Cluster, Keeper
from gpugate.certs.pki import expiry, fingerprint, split
from gpugate.certs.protocols import ClusterFailure
from gpugate.policies.engine.caught_error import described
from gpugate.webhook.admission.policy_reload import PolicyFileWatch
from gpugate.webhook.cluster import named_object
from gpugate.webhook.cluster.backoff import Chance
from gpugate.webhook.cluster.connection import connect, wall_clock
from gpugate.webhook.cluster.errors import ClusterError
from gpugate.webhook.cluster.lease import CALL_SECONDS, LeaderElection, own_identity
from gpugate.webhook.cluster.live_registration import LiveRegistration
from gpugate.webhook.cluster.named_object import NamedWatch
from gpugate.webhook.cluster.secret_store import NamedSecret
from gpugate.webhook.registration.drift import drift
from gpugate.webhook.registration.objects import Server

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpugate.certs.authorities import Authorities
    from gpugate.certs.keeper import State
    from gpugate.certs.leaf import Leaf
    from gpugate.webhook.admission.gate import Rules
    from gpugate.webhook.admission.log import Log
    from gpugate.webhook.admission.metrics import Metrics
    from gpugate.webhook.admission.options import Keeping
    from gpugate.webhook.admission.policy_reload import Reload
    from gpugate.webhook.admission.shared import Shared
    from gpugate.webhook.cluster.options import ClusterOptions
    from gpugate.webhook.registration.drift_reasons import Drift

# In seconds. During a rotation, the Secret and the configurations differ until both are written.
_LASTING_SECONDS: Final = 10.0


class DriftReport:
    """Reports drift of both webhook configurations: a metric for each reason, and a log line for lasting drift."""

    def __init__(
        self,
        shared: Shared,
        keeping: Keeping,
        registration: LiveRegistration,
        now: Callable[[], dt.datetime],
        clock: Callable[[], float],
    ) -> None:
        self._shared = shared
        self._keeping = keeping
        self._registration = registration
        self._now = now
        self._rules = shared.rules
        self._policy_file = PolicyFileWatch(shared.files, shared.rules, self._use, _ignore_reload, shared.may_load)
        self._clock = clock
        # When each difference was first seen, and which differences were logged.
        self._since: dict[Drift, float] = {}
        self._logged: frozenset[Drift] = frozenset()

    def update(self, authorities: Authorities | None) -> None:
        """Compare the configurations and report; without an API server there is nothing to compare."""
        self._policy_file.poll()
        try:
            live = self._registration.read_objects()
        except ClusterFailure:
            return  # the keeper has just read the same objects and reported the error
        keeping = self._keeping
        differences = drift(
            self._rules.ruleset,
            live,
            Server(b"", keeping.namespace, keeping.url, keeping.service),
            authorities.bundle if authorities else b"",
            now=self._now(),
            name=keeping.configuration,
            meant=keeping.meant,
        )
        self._shared.metrics.drift(Counter(difference.reason.value for difference in differences))
        self._since = {difference: self._since.get(difference, self._clock()) for difference in differences}
        lasting = {
            difference for difference in differences if self._clock() - self._since[difference] >= _LASTING_SECONDS
        }
        for difference in differences:
            if difference in lasting and difference not in self._logged:
                self._shared.log.event(
                    "warning",
                    "webhook configuration is not as generated",
                    reason=difference.reason.value,
                    where=difference.where,
                    found=difference.message,
                    remedy=difference.remedy,
                )
        self._logged = frozenset(lasting)

    def _use(self, rules: Rules) -> None:
        self._rules = rules


def _ignore_reload(_: Reload) -> None:
    """Do nothing: the supervisor reads the same file and logs the reload."""


# A lasting problem is logged again after this time.
_AGAIN_SECONDS: Final = 60.0
# Certificates are backdated by this much, so a larger difference between the clocks makes a new one invalid.
_SKEW_SECONDS: Final = 60.0


class KeeperReport:
    """Metrics and log lines of the keeper; `broke` and `trouble` may be called from any thread."""

    def __init__(self, metrics: Metrics, log: Log, clock: Callable[[], float]) -> None:
        self._metrics = metrics
        self._log = log
        self._clock = clock
        self._leaf: Leaf | None = None
        self._logged_at: dict[str, float] = {}
        self._lock = threading.Lock()

    def update(self, state: State, *, leads: bool, skew: dt.timedelta | None) -> None:
        """Report the state after a step."""
        self._measure(state, leads=leads, skew=skew)
        for text in state.done:
            self._log.event("info", "certificate authorities", did=text)
        if state.leaf is not None and state.leaf is not self._leaf:
            self._leaf = state.leaf
            self._log.event(
                "info",
                "certificate made",
                authority=state.leaf.authority[:16],
                expires=expiry(state.leaf.pair.certificate).isoformat(),
            )
        troubles = [*state.troubles, *([state.waiting] if state.waiting else [])]
        if skew is not None and abs(skew.total_seconds()) > _SKEW_SECONDS:
            troubles.append(
                f"the API server's clock differs by {skew.total_seconds():+.0f} s from this Pod's: synchronise both"
            )
        self.trouble(*troubles)

    def broke(self, reason: str, *, leads: bool) -> None:
        """Report a step that failed."""
        self._metrics.certificate_management(good=False, leads=leads)
        self.trouble(reason)

    def trouble(self, *texts: str) -> None:
        """Log problems, each at most once a minute."""
        with self._lock:
            now = self._clock()
            for text in texts:
                if now - self._logged_at.get(text, -_AGAIN_SECONDS) >= _AGAIN_SECONDS:
                    self._logged_at[text] = now
                    self._log.event("error", "certificates are not kept as they should be", reason=text)
            self._logged_at = {text: at for text, at in self._logged_at.items() if now - at < _AGAIN_SECONDS}

    def _measure(self, state: State, *, leads: bool, skew: dt.timedelta | None) -> None:
        metrics, authorities = self._metrics, state.authorities
        metrics.certificate_management(good=not state.troubles and not state.waiting, leads=leads)
        if skew is not None:
            metrics.clock_skew(skew.total_seconds())
        if authorities is not None:
            metrics.authority(expiry(authorities.active.certificate))
        for configuration in state.live:
            trusted = [_trusted_until(bundle, state.leaf) for bundle in configuration.bundles.values()]
            if trusted:
                metrics.bundle(configuration.kind, min(trusted))


def _trusted_until(bundle: bytes, leaf: Leaf | None) -> float:
    """Return until when a bundle trusts a certificate, in Unix time; 0 if it does not."""
    if leaf is None:
        return 0.0
    return max((expiry(pem).timestamp() for pem in split(bundle) if fingerprint(pem) == leaf.authority), default=0.0)


class Skewed(Protocol):
    """A source of the API server's clock skew."""

    @property
    def clock_skew(self) -> dt.timedelta | None:
        """The API server's clock minus the local clock, a new object for each measurement; None before the first."""


def boot_time() -> float:
    """Return the seconds of a monotonic clock that also counts while the machine is suspended."""
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.clock_gettime(clock)


class ServerClock:
    """Returns the API server's time: its last measured time, continued by a monotonic clock.

    Before the first measurement it returns the time of the local clock.
    """

    def __init__(
        self,
        skewed: Skewed,
        wall: Callable[[], dt.datetime] = wall_clock,
        steady: Callable[[], float] = boot_time,
    ) -> None:
        self._skewed = skewed
        self._wall = wall
        self._steady = steady
        self._measured: dt.timedelta | None = None
        self._server_time = wall()
        self._measured_at = steady()

    def __call__(self) -> dt.datetime:
        """Return the time in UTC."""
        measured = self._skewed.clock_skew
        if measured is None:
            return self._wall()
        if measured is not self._measured:
            self._measured, self._server_time, self._measured_at = measured, self._wall() + measured, self._steady()
        return self._server_time + dt.timedelta(seconds=self._steady() - self._measured_at)


# A single wait does not count the time while the machine is suspended, so longer waits are divided.
_SLICE_SECONDS: Final = 1.0


def wait(
    seconds: float, wake: threading.Event, over: Callable[[], bool], clock: Callable[[], float] = boot_time
) -> None:
    """Wait for `seconds`, until `wake` is set, or until `over` returns true, which is called once a second."""
    end = clock() + seconds
    while (remaining := end - clock()) > 0 and not over():
        if wake.wait(min(remaining, _SLICE_SECONDS)):
            return


# Watches report changes. This interval is for missed changes and for renewals.
_LOOK_AGAIN_SECONDS: Final = (55.0, 65.0)
_TRY_AGAIN_SECONDS: Final = 5.0
# The shortest interval between two steps, to limit the load on API servers.
_SHORTEST_SECONDS: Final = 0.2
_BEAT_SECONDS: Final = 1.0
_SOON_SECONDS: Final = 0.05
_LEAVE_SECONDS: Final = 5.0


def run_keeper(number: int, shared: Shared, keeping: Keeping) -> None:
    """Manage the certificates until a signal ends the keeper; call it in a separate process.

    Raises:
        ClusterError: there is no cluster, or the configuration of the connection is invalid.
    """
    if shared.options.cluster is None:
        raise ClusterError("the certificates of gpugate need a cluster, and none is configured")
    _KeeperProcess(number, shared, keeping, shared.options.cluster).run()


class _KeeperProcess:
    """Runs the keeper and the threads that wake it; the main thread sends heartbeats."""

    def __init__(self, number: int, shared: Shared, keeping: Keeping, cluster: ClusterOptions) -> None:
        shared.log.start()
        shared.metrics.leave_to_others()
        self._number = number
        self._shared = shared
        self._parent = os.getppid()
        self._stopped = threading.Event()
        self._wake = threading.Event()
        # After a restart of the keeper, the workers already have a certificate.
        self._missing = "" if shared.leafs.version else "not read yet"
        self._connection = connect(cluster)
        registration = LiveRegistration(self._connection, keeping.configuration, keeping.namespace)
        secret = NamedSecret(self._connection, keeping.namespace, keeping.secret)
        # The clock counts while the machine is suspended, so a replica that wakes up late has lost its lease.
        self._election = LeaderElection(
            connect(cluster, CALL_SECONDS), keeping.namespace, keeping.lease, own_identity(), Chance(boot_time)
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
        watched = (secret.location, *named_object.configurations(keeping.configuration).values())
        self._watches = [
            NamedWatch(self._connection, location, self._wake.set, self._report_lost_watch) for location in watched
        ]

    def run(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self._stopped.set())
        signal.signal(signal.SIGHUP, lambda *_: self._wake.set())
        runs = [self._keep, self._election.run, *(run.run for run in self._watches)]
        threads = [threading.Thread(target=self._run_until_stopped, args=(run,), daemon=True) for run in runs]
        for thread in threads:
            thread.start()
        while os.getppid() == self._parent:
            missing = self._missing
            self._shared.board.beat(self._number, [missing] if missing else [])
            # Readiness depends on a trusted certificate, so heartbeats are more frequent until there is one.
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

    def _run_until_stopped(self, run: Callable[[threading.Event], None]) -> None:
        """Run until the keeper stops; unreadable credentials or a bug must not end the renewal of certificates."""
        while not self._stopped.is_set():
            try:
                run(self._stopped)
            except Exception as error:  # noqa: BLE001 -- see above
                reason = str(error) if isinstance(error, ClusterError) else f"internal error: {described(error)}"
                self._report.broke(reason, leads=self._election.is_leader)
                self._stopped.wait(_TRY_AGAIN_SECONDS)

    def _keep(self, stopped: threading.Event) -> None:
        while not stopped.is_set():
            self._wake.clear()
            leading = self._leading()
            pause = self._step()
            wait(pause, self._wake, lambda leading=leading: stopped.is_set() or self._leading() != leading)  # type: ignore[misc] # bound now

    def _leading(self) -> tuple[bool, str]:
        """Return whether this replica is the leader, and the problem with its Lease; a new leader starts a step."""
        return self._election.is_leader, self._election.trouble

    def _report_lost_watch(self, reason: str) -> None:
        # Watches also end when the keeper stops, which is not a problem.
        if not self._stopped.is_set():
            self._report.trouble(reason)
            # Start a step, because the watch does not report changes now.
            self._wake.set()

    def _put(self, state: State) -> None:
        if state.leaf is not None and state.leaf is not self._leaf:
            self._leaf = state.leaf
            self._shared.leafs.put(state.leaf.pair)

    def _step(self) -> float:
        """Run a step of the keeper; return the seconds until the next one, unless a change comes first."""
        # Renewal comes first, so that a slow API server does not delay it.
        self._put(self._keeper.renew())
        state = self._keeper.step()
        self._put(state)
        if self._missing:
            # Readiness is never revoked, because an unready webhook would not solve any problem.
            self._missing = state.waiting
        if self._election.trouble:
            state = replace(state, troubles=(*state.troubles, self._election.trouble))
        self._report.update(state, leads=self._election.is_leader, skew=self._connection.clock_skew)
        self._drift.update(state.authorities)
        pause = _TRY_AGAIN_SECONDS if state.troubles else random.uniform(*_LOOK_AGAIN_SECONDS)  # noqa: S311 -- as above
        if state.due is not None:
            pause = min(pause, (state.due - self._now()).total_seconds())
        return max(pause, _TRY_AGAIN_SECONDS if state.troubles else _SHORTEST_SECONDS)
