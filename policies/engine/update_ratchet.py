"""Limit findings of an UPDATE that the old object already had to warnings."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from gpugate.policies.sdk.field import render
from gpugate.policies.sdk.findings import Patch, Violation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpugate.policies.sdk.field import Json, Path
    from gpugate.policies.sdk.objects import Request

Identity: TypeAlias = tuple[object, ...]

# The members that identify elements of a list, like the API server's merge keys.
_MERGE_KEYS = ("name", "key")


class Ratchet:
    """Tell whether a finding of the new object was in the old one.

    Two violations are the same if policy, path and message are; two patches if policy, operation, path and value are. A
    path names list elements by their merge key, so it survives a reordered list.
    """

    def __init__(self, request: Request) -> None:
        self._new = request.object or {}
        self._old = request.old_object or {}

    def now(self, policy: str, item: Violation | Patch) -> Identity:
        """Return the identity of a finding of the new object."""
        return _identity(policy, item, self._new)

    def before(self, policy: str, item: Violation | Patch) -> Identity:
        """Return the identity of a finding of the old object."""
        return _identity(policy, item, self._old)

    def may_patch(self, request: Request, patch: Patch) -> bool:
        """Tell whether an UPDATE may get a patch: only new tolerations and annotations of a Pod may be added.

        The API server rejects most other changes to a stored Pod (`pkg/apis/core/validation` ValidatePodUpdate, v1.36),
        and a changed NodePool or EC2NodeClass replaces its nodes. A field that the user removed stays removed.
        """
        if request.kind.kind != "Pod":
            return False
        if patch.op == "append":
            return patch.path == ("spec", "tolerations")
        annotation = patch.op == "set" and patch.path[:2] == ("metadata", "annotations") and len(patch.path) == 3
        return annotation and not _present(self._old, patch.path)


def _identity(policy: str, item: Violation | Patch, root: Mapping[str, Json]) -> Identity:
    where = _identity_of(item.path, root)
    return (policy, where, item.message) if isinstance(item, Violation) else (policy, where, item.op, repr(item.value))


def keyed_path(path: Path, root: Mapping[str, Json]) -> str:
    """Write a path with list elements named by their merge key: `spec.containers[name=a].image`; it survives a reordered list."""
    out = ""
    for part in _identity_of(path, root):
        if isinstance(part, tuple):
            out += f"[{part[0]}={part[1]}]"
        elif isinstance(part, int | str):
            step = render((part,))
            out += f".{step}" if out and not step.startswith("[") else step
    return out


def _identity_of(path: Path, root: Mapping[str, Json]) -> Identity:
    parts: list[object] = []
    value: object = root
    for part in path:
        value = _member(value, part)
        parts.append((_merge_key(value) or part) if isinstance(part, int) else part)
    return tuple(parts)


def _present(root: Mapping[str, Json], path: Path) -> bool:
    value: object = root
    for part in path:
        value = _member(value, part)
    return value is not None


def _member(value: object, part: str | int) -> object:
    if isinstance(value, list) and isinstance(part, int):
        return value[part] if part < len(value) else None
    return value.get(part) if isinstance(value, dict) and isinstance(part, str) else None


def _merge_key(element: object) -> tuple[str, object] | None:
    if isinstance(element, dict):
        for key in _MERGE_KEYS:
            if isinstance(element.get(key), str):
                return key, element[key]
    return None
