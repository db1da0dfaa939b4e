"""Keeps the certificates of one replica, and, while it leads, the authorities of all of them.

Every step reads what there is, takes no more than a few writes to bring it to where it should be, and can stop between any
two: whoever comes next goes on from what was stored.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from gpugate.certs import authorities as authority_secret
from gpugate.certs.authorities import CorruptSecretError
from gpugate.certs.leaf import choose
from gpugate.certs.plan import DISTRUST, ROTATE, Publish, Rest, Seen, Write, lacking, plan
from gpugate.certs.protocols import ChangedMeanwhile, ClusterFailure, StoredSecret

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Callable, Sequence

    from gpugate.certs.authorities import Authorities, Periods
    from gpugate.certs.leaf import Leaf
    from gpugate.certs.protocols import Leadership, Registered, Registration, SecretStore

# From nothing at all to a published next authority it takes five writes; others may write in between.
_MOST_STEPS: Final = 20
_NO_AUTHORITY: Final = "the Secret of the certificate authorities does not exist yet: the replica that leads makes it"


@dataclass(frozen=True, slots=True)
class State:
    """How things are after a step.

    Attributes:
        leaf: what to serve with, None before there is an authority.
        authorities: what was read last, None before anything was.
        live: the webhook configurations as they were read last.
        waiting: why clients do not trust the leaf, or there is none; empty if they do.
        troubles: what went wrong in the last step, in words.
        done: what was written in the last step, in words.
        due: when there is something to do even if nothing changes; None if nothing is known of that.
    """

    leaf: Leaf | None = None
    authorities: Authorities | None = None
    live: Sequence[Registered] = ()
    waiting: str = _NO_AUTHORITY
    troubles: tuple[str, ...] = ()
    done: tuple[str, ...] = ()
    due: dt.datetime | None = None


@dataclass(frozen=True, slots=True)
class Cluster:
    """What a keeper reads and writes, and whether it may write."""

    secret: SecretStore
    registration: Registration
    leadership: Leadership


class Keeper:
    """The keeper of one replica; `step` is called again and again, by one thread."""

    def __init__(
        self,
        cluster: Cluster,
        names: Sequence[str],
        periods: Periods,
        now: Callable[[], dt.datetime],
        jitter: Callable[[], float],
    ) -> None:
        """Keep certificates for `names`; `jitter` returns a number from -1 to 1."""
        self._cluster = cluster
        self._names = names
        self._periods = periods
        self._now = now
        self._jitter = jitter
        self._state = State()

    @property
    def state(self) -> State:
        """How things are."""
        return self._state

    def renew(self) -> State:
        """Renew the certificate if that is due, by what was read last: whatever the cluster does, that takes no time."""
        self._state = replace(self._state, troubles=(), done=(), due=None)
        self._serve()
        return self._state

    def step(self) -> State:
        """Bring things on, as far as the cluster lets us; what cannot be reached is taken as it was read last."""
        self._state = replace(self._state, troubles=(), done=(), due=None)
        try:
            self._converge()
        except ClusterFailure as failure:
            self._trouble(str(failure))
        self._serve()
        return self._state

    def _converge(self) -> None:
        for _ in range(_MOST_STEPS):
            try:
                stored, found = self._look()
                if not self._cluster.leadership.held or not self._advance(stored, found):
                    return
            except ChangedMeanwhile:
                continue  # somebody else was faster; what they did is looked at now

    def _look(self) -> tuple[StoredSecret | None, Authorities | None]:
        """Read everything, and remember it."""
        stored = self._cluster.secret.read()
        found = self._read(stored)
        if found is not None:
            self._state = replace(self._state, authorities=found)
        self._state = replace(self._state, live=tuple(self._cluster.registration.read()))
        return stored, found

    def _read(self, stored: StoredSecret | None) -> Authorities | None:
        try:
            # An empty one is what an installation begins with.
            return authority_secret.read(stored.data) if stored is not None and stored.data else None
        except CorruptSecretError as error:
            self._trouble(f"the Secret of the certificate authorities cannot be used: {error}")
            return None

    def _advance(self, stored: StoredSecret | None, found: Authorities | None) -> bool:
        """Take one step, if there is one to take."""
        requests = {k: v for k, v in (stored.annotations if stored else {}).items() if k in {ROTATE, DISTRUST}}
        seen = Seen(found, self._state.live, requests, remembered=self._state.authorities)
        step = plan(seen, self._periods, self._now())
        if isinstance(step, Rest):
            self._due(step.until)
            return False
        if isinstance(step, Publish):
            self._publish(step)
            return True
        try:
            self._write(stored, step)
        except ChangedMeanwhile:
            raise
        except ClusterFailure as failure:
            # Where the Secret cannot be written, a bundle that was lost can still be put back.
            self._trouble(str(failure))
            if found is not None:
                self._publish(Publish(lacking(self._state.live, found.bundle), found.bundle))
            return False
        return True

    def _write(self, stored: StoredSecret | None, step: Write) -> None:
        data = authority_secret.written(step.authorities)
        if stored is None:
            self._cluster.secret.create(data)
        else:
            self._cluster.secret.replace(data, stored.version)
        self._done(step.reason)

    def _publish(self, step: Publish) -> None:
        for configuration in step.configurations:
            # Reading and writing takes time, in which another may have begun to lead.
            if self._cluster.leadership.held:
                self._cluster.registration.publish(configuration, step.bundle)
                self._done(f"{configuration.kind} has the bundle of {step.bundle.count(b'BEGIN')} authorities")

    def _serve(self) -> None:
        authorities = self._state.authorities
        if authorities is None:
            return
        try:
            choice = choose(
                self._state.leaf,
                authorities,
                self._state.live,
                self._names,
                self._periods,
                self._now(),
                jitter=self._jitter(),
            )
        except ValueError as error:
            self._trouble(f"no certificate can be made: {error}")
            return
        self._state = replace(self._state, leaf=choice.leaf, waiting=choice.trouble)
        self._due(choice.leaf.renew_at)

    def _due(self, when: dt.datetime) -> None:
        self._state = replace(self._state, due=min(self._state.due or when, when))

    def _trouble(self, text: str) -> None:
        self._state = replace(self._state, troubles=(*self._state.troubles, text))

    def _done(self, text: str) -> None:
        self._state = replace(self._state, done=(*self._state.done, text))
