"""Elect the replica that may write, by a Lease, with the algorithm of client-go.

Source: k8s.io/client-go tools/leaderelection, v0.36. The times in the record are not compared with any clock. A candidate
takes over the Lease when, by its own monotonic clock, the record has not changed for the duration of the Lease. The
holder stops earlier, counted from when it sent its last successful write. So at most one replica holds the Lease unless
one clock runs 1.5 times as fast as another.

This is stricter than client-go in three ways. A client-go candidate takes a deleted Lease at once, its holder counts from
the response, and it accepts a duration of zero.

An election does not fence: a process can be paused between the check and the write. Each write must contain a resource
version.
"""

from __future__ import annotations

import datetime as dt
import os
import socket
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec

from gpugate.policies.engine.json_text import read_json
from gpugate.webhook.cluster import named_object
from gpugate.webhook.cluster.backoff import Chance
from gpugate.webhook.cluster.connection import wall_clock
from gpugate.webhook.cluster.errors import ApiError, CallError
from gpugate.webhook.cluster.named_object import build_metadata, explain_error, read_or_none

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from gpugate.webhook.cluster.connection import Connection
    from gpugate.webhook.cluster.named_object import Verb

_MAX_TRANSITIONS: Final = 2**31 - 1
# Bounds the duration in a record that another version of gpugate, or a user, wrote.
_MAX_SECONDS: Final = 300


