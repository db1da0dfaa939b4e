"""Applies patches to objects, and says them as RFC 6902 operations.

The operations are of the subset that `jsonpatch` and the API server (evanphx/json-patch v4) read alike: `add`,
`replace` and `remove` with existing parents, canonical indices and a value. An operation that does not apply would
make the API server refuse the request whatever the failure policy, so each is made while the change itself is made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NotRequired, TypedDict

from gpugate.policies.sdk.field import render

if TYPE_CHECKING:
    from gpugate.policies.sdk.field import Json, Path
    from gpugate.policies.sdk.findings import Patch


class Operation(TypedDict):
    """One RFC 6902 operation; `value` is absent on a remove."""

    op: Literal["add", "replace", "remove"]
    path: str
    value: NotRequired[Json]


class PatchError(ValueError):
    """A patch that does not fit the object; the text names the path."""


def apply(obj: dict[str, Json], patch: Patch) -> tuple[dict[str, Json], Operation]:
    """Return the object with a patch applied, and the operation that says it.

    The object itself is left as it is; the result shares with it what did not change.

    Raises:
        PatchError: something on the way to the path is neither absent nor of the type the path needs.
    """
    if not patch.path:
        raise PatchError("a patch cannot replace the whole object")
    root = dict(obj)
    parent: dict[str, Json] | list[Json] = root
    for depth, key in enumerate(patch.path[:-1]):
        child = _member(parent, key, patch.path[: depth + 1])
        if child is None:
            value = _wrapped(patch.path[depth + 1 :], patch)
            return root, _assign(parent, key, value, patch.path[: depth + 1])
        if not isinstance(child, dict | list):
            raise PatchError(f"{render(patch.path[: depth + 1])} is neither an object nor a list")
        copied: dict[str, Json] | list[Json] = dict(child) if isinstance(child, dict) else list(child)
        _store(parent, key, copied)
        parent = copied
    return root, _change(parent, patch)


def apply_all(obj: dict[str, Json], patches: tuple[Patch, ...]) -> dict[str, Json]:
    """Return the object with patches applied, one after the other; raises as `apply` does."""
    for patch in patches:
        obj, _ = apply(obj, patch)
    return obj


def pointer(path: Path) -> str:
    """Write a path as a JSON pointer (RFC 6901)."""
    return "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in path)


def _change(parent: dict[str, Json] | list[Json], patch: Patch) -> Operation:
    key = patch.path[-1]
    current = _member(parent, key, patch.path)
    if patch.op == "remove":
        if isinstance(parent, dict):
            if key not in parent:
                raise PatchError(f"{render(patch.path)} is not there to remove")
            del parent[str(key)]
        elif isinstance(key, int):
            del parent[key]
        return {"op": "remove", "path": pointer(patch.path)}
    if patch.op == "set" or current is None:
        value = [patch.value] if patch.op == "append" else patch.value
        return _assign(parent, key, value, patch.path)
    if not isinstance(current, list):
        raise PatchError(f"{render(patch.path)} is not a list")
    _store(parent, key, [*current, patch.value])
    return {"op": "add", "path": f"{pointer(patch.path)}/-", "value": patch.value}


def _wrapped(rest: Path, patch: Patch) -> Json:
    """Make the parents that are missing: nested objects around the value."""
    value: Json = [patch.value] if patch.op == "append" else patch.value
    if patch.op == "remove" or any(isinstance(key, int) for key in rest):
        raise PatchError(f"{render(patch.path)} has no parent")
    for key in reversed(rest):
        value = {str(key): value}
    return value


def _member(parent: dict[str, Json] | list[Json], key: str | int, path: Path) -> Json:
    if isinstance(parent, dict):
        return parent.get(key) if isinstance(key, str) else None
    if isinstance(key, int) and 0 <= key < len(parent):
        return parent[key]
    raise PatchError(f"{render(path)} is not in the list")


def _assign(parent: dict[str, Json] | list[Json], key: str | int, value: Json, path: Path) -> Operation:
    exists = isinstance(parent, list) or key in parent
    _store(parent, key, value)
    return {"op": "replace" if exists else "add", "path": pointer(path), "value": value}


def _store(parent: dict[str, Json] | list[Json], key: str | int, value: Json) -> None:
    if isinstance(parent, dict):
        parent[str(key)] = value
    elif isinstance(key, int):
        parent[key] = value
