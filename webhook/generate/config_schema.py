"""Writes the JSON schema of `policy.yaml`, for editors and for the values of the Helm chart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.config import API_VERSION, KIND, PolicyConfig, PolicyEntry

if TYPE_CHECKING:
    from gpugate.policies.sdk.policy import Policy

_Object = dict[str, Any]  # Any: the JSON edge

_MODES: Final = ["off", "audit", "warn", "enforce"]


def config_schema() -> _Object:
    """Return the schema (draft 2020-12), with the parameters of each policy."""
    given = {policy.id: policy.params for policy in CATALOG if msgspec.structs.fields(policy.params)}
    types = (PolicyConfig, *given.values())
    (_, *references), definitions = msgspec.json.schema_components(types, ref_template="#/$defs/{name}")
    params = dict(zip(given, references, strict=True))
    root = definitions.pop(PolicyConfig.__name__)
    for section in (root, *definitions.values()):
        if "mode" in section.get("properties", {}):
            # A bare `off` is false in YAML 1.1; true means nothing and is refused.
            section["properties"]["mode"] = {"enum": [*_MODES, False, None]}
    entry = definitions[PolicyEntry.__name__]
    properties = {
        "apiVersion": {"const": API_VERSION},
        "kind": {"const": KIND},
        **root["properties"],
        "policies": {
            "type": "object",
            "properties": {policy.id: _entry(entry, policy, params.get(policy.id)) for policy in CATALOG},
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
    """The entry of one policy: that of any, with its own parameters."""
    own: _Object = params or {"type": "object", "maxProperties": 0}
    return {**entry, "title": policy.title, "properties": {**entry["properties"], "params": own}}
