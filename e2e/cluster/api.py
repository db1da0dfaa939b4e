"""A client of the API server for any kind. What the server refuses is an answer, never an exception."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from cluster.answer import Answer
from cluster.discovery import Discovery

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cluster.connections import Connections

_PATCHES = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}
_PAUSE_SECONDS = 0.05


class Api:
    """Takes objects, or references to them: whatever has apiVersion, kind and metadata.

    A namespaced object without a namespace is in `default`, as kubectl has it.
    """

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._discovery = Discovery(connections)

    def create(self, obj: Mapping[str, Any], *, dry_run: bool = False, strict: bool = False) -> Answer:
        """Create an object; `strict` refuses unknown fields, as kubectl asks for."""
        metadata = {"namespace": obj["metadata"].get("namespace", "default")}
        further = {"fieldValidation": "Strict"} if strict else {}
        return self._on({**obj, "metadata": metadata}, "POST", obj, **_dry(dry_run), **further)

    def create_subresource(
        self, ref: Mapping[str, Any], subresource: str, obj: Mapping[str, Any], *, dry_run: bool = False
    ) -> Answer:
        """Create a subresource of an object: `token`, `eviction`, `binding`."""
        return self._on(ref, "POST", obj, subresource=subresource, **_dry(dry_run))

    def apply(
        self, obj: Mapping[str, Any], manager: str = "e2e", *, force: bool = False, dry_run: bool = False
    ) -> Answer:
        """Apply on the server's side."""
        query = {"fieldManager": manager, "force": str(force).lower(), **_dry(dry_run)}
        return self._on(obj, "PATCH", obj, _PATCHES["apply"], **query)

    def replace(self, obj: Mapping[str, Any], *, dry_run: bool = False, subresource: str = "") -> Answer:
        """Put an object in the place of the one of its name."""
        return self._on(obj, "PUT", obj, subresource=subresource, **_dry(dry_run))

    def patch(
        self, ref: Mapping[str, Any], body: Any, kind: str = "merge", subresource: str = "", *, dry_run: bool = False
    ) -> Answer:
        """Change an object by a `merge`, `json` or `strategic` patch."""
        return self._on(ref, "PATCH", body, _PATCHES[kind], subresource=subresource, **_dry(dry_run))

    def delete(self, ref: Mapping[str, Any], *, dry_run: bool = False, **options: Any) -> Answer:
        """Delete an object; options are fields of `metav1.DeleteOptions`, such as `gracePeriodSeconds=0`."""
        return self._on(ref, "DELETE", options or None, **_dry(dry_run))

    def delete_collection(
        self, api_version: str, kind: str, namespace: str = "", *, dry_run: bool = False, **query: str
    ) -> Answer:
        """Delete the objects of a kind; `labelSelector` or `fieldSelector` choose among them."""
        return self._on(_every(api_version, kind, namespace), "DELETE", **_dry(dry_run), **query)

    def get(self, ref: Mapping[str, Any], subresource: str = "") -> dict[str, Any]:
        """Return an object as it is stored; empty when it is not there."""
        answer = self._on(ref, "GET", subresource=subresource)
        assert answer.ok or answer.code == 404, answer.message
        return answer.body if answer.ok else {}

    def list(self, api_version: str, kind: str, namespace: str = "", **query: str) -> list[dict[str, Any]]:
        """Return the objects of a kind, in one namespace or in all; empty when the kind is not served."""
        answer = self._on(_every(api_version, kind, namespace), "GET", **query)
        assert answer.ok or answer.code == 404, answer.message
        # The items of a list do not say what they are.
        return [{"apiVersion": api_version, "kind": kind, **item} for item in answer.body.get("items") or ()]

    def eventually(
        self, ref: Mapping[str, Any], predicate: Callable[[dict[str, Any]], object], seconds: float = 90
    ) -> dict[str, Any]:
        """Wait until an object is as wanted, and return it; one that is not there is empty.

        Raises:
            AssertionError: it was not in time; shows how it was last.
        """
        deadline = time.monotonic() + seconds
        while not predicate(found := self.get(ref)):
            if time.monotonic() > deadline:
                raise AssertionError(f"not as wanted after {seconds:.0f} s:\n{json.dumps(found or ref, indent=1)}")
            time.sleep(_PAUSE_SECONDS)
        return found

    def served(self, api_version: str, kind: str) -> bool:
        """Tell whether objects of a kind can be asked for now: it may have been there, be gone, and be defined anew."""
        return self._discovery.read(api_version, kind) is not None

    def request(
        self, method: str, path: str, body: Any = None, content_type: str = "application/json", **query: str
    ) -> Answer:
        """Send anything to a path."""
        return self._connections.request(method, f"{path}?{urlencode(query)}" if query else path, body, content_type)

    def _on(
        self,
        ref: Mapping[str, Any],
        method: str,
        body: Any = None,
        content_type: str = "application/json",
        subresource: str = "",
        **query: str,
    ) -> Answer:
        """Send a request to an object, or to the collection when there is no name."""
        api_version, kind, metadata = ref["apiVersion"], ref["kind"], ref["metadata"]
        resource = self._discovery.find(api_version, kind)
        if resource is None:
            return _not_served(api_version, kind)
        path = resource.path(metadata.get("namespace", "default"), metadata.get("name", ""), subresource)
        return self.request(method, path, body, content_type, **query)


def _dry(run: bool) -> dict[str, str]:  # noqa: FBT001 -- passed on
    return {"dryRun": "All"} if run else {}


def _every(api_version: str, kind: str, namespace: str) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"namespace": namespace}}


def _not_served(api_version: str, kind: str) -> Answer:
    # What kubectl says of it, without asking the server.
    message = f'no matches for kind "{kind}" in version "{api_version}"'
    return Answer(404, {"kind": "Status", "reason": "NotFound", "message": message})
