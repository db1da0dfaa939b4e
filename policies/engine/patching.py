"""Apply patches to objects, and return them as RFC 6902 operations.

The operations belong to the subset that `jsonpatch` and the API server (evanphx/json-patch v4) apply alike: `add`,
`replace` and `remove` with existing parents, canonical indices and a value. An operation that does not apply would make
the API server reject the request under any failure policy, so each operation is created with the change itself.
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


class Draft:
    """An object to which patches are applied, one after the other.

    The original object is not changed; `root` shares its unchanged parts. Each object and list is copied only once, so
    that thousands of patches to one list take linear time.
    """

    __slots__ = ("_copied", "_original", "root")

    def __init__(self, obj: dict[str, Json]) -> None:
        self._original = obj
        self.root = obj
        # By id, with the copy itself, because an id is unique only while its object exists.
        self._copied: dict[int, dict[str, Json] | list[Json]] = {}

    def apply(self, patch: Patch) -> Operation:
        """Apply a patch, and return its operation.

        Raises:
            PatchError: a value on the path is present but not of the type that the path needs. `root` is then
                unchanged.
        """
        if not patch.path:
            raise PatchError("a patch cannot replace the whole object")
        if self.root is self._original:
            self.root = dict(self._original)
        if self._copied:
            self._share(patch.value)
        parent: dict[str, Json] | list[Json] = self.root
        for depth, key in enumerate(patch.path[:-1]):
            child = _member(parent, key, patch.path, depth)
            if child is None:
                value = _wrapped(patch.path[depth + 1 :], patch)
                return _assign(parent, key, value, patch.path[: depth + 1])
            if not isinstance(child, dict | list):
                raise PatchError(f"{render(patch.path[: depth + 1])} is neither an object nor a list")
            parent = self._own(parent, key, child)
        return self._change(parent, patch)

    def _share(self, value: Json) -> None:
        """Mark the parts of a value as shared, so that they are copied before the next change: a policy may move them."""
        if isinstance(value, dict | list):
            self._copied.pop(id(value), None)
            for member in value.values() if isinstance(value, dict) else value:
                self._share(member)

    def _own(
        self, parent: dict[str, Json] | list[Json], key: str | int, child: dict[str, Json] | list[Json]
    ) -> dict[str, Json] | list[Json]:
        """Return a copy that may be changed, in the place of `child`."""
        if id(child) in self._copied:
            return child
        copied: dict[str, Json] | list[Json] = dict(child) if isinstance(child, dict) else list(child)
        self._copied[id(copied)] = copied
        _store(parent, key, copied)
        return copied

    def _change(self, parent: dict[str, Json] | list[Json], patch: Patch) -> Operation:
        key = patch.path[-1]
        current = _member(parent, key, patch.path, len(patch.path) - 1)
        if patch.op == "remove":
            if isinstance(parent, dict):
                if key not in parent:
                    raise PatchError(f"{render(patch.path)} does not exist, so it cannot be removed")
                del parent[str(key)]
            elif isinstance(key, int):
                del parent[key]
            return {"op": "remove", "path": pointer(patch.path)}
        if patch.op == "set" or current is None:
            value = [patch.value] if patch.op == "append" else patch.value
            return _assign(parent, key, value, patch.path)
        if not isinstance(current, list):
            raise PatchError(f"{render(patch.path)} is not a list")
        own = self._own(parent, key, current)
        if isinstance(own, list):
            own.append(patch.value)
        return {"op": "add", "path": f"{pointer(patch.path)}/-", "value": patch.value}


def apply(obj: dict[str, Json], patch: Patch) -> tuple[dict[str, Json], Operation]:
    """Return a copy of the object with a patch applied, and the operation.

    Raises:
        PatchError: as `Draft.apply`.
    """
    draft = Draft(obj)
    operation = draft.apply(patch)
    return draft.root, operation


def apply_all(obj: dict[str, Json], patches: tuple[Patch, ...]) -> dict[str, Json]:
    """Return a copy of the object with patches applied, one after the other; raises like `Draft.apply`."""
    draft = Draft(obj)
    for patch in patches:
        draft.apply(patch)
    return draft.root


def pointer(path: Path) -> str:
    """Write a path as a JSON pointer (RFC 6901)."""
    return "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in path)


def _wrapped(remainder: Path, patch: Patch) -> Json:
    """Return the value inside its missing parents."""
    value: Json = [patch.value] if patch.op == "append" else patch.value
    if patch.op == "remove" or any(isinstance(key, int) for key in remainder):
        raise PatchError(f"{render(patch.path)} has no parent")
    for key in reversed(remainder):
        value = {str(key): value}
    return value


def _member(parent: dict[str, Json] | list[Json], key: str | int, path: Path, depth: int) -> Json:
    if isinstance(parent, dict):
        return parent.get(key) if isinstance(key, str) else None
    if isinstance(key, int) and 0 <= key < len(parent):
        return parent[key]
    raise PatchError(f"{render(path[: depth + 1])} is not in the list")


def _assign(parent: dict[str, Json] | list[Json], key: str | int, value: Json, path: Path) -> Operation:
    exists = isinstance(parent, list) or key in parent
    _store(parent, key, value)
    return {"op": "replace" if exists else "add", "path": pointer(path), "value": value}


def _store(parent: dict[str, Json] | list[Json], key: str | int, value: Json) -> None:
    if isinstance(parent, dict):
        parent[str(key)] = value
    elif isinstance(key, int):
        parent[key] = value
