"""Structs: small values of named fields, immutable if defined as `class Name(Struct, frozen=True)`.

A dataclass compiles its methods each time its module is imported, which takes 1 ms. A msgspec struct has them in C. It
takes a tenth of that time, and creating or hashing a value takes a sixth. `check` imports about 150 such classes.
"""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any, ClassVar, Final, cast

import msgspec
from msgspec.structs import replace

__all__ = ["MutableStruct", "Struct", "replace"]


class _AsDataclass:
    """Describe structs to the functions of `dataclasses` for values: `replace`, `fields` and `asdict`."""

    def __get__(self, value: object, struct: type[msgspec.Struct]) -> dict[str, Any]:
        return _fields(struct)


@cache
def _fields(struct: type[msgspec.Struct]) -> dict[str, Any]:
    from dataclasses import fields, make_dataclass  # noqa: PLC0415 -- costs start-up time

    return {field.name: field for field in fields(make_dataclass(struct.__name__, struct.__struct_fields__))}


# Read by pretty-printers: whether they write the fields of the dataclass themselves.
_OWN_REPR: Final = SimpleNamespace(repr=False)


class Struct(msgspec.Struct, frozen=True):
    """A struct that `dataclasses.replace` accepts, which policies call on findings."""

    __dataclass_fields__: ClassVar[dict[str, Any]] = cast("Any", _AsDataclass())
    __dataclass_params__: ClassVar[SimpleNamespace] = _OWN_REPR


class MutableStruct(msgspec.Struct):
    """A struct with mutable fields, for values that are built step by step."""

    __dataclass_fields__: ClassVar[dict[str, Any]] = cast("Any", _AsDataclass())
    __dataclass_params__: ClassVar[SimpleNamespace] = _OWN_REPR
