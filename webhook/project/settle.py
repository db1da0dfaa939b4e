"""Settles what holds for each setting: a flag, else a variable, else the project file, else the default."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gpugate.policies.sdk.field import render
from gpugate.webhook.manifests.within import refuse_link
from gpugate.webhook.project.errors import ProjectFileError, VariableError
from gpugate.webhook.project.settings import SETTINGS, Setting, Sort

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpugate.webhook.project.read import ProjectFile

_SWITCH: Final = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
_LISTS: Final = frozenset({Sort.TEXTS, Sort.PATHS, Sort.PATTERNS, Sort.OUTPUTS})


class Source(StrEnum):
    """Who says what holds, the one that wins first."""

    FLAG = "flag"
    ENVIRONMENT = "environment"
    FILE = "file"
    DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class Settled:
    """What holds for a setting, and who says so; `project` is the file where it does."""

    setting: Setting
    value: Any  # Any: of the type of its setting
    source: Source
    project: ProjectFile | None = None

    @property
    def origin(self) -> str:
        """The flag, the variable, `FILE:LINE`, or `default`."""
        if self.project is not None:
            return f"{self.project.file}:{self.project.place((self.setting.key,))[0]}"
        return self._named

    @property
    def place(self) -> str:
        """The same, with the column where a file says so."""
        if self.project is None:
            return self._named
        line, column = self.project.place((self.setting.key,))
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
    given = getattr(project.config, setting.key) if project else None
    if project is not None and given is not None:
        from gpugate.webhook.project import paths  # noqa: PLC0415 -- only a file has paths of its own

        home = directory / project.file.parent
        refused = paths.refused(setting, given, home)
        if refused is not None:
            path, wrong = refused
            line, column = project.place(path)
            raise ProjectFileError(f"{project.file}:{line}:{column}: {render(path)}: {wrong}")
        value = paths.rebased(setting.sort, given, home, directory)
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
