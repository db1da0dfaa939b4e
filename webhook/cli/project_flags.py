"""The flags of a command together with the variables and the project file that stand in for them."""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gpugate.policies.sdk.structs import Struct
from gpugate.webhook.cli.options import UsageError
from gpugate.webhook.manifests.inputs import ObjectsInValues
from gpugate.webhook.own_policies.catalog import OwnPaths
from gpugate.webhook.project.find import VARIABLE, Found, find
from gpugate.webhook.project.settings import SETTINGS, Setting, Sort
from gpugate.webhook.project.settle import Settled, Source, settle

CHANGE: Final = "change"
BASE: Final = "base"
# What is read from the base revision beside the project file.
_OF_BASE: Final = ("policy_file", "catalogue", "baseline", "schemas")
_SHORT: Final = 12

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping, Sequence

    from gpugate.webhook.manifests.git import Revision
    from gpugate.webhook.manifests.placeholders import Declared
    from gpugate.webhook.project.read import Chart, ProjectFile, Template
    from gpugate.webhook.rendering.options import ChartValues


class Project(Struct, frozen=True):
    """What holds for a run: key -> setting; the file that says some of it; and where policies outside the library are."""

    settings: Mapping[str, Settled]
    file: ProjectFile | None = None
    base: Revision | None = None
    own: OwnPaths = OwnPaths()

    @property
    def remarks(self) -> tuple[str, ...]:
        """Sentences on what is not read, and on what is read from the base revision."""
        own = self.file.remarks if self.file else ()
        if self.base is None:
            return own
        files = [str(self.file.file) if self.file else ""]
        files += [str(self.settings[key].value or "") for key in _OF_BASE if key in self.settings]
        named = ", ".join(file for file in files if file and self.base.holds(file)) or "no settings"
        return (*own, f"read from {self.base.name} ({self.base.commit[:_SHORT]}), not from the change: {named}")

    @contextmanager
    def blamed(self) -> Iterator[None]:
        """Let an error that names a flag name the variable or the line of the file instead, where that stands in for it."""
        try:
            yield
        except UsageError as error:
            for settled_setting in self.settings.values():
                names = [f"{name} " for name in (settled_setting.setting.flag, settled_setting.setting.alias) if name]
                prefix = next((name for name in names if str(error).startswith(name)), None)
                if prefix and settled_setting.source in {Source.ENVIRONMENT, Source.FILE}:
                    raise UsageError(
                        f"{settled_setting.location}: {settled_setting.setting.key}: {str(error).removeprefix(prefix)}"
                    ) from None
            raise


def add(parser: argparse.ArgumentParser) -> None:
    """Add the flags that name the project file."""
    group = parser.add_argument_group("project")
    either = group.add_mutually_exclusive_group()
    either.add_argument(
        "-c",
        "--config",
        type=Path,
        metavar="FILE",
        help=f"project file (default: {VARIABLE}, else the nearest .gpugate.yaml or pyproject.toml with [tool.gpugate])",
    )
    either.add_argument("--no-config", action="store_true", help="do not read a project file")


def add_own_policies(parser: argparse.ArgumentParser) -> None:
    """Add the flags that select policies outside the library."""
    group = parser.add_argument_group("policies outside the library")
    group.add_argument(
        "--policy-path",
        action="append",
        default=[],
        type=Path,
        metavar="DIR",
        help="directory of policies, as ORGANISATION/NAME.py or .yaml; Python code in it is run; repeatable",
    )
    group.add_argument(
        "--no-project-policies",
        action="store_true",
        help="skip the directories of policies that the project file and the policy file name",
    )


def add_trust(parser: argparse.ArgumentParser) -> None:
    """Add the flags that select the trusted settings for an untrusted change."""
    group = parser.add_argument_group("untrusted changes")
    group.add_argument(
        "--trust",
        choices=(CHANGE, BASE),
        help="read project file, policy file, policies, catalogue, baseline and schemas from the working directory (change, the default) or from the revision of --base (base); in CI for a pull request, directories of policies are read from the base by default",
    )
    group.add_argument(
        "--base",
        metavar="REV",
        help="revision that the change will be merged into (default: GITHUB_BASE_REF or CI_MERGE_REQUEST_DIFF_BASE_SHA)",
    )


