"""Elects which of several replicas may write, by a Lease, as client-go does.

Source: k8s.io/client-go tools/leaderelection, v0.36. Nobody compares the times in the record: a candidate takes the Lease
over when by its own monotonic clock the record has not changed for as long as a Lease lasts. Its holder stops earlier,
counted from when it sent the last write that succeeded. So at most one holds it while no clock runs half as fast again as
another. Three things are stricter than client-go, whose candidates take a Lease at once that was deleted, whose holder
counts from the answer, and which believes a duration of zero.

An election does not fence: a process can be stopped between asking and writing. Each write must carry a resource version.
"""

from __future__ import annotations

import datetime as dt
import os
import socket
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec

from gpugate.webhook.cluster import named_object
from gpugate.webhook.cluster.backoff import Chance
from gpugate.webhook.cluster.connection import wall_clock
from gpugate.webhook.cluster.errors import ApiError, CallError
from gpugate.webhook.cluster.named_object import made_metadata, read_or_none, why

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from gpugate.webhook.cluster.connection import Connection
    from gpugate.webhook.cluster.named_object import Verb

_LARGEST: Final = 2**31 - 1
# What others wrote may be older or newer than we are, or by hand.
_LONGEST_SECONDS: Final = 300


class Spec(msgspec.Struct, rename="camel", frozen=True):
    """What is recorded; times are texts, which are never compared with a clock."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None

    @property
    def holder(self) -> str:
        """Who holds the Lease; empty for nobody."""
        return self.holder_identity or ""

    def lasts(self, least: float) -> float:
        """For how many seconds after it was seen to change nobody else may take the Lease."""
        return min(max(least, self.lease_duration_seconds or 0), _LONGEST_SECONDS)


class _Stored(msgspec.Struct):
    metadata: dict[str, Any]
    spec: Spec = Spec()


_LEASES: Final = msgspec.json.Decoder(_Stored)


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """A stored Lease: its metadata, of which all but the resource version is other people's, and what is recorded."""

    metadata: dict[str, Any]
    spec: Spec

    @property
    def version(self) -> str:
        """Its resource version; another one means that the record changed."""
        return str(self.metadata["resourceVersion"])

    @classmethod
    def read(cls, answer: bytes) -> LeaseRecord:
        """Read the answer of an API server.

        Raises:
            msgspec.DecodeError: it is no Lease.
        """
        stored = _LEASES.decode(answer)
        return cls(stored.metadata, stored.spec)


def lease_object(spec: Spec, metadata: dict[str, Any]) -> dict[str, Any]:
    """Return a Lease to send."""
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": metadata,
        "spec": msgspec.to_builtins(spec),
    }


def taken(before: Spec | None, identity: str, seconds: float, now: dt.datetime) -> Spec:
    """Return what its holder records: the first time, after somebody else, or again."""
    time = _micro_time(now)
    if before is None:
        return Spec(identity, int(seconds), time, time, 0)
    transitions = max(before.lease_transitions or 0, 0)
    if before.holder != identity:
        return Spec(identity, int(seconds), time, time, min(transitions + 1, _LARGEST))
    return Spec(identity, int(seconds), before.acquire_time or time, time, transitions)


def released(before: Spec, now: dt.datetime) -> Spec:
    """Return what a holder records who leaves: nobody has it, so that the next need not wait."""
    time = _micro_time(now)
    return Spec("", 1, time, time, before.lease_transitions)


def _micro_time(moment: dt.datetime) -> str:
    # MicroTime of k8s.io/apimachinery meta/v1: RFC 3339 with six digits.
    return f"{moment:%Y-%m-%dT%H:%M:%S.%f}Z"


LEASE_SECONDS: Final = 15.0
RENEW_SECONDS: Final = 10.0
RETRY_SECONDS: Final = 2.0
# What an election's connection should wait for an answer, so that there is time for another try.
CALL_SECONDS: Final = RENEW_SECONDS / 2
# wait.Jitter with a factor of 1.2: up to 2.2 times as long.
_CANDIDATES_WAIT: Final = (RETRY_SECONDS, RETRY_SECONDS * 2.2)


def own_identity() -> str:
    """Return a name that no other process ever has, and that says which Pod it is."""
    return f"{socket.gethostname()}_{os.getpid()}_{uuid.uuid4()}"


