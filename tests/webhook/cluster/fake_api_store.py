"""The store of the fake API server: any resource, one resource version for all, and a history to watch."""

from __future__ import annotations

import copy
import threading
from dataclasses import dataclass, field
from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]


class StatusError(Exception):
    """An error response, as a `metav1.Status`."""

    def __init__(self, code: int, reason: str, message: str = "", **details: object) -> None:
        super().__init__(message)
        self.code = code
        self.status = {
            "kind": "Status",
            "apiVersion": "v1",
            "status": "Failure",
            "code": code,
            "reason": reason,
            "message": message or reason,
            "details": details,
        }


@dataclass(frozen=True)
class Resource:
    """A served kind; `versions` are in order of preference."""

    group: str
    versions: tuple[str, ...]
    kind: str
    plural: str
    namespaced: bool = True


@dataclass(frozen=True)
class Change:
    revision: int
    plural: tuple[str, str]  # group and plural; ("", "") for a bookmark, which is for every watch
    type: str
    object: Json


@dataclass
class Store:
    """All objects under one lock; `changed` is notified of every change."""

    resources: dict[tuple[str, str], Resource] = field(default_factory=dict)
    revision: int = 1000
    compacted: int = 0
    history: list[Change] = field(default_factory=list)
    changed: threading.Condition = field(default_factory=threading.Condition)
    _objects: dict[tuple[str, str], dict[tuple[str, str], Json]] = field(default_factory=dict)

    def serve(self, resource: Resource) -> None:
        self.resources[resource.group, resource.plural] = resource

    def all(self, plural: tuple[str, str], namespace: str | None = None) -> list[Json]:
        with self.changed:
            objects = self._objects.get(plural, {})
            return [objects[key] for key in sorted(objects) if namespace in {None, key[0]}]

    def get(self, plural: tuple[str, str], namespace: str, name: str) -> Json:
        with self.changed:
            try:
                return self._objects.get(plural, {})[namespace, name]
            except KeyError:
                raise StatusError(404, "NotFound", f"{plural[1]} {name!r} not found") from None

    def create(self, plural: tuple[str, str], obj: Json) -> Json:
        with self.changed:
            if _key(obj) in self._objects.get(plural, {}):
                raise StatusError(409, "AlreadyExists")
            return self._write(plural, obj, "ADDED")

    def update(self, plural: tuple[str, str], obj: Json) -> Json:
        """Replace an object; a resource version other than the stored one is a conflict."""
        with self.changed:
            stored = self.get(plural, *_key(obj))
            if obj["metadata"].get("resourceVersion", "") not in {"", stored["metadata"]["resourceVersion"]}:
                raise StatusError(409, "Conflict", "the object has been modified")
            return self._write(plural, obj, "MODIFIED")

    def put(self, plural: tuple[str, str], obj: Json) -> Json:
        with self.changed:
            known = _key(obj) in self._objects.get(plural, {})
            return self._write(plural, obj, "MODIFIED" if known else "ADDED")

    def delete(self, plural: tuple[str, str], namespace: str, name: str) -> Json:
        with self.changed:
            deleted = self._stamped(self.get(plural, namespace, name))
            del self._objects[plural][namespace, name]
            self._record(plural, "DELETED", deleted)
            return deleted

    def bookmark(self) -> None:
        """Send a bookmark to every watch."""
        with self.changed:
            self.revision += 1
            self._record(("", ""), "BOOKMARK", {"metadata": {"resourceVersion": str(self.revision)}})

    def compact(self) -> None:
        """Discard the history, so that older resource versions expire."""
        with self.changed:
            self.compacted = self.revision

    def _write(self, plural: tuple[str, str], obj: Json, type_: str) -> Json:
        stored = self._stamped(obj)
        self._objects.setdefault(plural, {})[_key(stored)] = stored
        self._record(plural, type_, stored)
        return stored

    def _stamped(self, obj: Json) -> Json:
        self.revision += 1
        stored = copy.deepcopy(obj)
        stored["metadata"]["resourceVersion"] = str(self.revision)
        stored["metadata"].setdefault("uid", f"uid-{self.revision}")
        return stored

    def _record(self, plural: tuple[str, str], type_: str, obj: Json) -> None:
        self.history.append(Change(self.revision, plural, type_, obj))
        self.changed.notify_all()


def _key(obj: Json) -> tuple[str, str]:
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]
