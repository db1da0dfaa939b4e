"""Writes `values.yaml`: every value with its default, and above it what it is for."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any, Final

import msgspec

from gpugate.webhook.generate.chart.value_docs import descriptions
from gpugate.webhook.generate.chart.values import Values
from gpugate.webhook.report import yaml_text

if TYPE_CHECKING:
    from collections.abc import Iterator

_HEAD: Final = """# Written by `make generate` from webhook/generate/chart/values.py.
"""
_WIDTH: Final = 118


def values_file() -> str:
    """Return the file."""
    return _HEAD + "".join(f"{line}\n" for line in _section(Values(), ""))


def _section(section: msgspec.Struct, pad: str) -> Iterator[str]:
    text = descriptions(type(section))
    for field in msgspec.structs.fields(section):
        if not pad:
            yield ""
        yield from _comment(text[field.encode_name], pad)
        yield from _member(field.encode_name, getattr(section, field.name), pad)


def _comment(text: str, pad: str) -> Iterator[str]:
    first, *others = textwrap.wrap(text, _WIDTH - len(pad), break_on_hyphens=False, break_long_words=False)
    yield f"{pad}# -- {first}"
    for line in others:
        yield f"{pad}# {line}"


def _member(key: str, value: Any, pad: str) -> Iterator[str]:  # Any: a section, or what JSON holds
    if isinstance(value, msgspec.Struct):
        yield f"{pad}{key}:"
        yield from _section(value, f"{pad}  ")
    else:
        yield from (f"{pad}{line}" for line in yaml_text.block({key: value}).splitlines())
