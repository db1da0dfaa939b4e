"""Shows patches as the lines of YAML that they add or remove, under the keys that lead there."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from gpugate.policies.sdk.field import render
from gpugate.webhook.report import yaml_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gpugate.policies.sdk.field import Json, Path
    from gpugate.policies.sdk.findings import Patch


class Mark(Enum):
    """What becomes of a line."""

    CONTEXT = " "
    ADDED = "+"
    REMOVED = "-"


Line = tuple[Mark, str]


def patch_lines(patches: Iterable[Patch]) -> Iterator[Line]:
    """Yield the lines; keys that two patches share are said once."""
    open_path: Path = ()
    for patch in patches:
        parents = patch.path if patch.op == "append" else patch.path[:-1]
        shared = _shared(open_path, parents)
        yield from ((Mark.CONTEXT, _key(parents, depth)) for depth in range(shared, len(parents)))
        open_path = parents
        if patch.op == "remove":
            yield Mark.REMOVED, f"{_indent(parents)}# without {render(patch.path)}"
        else:
            yield from ((Mark.ADDED, _indent(parents) + line) for line in _written(patch))


def _written(patch: Patch) -> list[str]:
    value: Json = patch.value
    last = patch.path[-1] if patch.path else ""
    if patch.op == "append" or isinstance(last, int):
        value = [value]
    elif patch.path:
        value = {str(last): value}
    # A list is indented below its key; here that key is on a line of its own.
    return yaml_text.block(value).rstrip("\n").splitlines()


def _key(path: Path, depth: int) -> str:
    part = path[depth]
    if isinstance(part, int):
        return f"{_indent(path[:depth])}- # [{part}]"
    return _indent(path[:depth]) + yaml_text.inline({part: None}).strip("{}").removesuffix(" null")


def _indent(path: Path) -> str:
    return "  " * len(path)


def _shared(first: Path, second: Path) -> int:
    count = 0
    for one, other in zip(first, second, strict=False):
        if one != other:
            break
        count += 1
    return count
