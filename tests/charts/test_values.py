"""The values of the chart: values.yaml, its schema and the templates agree."""

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
from gpugate.webhook.generate.chart_files import ChartValue, chart_values
from gpugate.webhook.manifests.documents import Document, read_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

CHART = Path(__file__).parents[2] / "charts" / "gpugate"
SCHEMA: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text())
TEXT = (CHART / "values.yaml").read_text()
VALUES = chart_values(TEXT)
TEMPLATES = {file.name: file.read_text() for file in (CHART / "templates").rglob("*") if file.is_file()}
WEBHOOKS: dict[str, Any] = json.loads((CHART / "files" / "webhooks.json").read_text())
# What a chart around this one says to Helm, which reads it itself.
OF_OTHERS = {"enabled", "global"}
# What `with` and `if` in the templates allow to be missing.
OPTIONAL = {"pods.nodeSelector", "pods.affinity"}


def leaves(values: Sequence[ChartValue]) -> Iterator[ChartValue]:
    for each in values:
        yield from leaves(each.members) if each.members else [each]


def described(values: Sequence[ChartValue], schema: dict[str, Any]) -> Iterator[tuple[ChartValue, dict[str, Any]]]:
    """Each value with its schema; sections come before their members."""
    for each in values:
        found = schema["properties"][each.path.rpartition(".")[2]]
        yield each, found
        if each.members:
            yield from described(each.members, section(found))


def section(schema: dict[str, Any]) -> dict[str, Any]:
    (referred,) = schema["allOf"]
    found: dict[str, Any] = SCHEMA["definitions"][referred["$ref"].rpartition("/")[2]]
    return found


def read(templates: dict[str, str]) -> set[str]:
    """The paths of the values that templates read: in their text, and where `files/webhooks.json` has their names."""
    text = "\n".join(templates.values())
    # A short name for a section.
    for name, path in re.findall(r"\$(\w+) := \$?\.Values\.([\w.]+) }}", text):
        text = text.replace(f"${name}.", f".Values.{path}.")
    found = set(re.findall(r"\.Values\.([\w.]+)", text))
    for key in re.findall(r"\(get \$\.Values\.webhooks \.\)\.(\w+)", text):
        found |= {f"webhooks.{group}.{key}" for group in WEBHOOKS["groups"]}
    for configuration in WEBHOOKS["configurations"]:
        found.add(f"webhooks.{configuration['timeoutValue']}")
        of_groups = [each for each in configuration["webhooks"] if "failurePolicyValue" in each]
        found |= {f"webhooks.{each['group']}.{each['failurePolicyValue']}" for each in of_groups}
    return found


def test_the_schema_takes_the_values_as_shipped() -> None:
    fastjsonschema.validate(SCHEMA, yaml.safe_load(TEXT))


def test_the_schema_knows_each_value_and_no_other_and_says_the_same_of_it() -> None:
    wrong = {each.path for each, schema in described(VALUES, SCHEMA) if schema["description"] != each.meaning}
    sections = {"": (VALUES, SCHEMA)} | {
        each.path: (each.members, section(schema)) for each, schema in described(VALUES, SCHEMA) if each.members
    }

    assert wrong == set()
    for members, schema in sections.values():
        assert list(schema["properties"]) == [each.path.rpartition(".")[2] for each in members]
        assert schema["additionalProperties"] is False


def test_null_takes_nothing_away_that_templates_count_on() -> None:
    optional = {
        each.path
        for parent, schema in [*described(VALUES, SCHEMA)]
        if parent.members
        for each in parent.members
        if each.path.rpartition(".")[2] not in section(schema)["required"]
    }

    assert set(SCHEMA["required"]) == {each.path for each in VALUES}
    assert optional == OPTIONAL


def test_every_value_is_used() -> None:
    unused = {each.path for each in leaves(VALUES)} - read(TEMPLATES)

    assert unused == OF_OTHERS


def test_no_template_reads_a_value_that_does_not_exist() -> None:
    known = {each.path for each, _ in described(VALUES, SCHEMA)}
    objects = tuple(f"{each.path}." for each in leaves(VALUES) if isinstance(each.default, dict))

    assert {path for path in read(TEMPLATES) if path not in known and not path.startswith(objects)} == set()
    assert len(read(TEMPLATES)) > 40


def test_a_template_that_misspells_a_value_is_found() -> None:
    assert read({"a.yaml": "{{ .Values.image.tagg }}"}) >= {"image.tagg"}
    assert read({"a.yaml": "{{ $section := .Values.server }}{{ $section.prot }}"}) >= {"server.prot"}


def test_no_template_is_without_a_use() -> None:
    text = "\n".join(TEMPLATES.values())
    made = set(re.findall(r'define "(gpugate\.\w+)"', text))

    assert made == set(re.findall(r'include "(gpugate\.\w+)"', text))


def test_the_version_is_that_of_the_program() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())

    assert (chart["version"], chart["appVersion"]) == (__version__, __version__)
    assert yaml.safe_load(TEXT)["image"]["tag"] == __version__


@pytest.mark.parametrize("case", sorted((CHART / "ci").glob("*.yaml")), ids=lambda case: case.stem)
def test_the_schema_takes_the_values_that_helm_is_tried_with(case: Path) -> None:
    (document,) = read_text(case.name, case.read_text())
    assert isinstance(document, Document)

    fastjsonschema.validate(SCHEMA, merged(document.value, yaml.safe_load(TEXT)))
