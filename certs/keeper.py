"""Renew the serving certificate of one replica and, while this replica leads, the CAs of all replicas.

Each step reads the current state and makes a few writes towards the intended state. A step can stop between two writes:
the next leader continues from the stored state.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from gpugate.certs import authorities as authority_secret
from gpugate.certs.authorities import CorruptSecretError
from gpugate.certs.leaf import choose_leaf
from gpugate.certs.plan import DISTRUST, ROTATE, Observed, Publish, Wait, Write, find_outdated, plan
from gpugate.certs.protocols import ClusterFailure, ConflictError, StoredSecret

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Callable, Sequence

    from gpugate.certs.authorities import Authorities, Periods
    from gpugate.certs.leaf import Leaf
    from gpugate.certs.protocols import Leadership, LiveConfiguration, Registration, SecretStore

# An empty Secret needs five writes until the next CA is published. Other replicas may write in between.
_MAX_STEPS: Final = 20
_NO_AUTHORITY: Final = "the Secret of the certificate authorities does not exist yet: the leading replica creates it"


@dataclass(frozen=True, slots=True)
class State:
    """The state of a keeper after a step.

    Attributes:
        leaf: the serving certificate; None before there is a CA.
        authorities: the CAs that were read last; None before the first successful read.
        live: the webhook configurations that were read last.
        waiting: why no certificate can be served, or why clients do not trust it; empty if they do.
        troubles: the errors of the last step.
        done: the writes of the last step.
        due: when the next step is due even without a change; None if unknown.
    """

    leaf: Leaf | None = None
    authorities: Authorities | None = None
    live: Sequence[LiveConfiguration] = ()
    waiting: str = _NO_AUTHORITY
    troubles: tuple[str, ...] = ()
    done: tuple[str, ...] = ()
    due: dt.datetime | None = None


@dataclass(frozen=True, slots=True)
class Cluster:
    """The objects that a keeper reads and writes, and the election that allows it to write."""

    secret: SecretStore
    registration: Registration
    leadership: Leadership


class Keeper:
    """The keeper of one replica; one thread calls `step` repeatedly."""

    def __init__(
        self,
        cluster: Cluster,
        names: Sequence[str],
        periods: Periods,
        now: Callable[[], dt.datetime],
        jitter: Callable[[], float],
    ) -> None:
        """Renew certificates for `names`; `jitter` returns a number from -1 to 1."""
        self._cluster = cluster
        self._names = names
        self._periods = periods
        self._now = now
        self._jitter = jitter
        self._state = State()

    @property
    def state(self) -> State:
        """The state after the last step."""
        return self._state

    def renew(self) -> State:
        """Renew the certificate if it is due, from the last state; no call to the API server can delay it."""
        self._state = replace(self._state, troubles=(), done=(), due=None)
        self._serve()
        return self._state

    def step(self) -> State:
        """Make the writes that are due, and renew; objects that are unavailable keep their last state."""
        self._state = replace(self._state, troubles=(), done=(), due=None)
        try:
            self._converge()
        except ClusterFailure as failure:
            self._add_trouble(str(failure))
        self._serve()
        return self._state

    def _converge(self) -> None:
        for _ in range(_MAX_STEPS):
            try:
                stored, authorities = self._read_cluster()
                if not self._cluster.leadership.is_leader or not self._take_step(stored, authorities):
                    return
            except ConflictError:
                continue  # another client wrote first, so the new state is read

    def _read_cluster(self) -> tuple[StoredSecret | None, Authorities | None]:
        """Read the Secret and the configurations, and keep them as the last state."""
        stored = self._cluster.secret.read()
        authorities = self._decode_secret(stored)
        if authorities is not None:
            self._state = replace(self._state, authorities=authorities)
        self._state = replace(self._state, live=tuple(self._cluster.registration.read()))
        return stored, authorities

    def _decode_secret(self, stored: StoredSecret | None) -> Authorities | None:
        try:
            # The chart creates the Secret without content.
            return authority_secret.decode(stored.data) if stored is not None and stored.data else None
        except CorruptSecretError as error:
            self._add_trouble(f"the Secret of the certificate authorities is unusable: {error}")
            return None

    def _take_step(self, stored: StoredSecret | None, authorities: Authorities | None) -> bool:
        """Take the next step of the plan; return whether another step may follow."""
        requests = {k: v for k, v in (stored.annotations if stored else {}).items() if k in {ROTATE, DISTRUST}}
        observed = Observed(authorities, self._state.live, requests, remembered=self._state.authorities)
        step = plan(observed, self._periods, self._now())
        if isinstance(step, Wait):
            self._schedule(step.until)
            return False
        if isinstance(step, Publish):
            self._publish(step)
            return True
        try:
            self._write(stored, step)
        except ConflictError:
            raise
        except ClusterFailure as failure:
            # A lost bundle can be restored even if the Secret cannot be written.
            self._add_trouble(str(failure))
            if authorities is not None:
                self._publish(Publish(find_outdated(self._state.live, authorities.bundle), authorities.bundle))
            return False
        return True

    def _write(self, stored: StoredSecret | None, step: Write) -> None:
        data = authority_secret.encode(step.authorities)
        if stored is None:
            self._cluster.secret.create(data)
        else:
            self._cluster.secret.replace(data, stored.version)
        self._add_done(step.reason)

    def _publish(self, step: Publish) -> None:
        for configuration in step.configurations:
            # Another replica may have become the leader during the calls before.
            if self._cluster.leadership.is_leader:
                self._cluster.registration.publish(configuration, step.bundle)
                self._add_done(
                    f"published the CA bundle in the {configuration.kind} (CAs: {step.bundle.count(b'BEGIN')})"
                )

    def _serve(self) -> None:
        authorities = self._state.authorities
        if authorities is None:
            return
        try:
            choice = choose_leaf(
                self._state.leaf,
                authorities,
                self._state.live,
                self._names,
                self._periods,
                self._now(),
                jitter=self._jitter(),
            )
        except ValueError as error:
            self._add_trouble(f"cannot create a serving certificate: {error}")
            return
        self._state = replace(self._state, leaf=choice.leaf, waiting=choice.trouble)
        self._schedule(choice.leaf.renew_at)

    def _schedule(self, when: dt.datetime) -> None:
        self._state = replace(self._state, due=min(self._state.due or when, when))

    def _add_trouble(self, text: str) -> None:
        self._state = replace(self._state, troubles=(*self._state.troubles, text))

    def _add_done(self, text: str) -> None:
        self._state = replace(self._state, done=(*self._state.done, text))
