"""The pages on files, from their JSON schemas."""

from __future__ import annotations

from gpugate.tools.reference_pages import reference_pages, schema_page
from gpugate.webhook.config.published_schemas import config_schema

SCHEMA = {
    "description": "A whole file.\n\n    Attributes:\n        name: what it is called,\n            over two lines.\n",
    "properties": {
        "name": {"type": "string", "default": "a"},
        "mode": {"enum": ["off", False, None]},
        "parts": {"type": "array", "items": {"$ref": "#/$defs/Part"}},
        "more": {"anyOf": [{"type": "integer"}, {"type": "null"}], "description": "a | b"},
    },
    "required": ["name"],
    "$defs": {
        "Part": {"description": "A part.", "properties": {"whole": {"$ref": "#/$defs/Part"}}},
        "Unused": {"properties": {"a": {}}},
    },
}


def test_each_key_is_on_a_line_with_type_default_and_meaning() -> None:
    page = schema_page("File", "About it.", SCHEMA)
    assert '| `name` (required) | string | `"a"` | what it is called, over two lines. |' in page
    assert "| `mode` | `off`, `false`, `null` |  |  |" in page
    assert "| `parts` | list of [Part](#part) |  |  |" in page
    assert "| `more` | integer or null |  | a \\| b |" in page


def test_each_part_that_is_used_has_a_section_once() -> None:
    page = schema_page("File", "About it.", SCHEMA)
    assert page.count("\n## Part\n\nA part.\n") == 1
    assert "Unused" not in page


def test_parameters_of_policies_are_left_to_their_own_pages() -> None:
    page = schema_page("Policy file", "", config_schema())
    assert "Params" not in page
    assert "at_least" not in page


def test_the_page_on_values_is_made_of_the_charts() -> None:
    page = reference_pages("# -- Number of Pods.\nreplicaCount: 2\n")["helm-values.md"]
    assert "| `replicaCount` | `2` | Number of Pods. |" in page
