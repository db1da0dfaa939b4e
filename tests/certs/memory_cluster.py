"""A cluster in memory: one Secret, two webhook configurations, and API servers that hear of changes late."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpugate.certs.protocols import ClusterFailure, ConflictError, LiveConfiguration, StoredSecret

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

START = dt.datetime(2026, 3, 1, tzinfo=dt.UTC)
ENTRIES = {
    "MutatingWebhookConfiguration": ("pods.mutate.gpugate.dev",),
    "ValidatingWebhookConfiguration": ("pods.validate.gpugate.dev", "pools.validate.gpugate.dev"),
}


class KilledError(Exception):
    """The process that wanted to write was killed."""


@dataclass
class MemoryCluster:
    """What all replicas share; `fail` may raise before a write, whose name it is given.

    `published` is every state that a configuration was in: since when, and the bundle of each entry.
    """

    time: dt.datetime = START
    secret: StoredSecret | None = None
    live: dict[str, dict[str, bytes]] = field(default_factory=dict)
    published: dict[str, list[tuple[dt.datetime, Mapping[str, bytes]]]] = field(default_factory=dict)
    fail: Callable[[str], None] = lambda _: None
    revision: int = 0

    def register(self) -> None:
        for kind, entries in ENTRIES.items():
            self.set_bundles(kind, dict.fromkeys(entries, b""))

    def set_bundles(self, kind: str, bundles: Mapping[str, bytes]) -> None:
        self.live[kind] = dict(bundles)
        self.published.setdefault(kind, []).append((self.time, dict(bundles)))

    def unregister(self, kind: str) -> None:
        del self.live[kind]

    def now(self) -> dt.datetime:
        return self.time

    def wait(self, **time: float) -> None:
        self.time += dt.timedelta(**time)

    def annotate(self, key: str, value: str) -> None:
        assert self.secret
        self.store(self.secret.data, {**self.secret.annotations, key: value})

    def store(self, data: Mapping[str, bytes], annotations: Mapping[str, str]) -> StoredSecret:
        self.revision += 1
        self.secret = StoredSecret(dict(data), str(self.revision), dict(annotations))
        return self.secret

    def bundles_known(self, at: dt.datetime) -> list[bytes]:
        """Return every bundle that an API server uses which heard of everything up to a time."""
        found = []
        for states in self.published.values():
            known = [state for since, state in states if since <= at]
            found += list(known[-1].values()) if known else []
        return found


@dataclass
class Line:
    """The way of one replica to the API server."""

    cluster: MemoryCluster
    cut_until: dt.datetime = START

    def call(self, what: str) -> None:
        if self.cluster.time < self.cut_until:
            unreachable(what)
        self.cluster.fail(what)


@dataclass
class MemorySecret:
    cluster: MemoryCluster
    line: Line

    def read(self) -> StoredSecret | None:
        self.line.call("read")
        return self.cluster.secret

    def create(self, data: Mapping[str, bytes]) -> StoredSecret:
        self.line.call("secret")
        if self.cluster.secret is not None:
            raise ConflictError("there is one")
        return self.cluster.store(data, {})

    def replace(self, data: Mapping[str, bytes], version: str) -> StoredSecret:
        self.line.call("secret")
        if self.cluster.secret is None or self.cluster.secret.version != version:
            raise ConflictError("it changed")
        return self.cluster.store(data, self.cluster.secret.annotations)


@dataclass
class MemoryRegistration:
    cluster: MemoryCluster
    line: Line

    def read(self) -> Sequence[LiveConfiguration]:
        self.line.call("read")
        return [
            LiveConfiguration(kind, dict(bundles), str(len(self.cluster.published[kind])))
            for kind, bundles in self.cluster.live.items()
        ]

    def publish(self, configuration: LiveConfiguration, bundle: bytes) -> None:
        self.line.call("publish")
        if self.cluster.live.get(configuration.kind) != configuration.bundles:
            raise ConflictError("it changed")
        self.cluster.set_bundles(configuration.kind, dict.fromkeys(configuration.bundles, bundle))


@dataclass
class Leading:
    is_leader: bool = True


def unreachable(_: str) -> None:
    raise ClusterFailure("the API server cannot be reached")


def forbidding(*whats: str) -> Callable[[str], None]:
    """Let every call of these kinds fail."""

    def fail(what: str) -> None:
        if what in whats:
            raise ClusterFailure(f"gpugate may not {what}")

    return fail
