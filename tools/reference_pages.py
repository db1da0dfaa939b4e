"""Generate the pages of `docs/reference`: settings, chart values and schemas."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

import msgspec

from gpugate.tools.chart_files import chart_values
from gpugate.webhook.audit.formats import json as audit_json
from gpugate.webhook.audit.tables import TABLES
from gpugate.webhook.config.published_schemas import cel_policy_schema, config_schema, project_schema
from gpugate.webhook.project.settings import SETTINGS, Setting
from gpugate.webhook.report import yaml_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from gpugate.policies.sdk.field import Json
    from gpugate.tools.chart_files import ChartValue


def cell(text: str) -> str:
    """Return a text for a table cell: on one line, with escaped column separators."""
    return " ".join(text.split()).replace("|", "\\|")


def code(text: str) -> str:
    """Return a text as inline code, also if it contains backticks; empty for an empty text."""
    fence = "``" if "`" in text else "`"
    return f"{fence}{text}{fence}" if text else ""


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table with a final newline."""
    lines = [_line(head), "|" + "---|" * len(head), *(_line(row) for row in rows)]
    return "\n".join(lines) + "\n"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


_Object = dict[str, Any]  # Any: the JSON edge

_ATTRIBUTE: Final = re.compile(r"^\s+(?P<name>\w+): (?P<text>.+)$")
# The parameters of policies are on the pages of the policies.
_ELSEWHERE: Final = re.compile(r".*\.Params\Z|ClaimParams\Z")
_MANY: Final = 12  # members of an enumeration that are still shown


def schema_page(title: str, intro: str, schema: _Object) -> str:
    """Return the page, with a table for the document and one for each definition that it references."""
    parts = schema.get("$defs", {})
    root = parts[_named(schema)] if "$ref" in schema else schema
    reached = _reached(root, parts)
    text = f"<!-- Written by `make generate` from the JSON schema. -->\n\n# {title}\n\n{intro}\n\n## The document\n\n"
    return text + _section(root) + "".join(f"\n## {name}\n\n{_section(part)}" for name, part in reached.items())


def _reached(root: _Object, parts: _Object) -> _Object:
    """Return the referenced definitions with properties, in the order of their first reference."""
    definitions: _Object = {}
    waiting = [root]
    while waiting:
        for name in _references(waiting.pop(0)):
            part = parts[name]
            if name in definitions or part is root or _ELSEWHERE.match(name):
                continue
            if part.get("properties") or "enum" in part:
                definitions[name] = part
                waiting.append(part)
    return definitions


def _references(value: Any) -> Iterator[str]:  # Any: the JSON edge
    if isinstance(value, dict):
        if "$ref" in value:
            yield _named(value)
        for member in value.values():
            yield from _references(member)
    elif isinstance(value, list):
        for member in value:
            yield from _references(member)


def _named(reference: _Object) -> str:
    return str(reference["$ref"]).rpartition("/")[2]


def _section(part: _Object) -> str:
    about, attributes = _described(part.get("description", ""))
    if "properties" not in part:
        return f"{about}\n\nOne of {', '.join(code(str(choice)) for choice in part['enum'])}.\n"
    required = part.get("required", ())
    rows = [
        (
            cell(code(name) + (" (required)" if name in required else "")),
            cell(_type(member)),
            cell(code(_default(member))),
            cell(member.get("description") or attributes.get(name, "")),
        )
        for name, member in part["properties"].items()
    ]
    return (f"{about}\n\n" if about else "") + table(("key", "type", "default", "meaning"), rows)


def _described(docstring: str) -> tuple[str, dict[str, str]]:
    """Split the docstring of a class into its description and those of its attributes."""
    about, _, listed = docstring.partition("Attributes:")
    attributes: dict[str, str] = {}
    name = ""
    for line in listed.splitlines():
        match = _ATTRIBUTE.match(line)
        if match:
            name = match["name"]
            attributes[name] = match["text"]
        elif name and line.strip():
            attributes[name] += f" {line.strip()}"
    return " ".join(about.split()), attributes


