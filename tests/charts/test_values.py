"""Test that values.yaml, values.schema.json and the templates agree."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fastjsonschema
import pytest
import yaml
from documentation.helm_values import merged

from gpugate import __version__
from gpugate.tools.chart_files import ChartValue, chart_values
from gpugate.webhook.manifests.documents import Document, read_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

CHART = Path(__file__).parents[2] / "charts" / "gpugate"
SCHEMA: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text())
TEXT = (CHART / "values.yaml").read_text()
VALUES = chart_values(TEXT)
TEMPLATES = {file.name: file.read_text() for file in (CHART / "templates").rglob("*") if file.is_file()}
WEBHOOKS: dict[str, Any] = json.loads((CHART / "files" / "webhooks.json").read_text())
# Values of parent charts, which Helm reads itself.
UNUSED = {"enabled", "global"}
# Values that may be missing, because templates read them with `with` or `if`.
OPTIONAL = {"nodeSelector", "affinity"}


def iterate_leaves(values: Sequence[ChartValue]) -> Iterator[ChartValue]:
    for value in values:
        yield from iterate_leaves(value.members) if value.members else [value]


def with_schemas(values: Sequence[ChartValue], schema: dict[str, Any]) -> Iterator[tuple[ChartValue, dict[str, Any]]]:
    """Yield each value with its schema; sections come before their members."""
    for value in values:
        value_schema = schema["properties"][value.path.rpartition(".")[2]]
        yield value, value_schema
        if value.members:
            yield from with_schemas(value.members, resolve_section(value_schema))


def resolve_section(schema: dict[str, Any]) -> dict[str, Any]:
    (reference,) = schema["allOf"]
    definition: dict[str, Any] = SCHEMA["definitions"][reference["$ref"].rpartition("/")[2]]
    return definition


def read_paths(templates: dict[str, str]) -> set[str]:
    """Return the paths of the values that templates read, in their text or by a name in `files/webhooks.json`."""
    text = "\n".join(templates.values())
    # Variables for sections.
    for name, path in re.findall(r"\$(\w+) := \$?\.Values\.([\w.]+) }}", text):
        text = text.replace(f"${name}.", f".Values.{path}.")
    paths = set(re.findall(r"\.Values\.([\w.]+)", text))
    for key in re.findall(r"\(get \$\.Values\.webhooks \.\)\.(\w+)", text):
        paths |= {f"webhooks.{group}.{key}" for group in WEBHOOKS["groups"]}
    for configuration in WEBHOOKS["configurations"]:
        paths.add(f"webhooks.{configuration['timeoutValue']}")
        of_groups = [webhook for webhook in configuration["webhooks"] if "failurePolicyValue" in webhook]
        paths |= {f"webhooks.{webhook['group']}.{webhook['failurePolicyValue']}" for webhook in of_groups}
    return paths


def test_the_schema_accepts_the_default_values() -> None:
    fastjsonschema.validate(SCHEMA, yaml.safe_load(TEXT))


def test_the_schema_has_the_same_values_and_descriptions() -> None:
    wrong = {value.path for value, schema in with_schemas(VALUES, SCHEMA) if schema["description"] != value.meaning}
    sections = {"": (VALUES, SCHEMA)} | {
        value.path: (value.members, resolve_section(schema))
        for value, schema in with_schemas(VALUES, SCHEMA)
        if value.members
    }

    assert wrong == set()
    for members, schema in sections.values():
        assert list(schema["properties"]) == [value.path.rpartition(".")[2] for value in members]
        assert schema["additionalProperties"] is False


def test_only_optional_values_can_be_null() -> None:
    sections = [(VALUES, SCHEMA)] + [
        (value.members, resolve_section(schema)) for value, schema in with_schemas(VALUES, SCHEMA) if value.members
    ]
    optional = {
        value.path
        for members, schema in sections
        for value in members
        if value.path.rpartition(".")[2] not in schema["required"]
    }

    assert optional == OPTIONAL


def test_every_value_is_used() -> None:
    unused = {value.path for value in iterate_leaves(VALUES)} - read_paths(TEMPLATES)

    assert unused == UNUSED


def test_no_template_reads_a_value_that_does_not_exist() -> None:
    known = {value.path for value, _ in with_schemas(VALUES, SCHEMA)}
    objects = tuple(f"{value.path}." for value in iterate_leaves(VALUES) if isinstance(value.default, dict))

    assert {path for path in read_paths(TEMPLATES) if path not in known and not path.startswith(objects)} == set()
    assert len(read_paths(TEMPLATES)) > 40


def test_misspelled_values_in_templates_are_detected() -> None:
    assert read_paths({"a.yaml": "{{ .Values.image.tagg }}"}) >= {"image.tagg"}
    assert read_paths({"a.yaml": "{{ $section := .Values.server }}{{ $section.prot }}"}) >= {"server.prot"}


def test_every_named_template_is_used() -> None:
    text = "\n".join(TEMPLATES.values())
    defined = set(re.findall(r'define "(gpugate\.\w+)"', text))

    assert defined == set(re.findall(r'include "(gpugate\.\w+)"', text))


def test_the_chart_version_is_the_version_of_gpugate() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())

    assert (chart["version"], chart["appVersion"]) == (__version__, __version__)
    assert yaml.safe_load(TEXT)["image"]["tag"] == __version__


@pytest.mark.parametrize(("template", "table"), [("deployment.yaml", "serve"), ("audit.yaml", "audit")])
def test_the_flags_of_the_chart_cannot_be_overridden(template: str, table: str) -> None:
    arguments = TEMPLATES[template].partition("args:")[2].partition("resources:")[0]
    for helper in re.findall(r'include "(gpugate\.\w+Args)"', arguments):
        arguments += TEMPLATES["_helpers.tpl"].partition(f'define "{helper}"')[2].partition("{{- define")[0]
    flags = set(re.findall(r"(--[a-z][a-z-]*)", arguments))
    (rejected,) = re.findall(rf"\${table} := dict(.*?)}}}}", TEMPLATES["validate.yaml"], re.DOTALL)

    # Further outputs of an audit and further directories of policies do no harm.
    assert flags - {"--output", "--summary-log", "--policy-path"} == set(re.findall(r'"(--[a-z-]+)"', rejected))


@pytest.mark.parametrize("case", sorted((CHART / "ci").glob("*.yaml")), ids=lambda case: case.stem)
def test_the_schema_accepts_the_values_of_ci(case: Path) -> None:
    (document,) = read_text(case.name, case.read_text())
    assert isinstance(document, Document)

    fastjsonschema.validate(SCHEMA, merged(document.value, yaml.safe_load(TEXT)))
