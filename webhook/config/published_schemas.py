"""The published JSON schemas of the files that gpugate reads and of the documents that it writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from gpugate.policies.catalog import CATALOG
from gpugate.policies.cel.documents import KIND as POLICY_KIND
from gpugate.policies.cel.documents import PolicyDocument
from gpugate.policies.engine.config import API_VERSION, KIND, PolicyConfig, PolicyEntry
from gpugate.policies.sdk import catalogue
from gpugate.webhook.admission import shadow_table
from gpugate.webhook.audit import history, merged, tables, why_json
from gpugate.webhook.audit.formats import json as audit_json
from gpugate.webhook.fleet import model as fleet
from gpugate.webhook.manifests.case_format import Asked, CaseFileFormat, Definition, Expect, FromFile, Merged, Setting
from gpugate.webhook.project.read import ProjectConfig
from gpugate.webhook.project.settings import SETTINGS
from gpugate.webhook.simulate import formats as simulation

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpugate.policies.sdk.policy import Policy

_Object = dict[str, Any]  # Any: the JSON edge

_MODES: Final = ["off", "audit", "warn", "enforce"]


def config_schema(catalog: Sequence[Policy] = CATALOG) -> _Object:
    """Return the schema (draft 2020-12), with the parameters of each policy."""
    params_by_policy = {policy.id: policy.params for policy in catalog if msgspec.structs.fields(policy.params)}
    types = (PolicyConfig, *params_by_policy.values())
    (_, *references), definitions = msgspec.json.schema_components(types, ref_template="#/$defs/{name}")
    params = dict(zip(params_by_policy, references, strict=True))
    root = definitions.pop(PolicyConfig.__name__)
    for section in (root, *definitions.values()):
        if "mode" in section.get("properties", {}):
            # YAML 1.1 reads an unquoted `off` as false; true is invalid.
            section["properties"]["mode"] = {"enum": [*_MODES, False, None]}
    entry = definitions[PolicyEntry.__name__]
    properties = {
        "apiVersion": {"const": API_VERSION},
        "kind": {"const": KIND},
        **root["properties"],
        "policies": {
            "type": "object",
            "properties": {policy.id: _entry(entry, policy, params.get(policy.id)) for policy in catalog},
            "additionalProperties": {"$ref": f"#/$defs/{PolicyEntry.__name__}"},
        },
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **root,
        "title": KIND,
        "properties": properties,
        "required": ["apiVersion", "kind"],
        "$defs": definitions,
    }


def _entry(entry: _Object, policy: Policy, params: _Object | None) -> _Object:
    """Return the schema of one policy's entry, with its parameters."""
    own: _Object = params or {"type": "object", "maxProperties": 0}
    return {**entry, "title": policy.title, "properties": {**entry["properties"], "params": own}}


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
        expect[name] = {**_description_of(expect[name]), "type": "array", "items": _POLICY}
    for name in ("at", "message"):
        expect[name]["propertyNames"] = _POLICY
    for section, name in ((Asked, "old"), (Expect, "fixed"), (Merged, "base"), (Definition, "object")):
        properties = definitions[section.__name__]["properties"]
        properties[name] = {**_description_of(properties[name]), **_GIVEN}
    for holder in (Setting, Definition):
        properties = definitions[holder.__name__]["properties"]
        properties["context"]["items"] = _GIVEN
        properties["config"] = {**_description_of(properties["config"]), "$ref": "#/$defs/Config"}
    test = definitions[Definition.__name__]
    # A test with parameters may contain `{NAME}` anywhere; it is checked after the values are inserted.
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
        "$defs": {**definitions, "Policy": _policies(), "Given": _given_object(), "Config": _config(configuration)},
    }


def _description_of(property_: _Object) -> _Object:
    return {"description": property_["description"]}


def _policies() -> _Object:
    return {"description": "the id of a policy", "enum": [policy.id for policy in CATALOG]}


