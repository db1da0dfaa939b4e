"""Paths of a project file: which of them are read, and how they are seen from the working directory."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

import msgspec

from gpugate.webhook.manifests.within import Wanted, pattern_refusal, refusal, work_tree
from gpugate.webhook.project.settings import Sort

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from gpugate.policies.sdk import field
    from gpugate.webhook.project.config import Chart
    from gpugate.webhook.project.settings import Setting

_STDIN: Final = "-"
_WILD: Final = "*?["
_WANTED: Final = {Sort.FILE: Wanted.FILE, Sort.FOLDER: Wanted.DIRECTORY, Sort.PATHS: Wanted.EITHER}


def rebased(sort: Sort, value: Any, home: Path, directory: Path) -> Any:  # Any: of the type of its setting
    """Return a value whose paths are relative to `home` with paths relative to `directory`."""

    def path(text: str) -> str:
        return text if os.path.isabs(text) or text == _STDIN else os.path.relpath(home / text, directory)  # noqa: PTH117 -- of a text

    def pattern(text: str) -> str:
        # `./` keeps a pattern from being one for a name at any depth.
        return text if "/" not in text.rstrip("/") or os.path.isabs(text) else f"./{path(text)}"  # noqa: PTH117 -- of a text

    def output(text: str) -> str:
        name, equals, file = text.partition("=")
        return f"{name}={path(file)}" if equals else text

    if sort in {Sort.FILE, Sort.FOLDER}:
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


def refused(
    setting: Setting, value: Any, home: Path
) -> tuple[field.Path, str] | None:  # Any: of the type of its setting
    """Return the first path of a setting that is not read or written, and what is wrong with it; None where all may be.

    Whoever proposes a change may have written the project file, so that its paths are held to the rule of `within`: the
    work tree of `home`, or without one `home` itself. What flags and variables say is the user's own.
    """
    top = work_tree(str(home)) or os.path.realpath(home)
    for path, text, wanted in _named(setting.sort, value):
        where = str(home / text) if "\0" not in text else text
        wild = setting.sort is Sort.PATHS and any(sign in text for sign in _WILD)
        wrong = pattern_refusal(where, top) if wild else refusal(where, top, wanted)
        if wrong and setting.sort is Sort.OUTPUTS and "\0" not in text:
            said = wrong if wrong.startswith("is not") else "writes outside the repository"
            wrong = f"{said}: name a file in it, or give --output"
        elif wrong and "\0" not in text:
            remedy = f", or give {setting.flag}" if setting.flag.startswith("--") else ""
            wrong = f"{text} {wrong}: name one in the repository{remedy}"
        if wrong:
            return (setting.key, *path), wrong
    return None


def _named(sort: Sort, value: Any) -> Iterator[tuple[field.Path, str, Wanted]]:
    """Yield the paths that a setting names, with their places in it and what each must lead to."""
    if sort in {Sort.FILE, Sort.FOLDER}:
        yield (), str(value), _WANTED[sort]
    elif sort is Sort.PATHS:
        yield from (((index,), text, Wanted.EITHER) for index, text in enumerate(value) if text != _STDIN)
    elif sort is Sort.OUTPUTS:
        files = ((index, text.partition("=")[2]) for index, text in enumerate(value))
        yield from (((index,), file, Wanted.FILE) for index, file in files if file not in {"", _STDIN})
    elif sort is Sort.CHARTS:
        for index, chart in enumerate(value):
            yield from _of_chart(chart, (index,))


def _of_chart(chart: Chart, at: field.Path) -> Iterator[tuple[field.Path, str, Wanted]]:
    yield (*at, "path"), chart.path, Wanted.EITHER
    for index, files in enumerate(chart.values):
        if isinstance(files, str):
            yield (*at, "values", index), files, Wanted.FILE
            continue
        for number, file in enumerate(files):
            yield (*at, "values", index, number), file, Wanted.FILE
