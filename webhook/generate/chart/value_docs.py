"""What is said of each value, and which must be there, read from where they are described."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, get_args

import msgspec

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

_ATTRIBUTE = re.compile(r"^ {4}(?P<name>\w+): (?P<text>.+)$")


def descriptions(section: type[msgspec.Struct]) -> Mapping[str, str]:
    """Return key -> what it is for, of a section and those it derives from.

    Raises:
        ValueError: a field is not described.
    """
    found: dict[str, str] = {}
    for each in section.__mro__[::-1]:
        name = ""
        # Python 3.13 takes the indentation of the code away itself.
        for line in inspect.cleandoc(each.__doc__ or "").splitlines() if issubclass(each, msgspec.Struct) else ():
            attribute = _ATTRIBUTE.match(line)
            if attribute:
                name = attribute["name"]
                found[name] = attribute["text"]
            elif name and line.startswith(" " * 8):
                found[name] += f" {line.strip()}"
            else:
                name = ""
    fields = msgspec.structs.fields(section)
    missing = [field.name for field in fields if field.name not in found]
    if missing:
        raise ValueError(f"{section.__name__}: say under `Attributes:` what {', '.join(missing)} is for")
    return {field.encode_name: found[field.name] for field in fields}


def needed(section: type[msgspec.Struct]) -> Collection[str]:
    """Return the keys that null cannot take away, because templates count on them."""
    return [field.encode_name for field in msgspec.structs.fields(section) if type(None) not in get_args(field.type)]
