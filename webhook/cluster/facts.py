"""What is known of a cluster, for policies; kept up to date behind their backs."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from gpugate.policies.sdk.facts import Unavailable
from gpugate.webhook.cluster.discovery import resource_name
from gpugate.webhook.cluster.objects import Objects

if TYPE_CHECKING:
    from collections.abc import Hashable

    from gpugate.policies.sdk.facts import Fact
    from gpugate.policies.sdk.kinds import Kind


class ClusterFacts:
    """Other objects of the cluster, from memory.

    While the API server is not to be reached, policies see what was there last, as complete as it was: decisions go
    on, and the age of the facts is a metric. Readers take no lock: what is held of a kind is one immutable value,
    replaced by another.
    """

    def __init__(self) -> None:
        self._held: dict[Kind, Objects | Unavailable] = {}
        self._writers: dict[Kind, Hashable] = {}
        self._writing = threading.Lock()

    def list(self, kind: Kind, namespace: str | None = None) -> Fact:
        """Return the objects of a kind, of one namespace where one is given; the same `Known` until one changes."""
        held = self._held.get(kind)
        if isinstance(held, Objects):
            return held.list(namespace)
        return held or Unavailable(f"{resource_name(kind)} not watched")

    def admit(self, kind: Kind, writer: Hashable) -> None:
        """Let a writer speak for a kind from now on, and no other; what is held stays until it does."""
        with self._writing:
            self._writers[kind] = writer
            self._held.setdefault(kind, Unavailable(f"{resource_name(kind)} not read yet"))

    def put(self, kind: Kind, writer: Hashable, held: Objects | Unavailable) -> None:
        """Replace what is held of a kind, if the writer still speaks for it."""
        with self._writing:
            if self._writers.get(kind) == writer:
                self._held[kind] = held

    def forget(self, kind: Kind) -> None:
        """Drop a kind that nobody looks up any more."""
        with self._writing:
            self._writers.pop(kind, None)
            self._held.pop(kind, None)