def _default(part: _Object) -> str:
    return json.dumps(part["default"], ensure_ascii=False) if part.get("default") not in (None, "", [], {}) else ""


def _type(part: _Object) -> str:
    if "$ref" in part:
        name = _named(part)
        return "object" if _ELSEWHERE.match(name) else f"[{name}](#{name.lower()})"
    if "const" in part:
        return code(str(part["const"]))
    if "enum" in part:
        return _one_of(part["enum"])
    return " or ".join(_type(choice) for choice in part["anyOf"]) if "anyOf" in part else _plain_type(part)


def _one_of(values: list[Any]) -> str:  # Any: the JSON edge
    listed = [code("null" if value is None else json.dumps(value).strip('"')) for value in values]
    return ", ".join(listed if len(listed) <= _MANY else [*listed[:_MANY], "..."])


def _plain_type(part: _Object) -> str:
    kind = part.get("type", "any")
    if kind == "array":
        return f"list of {_type(part.get('items', {}))}"
    if isinstance(part.get("additionalProperties"), dict):
        return f"object, each member {_type(part['additionalProperties'])}"
    return " or ".join(kind) if isinstance(kind, list) else str(kind)


_INTRODUCTION: Final = """`.gpugate.yaml`, or `[tool.gpugate]` in pyproject.toml, configures `check` and `test` for a repository;
[configuration](../configuration.md) describes how gpugate finds it and the order of precedence. Its JSON schema for editors is
[project-v1.schema.json](../schemas/project-v1.schema.json), which `gpugate config schema project` also prints.

## Flags and variables

The order of precedence is: flag, variable, file, default. Lists in variables are separated by commas.
`gpugate config show --origin` prints the settings in use and their origin.

{table}"""


def project_page() -> str:
    """Return the page."""
    head = ("key", "flag", "variable", "default", "commands")
    rows = table(head, map(_row, SETTINGS))
    return schema_page("Project file", _INTRODUCTION.format(table=rows), project_schema())


def _row(setting: Setting) -> tuple[str, ...]:
    default = "" if setting.default in (None, ()) else code(cell(yaml_text.inline(_plain(setting.default))))
    commands = ", ".join(map(code, setting.commands))
    return code(setting.key), code(setting.flag), code(setting.variable), default, commands


def _plain(default: object) -> Json:
    if isinstance(default, bool):
        return default
    return [str(element) for element in default] if isinstance(default, tuple) else str(default)


_HEAD: Final = """<!-- Written by `make generate` from charts/gpugate/values.yaml. -->

# Helm values

Every value of [the chart](../install.md), with its default. Helm rejects unknown keys. The JSON schema for editors
is [values.schema.json](../../charts/gpugate/values.schema.json).
"""
_VALUE_COLUMNS: Final = ("key", "default", "meaning")


def values_page(text: str) -> str:
    """Return the page for `values.yaml`."""
    values = chart_values(text)
    plain = [_value_row(member) for member in values if not member.members]
    sections = [member for member in values if member.members]
    parts = [f"{_HEAD}\n## Top-level values\n\n{table(_VALUE_COLUMNS, plain)}"]
    parts += [
        f"\n## {section.path}\n\n{section.meaning}\n\n{table(_VALUE_COLUMNS, _value_rows(section))}"
        for section in sections
    ]
    return "".join(parts)


_README_BEGIN: Final = "<!-- values: written by `make generate` from values.yaml -->\n"
_README_END: Final = "<!-- end of values -->\n"


def chart_readme(text: str, values: str) -> str:
    """Return the README of the chart with a table of all values between two comments.

    Args:
        text: the README as it is.
        values: `values.yaml` of the chart.

    Raises:
        ValueError: one of the comments is missing.
    """
    head, begin, remainder = text.partition(_README_BEGIN)
    _, end, tail = remainder.partition(_README_END)
    if not (begin and end):
        raise ValueError(f"README.md of the chart: the table of values needs {_README_BEGIN!r} and {_README_END!r}")
    rows = [row for value in chart_values(values) for row in (_value_row(value), *_value_rows(value))]
    return f"{head}{begin}\n{table(_VALUE_COLUMNS, rows)}\n{end}{tail}"


