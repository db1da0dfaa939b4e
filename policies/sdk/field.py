"""A value inside a Kubernetes object, and the path that leads to it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    Json: TypeAlias = dict[str, "Json"] | list["Json"] | str | int | float | bool | None
else:
    Json = Any  # msgspec reads types at run time, and rejects recursive types
Path: TypeAlias = tuple[str | int, ...]

_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


class Field:
    """A value and its path in an object. Looking up a missing member returns an absent field, never an error.

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
        value = self.value
        if isinstance(key, str):
            return Field(value.get(key) if isinstance(value, dict) else None, self, key)
        if not isinstance(key, tuple):
            return Field(_member(value, key), self, key)
        for part in key:
            # `_member` inlined for the usual part of a path, a string key of an object.
            if isinstance(value, dict):
                value = value.get(part)  # type: ignore[arg-type] # an index is no key, and finds nothing
            elif value is None:
                break
            else:
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
        """Yield the elements of a list that are objects with this member, such as the variables of a name."""
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
    def known(self) -> bool:
        """Whether the value can be read; false only for a placeholder in a template."""
        return True

    @property
    def path(self) -> Path:
        """The keys and list indices from the root of the object to this field."""
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
        """The value when it is an integer (not a boolean), else None."""
        return self.value if isinstance(self.value, int) and not isinstance(self.value, bool) else None

    @property
    def mapping(self) -> Mapping[str, Json]:
        """The value when it is an object, else an empty one."""
        return self.value if isinstance(self.value, dict) else {}

    @property
    def labels(self) -> dict[str, str]:
        """The string members of an object of strings, as labels and annotations are."""
        return {k: v for k, v in self.value.items() if isinstance(v, str)} if isinstance(self.value, dict) else {}


class Unknown:
    """A placeholder of a template in the place of a JSON value, whose value is unknown.

    `text` is the placeholder, such as `${REPLICAS}`. Only `TemplateField` reads objects with such values.
    """

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return f"Unknown({self.text!r})"


def is_unknown(value: object) -> bool:
    """Tell whether something in the place of a JSON value is unknown."""
    return isinstance(value, Unknown)


class UnknownValueError(Exception):
    """A policy read an unknown value; `text` is the placeholder."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


# The slot itself, which the property of the same name below hides.
_VALUE: Final[Any] = Field.__dict__["value"]


class TemplateField(Field):
    """A field of an object with unknown values. They are present, and reading them raises UnknownValueError.

    What a policy yields before it reads an unknown value does not depend on the value, so the engine keeps it. The
    policy counts as not evaluated from there on.
    """

    __slots__ = ()

    @property
    def value(self) -> Json:
        """The value.

        Raises:
            UnknownValueError: the value is unknown.
        """
        value = _VALUE.__get__(self)
        if isinstance(value, Unknown):
            raise UnknownValueError(value.text)
        if isinstance(value, dict) and any(isinstance(member, Unknown) for member in value.values()):
            return _Members(value)
        return cast("Json", value)

    @value.setter
    def value(self, value: Json) -> None:
        _VALUE.__set__(self, value)

    @property
    def known(self) -> bool:
        """Whether the value can be read."""
        return not isinstance(_VALUE.__get__(self), Unknown)

    def __getitem__(self, key: str | int | Path) -> Field:
        """Return the member `key`, or the one at the end of a tuple of keys.

        Raises:
            UnknownValueError: the member would be inside an unknown value.
        """
        value = _VALUE.__get__(self)
        for part in key if isinstance(key, tuple) else (key,):
            if isinstance(value, Unknown):
                raise UnknownValueError(value.text)
            value = _member(value, part)
        return TemplateField(value, self, key)

    def __bool__(self) -> bool:
        return _VALUE.__get__(self) is not None

    def __iter__(self) -> Iterator[Field]:
        """Yield the elements of a list; nothing for any other value."""
        value = self.value
        if isinstance(value, list):
            for index, element in enumerate(value):
                yield TemplateField(element, self, index)

    def having(self, key: str, value: Json) -> Iterator[Field]:
        """Yield the elements of a list that are objects with this member."""
        for element in self:
            if element.value is not None and key in element.mapping and element[key].value == value:
                yield element

    def items(self) -> Iterator[tuple[str, Field]]:
        """Yield key and field of each member of an object; nothing for any other value."""
        for key in self.mapping:
            yield key, self[key]

    @property
    def texts(self) -> tuple[str, ...]:
        """The strings of a list, in order; elements of other types are left out."""
        return tuple(element.text for element in self if isinstance(element.value, str))

    @property
    def labels(self) -> dict[str, str]:
        """The string members of an object of strings, and unknown members, which raise when they are read."""
        members = {key: member for key, member in dict(self.mapping).items() if isinstance(member, str | Unknown)}
        return _Members(members) if members else {}


class _Members(dict[str, Any]):
    """Members of an object with unknown members. Reading these, or all members at once, raises UnknownValueError."""

    def __getitem__(self, key: str) -> Any:
        return refuse_unknown(super().__getitem__(key))

    def get(self, key: str, default: Any = None) -> Any:
        return refuse_unknown(super().get(key, default))

    def items(self) -> Any:
        for member in super().values():
            refuse_unknown(member)
        return super().items()

    def values(self) -> Any:
        for member in super().values():
            refuse_unknown(member)
        return super().values()

    def __eq__(self, other: object) -> bool:
        for member in super().values():
            refuse_unknown(member)
        return super().__eq__(other)

    __hash__ = None


def refuse_unknown(value: Any) -> Any:  # Any: a JSON value or a placeholder
    """Return a value unless it is unknown.

    Raises:
        UnknownValueError: the value is unknown.
    """
    if isinstance(value, Unknown):
        raise UnknownValueError(value.text)
    return value


def as_written(value: Any) -> Any:  # Any: JSON with unknown values in it
    """Return a value in which unknown values are replaced by the text of their placeholders."""
    if isinstance(value, Unknown):
        return value.text
    if isinstance(value, dict):
        return {key: as_written(dict.__getitem__(value, key)) for key in value}
    return [as_written(member) for member in value] if isinstance(value, list) else value


def has_unknown(value: Any) -> bool:  # Any: JSON that may have unknown values in it
    """Tell whether a value is unknown or contains an unknown value."""
    if isinstance(value, dict | list):
        return any(map(has_unknown, dict.values(value) if isinstance(value, dict) else value))
    return isinstance(value, Unknown)


def _member(value: Json, key: str | int) -> Json:
    if isinstance(key, str):
        return value.get(key) if isinstance(value, dict) else None
    return value[key] if isinstance(value, list) and 0 <= key < len(value) else None


def render(path: Path) -> str:
    """Write a path as users read it: `spec.containers[0].resources.limits["nvidia.com/gpu"]`."""
    out = ""
    for part in path:
        if isinstance(part, int):
            out += f"[{part}]"
        elif _PLAIN_KEY.fullmatch(part):
            out += f".{part}" if out else part
        else:
            out += f'["{part}"]'
    return out
