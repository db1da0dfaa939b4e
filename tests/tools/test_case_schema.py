"""The JSON schema of case files says what the reader takes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from gpugate.policies.catalog import CATALOG
from gpugate.webhook.config.published_schemas import case_schema
from gpugate.webhook.manifests import case_format

SCHEMA: dict[str, Any] = case_schema()
SECTIONS = (
    "Asked",
    "Definition",
    "Expect",
    "FromFile",
    "Merged",
    "PatchOperation",
    "Setting",
    "TargetVersions",
    "Where",
)


@pytest.mark.parametrize("section", SECTIONS)
def test_each_section_has_the_keys_that_are_read_and_no_others(section: str) -> None:
    definition = SCHEMA["$defs"][section]
    fields = msgspec.structs.fields(getattr(case_format, section))
    assert [*definition["properties"]] == [field.encode_name for field in fields]
    assert definition["additionalProperties"] is False


def references(value: Any) -> set[str]:
    if isinstance(value, dict):
        own = {value["$ref"]} if "$ref" in value else set()
        return own.union(*map(references, value.values()))
    return set().union(*map(references, value)) if isinstance(value, list) else set()


def test_every_reference_leads_somewhere() -> None:
    assert references(SCHEMA) <= {f"#/$defs/{name}" for name in SCHEMA["$defs"]}


def test_policies_are_those_of_the_catalogue() -> None:
    assert SCHEMA["$defs"]["Policy"]["enum"] == [policy.id for policy in CATALOG]
    expect = SCHEMA["$defs"]["Expect"]["properties"]
    assert {
        name: expect[name]["items"]["$ref"] for name in ("deny", "warn", "record", "mutate", "skip")
    } == dict.fromkeys(("deny", "warn", "record", "mutate", "skip"), "#/$defs/Policy")


def test_a_test_with_parameters_may_have_them_anywhere() -> None:
    test = SCHEMA["$defs"]["Test"]
    assert test["if"] == {"required": ["parametrize"]}
    assert set(test["then"]["propertyNames"]["enum"]) == set(SCHEMA["$defs"]["Definition"]["properties"])
