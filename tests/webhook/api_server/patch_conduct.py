"""What a patch of ours may be: less than what the API server applies, so that no two libraries read it differently."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, TypeAlias

import jsonpatch
from api_server.errors import ConductError

if TYPE_CHECKING:
    from collections.abc import Sequence

Operation: TypeAlias = "dict[str, Any]"
_MEMBERS = {"add": {"op", "path", "value"}, "replace": {"op", "path", "value"}, "remove": {"op", "path"}}
_POINTER = re.compile(r"(/([^~/]|~[01])*)+")
_INDEX = re.compile("0|[1-9][0-9]*")


def check(document: Any, operations: Sequence[Operation]) -> None:
    """Refuse all but add, replace and remove, by canonical absolute paths, in parents that exist.

    Raises:
        ConductError: an operation is something else; says which and why.
    """
    for number, operation in enumerate(operations):
        wrong = _wrong(document, operation)
        if wrong:
            raise ConductError(f"operation {number} ({operation.get('op')} {operation.get('path')}): {wrong}")
        document = jsonpatch.apply_patch(document, [operation])


def _wrong(document: Any, operation: Operation) -> str:
    kind, path = operation.get("op"), operation.get("path")
    if not isinstance(kind, str) or kind not in _MEMBERS:
        return "only add, replace and remove"
    if operation.keys() != _MEMBERS[kind]:
        return f"must have exactly {', '.join(sorted(_MEMBERS[kind]))}"
    if not isinstance(path, str) or not _POINTER.fullmatch(path):
        return "not a canonical absolute path below the root"
    *parents, last = [part.replace("~1", "/").replace("~0", "~") for part in path.split("/")[1:]]
    node = document
    for part in parents:
        if _missing(node, part):
            return "its parent does not exist"
        node = node[int(part)] if isinstance(node, list) else node[part]
    return _wrong_place(node, last, kind)


def _wrong_place(parent: Any, last: str, kind: str) -> str:
    if isinstance(parent, list):
        return _wrong_index(parent, last, kind)
    if not isinstance(parent, dict):
        return "its parent is neither an object nor a list"
    return "" if kind == "add" or last in parent else "it does not exist"


def _wrong_index(array: list[Any], index: str, kind: str) -> str:
    if kind == "add" and index == "-":
        return ""
    if not _INDEX.fullmatch(index):
        return "not a canonical index"
    return "" if int(index) < len(array) + (kind == "add") else "no such index"


def _missing(node: Any, part: str) -> bool:
    if isinstance(node, list):
        return not _INDEX.fullmatch(part) or int(part) >= len(node)
    return not isinstance(node, dict) or part not in node
