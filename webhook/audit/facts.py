"""The cluster data of an audit: the fields of objects that policies read, packed."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from gpugate.policies.sdk.facts import Known, Unavailable
from gpugate.webhook.cluster.objects import Objects, Projection, StoredField, decode

if TYPE_CHECKING:
    from collections.abc import Collection

    from gpugate.policies.engine.ruleset import Needs
    from gpugate.policies.sdk.facts import Fact
    from gpugate.policies.sdk.objects import Kind
    from gpugate.webhook.audit.source import Stored

# The number of decoded objects in the cache; about 5 MB.
_REMEMBERED: Final = 1024


class _Some:
    """Objects of a kind that is complete only in some namespaces."""

    def __init__(self, objects: Objects, namespaces: Collection[str]) -> None:
        self._objects = objects
        self._namespaces = namespaces
        self._all = Known(objects.list(None).items, complete=False)

    def list(self, namespace: str | None) -> Known:
        if namespace in self._namespaces:
            return self._objects.list(namespace)
        return self._all if namespace is None else Known((), complete=False)


class AuditFacts:
    """The cluster data for policies. A kind is unavailable until it is closed."""

    def __init__(self, needs: Needs) -> None:
        cached = lru_cache(_REMEMBERED)(decode)
        self._projections = {kind: Projection(kind, needs, cached) for kind in needs.kinds}
        self._read: dict[Kind, list[StoredField]] = {}
        self._closed: dict[Kind, Objects | _Some | Unavailable] = {}
        # Kinds that were read in an unsupported version.
        self._foreign: dict[Kind, str] = {}

    def list(self, kind: Kind, namespace: str | None = None) -> Fact:
        """Return the objects of a kind, in one namespace if it is given; the same `Known` each time."""
        closed = self._closed.get(kind)
        if closed is None or isinstance(closed, Unavailable):
            return closed or Unavailable(f"{kind.plural} were not read")
        return closed.list(namespace)

    def add(self, stored: Stored) -> None:
        """Add an object, if a policy looks up its kind."""
        for kind, project in self._projections.items():
            if kind.covers(stored.kind):
                self._read.setdefault(kind, []).append(project(stored.object))
            elif (kind.group, kind.name) == (stored.kind.group, stored.kind.kind):
                self._foreign[kind] = (
                    f"{kind.plural} are served in {stored.kind.version}, which policies do not support"
                )

    def close(self, resource: Kind, missing: str = "", namespaces: Collection[str] = ()) -> None:
        """Mark a resource as read.

        Args:
            resource: the group and plural that were read.
            missing: why the resource is incomplete; then only the existence of the read objects is known.
            namespaces: the namespaces in which it is complete nevertheless.
        """
        for kind in self._projections:
            if (kind.group, kind.plural) == (resource.group, resource.plural):
                objects = Objects.of(self._read.pop(kind, ()))
                if kind in self._foreign:
                    self._closed[kind] = Unavailable(self._foreign[kind])
                elif not missing:
                    self._closed[kind] = objects
                elif objects.count or namespaces:
                    self._closed[kind] = _Some(objects, namespaces)
                else:
                    self._closed[kind] = Unavailable(missing)
