"""Resolve each setting: a flag, else a variable, else the project file, else the default."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from gpugate.policies.sdk.field import render
from gpugate.policies.sdk.structs import Struct
from gpugate.webhook.manifests.within import Wanted, pattern_refusal, refusal, refuse_link, work_tree
from gpugate.webhook.project.find import ProjectFileError, VariableError
from gpugate.webhook.project.settings import SETTINGS, Setting, Sort

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gpugate.policies.sdk import field
    from gpugate.webhook.project.read import Chart, ProjectFile

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
    if sort is Sort.OBJECTS:
        return tuple(msgspec.structs.replace(entry, files=tuple(map(pattern, entry.files))) for entry in value)
    if sort is Sort.TEMPLATES:
        return tuple(msgspec.structs.replace(entry, paths=tuple(map(pattern, entry.paths))) for entry in value)
    convert = {Sort.PATHS: path, Sort.FOLDERS: path, Sort.PATTERNS: pattern, Sort.OUTPUTS: output}.get(sort)
    return tuple(map(convert, value)) if convert else value


def refuse_path(
    setting: Setting, value: Any, home: Path
) -> tuple[field.Path, str] | None:  # Any: of the type of its setting
    """Return the first path of a setting that is not read or written, and what is wrong with it; None where all may be.

    The author of a change may have written the project file, so its paths must be in the work tree of `home`, or
    without one in `home` itself. Flags and variables are from the user.
    """
    top = work_tree(str(home)) or os.path.realpath(home)
    for path, text, wanted in _named(setting.sort, value):
        where = str(home / text) if "\0" not in text else text
        wild = setting.sort is Sort.PATHS and any(sign in text for sign in _WILD)
        wrong = pattern_refusal(where, top) if wild else refusal(where, top, wanted)
        if wrong and setting.sort is Sort.OUTPUTS and "\0" not in text:
            problem = wrong if wrong.startswith("is not") else "writes outside the repository"
            wrong = f"{problem}: name a file in it, or give --output"
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
    elif sort is Sort.FOLDERS:
        yield from (((index,), text, Wanted.DIRECTORY) for index, text in enumerate(value))
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


_SWITCH: Final = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
_LISTS: Final = frozenset({Sort.TEXTS, Sort.PATHS, Sort.FOLDERS, Sort.PATTERNS, Sort.OUTPUTS})


class Source(StrEnum):
    """Who says what holds, the one that wins first."""

    FLAG = "flag"
    ENVIRONMENT = "environment"
    FILE = "file"
    DEFAULT = "default"


class Settled(Struct, frozen=True):
    """What holds for a setting, and who says so; `project` is the file where it does."""

    setting: Setting
    value: Any  # Any: of the type of its setting
    source: Source
    project: ProjectFile | None = None

    @property
    def origin(self) -> str:
        """The flag, the variable, `FILE:LINE`, or `default`."""
        if self.project is not None:
            return f"{self.project.file}:{self.project.locate((self.setting.key,))[0]}"
        return self._named

    @property
    def location(self) -> str:
        """The same, with the column where a file says so."""
        if self.project is None:
            return self._named
        line, column = self.project.locate((self.setting.key,))
        return f"{self.project.file}:{line}:{column}"

    @property
    def _named(self) -> str:
        names = {Source.FLAG: self.setting.flag, Source.ENVIRONMENT: self.setting.variable}
        return names.get(self.source, self.source.value)


def settle(
    flags: Mapping[str, object], environment: Mapping[str, str], project: ProjectFile | None, directory: Path
) -> dict[str, Settled]:
    """Settle every setting; return key -> what holds.

    Args:
        flags: key -> what flags say; without the keys of which they say nothing.
        environment: the variables.
        project: the project file.
        directory: the working directory, from which paths of the file are seen afterwards.

    Raises:
        LinkError: a flag or a variable names a link of the tree that leads out of it.
        VariableError: a variable holds what its setting does not take.
        ProjectFileError: the file names a path that the rule of `manifests.within` refuses.
    """
    return {setting.key: _settled(setting, flags, environment, project, directory) for setting in SETTINGS}


def _settled(
    setting: Setting,
    flags: Mapping[str, object],
    environment: Mapping[str, str],
    project: ProjectFile | None,
    directory: Path,
) -> Settled:
    if setting.key in flags:
        return Settled(setting, _unlinked(setting, flags[setting.key], setting.flag), Source.FLAG)
    if setting.variable and environment.get(setting.variable):
        value = _unlinked(setting, _read(setting, environment[setting.variable]), setting.variable)
        return Settled(setting, value, Source.ENVIRONMENT)
    setting_value = getattr(project.config, setting.key) if project else None
    if project is not None and setting_value is not None:
        home = directory / project.file.parent
        refused = refuse_path(setting, setting_value, home)
        if refused is not None:
            path, wrong = refused
            line, column = project.locate(path)
            raise ProjectFileError(f"{project.file}:{line}:{column}: {render(path)}: {wrong}")
        value = rebased(setting.sort, setting_value, home, directory)
        return Settled(setting, value, Source.FILE, project)
    return Settled(setting, setting.default, Source.DEFAULT)


def _unlinked(setting: Setting, value: object, name: str) -> object:
    """Return the value of a flag or variable; other settings with paths are held to the same rule where they are read.

    Raises:
        LinkError: the file or folder is a link of the tree that leads out of it, or below one.
    """
    if setting.sort in {Sort.FILE, Sort.FOLDER}:
        refuse_link(Path(str(value)), name)
    return value


def _read(setting: Setting, text: str) -> object:
    """Read a variable; lists have commas between their members."""
    if setting.sort in _LISTS:
        return tuple(part.strip() for part in text.split(",") if part.strip())
    if setting.sort is Sort.SWITCH:
        if text.lower() not in _SWITCH:
            raise VariableError(f"{setting.variable}={text!r}: write true or false")
        return _SWITCH[text.lower()]
    if setting.choices and text not in setting.choices:
        raise VariableError(f"{setting.variable}={text!r}: write {' or '.join(setting.choices)}")
    return text
