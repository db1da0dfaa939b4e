"""Where the API server keeps objects of a kind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cluster.connections import Connections


@dataclass(frozen=True)
class Resource:
    """A kind as it is served."""

    api_version: str
    kind: str
    plural: str
    namespaced: bool

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Return the path of a collection, an object or a subresource."""
        parts = ["api" if "/" not in self.api_version else "apis", self.api_version]
        if self.namespaced and namespace:
            parts += ["namespaces", namespace]
        parts += [part for part in (self.plural, name, subresource) if part]
        return "/" + "/".join(parts)


class Discovery:
    """Asks for each group and version once, and again for kinds that were not there."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._known: dict[tuple[str, str], Resource] = {}

    def find(self, api_version: str, kind: str) -> Resource | None:
        """Return a kind, or None when it is not served."""
        return self._known.get((api_version, kind)) or self.read(api_version, kind)

    def read(self, api_version: str, kind: str) -> Resource | None:
        """Return a kind as the API server has it now, or None when it is not served."""
        self._known = {known: resource for known, resource in self._known.items() if known[0] != api_version}
        answer = self._connections.request("GET", f"/{'apis' if '/' in api_version else 'api'}/{api_version}")
        for resource in answer.body.get("resources", ()) if answer.ok else ():
            if "/" not in resource["name"]:
                self._add(api_version, resource)
        return self._known.get((api_version, kind))

    def _add(self, api_version: str, resource: Mapping[str, object]) -> None:
        kind = str(resource["kind"])
        found = Resource(api_version, kind, str(resource["name"]), bool(resource["namespaced"]))
        self._known[api_version, kind] = found
