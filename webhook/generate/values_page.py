"""The page on the values of the Helm chart: each key, its default and what it is for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from gpugate.webhook.generate.chart.value_docs import descriptions
from gpugate.webhook.generate.chart.values import Values
from gpugate.webhook.generate.markdown import cell, code, table

if TYPE_CHECKING:
    from collections.abc import Iterator

_HEAD: Final = """<!-- Written by `make generate` from webhook/generate/chart/values.py. -->

# Helm values

Every value of [the chart](../install.md), with its default. A key that is not here is refused, by Helm and by
`gpugate generate manifests` alike; [values.schema.json](../../charts/gpugate/values.schema.json) says the same to editors.
"""


def values_page() -> str:
    """Return the page."""
    values = Values()
    text = descriptions(Values)
    plain: list[tuple[str, ...]] = []
    sections: list[str] = []
    for field in msgspec.structs.fields(Values):
        value = getattr(values, field.name)
        if isinstance(value, msgspec.Struct):
            rows = table(("key", "default", "meaning"), _rows(value, f"{field.encode_name}."))
            sections.append(f"\n## {field.encode_name}\n\n{text[field.encode_name]}\n\n{rows}")
        else:
            plain.append(_row(field.encode_name, value, text[field.encode_name]))
    return f"{_HEAD}\n## At the top\n\n{table(('key', 'default', 'meaning'), plain)}{''.join(sections)}"


def _rows(section: msgspec.Struct, prefix: str) -> Iterator[tuple[str, ...]]:
    text = descriptions(type(section))
    for field in msgspec.structs.fields(section):
        value = getattr(section, field.name)
        key = f"{prefix}{field.encode_name}"
        if isinstance(value, msgspec.Struct):
            yield cell(code(key)), "", cell(text[field.encode_name])
            yield from _rows(value, f"{key}.")
        else:
            yield _row(key, value, text[field.encode_name])


def _row(key: str, value: Any, text: str) -> tuple[str, ...]:  # Any: what JSON holds
    shown = msgspec.json.encode(msgspec.to_builtins(value)).decode()
    return cell(code(key)), cell(code(shown)), cell(text)
