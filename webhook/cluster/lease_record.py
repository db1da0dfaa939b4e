"""A Lease as candidates read and write it (`k8s.io/api` coordination/v1 types.go, v0.36)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    import datetime as dt

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
