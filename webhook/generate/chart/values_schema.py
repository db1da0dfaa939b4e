"""Writes `values.schema.json`, by which Helm refuses what it would otherwise pass over.

It is of draft-07, which Helm 3 and 4 both know. What else may stand in it for a chart that has this one as a part (`global`,
`enabled`) is a value like others.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

import msgspec

from gpugate.policies.catalog import CATALOG
from gpugate.webhook.generate.chart.value_docs import descriptions, needed
from gpugate.webhook.generate.chart.value_types import NAMESPACE_NAME, OWN_NAME, Section
from gpugate.webhook.generate.chart.values import Values
from gpugate.webhook.generate.published_schemas import config_schema

if TYPE_CHECKING:
    from collections.abc import Iterator

_Object = dict[str, Any]  # Any: the JSON edge

_OWN_NAME: Final = {"type": "string", "pattern": OWN_NAME.replace("\\Z", "$"), "maxLength": 253}
_NAMESPACE: Final = {"type": "string", "pattern": NAMESPACE_NAME.replace("\\Z", "$"), "maxLength": 63}
_WITHOUT: Final = ("title", "description")
# Helm's regular expressions look neither ahead nor behind; the server checks such a parameter itself.
_LOOKS_AROUND: Final = re.compile(r"\(\?<?[=!]")


def values_schema() -> str:
    """Return the file."""
    _, sections = msgspec.json.schema_components((Values,), ref_template="#/definitions/{name}")
    definitions = {name: _plain(each) for name, each in sections.items()}
    for section in _sections():
        described = definitions[section.__name__]
        described["required"] = list(needed(section))
        for key, text in descriptions(section).items():
            each = described["properties"][key]
            # Beside a reference nothing else counts in draft-07.
            described["properties"][key] = {"description": text, **({"allOf": [each]} if "$ref" in each else each)}
    root = definitions.pop(Values.__name__)
    policy, its_definitions = _policy()
    root["properties"]["policy"] |= policy
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Values of the Helm chart gpugate",
        **root,
        "definitions": {**definitions, **its_definitions},
    }
    return f"{json.dumps(schema, indent=2, ensure_ascii=False)}\n"


def _policy() -> tuple[_Object, _Object]:
    """Return the schema of what a policy file says but for apiVersion and kind, with the parts that it refers to."""
    schema = _plain(config_schema())
    definitions = {f"Policy{name}": each for name, each in schema.pop("$defs").items()}
    text = json.dumps((schema, definitions)).replace('"#/$defs/', '"#/definitions/Policy')
    schema, definitions = json.loads(text)
    properties = schema["properties"]
    for key in ("apiVersion", "kind"):
        del properties[key]
    definitions["PolicyTaint"]["properties"]["key"] = _OWN_NAME
    for names in definitions["PolicyAccelerators"]["properties"].values():
        names["items"] = _OWN_NAME
    # They stand in selectors, in which the API server takes names only, no patterns.
    properties["excluded_namespaces"]["items"] = _NAMESPACE
    properties["policies"]["propertyNames"] = _ids()
    for entry in ("PolicyNamespaceEntry", "PolicyExemption"):
        named = definitions[entry]["properties"]["policies"]
        named["propertyNames" if named["type"] == "object" else "items"] = _ids()
    kept = {key: schema[key] for key in ("type", "properties", "additionalProperties") if key in schema}
    return kept, definitions


def _ids() -> _Object:
    """Return that a name is that of a policy, or a pattern; the server refuses one that fits none."""
    return {"anyOf": [{"enum": [policy.id for policy in CATALOG]}, {"pattern": "\\*"}]}


def _plain(schema: Any) -> Any:
    """Return a schema without what is said about types of ours, which means nothing to whoever writes values."""
    if isinstance(schema, list):
        return [_plain(each) for each in schema]
    if isinstance(schema, str):
        return schema.replace("\\Z", "$")
    if not isinstance(schema, dict):
        return schema
    return {key: _plain(each) for key, each in schema.items() if not _is_left_out(key, each)}


def _is_left_out(key: str, said: Any) -> bool:
    # A property may be called `default` or `title` too, which then is an object.
    about_ours = key == "default" or (key in _WITHOUT and isinstance(said, str))
    return about_ours or (key == "pattern" and bool(_LOOKS_AROUND.search(said)))


def _sections() -> Iterator[type[msgspec.Struct]]:
    pending: list[type[msgspec.Struct]] = [Values]
    seen: set[type[msgspec.Struct]] = set()
    while pending:
        section = pending.pop()
        if section not in seen:
            seen.add(section)
            yield section
            types = (field.type for field in msgspec.structs.fields(section))
            pending += [each for each in types if isinstance(each, type) and issubclass(each, Section)]
