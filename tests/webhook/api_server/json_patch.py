"""JSON Patch with the semantics of the API server's library, which are not those of RFC 6902 everywhere.

Source: evanphx/json-patch v4.13.0 as `k8s.io/apiserver` v1.36 uses it; the differences are the tables of the tests.
"""

from __future__ import annotations

import copy
import json
import re
from typing import TYPE_CHECKING, Any, NoReturn

from api_server.errors import PatchDoesNotApplyError, UndecodablePatchError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Operation = dict[str, Any]
# What all `copy` operations of a patch may add: the largest body of a request.
COPY_LIMIT = 3 * 1024 * 1024
# What Go's strconv.Atoi reads.
_INTEGER = re.compile(r"[+-]?[0-9]+")
_ESCAPE = re.compile("~[01]")


def decode(patch: bytes) -> list[Operation]:
    """Read a patch; `null` is an empty one.

    Raises:
        UndecodablePatchError: it is not a JSON array of objects.
    """
    try:
        operations = json.loads(patch, parse_constant=_no_constant)
    except ValueError as error:
        raise UndecodablePatchError(f"received undecodable patch in webhook response: {error}") from None
    if operations is None:
        return []
    if not isinstance(operations, list) or not all(o is None or isinstance(o, dict) for o in operations):
        raise UndecodablePatchError("received undecodable patch in webhook response: not an array of objects")
    return [operation or {} for operation in operations]


def apply(document: Any, operations: Sequence[Operation]) -> Any:
    """Apply operations in turn; the document itself stays as it is.

    Raises:
        PatchDoesNotApplyError: one of them does not apply.
    """
    patched = copy.deepcopy(document)
    copied = 0
    for operation in operations:
        kind = operation.get("op")
        if not isinstance(kind, str) or kind not in _OPERATIONS:
            _refuse(f"Unexpected kind: {kind if isinstance(kind, str) else 'unknown'}")
        if kind == "copy":
            copied += len(json.dumps(_value_at(patched, _text(operation, "from")), separators=(",", ":")))
            if copied > COPY_LIMIT:
                _refuse(f"Unable to complete the copy, the accumulated size increase of copy is {copied}")
        patched = _OPERATIONS[kind](patched, operation)
    return patched


def _add(root: Any, operation: Operation) -> Any:
    _insert(root, _text(operation, "path"), operation.get("value"))
    return root


def _remove(root: Any, operation: Operation) -> Any:
    _take(root, _text(operation, "path"))
    return root


def _replace(root: Any, operation: Operation) -> Any:
    path, value = _text(operation, "path"), operation.get("value")
    if path == "":
        if not isinstance(value, dict | list):
            _refuse("replace operation value must be object or array")
        return value
    parent, key = _find(root, path)
    # A key that is missing is added: only an index must be there.
    parent[_index(parent, key) if isinstance(parent, list) else key] = value
    return root


def _move(root: Any, operation: Operation) -> Any:
    value = _take(root, _text(operation, "from"))
    _insert(root, _text(operation, "path"), value)
    return root


def _copy(root: Any, operation: Operation) -> Any:
    value = copy.deepcopy(_value_at(root, _text(operation, "from")))
    _insert(root, _text(operation, "path"), value)
    return root


def _test(root: Any, operation: Operation) -> Any:
    path = _text(operation, "path")
    found = root if path == "" else _value_at(root, path)
    if not _same(found, operation.get("value")):
        _refuse(f"testing value {path} failed")
    return root


_OPERATIONS: dict[str, Callable[[Any, Operation], Any]] = {
    "add": _add,
    "remove": _remove,
    "replace": _replace,
    "move": _move,
    "copy": _copy,
    "test": _test,
}


def _find(root: Any, path: str) -> tuple[Any, str]:
    """Return what holds the last part of a path; whatever stands before the first slash is dropped."""
    parts = [_ESCAPE.sub(lambda escape: "/" if escape[0] == "~1" else "~", part) for part in path.split("/")[1:]]
    if not parts:
        _refuse(f"doc is missing path: {path!r}")
    node = root
    for part in parts[:-1]:
        node = _get(node, part)
        if not isinstance(node, dict | list):
            _refuse(f"doc is missing path: {path!r}")
    return node, parts[-1]


def _get(parent: Any, key: str) -> Any:
    return parent[_index(parent, key)] if isinstance(parent, list) else parent.get(key)


def _value_at(root: Any, path: str) -> Any:
    """Return the value at a path; a missing key reads as null."""
    parent, key = _find(root, path)
    return _get(parent, key)


def _insert(root: Any, path: str, value: Any) -> None:
    parent, key = _find(root, path)
    if isinstance(parent, dict):
        parent[key] = value
    elif key == "-":
        parent.append(value)
    else:
        # An index from the end counts the place after the last one too.
        parent.insert(_index(parent, key, places=len(parent) + 1), value)


def _take(root: Any, path: str) -> Any:
    parent, key = _find(root, path)
    if isinstance(parent, list):
        return parent.pop(_index(parent, key))
    if key not in parent:
        _refuse(f"Unable to remove nonexistent key: {key}")
    return parent.pop(key)


def _index(array: list[Any], key: str, places: int | None = None) -> int:
    places = len(array) if places is None else places
    if not _INTEGER.fullmatch(key):
        _refuse(f"value was not a proper array index: {key!r}")
    index = int(key)
    if not -places <= index < places:
        _refuse(f"Unable to access invalid index: {index}")
    return index % places


def _same(one: Any, other: Any) -> bool:
    """Compare as the library does, by what is written: 1 and 1.0 differ. At null in a list it panics, and equals nothing."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and None not in one and all(map(_same, one, other))
    return bool(one == other)


def _text(operation: Operation, member: str) -> str:
    value = operation.get(member)
    if not isinstance(value, str):
        _refuse(f"{operation.get('op')} operation failed to decode {member}: missing value")
    return value


def _refuse(message: str) -> NoReturn:
    raise PatchDoesNotApplyError(message)


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"invalid character {text[0]!r} looking for beginning of value")
