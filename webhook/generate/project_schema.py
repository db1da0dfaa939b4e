"""Writes the JSON schema of the project file, for editors."""

from __future__ import annotations

from typing import Any

import msgspec

from gpugate.webhook.project.read import ProjectConfig
from gpugate.webhook.project.settings import SETTINGS

_Object = dict[str, Any]  # Any: the JSON edge


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


def _described(text: str, found: _Object) -> _Object:
    """Return what a key takes. An absent one is null in the type, but nobody writes that."""
    either = [each for each in found.get("anyOf", ()) if each != {"type": "null"}]
    kept = {key: value for key, value in found.items() if key not in {"anyOf", "default"}}
    if len(either) == 1:
        kept |= either[0]
    elif "enum" in kept:
        kept["enum"] = [each for each in kept["enum"] if each is not None]
    return {**kept, "description": f"{text[:1].upper()}{text[1:]}."}