def _value_rows(section: ChartValue) -> Iterator[tuple[str, ...]]:
    for member in section.members:
        yield _value_row(member)
        yield from _value_rows(member)


def _value_row(value: ChartValue) -> tuple[str, ...]:
    default = "" if value.members else code(msgspec.json.encode(value.default).decode())
    return cell(code(value.path)), cell(default), cell(value.meaning)


_POLICY_FILE: Final = """The webhook, the audit, `check` and `test` read one file, `policy.yaml`; the chart value `policy` has the same content. The
page of each policy lists its `params` ([all policies](../../policies/README.md)). The JSON schema for editors is
[policy-v1.schema.json](../schemas/policy-v1.schema.json), which `gpugate config schema` also prints.

Unknown keys are errors with their location. `off` needs no quotes, although YAML 1.1 reads it as `false`. An exact name takes
precedence over a pattern; two matching patterns are an error."""
_CEL_POLICY: Final = """A document of the kind `Policy` is a policy whose rules are CEL expressions; [policies in CEL](../cel-policies.md)
describes the variables and functions of expressions. The JSON schema for editors is
[cel-policy-v1.schema.json](../schemas/cel-policy-v1.schema.json), which `gpugate config schema cel-policy` also prints.

Unknown keys are errors with their location."""
_AUDIT: Final = """The output of `gpugate audit -o json`. Its JSON schema is [audit-v1.schema.json](../schemas/audit-v1.schema.json), and
[the definitions](../audit.md#definitions) explain the figures. Within `gpugate.dev/audit/v1`, members are only added."""


_TABLES: Final = """`gpugate audit -o ndjson=PATH` and `-o parquet=PATH` write these tables
([export the results as tables](../audit.md#export-the-results-as-tables)). The schema is `gpugate.dev/audit-tables/v1`; within this
version, columns are only added. The JSON schema of the lines of NDJSON is
[audit-tables-v1.schema.json](../schemas/audit-tables-v1.schema.json).

Amounts are in US dollars per hour. A value that is unknown is null, and a text that does not apply is empty.
[The definitions](../audit.md#definitions) explain the figures."""
_TYPES: Final = (
    ("string", "string", "`STRING`"),
    ("integer", "number", "`INT64`"),
    ("number", "number", "`DOUBLE`"),
    ("boolean", "boolean", "`BOOLEAN`"),
    ("time", "string, RFC 3339 in UTC", "`TIMESTAMP`, microseconds in UTC"),
    ("date", "string, such as `2026-11-23`", "`DATE`"),
    ("labels", "object of strings", "`MAP` of strings"),
)


def tables_page() -> str:
    """Return the page of the tables, with their columns."""
    text = f"<!-- Written by `make generate` from the schema. -->\n\n# Tables of an audit\n\n{_TABLES}\n\n"
    text += table(("type", "NDJSON", "Parquet"), _TYPES)
    for of_audit in TABLES.values():
        rows = [
            (
                cell(code(column.name)),
                column.type + (" or null" if column.nullable else ""),
                column.unit,
                cell(column.meaning),
            )
            for column in of_audit.columns
        ]
        text += (
            f"\n## {of_audit.name}\n\nA row is {of_audit.row}.\n\n{table(('column', 'type', 'unit', 'meaning'), rows)}"
        )
    return text


def reference_pages(values: str) -> Mapping[str, str]:
    """Return the pages.

    Args:
        values: `values.yaml` of the Helm chart.
    """
    return {
        "policy-file.md": schema_page("Policy file", _POLICY_FILE, config_schema()),
        "cel-policy.md": schema_page("Policy document", _CEL_POLICY, cel_policy_schema()),
        "project-file.md": project_page(),
        "audit-json.md": schema_page("JSON of an audit", _AUDIT, audit_json.schema()),
        "audit-tables.md": tables_page(),
        "helm-values.md": values_page(values),
    }
