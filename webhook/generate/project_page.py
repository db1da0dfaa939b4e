"""The page on the project file: every key, with its flag, its variable and its default."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.webhook.generate.markdown import cell, code, table
from gpugate.webhook.generate.project_schema import project_schema
from gpugate.webhook.generate.schema_page import schema_page
from gpugate.webhook.project.settings import SETTINGS, Setting
from gpugate.webhook.report import yaml_text

if TYPE_CHECKING:
    from gpugate.policies.sdk.field import Json

_INTRODUCTION: Final = """`.gpugate.yaml`, or `[tool.gpugate]` in pyproject.toml, says how `check` and `test` run in a repository;
[configuration](../configuration.md) says where it is looked for and what wins. Editors take
[project-v1.schema.json](../schemas/project-v1.schema.json), which `gpugate config schema project` prints too.

## Flags and variables

A flag wins over a variable, that over the file, and that over the default. In a variable, the members of a list have commas
between them. `gpugate config show --origin` says what holds, and who says so.

{table}"""


def project_page() -> str:
    """Return the page."""
    head = ("key", "flag", "variable", "default", "commands")
    found = table(head, map(_row, SETTINGS))
    return schema_page("Project file", _INTRODUCTION.format(table=found), project_schema())


def _row(setting: Setting) -> tuple[str, ...]:
    default = "" if setting.default in (None, ()) else code(cell(yaml_text.inline(_plain(setting.default))))
    commands = ", ".join(map(code, setting.commands))
    return code(setting.key), code(setting.flag), code(setting.variable), default, commands


def _plain(default: object) -> Json:
    if isinstance(default, bool):
        return default
    return [str(each) for each in default] if isinstance(default, tuple) else str(default)
