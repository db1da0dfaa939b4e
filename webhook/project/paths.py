"""Paths of a project file, as they are seen from the working directory."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import msgspec

from gpugate.webhook.manifests.within import is_within
from gpugate.webhook.manifests.work_tree import work_tree
from gpugate.webhook.project.settings import Sort

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def rebased(sort: Sort, value: Any, home: Path, directory: Path) -> Any:  # Any: of the type of its setting
    """Return a value whose paths are relative to `home` with paths relative to `directory`."""

    def path(text: str) -> str:
        return text if os.path.isabs(text) or text == "-" else os.path.relpath(home / text, directory)  # noqa: PTH117 -- of a text

    def pattern(text: str) -> str:
        # `./` keeps a pattern from being one for a name at any depth.
        return text if "/" not in text.rstrip("/") or os.path.isabs(text) else f"./{path(text)}"  # noqa: PTH117 -- of a text

    def output(text: str) -> str:
        name, equals, file = text.partition("=")
        return f"{name}={path(file)}" if equals else text

    if sort is Sort.PATH:
        return path(value)
    if sort is Sort.CHARTS:
        return tuple(
            msgspec.structs.replace(
                chart,
                path=path(chart.path),
                values=tuple(path(v) if isinstance(v, str) else tuple(map(path, v)) for v in chart.values),
            )
            for chart in value
        )
    each = {Sort.PATHS: path, Sort.PATTERNS: pattern, Sort.OUTPUTS: output}.get(sort)
    return tuple(map(each, value)) if each else value


def refused_output(outputs: Sequence[str], home: Path) -> tuple[int, str] | None:
    """Return the index of the first output that is no file in the work tree of `home`, and what is wrong; else None.

    Without a work tree it is `home` itself that must hold them.
    """
    top = work_tree(str(home)) or os.path.realpath(home)
    for index, text in enumerate(outputs):
        file = text.partition("=")[2]
        try:
            if file not in {"", "-"} and not is_within(str(home / file), top):
                return index, "writes outside the repository: name a file in it, or give --output"
        except ValueError:
            return index, "is no name of a file: it holds a character that none can have"
    return None