class Spec(msgspec.Struct, rename="camel", frozen=True):
    """The spec of a Lease; its times are text, because they are never compared with a clock."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None

    @property
    def holder(self) -> str:
        """The identity of the holder; empty if the Lease is not held."""
        return self.holder_identity or ""

    def duration(self, least: float) -> float:
        """Return the seconds after an observed change in which no other candidate may take the Lease."""
        return min(max(least, self.lease_duration_seconds or 0), _MAX_SECONDS)


class _Stored(msgspec.Struct):
    metadata: dict[str, Any]
    spec: Spec = Spec()


_LEASES: Final = msgspec.json.Decoder(_Stored)


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """A stored Lease: its metadata, which other clients own except for the resource version, and its spec."""

    metadata: dict[str, Any]
    spec: Spec

    @property
    def version(self) -> str:
        """The resource version; it differs after every change of the record."""
        return str(self.metadata["resourceVersion"])

    @classmethod
    def read(cls, answer: bytes) -> LeaseRecord:
        """Decode the response of an API server.

        Raises:
            msgspec.DecodeError: it is not a Lease.
        """
        stored = read_json(_LEASES.decode, answer)
        return cls(stored.metadata, stored.spec)


def lease_object(spec: Spec, metadata: dict[str, Any]) -> dict[str, Any]:
    """Build the Lease to send."""
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": metadata,
        "spec": msgspec.to_builtins(spec),
    }


def build_holder_spec(before: Spec | None, identity: str, seconds: float, now: dt.datetime) -> Spec:
    """Build the spec for a holder that creates, takes over or renews the Lease."""
    time = _micro_time(now)
    if before is None:
        return Spec(identity, int(seconds), time, time, 0)
    transitions = max(before.lease_transitions or 0, 0)
    if before.holder != identity:
        return Spec(identity, int(seconds), time, time, min(transitions + 1, _MAX_TRANSITIONS))
    return Spec(identity, int(seconds), before.acquire_time or time, time, transitions)


def build_released_spec(before: Spec, now: dt.datetime) -> Spec:
    """Build the spec for a holder that releases the Lease: without a holder, so that candidates need not wait."""
    time = _micro_time(now)
    return Spec("", 1, time, time, before.lease_transitions)


def _micro_time(moment: dt.datetime) -> str:
    # MicroTime of k8s.io/apimachinery meta/v1: RFC 3339 with six digits.
    return f"{moment:%Y-%m-%dT%H:%M:%S.%f}Z"


LEASE_SECONDS: Final = 15.0
RENEW_SECONDS: Final = 10.0
RETRY_SECONDS: Final = 2.0
# The read timeout for the connection of an election; it leaves time for a second attempt.
CALL_SECONDS: Final = RENEW_SECONDS / 2
# wait.Jitter with a factor of 1.2: up to 2.2 times the base.
_CANDIDATES_WAIT: Final = (RETRY_SECONDS, RETRY_SECONDS * 2.2)


def own_identity() -> str:
    """Return a unique identity for this process that begins with the name of its Pod."""
    return f"{socket.gethostname()}_{os.getpid()}_{uuid.uuid4()}"


class LeaderElection:
    """One candidate: `step` makes one attempt; `is_leader` needs no call and works in any thread."""

    def __init__(
        self,
        connection: Connection,
        namespace: str,
        name: str,
        identity: str,
        chance: Chance | None = None,
        now: Callable[[], dt.datetime] = wall_clock,
    ) -> None:
        self.location = named_object.lease(namespace, name)
        self.identity = identity
        # Why the last step failed; empty if it succeeded.
        self.trouble = ""
        self._connection = connection
        self._chance = chance or Chance()
        self._now = now
        self._verb: Verb = "get"
        self._stored: LeaseRecord | None = None
        # The metadata and the holder of the last observed Lease.
        self._metadata: dict[str, Any] | None = None
        self._holder = ""
        # The last observed resource version: empty if there was no Lease, None before the first read.
        self._version: str | None = None
        self._free_at = float("-inf")
        # When the last successful write as holder was sent.
        self._renewed_at = float("-inf")

    @property
    def is_leader(self) -> bool:
        """Whether this candidate may write now."""
        return self._chance.clock() - self._renewed_at < RENEW_SECONDS

    @property
    def holder(self) -> str:
        """The holder of the Lease at the last read; empty if there was none."""
        return self._holder

    def step(self) -> float:
        """Take, renew or read the Lease; return how many seconds to wait before the next step."""
        self.trouble, retry_after = "", 0.0
        try:
            self._attempt()
        except ApiError as error:
            retry_after = error.retry_after
            if error.code != 409:  # a conflict is normal: another candidate wrote first
                self.trouble = explain_error(error, self._verb, self.location)
        except CallError as error:
            self.trouble = str(error)
        except msgspec.DecodeError:
            self.trouble = f"the response to {self._verb} {self.location} is not from an API server"
        wait = RETRY_SECONDS if self.is_leader else self._chance.between(_CANDIDATES_WAIT)
        return max(wait, min(retry_after, RENEW_SECONDS))

    def run(self, stopped: threading.Event) -> None:
        """Take steps until `stopped` is set, then release the Lease."""
        pause = 0.0
        while not stopped.wait(pause):
            pause = self.step()
        self.release()

    def release(self) -> None:
        """Give up the Lease, so that another candidate can take it at once; if the call fails, candidates must wait."""
        self._renewed_at = float("-inf")
        if self._holder != self.identity:
            return
        try:
            record = self._read()
            if record is not None and record.spec.holder == self.identity:
                self._send(record, build_released_spec(record.spec, self._now()))
        except (CallError, msgspec.DecodeError) as error:
            self.trouble = f"{self.location} not released: {error}"

    def _attempt(self) -> None:
        if self.is_leader and self._stored is not None:
            try:
                self._acquire(self._stored)
            except ApiError as error:
                if error.code not in {404, 409}:
                    raise
            else:
                return
        record = self._read()
        self._observe(record)
        if self._holder not in {"", self.identity}:
            self._renewed_at = float("-inf")
        free = self._chance.clock() >= self._free_at or (record is not None and not self._holder)
        if free or self.is_leader or self._holder == self.identity:
            self._acquire(record)

    def _read(self) -> LeaseRecord | None:
        self._verb = "get"
        answer = read_or_none(self._connection, self.location)
        return None if answer is None else LeaseRecord.read(answer)

    def _acquire(self, record: LeaseRecord | None) -> None:
        now = self._now()
        spec = build_holder_spec(record.spec if record else None, self.identity, LEASE_SECONDS, now)
        if record and spec == record.spec:
            # If the clock did not advance, the record would not change, and neither would its resource version, by
            # which candidates see a renewal.
            spec = build_holder_spec(record.spec, self.identity, LEASE_SECONDS, now + dt.timedelta(microseconds=1))
        started = self._chance.clock()
        self._send(record, spec)
        self._renewed_at = started

    def _send(self, record: LeaseRecord | None, spec: Spec) -> None:
        # The stored Lease is unknown until the response.
        self._stored = None
        if record is None:
            self._verb = "create"
            lease = lease_object(spec, build_metadata(self.location, self._metadata))
            answer = self._connection.create(self.location.collection, lease)
        else:
            self._verb = "update"
            answer = self._connection.replace(self.location.path, lease_object(spec, record.metadata))
        self._stored = LeaseRecord.read(answer)
        self._observe(self._stored)

    def _observe(self, record: LeaseRecord | None) -> None:
        version = record.version if record else ""
        self._metadata = record.metadata if record else self._metadata
        if version == self._version:
            return
        # Before the first read, a missing Lease has no holder. Later, it may have been deleted while a holder has it.
        new = self._version is None and record is None
        self._version = version
        self._holder = record.spec.holder if record else ""
        duration = record.spec.duration(LEASE_SECONDS) if record else LEASE_SECONDS
        self._free_at = float("-inf") if new else self._chance.clock() + duration
