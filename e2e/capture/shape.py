"""What members a review has, whatever their values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

# Their members are named by what they hold.
_BY_CONTENT = frozenset({"fieldsV1", "labels", "annotations"})


def shape(value: Any) -> frozenset[str]:
    """Return every path of a JSON value with the type of what is there, the elements of a list as one."""
    return frozenset(_paths(value, ""))


def _paths(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, dict):
        if path.rpartition(".")[2] in _BY_CONTENT:
            yield f"{path}: dict"
            return
        for key, member in value.items():
            yield from _paths(member, f"{path}.{key}")
    elif isinstance(value, list):
        for member in value:
            yield from _paths(member, f"{path}[]")
    yield f"{path}: {type(value).__name__}"
