"""Generate the reference of the public interface of policies from its docstrings, and its signatures as text."""

from __future__ import annotations

import inspect
import re
from enum import Enum
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import msgspec

from gpugate.policies.sdk import PUBLIC, SDK
from gpugate.policies.sdk.concerns import Concern
from gpugate.policies.sdk.objects import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

_INTRO: Final = f"""<!-- Written by `make generate` from the docstrings. -->

# Interface of policies (SDK {SDK})

The names that a policy may import from `gpugate.policies.sdk`. They are stable: until the number of the SDK increases, no name is
removed, and no call that works today fails. A policy states the number as `SDK = {SDK}`; gpugate refuses a policy that was written for
another number. Names of the package that are not on this page may change in any release.
[Write a policy of your own](../how-to/write-a-policy.md) shows their use.
"""


def sdk_page() -> str:
    """Return the page."""
    return _INTRO + "".join(_section(module, names) for module, names in PUBLIC.items())


def _section(module: str, names: tuple[str, ...]) -> str:
    loaded = import_module(f"gpugate.policies.sdk.{module}")
    first = inspect.cleandoc(loaded.__doc__ or "").partition("\n\n")[0]
    lines = [f"\n## gpugate.policies.sdk.{module}\n\n{_prose(first)}\n"]
    constants: list[str] = []
    for name in names:
        value = getattr(loaded, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            lines.append(f"\n### {name}\n\n`{_signature(name, value)}`\n\n{_documentation(value)}\n")
            lines += [f"\n- `{member}`: {_prose(text)}" for member, text in _methods(value)]
            lines += ["\n"] if list(_methods(value)) else []
        else:
            constants.append(f"- `{name}`{_meaning(value)}\n")
    return "".join([*lines, *(["\nConstants:\n\n", *constants] if constants else [])])


def _meaning(value: object) -> str:
    if not isinstance(value, Kind):
        return ""
    versions = ", ".join(value.versions)
    return f": {value.name} of `{value.group}` {versions}" if value.group else f": {value.name} {versions}"


def _documentation(value: object) -> str:
    text = inspect.cleandoc(value.__doc__ or "")
    prose, *sections = re.split(r"\n\n(?=(?:Args|Attributes|Raises):\n)", text)
    parts = [_prose(prose)]
    for section in sections:
        heading, _, body = section.partition("\n")
        items = re.split(r"\n(?=    \w[\w, ]*: )", f"\n{body}")[1:]
        parts.append(f"{heading}\n\n" + "\n".join(f"- {_item(item)}" for item in items))
    return "\n\n".join(parts)


def _item(text: str) -> str:
    name, _, meaning = " ".join(text.split()).partition(": ")
    return f"`{name}`: {meaning}"


def _prose(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.splitlines())


def _methods(value: object) -> Iterator[tuple[str, str]]:
    """Yield the public methods and properties of a class that are not those of every struct or enumeration."""
    if not inspect.isclass(value) or issubclass(value, Concern):
        return  # the engine calls those of concerns
    for name, member in vars(value).items():
        documented = member.fget if isinstance(member, property) else member
        if name.startswith("_") or not inspect.isfunction(documented) or not documented.__doc__:
            continue
        call = name if isinstance(member, property) else f"{name}{_arguments(documented)}"
        yield call, inspect.cleandoc(documented.__doc__).partition("\n\n")[0].replace("\n", " ")


def _arguments(function: Any) -> str:  # Any: a function of any signature
    written = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name == "self":
            continue
        sign = "*" if parameter.kind is inspect.Parameter.VAR_POSITIONAL else ""
        written.append(f"{sign}{parameter.name}{'' if parameter.default is inspect.Parameter.empty else '=...'}")
    return f"({', '.join(written)})"


def _signature(name: str, value: Any) -> str:  # Any: a public class or function
    if inspect.isfunction(value):
        return f"{name}{_arguments(value)}"
    if issubclass(value, Enum):
        return f"{name}: {', '.join(member.name for member in value)}"
    # A struct with a dict caches what it derives. Only the engine creates these, so their arguments are no promise.
    if issubclass(value, msgspec.Struct) and not value.__struct_config__.dict:
        fields, optional = value.__struct_fields__, len(value.__struct_defaults__)
        required = len(fields) - optional
        return f"{name}({', '.join((*fields[:required], *(f'{field}=...' for field in fields[required:])))})"
    return name


def signatures() -> list[str]:
    """Return a line for each public name and method: what a policy of this version of the SDK may rely on."""
    lines = []
    for module, names in PUBLIC.items():
        loaded = import_module(f"gpugate.policies.sdk.{module}")
        for name in names:
            value = getattr(loaded, name)
            is_called = inspect.isclass(value) or inspect.isfunction(value)
            lines.append(f"{module}.{_signature(name, value) if is_called else name}")
            lines += [f"{module}.{name}.{call}" for call, _ in _methods(value)]
    return lines