def _given_object() -> _Object:
    return {
        "description": "an object, or the path of its file relative to the case file",
        "anyOf": [
            {"type": "string"},
            {"$ref": f"#/$defs/{FromFile.__name__}"},
            {"$ref": f"#/$defs/{Merged.__name__}"},
            {"type": "object", "required": ["apiVersion", "kind"]},
        ],
    }


def _config(configuration: _Object) -> _Object:
    """Return the schema of the policy configuration, without required apiVersion and kind."""
    return {
        key: value for key, value in configuration.items() if key not in {"$schema", "required", "title", "description"}
    }


def project_schema() -> _Object:
    """Return the schema (draft 2020-12)."""
    (_,), definitions = msgspec.json.schema_components((ProjectConfig,), ref_template="#/$defs/{name}")
    root = definitions.pop(ProjectConfig.__name__)
    properties = {setting.key: _described(setting.text, root["properties"][setting.key]) for setting in SETTINGS}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **root,
        "title": "gpugate project file",
        "properties": properties,
        "$defs": definitions,
    }


def catalogue_schema() -> _Object:
    """Return the schema (draft 2020-12) of a catalogue of instance types."""
    (_,), definitions = msgspec.json.schema_components((catalogue.CatalogueFile,), ref_template="#/$defs/{name}")
    root = definitions.pop(catalogue.CatalogueFile.__name__)
    header = {"apiVersion": {"const": catalogue.API_VERSION}, "kind": {"const": catalogue.KIND}}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **root,
        "title": catalogue.KIND,
        "properties": {**header, **root["properties"]},
        "required": ["apiVersion", "kind"],
        "$defs": definitions,
    }


def cel_policy_schema() -> _Object:
    """Return the schema (draft 2020-12) of a policy in CEL."""
    (_,), definitions = msgspec.json.schema_components((PolicyDocument,), ref_template="#/$defs/{name}")
    root = definitions.pop(PolicyDocument.__name__)
    properties = {
        "apiVersion": {"const": API_VERSION},
        "kind": {"const": POLICY_KIND},
        **root["properties"],
        "mode": {"enum": [*_MODES, False], "default": root["properties"]["mode"]["default"]},
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **root,
        "title": POLICY_KIND,
        "properties": properties,
        "required": ["apiVersion", "kind", *root["required"]],
        "$defs": definitions,
    }


def _described(text: str, schema: _Object) -> _Object:
    """Return the schema of a key, without null, which only represents an absent key."""
    either = [choice for choice in schema.get("anyOf", ()) if choice != {"type": "null"}]
    described = {key: value for key, value in schema.items() if key not in {"anyOf", "default"}}
    if len(either) == 1:
        described |= either[0]
    elif "enum" in described:
        described["enum"] = [value for value in described["enum"] if value is not None]
    return {**described, "description": f"{text[:1].upper()}{text[1:]}."}


def published_schemas() -> Mapping[str, str]:
    """Return file name -> text. The name contains the version, so that old versions stay available."""
    schemas = {
        "policy-v1.schema.json": config_schema(),
        "cel-policy-v1.schema.json": cel_policy_schema(),
        "project-v1.schema.json": project_schema(),
        "test-v1.schema.json": case_schema(),
        "audit-v1.schema.json": audit_json.schema(),
        "audit-clusters-v1.schema.json": merged.schema(),
        "audit-history-v1.schema.json": history.schema(),
        "audit-tables-v1.schema.json": tables.schema(),
        "simulation-v1.schema.json": simulation.schema(),
        "fleet-report-v1.schema.json": fleet.schema(),
        "shadow-v1.schema.json": shadow_table.schema(),
        "catalogue-v1.schema.json": catalogue_schema(),
        "why-v1.schema.json": why_json.schema(),
    }
    return {
        name: f"{msgspec.json.format(msgspec.json.encode(schema), indent=2).decode()}\n"
        for name, schema in schemas.items()
    }