def parse(
    parser: argparse.ArgumentParser, command: str, arguments: Sequence[str]
) -> tuple[argparse.Namespace, Project]:
    """Parse the arguments of a command; where flags say nothing, what holds without them is filled in.

    Raises:
        GpugateError: the project file or a variable is refused.
    """
    rows = [setting for setting in SETTINGS if command in setting.commands]
    # A flag that is not given is distinguished from one with the default value.
    dests = [dest for setting in rows for dest in setting.dests]
    defaults = {dest: parser.get_default(dest) for dest in dests}
    parser.set_defaults(**dict.fromkeys(dests))
    args = parser.parse_args(arguments)
    flags = {setting.key: value for setting in rows if (value := _flag_value(args, setting)) is not None}
    project = settled(args, flags)
    for setting in rows:
        for dest in setting.dests:
            if getattr(args, dest) is None:
                setattr(args, dest, defaults[dest])
        if setting.key not in flags and setting.key in project.settings:
            filled = project.settings[setting.key]
            setattr(args, (*setting.dests, setting.key)[0], _argument(setting, filled.value))
    return args, project


def settled(args: argparse.Namespace, flags: Mapping[str, object]) -> Project:
    """Settle every setting, by the file that `add`'s flags name or that is found; `flags` is key -> what flags say."""
    directory = Path.cwd()
    base = None
    if getattr(args, "trust", None) == BASE:
        from gpugate.webhook.project.base import base_of  # noqa: PLC0415 -- starts programs

        base = base_of(args.base, os.environ, directory)
    project_file = None
    if args.config is not None:
        project_file = Found(args.config)
    elif not args.no_config:
        project_file = _find_file(base, directory)
    file = None
    if project_file is not None:
        from gpugate.webhook.project.read import MOST_BYTES, read_project  # noqa: PLC0415 -- costs start-up time

        data = None
        if base is not None:
            from gpugate.webhook.project.base import read_from  # noqa: PLC0415 -- as above

            data = read_from(base, directory / project_file.file, MOST_BYTES)
        file = read_project(project_file.file, directory, project_file.remarks, data)
    settings = settle(flags, os.environ, file, directory)
    return Project(settings, file, base, _own_paths(args, settings["policy_paths"], base, directory))


def _own_paths(args: argparse.Namespace, setting: Settled, base: Revision | None, directory: Path) -> OwnPaths:
    """Return the directories of policies, and the revision that they are read from.

    The code of a policy runs with the rights of the process. The author of a change may have written it, so that in CI for a
    pull request it is read from the base, unless `--trust change` says otherwise.
    """

    def policy_base() -> Revision | None:
        from gpugate.webhook.project.base import VARIABLES, base_of  # noqa: PLC0415 -- starts programs

        chosen = getattr(args, "trust", CHANGE)
        if base is not None or chosen is not None or not any(os.environ.get(name) for name in VARIABLES):
            return base
        return base_of(None, os.environ, directory)

    directories = tuple(Path(text) for text in setting.value or ())
    is_of_project = setting.source is Source.FILE
    return OwnPaths(
        directories=() if is_of_project else directories,
        of_project=directories if is_of_project else (),
        base=policy_base,
        is_off=getattr(args, "no_project_policies", False),
    )


def _find_file(base: Revision | None, directory: Path) -> Found | None:
    if base is None:
        return find(directory, os.environ)
    from gpugate.webhook.project.base import find_in  # noqa: PLC0415 -- starts programs

    return find_in(base, directory, os.environ)


def _flag_value(args: argparse.Namespace, setting: Setting) -> object:
    """Return what flags say of a setting, None where they say nothing."""
    values = [value for dest in setting.dests if (value := getattr(args, dest)) not in (None, [])]
    if not values:
        return None
    if isinstance(values[0], list):
        return tuple(str(entry) for value in values for entry in value)
    return str(values[0]) if isinstance(values[0], Path) else values[0]


def _argument(setting: Setting, value: Any) -> object:  # Any: of the type of its setting
    """Return a value as the parser would have made it."""
    if value is None:
        return None
    if setting.sort in {Sort.FILE, Sort.FOLDER}:
        return Path(value)
    if setting.sort is Sort.CHARTS:
        return tuple(_values(chart) for chart in value)
    if setting.sort is Sort.OBJECTS:
        return tuple(
            ObjectsInValues(entry.files, entry.path, entry.api_version, entry.kind, entry.spec) for entry in value
        )
    if setting.sort is Sort.TEMPLATES:
        return tuple(_declared(value))
    return list(value) if isinstance(value, tuple) else value


def _declared(templates: Sequence[Template]) -> Iterator[Declared]:
    from gpugate.webhook.manifests.placeholders import Declared  # noqa: PLC0415 -- few projects have templates

    for template in templates:
        for pattern in template.paths:
            yield Declared(pattern, template.tool)


def _values(chart: Chart) -> ChartValues:
    from gpugate.webhook.rendering.options import ChartValues  # noqa: PLC0415 -- few projects have charts

    return ChartValues(
        path=chart.path,
        values=tuple((entry,) if isinstance(entry, str) else entry for entry in chart.values) or ((),),
        set=chart.set,
        release=chart.release,
        namespace=chart.namespace,
        api_versions=chart.api_versions,
    )
