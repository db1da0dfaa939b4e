"""The objects of one run, as facts for each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpugate.policies.sdk.facts import Known
from gpugate.policies.sdk.field import Field

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpugate.policies.sdk.facts import Fact
    from gpugate.policies.sdk.kinds import Kind
    from gpugate.policies.sdk.request import Request


class RunFacts:
    """What the files of a run hold.

    They prove that an object exists. That one does not exist they prove only when they are `complete`, which the user
    must say: most repositories hold a part of what a cluster holds.
    """

    def __init__(self, requests: Iterable[Request], *, complete: bool = False) -> None:
        self._complete = complete
        self._none = Known((), complete)
        self._objects: dict[tuple[str, str], list[Request]] = {}
        for request in requests:
            self._objects.setdefault((request.kind.group, request.kind.kind), []).append(request)
        self._namespaces: dict[Kind, dict[str | None, Known]] = {}

    def list(self, kind: Kind, namespace: str | None = None) -> Fact:
        """Return the objects of a kind, of one namespace where one is given; the same `Known` each time."""
        known = self._namespaces.get(kind)
        if known is None:
            known = self._namespaces[kind] = self._by_namespace(kind)
        return known.get(namespace) or self._none

    def _by_namespace(self, kind: Kind) -> dict[str | None, Known]:
        found: dict[str | None, list[Field]] = {None: []}
        for request in self._objects.get((kind.group, kind.name), ()):
            if kind.covers(request.kind):
                item = Field(dict(request.object or {}))
                found[None].append(item)
                found.setdefault(request.namespace, []).append(item)
        return {namespace: Known(tuple(items), self._complete) for namespace, items in found.items()}