class LeaderElection:
    """One candidate: `step` makes one try, `held` answers from any thread without a call."""

    def __init__(
        self,
        connection: Connection,
        namespace: str,
        name: str,
        identity: str,
        chance: Chance | None = None,
        now: Callable[[], dt.datetime] = wall_clock,
    ) -> None:
        self.place = named_object.lease(namespace, name)
        self.identity = identity
        # Why the last step failed; empty when it did not.
        self.trouble = ""
        self._connection = connection
        self._chance = chance or Chance()
        self._now = now
        self._verb: Verb = "get"
        self._stored: LeaseRecord | None = None
        # Of the Lease as it was seen last.
        self._metadata: dict[str, Any] | None = None
        self._holder = ""
        # The resource version seen last: empty when there was no Lease, None before the first look.
        self._version: str | None = None
        self._free_at = float("-inf")
        # When the last write was sent that made us the holder.
        self._renewed_at = float("-inf")

    @property
    def held(self) -> bool:
        """Whether this candidate may write now."""
        return self._chance.clock() - self._renewed_at < RENEW_SECONDS

    @property
    def holder(self) -> str:
        """Who held the Lease when it was last seen; empty for nobody."""
        return self._holder

    def step(self) -> float:
        """Take, renew or look at the Lease; return how many seconds to wait before the next step."""
        self.trouble, asked_to_wait = "", 0.0
        try:
            self._attempt()
        except ApiError as error:
            asked_to_wait = error.retry_after
            if error.code != 409:  # somebody else was faster
                self.trouble = why(error, self._verb, self.place)
        except CallError as error:
            self.trouble = str(error)
        except msgspec.DecodeError:
            self.trouble = f"the answer to {self._verb} {self.place} is none of an API server"
        wait = RETRY_SECONDS if self.held else self._chance.between(_CANDIDATES_WAIT)
        return max(wait, min(asked_to_wait, RENEW_SECONDS))

    def run(self, stopped: threading.Event) -> None:
        """Take steps until `stopped` is set, then release the Lease."""
        pause = 0.0
        while not stopped.wait(pause):
            pause = self.step()
        self.release()

    def release(self) -> None:
        """Stop holding the Lease and let others have it at once; without an answer they have to wait."""
        self._renewed_at = float("-inf")
        if self._holder != self.identity:
            return
        try:
            answer = self._read()
            if answer is not None and answer.spec.holder == self.identity:
                self._send(answer, released(answer.spec, self._now()))
        except (CallError, msgspec.DecodeError) as error:
            self.trouble = f"{self.place} is not released: {error}"

    def _attempt(self) -> None:
        if self.held and self._stored is not None:
            try:
                self._take(self._stored)
            except ApiError as error:
                if error.code not in {404, 409}:
                    raise
            else:
                return
        found = self._read()
        self._see(found)
        if self._holder not in {"", self.identity}:
            self._renewed_at = float("-inf")
        free = self._chance.clock() >= self._free_at or (found is not None and not self._holder)
        if free or self.held or self._holder == self.identity:
            self._take(found)

    def _read(self) -> LeaseRecord | None:
        self._verb = "get"
        answer = read_or_none(self._connection, self.place)
        return None if answer is None else LeaseRecord.read(answer)

    def _take(self, found: LeaseRecord | None) -> None:
        now = self._now()
        spec = taken(found.spec if found else None, self.identity, LEASE_SECONDS, now)
        if found and spec == found.spec:
            # A clock that stands still: without a change there would be no new resource version for others to see.
            spec = taken(found.spec, self.identity, LEASE_SECONDS, now + dt.timedelta(microseconds=1))
        started = self._chance.clock()
        self._send(found, spec)
        self._renewed_at = started

    def _send(self, found: LeaseRecord | None, spec: Spec) -> None:
        # Unknown until there is an answer.
        self._stored = None
        if found is None:
            self._verb = "create"
            made = lease_object(spec, made_metadata(self.place, self._metadata))
            answer = self._connection.create(self.place.collection, made)
        else:
            self._verb = "update"
            answer = self._connection.replace(self.place.path, lease_object(spec, found.metadata))
        self._stored = LeaseRecord.read(answer)
        self._see(self._stored)

    def _see(self, found: LeaseRecord | None) -> None:
        version = found.version if found else ""
        self._metadata = found.metadata if found else self._metadata
        if version == self._version:
            return
        # At the very beginning nobody can have a Lease that is not there; later it may have been deleted under a holder.
        new = self._version is None and found is None
        self._version = version
        self._holder = found.spec.holder if found else ""
        lasts = found.spec.lasts(LEASE_SECONDS) if found else LEASE_SECONDS
        self._free_at = float("-inf") if new else self._chance.clock() + lasts
