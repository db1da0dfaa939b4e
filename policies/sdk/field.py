"""A value inside a Kubernetes object, and the path that leads to it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"
Path: TypeAlias = tuple[str | int, ...]

_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


class Field:
    """A value and where it stands; looking up what is not there gives an absent field, never an error.

    A field is true when it is present: neither missing nor null. `0`, `""`, `{}` and `[]` are present.
    """

    __slots__ = ("_key", "_parent", "value")

    def __init__(self, value: Json, parent: Field | None = None, key: str | int | Path = "") -> None:
        self.value = value
        self._parent = parent
        self._key = key

    def __getitem__(self, key: str | int | Path) -> Field:
        """Return the member `key`, or the one at the end of a tuple of keys."""
        # Policies spend most of their time here, so a whole path is one field.
        if not isinstance(key, tuple):
            return Field(_member(self.value, key), self, key)
        value = self.value
        for part in key:
            value = _member(value, part)
        return Field(value, self, key)

    def __bool__(self) -> bool:
        return self.value is not None

    def __iter__(self) -> Iterator[Field]:
        """Yield the elements of a list; nothing for any other value."""
        if isinstance(self.value, list):
            for index, value in enumerate(self.value):
                yield Field(value, self, index)

    def having(self, key: str, value: Json) -> Iterator[Field]:
        """Yield the elements of a list that are objects with this member, as an environment has few of a name."""
        if isinstance(self.value, list):
            for index, element in enumerate(self.value):
                if isinstance(element, dict) and element.get(key) == value:
                    yield Field(element, self, index)

    def __repr__(self) -> str:
        return f"Field({render(self.path)})"

    def items(self) -> Iterator[tuple[str, Field]]:
        """Yield key and field of each member of an object; nothing for any other value."""
        if isinstance(self.value, dict):
            for key, value in self.value.items():
                yield key, Field(value, self, key)

    def members(self) -> Iterator[Field]:
        """Yield the field of each member of an object; nothing for any other value."""
        for _, member in self.items():  # noqa: PERF102 -- a Field's items are made, not stored
            yield member

    @property
    def path(self) -> Path:
        """Keys and list indices from the root of the object to here."""
        parts: list[str | int] = []
        field = self
        while field._parent is not None:
            if isinstance(field._key, tuple):
                parts.extend(reversed(field._key))
            else:
                parts.append(field._key)
            field = field._parent
        return tuple(reversed(parts))

    @property
    def text(self) -> str:
        """The value when it is a string, else the empty string."""
        return self.value if isinstance(self.value, str) else ""

    @property
    def texts(self) -> tuple[str, ...]:
        """The strings of a list, in order; elements of other types are left out."""
        return tuple(v for v in self.value if isinstance(v, str)) if isinstance(self.value, list) else ()

    @property
    def integer(self) -> int | None:
        """The value when it is an integer (a boolean is none), else None."""
        return self.value if isinstance(self.value, int) and not isinstance(self.value, bool) else None

    @property
    def mapping(self) -> Mapping[str, Json]:
        """The value when it is an object, else an empty one."""
        return self.value if isinstance(self.value, dict) else {}

    @property
    def labels(self) -> dict[str, str]:
        """The string members of an object of strings, as labels and annotations are."""
        return {k: v for k, v in self.value.items() if isinstance(v, str)} if isinstance(self.value, dict) else {}


def _member(value: Json, key: str | int) -> Json:
    if isinstance(key, str):
        return value.get(key) if isinstance(value, dict) else None
    return value[key] if isinstance(value, list) and 0 <= key < len(value) else None


def render(path: Path) -> str:
    """Write a path as people do: `spec.containers[0].resources.limits["nvidia.com/gpu"]`."""
    out = ""
    for part in path:
        if isinstance(part, int):
            out += f"[{part}]"
        elif _PLAIN_KEY.fullmatch(part):
            out += f".{part}" if out else part
        else:
            out += f'["{part}"]'
    return out
