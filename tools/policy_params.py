"""Reads what a policy's parameters are called, what they default to and what they mean."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from gpugate.webhook.report import yaml_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpugate.policies.sdk.policy import Params

_ENTRY = re.compile(r"^ {4}(\w+): ", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter; `default` is YAML, empty when the parameter is required."""

    name: str
    default: str
    meaning: str


def parameters(params: type[Params]) -> tuple[Parameter, ...]:
    """Return the parameters in the order in which they are declared."""
    meanings = _meanings(inspect.cleandoc(params.__doc__ or ""))
    return tuple(
        Parameter(field.encode_name, _default(field), meanings.get(field.name, ""))
        for field in msgspec.structs.fields(params)
    )


def _meanings(doc: str) -> Mapping[str, str]:
    """Read the `Attributes:` of a docstring, each on one line."""
    _, _, attributes = doc.partition("Attributes:\n")
    # A pattern with a group splits into: what is before, then name and text in turn.
    parts = _ENTRY.split(attributes)
    return {name: " ".join(text.split()) for name, text in zip(parts[1::2], parts[2::2], strict=True)}


def _default(field: msgspec.structs.FieldInfo) -> str:
    if field.required:
        return ""
    value: Any = field.default if field.default is not msgspec.NODEFAULT else field.default_factory()
    return yaml_text.inline(msgspec.to_builtins(value))
