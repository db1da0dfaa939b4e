"""Structs: small values of named fields, immutable if defined as `class Name(Struct, frozen=True)`.

A dataclass compiles its methods each time its module is imported, which takes 1 ms. A struct of msgspec has them in C: it
takes a tenth of that time, and creating or hashing a value takes a sixth. `check` imports about 150 such classes.
"""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any, ClassVar, Final, cast

import msgspec


class _AsDataclass:
    """Describes a struct to those functions of `dataclasses` that take values: `replace`, `fields` and `asdict`."""

    def __get__(self, value: object, struct: type[msgspec.Struct]) -> dict[str, Any]:
        return _fields(struct)


@cache
def _fields(struct: type[msgspec.Struct]) -> dict[str, Any]:
    from dataclasses import fields, make_dataclass  # noqa: PLC0415 -- costs start-up time

    return {field.name: field for field in fields(make_dataclass(struct.__name__, struct.__struct_fields__))}


# What printers of values ask of a dataclass: whether to write its fields themselves.
_OWN_REPR: Final = SimpleNamespace(repr=False)


class Struct(msgspec.Struct, frozen=True):
    """A struct that `dataclasses.replace` takes, as policies do with a finding."""

    __dataclass_fields__: ClassVar[dict[str, Any]] = cast("Any", _AsDataclass())
    __dataclass_params__: ClassVar[SimpleNamespace] = _OWN_REPR


class MutableStruct(msgspec.Struct):
    """The same with fields that can be set, for values that are made step by step."""

    __dataclass_fields__: ClassVar[dict[str, Any]] = cast("Any", _AsDataclass())
    __dataclass_params__: ClassVar[SimpleNamespace] = _OWN_REPR
