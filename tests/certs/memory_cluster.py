"""An in-memory cluster: one Secret, two webhook configurations, and API servers with a delayed view."""

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
    """The process was killed before a write."""


@dataclass
class MemoryCluster:
    """The state that all replicas share; `fail` is called before each call with its name, and may raise.

    `published` contains every state of a configuration: its time, and the bundle of each entry.
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
        """Return every bundle in an API server that has seen all changes up to a time."""
        bundles = []
        for states in self.published.values():
            known = [state for since, state in states if since <= at]
            bundles += list(known[-1].values()) if known else []
        return bundles


@dataclass
class Line:
    """The connection of one replica to the API server."""

    cluster: MemoryCluster
    cut_until: dt.datetime = START

    def call(self, call: str) -> None:
        if self.cluster.time < self.cut_until:
            unreachable(call)
        self.cluster.fail(call)


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
            raise ConflictError("it exists")
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


def forbidding(*calls: str) -> Callable[[str], None]:
    """Make every call of these kinds fail."""

    def fail(call: str) -> None:
        if call in calls:
            raise ClusterFailure(f"gpugate may not {call}")

    return fail
