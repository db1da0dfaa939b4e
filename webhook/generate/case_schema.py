"""Writes the JSON schema of case files, `*.gpugate-test.yaml`, for editors."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from gpugate.policies.catalog import CATALOG
from gpugate.webhook.generate.config_schema import config_schema
from gpugate.webhook.manifests.case_format import Asked, CaseFileFormat, Definition, Expect, FromFile, Merged, Setting

_Object = dict[str, Any]  # Any: the JSON edge

_POLICY: Final = {"$ref": "#/$defs/Policy"}
_GIVEN: Final = {"$ref": "#/$defs/Given"}
_LISTS: Final = ("deny", "warn", "record", "mutate", "skip")


def case_schema() -> _Object:
    """Return the schema (draft 2020-12), in which policies are those of the catalogue."""
    types = (CaseFileFormat, FromFile, Merged)
    _, definitions = msgspec.json.schema_components(types, ref_template="#/$defs/{name}")
    root = definitions.pop(CaseFileFormat.__name__)
    expect = definitions[Expect.__name__]["properties"]
    for name in _LISTS:
        expect[name] = {**_told(expect[name]), "type": "array", "items": _POLICY}
    for name in ("at", "message"):
        expect[name]["propertyNames"] = _POLICY
    for section, name in ((Asked, "old"), (Expect, "fixed"), (Merged, "base"), (Definition, "object")):
        properties = definitions[section.__name__]["properties"]
        properties[name] = {**_told(properties[name]), **_GIVEN}
    for holder in (Setting, Definition):
        properties = definitions[holder.__name__]["properties"]
        properties["context"]["items"] = _GIVEN
        properties["config"] = {**_told(properties["config"]), "$ref": "#/$defs/Config"}
    test = definitions[Definition.__name__]
    # A test with parameters may have `{NAME}` anywhere; it is read strictly once the values stand there.
    free = {"properties": {"name": {"type": "string"}, "parametrize": test["properties"]["parametrize"]}}
    definitions["Test"] = {
        "if": {"required": ["parametrize"]},
        "then": {**free, "required": ["name", "object", "expect"], "propertyNames": {"enum": [*test["properties"]]}},
        "else": {"$ref": f"#/$defs/{Definition.__name__}"},
    }
    root["properties"]["tests"]["items"] = {"$ref": "#/$defs/Test"}
    configuration = config_schema()
    definitions |= configuration.pop("$defs")
    return {
        "$schema": configuration["$schema"],
        **root,
        "title": "gpugate tests",
        "$defs": {**definitions, "Policy": _policies(), "Given": _given(), "Config": _config(configuration)},
    }


def _told(property_: _Object) -> _Object:
    return {"description": property_["description"]}


def _policies() -> _Object:
    return {"description": "the id of a policy", "enum": [policy.id for policy in CATALOG]}


def _given() -> _Object:
    return {
        "description": "an object: the file that holds it, from the case file's folder, or the object itself",
        "anyOf": [
            {"type": "string"},
            {"$ref": f"#/$defs/{FromFile.__name__}"},
            {"$ref": f"#/$defs/{Merged.__name__}"},
            {"type": "object", "required": ["apiVersion", "kind"]},
        ],
    }


def _config(configuration: _Object) -> _Object:
    """The policy configuration, whose head may be left out."""
    return {
        key: value for key, value in configuration.items() if key not in {"$schema", "required", "title", "description"}
    }
