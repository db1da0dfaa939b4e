"""The values of the chart, as its files have them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import yaml

from gpugate.policies.catalog import CATALOG
from gpugate.webhook.generate.chart.guards import GUARDS
from gpugate.webhook.generate.chart.manifests import default_values
from gpugate.webhook.generate.chart.names import NAMED
from gpugate.webhook.generate.chart.objects import helm_objects, objects
from gpugate.webhook.generate.chart.terms import Term, Value
from gpugate.webhook.generate.chart.value_docs import descriptions
from gpugate.webhook.generate.chart.value_types import Resources, Section
from gpugate.webhook.generate.chart.values import Values
from gpugate.webhook.generate.chart.values_file import values_file
from gpugate.webhook.generate.chart.values_schema import values_schema

if TYPE_CHECKING:
    from collections.abc import Iterator

SCHEMA: dict[str, Any] = json.loads(values_schema())


def test_the_file_says_what_the_types_say() -> None:
    assert yaml.safe_load(values_file()) == default_values()


def test_every_value_has_its_comment() -> None:
    lines = values_file().splitlines()
    keys = [number for number, line in enumerate(lines) if line.lstrip().startswith("# -- ")]

    assert len(keys) == sum(len(each["properties"]) for each in sections())


def sections() -> Iterator[dict[str, Any]]:
    """The schemas of our own sections, the whole first; a section that stands in several places as often."""

    def within(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
        yield schema
        for each in schema["properties"].values():
            names = {part["$ref"].rpartition("/")[2] for part in each.get("allOf", ())}
            for name in names - {Resources.__name__}:
                yield from within(SCHEMA["definitions"][name])

    yield from within(SCHEMA)


def test_no_section_takes_keys_that_it_does_not_know() -> None:
    assert {each["additionalProperties"] for each in sections()} == {False}


def test_the_ids_of_policies_are_known() -> None:
    (ids, _) = SCHEMA["properties"]["policy"]["properties"]["policies"]["propertyNames"]["anyOf"]

    assert set(ids["enum"]) == {policy.id for policy in CATALOG}


def test_what_helm_cannot_read_is_not_in_the_schema() -> None:
    assert "(?" not in json.dumps(SCHEMA)
    assert "$defs" not in json.dumps(SCHEMA)


def test_a_value_that_nobody_describes_is_a_mistake() -> None:
    class Undescribed(Section, frozen=True):
        """A section.

        Attributes:
            one: described.
        """

        one: int = 1
        other: int = 1

    with pytest.raises(ValueError, match="say under `Attributes:` what other is for"):
        descriptions(Undescribed)


def paths(node: object) -> Iterator[str]:
    """Every path of a value in a description."""
    if isinstance(node, Value):
        yield node.path
    elif isinstance(node, dict):
        for each in node.values():
            yield from paths(each)
    elif isinstance(node, list | tuple):
        for each in node:
            yield from paths(each)
    elif isinstance(node, Term):
        yield from paths([value for value in vars(node).values() if not isinstance(value, str)])


def test_no_object_reads_a_value_that_does_not_exist() -> None:
    described = [*objects().values(), *helm_objects().values(), *NAMED.values(), *(each.refused for each in GUARDS)]
    read = set(paths(described))

    def exists(path: str) -> bool:
        section: Any = Values()
        for name in path.split("."):
            named = {field.encode_name: field.name for field in msgspec.structs.fields(section)}
            if name not in named:
                return False
            section = getattr(section, named[name])
        return True

    assert {path for path in read if not exists(path)} == set()
    assert len(read) > 40
