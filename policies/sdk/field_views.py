"""Views that present values from several fields of an object as one value.

A policy reads the value as if the object contained it. The path of each part is its path in the object.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpugate.policies.sdk.field import Field, Json

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gpugate.policies.sdk.field import Path


class ObjectView(Field):
    """An object whose members come from several fields.

    A member that is not in `members` is looked up in `home`, which also provides the path of the object.
    """

    __slots__ = ("_home", "_members")

    def __init__(self, home: Field, members: Mapping[str, Field]) -> None:
        present = {key: member for key, member in members.items() if member}
        values = {key: member.value for key, member in present.items()}
        super().__init__({**home.mapping, **values} if home or values else None)
        self._home = home
        self._members = members

    def __getitem__(self, key: str | int | Path) -> Field:
        """Return the field of a member, or the one at the end of a path below it."""
        first, *remainder = key if isinstance(key, tuple) else (key,)
        member = self._members[first] if isinstance(first, str) and first in self._members else self._home[first]
        return member[tuple(remainder)] if remainder else member

    def items(self) -> Iterator[tuple[str, Field]]:
        """Yield key and field of each member that is present."""
        yield from ((key, self[key]) for key in self.mapping)

    @property
    def path(self) -> Path:
        """The path of `home`."""
        return self._home.path


class ListView(Field):
    """A list whose elements come from several fields. Its path is that of `home`, to which elements would be added."""

    __slots__ = ("_elements", "_home")

    def __init__(self, home: Field, elements: Sequence[Field]) -> None:
        super().__init__([element.value for element in elements] if home or elements else None)
        self._home = home
        self._elements = elements

    def __getitem__(self, key: str | int | Path) -> Field:
        """Return the field of an element, or the one at the end of a path below it."""
        first, *remainder = key if isinstance(key, tuple) else (key,)
        known = isinstance(first, int) and 0 <= first < len(self._elements)
        element = self._elements[first] if isinstance(first, int) and known else self._home[first]
        return element[tuple(remainder)] if remainder else element

    def __iter__(self) -> Iterator[Field]:
        """Yield the elements."""
        yield from self._elements

    @property
    def path(self) -> Path:
        """The path of `home`."""
        return self._home.path


class Shaped(Field):
    """A value derived from a field of another shape. Everything in it has the path of that field."""

    __slots__ = ("_home",)

    def __init__(self, home: Field, value: Json) -> None:
        super().__init__(value)
        self._home = home

    def __getitem__(self, key: str | int | Path) -> Field:
        """Return a member, or the field at the end of a path below it."""
        return Shaped(self._home, Field(self.value)[key].value)

    def __iter__(self) -> Iterator[Field]:
        """Yield the elements of a list."""
        yield from (Shaped(self._home, element.value) for element in Field(self.value))

    def items(self) -> Iterator[tuple[str, Field]]:
        """Yield key and field of each member."""
        yield from ((key, Shaped(self._home, member.value)) for key, member in Field(self.value).items())

    @property
    def path(self) -> Path:
        """The path of `home`."""
        return self._home.path


def joined(home: Field, more: list[Field]) -> Field:
    """Return a list with more elements. A value of another type is returned unchanged, so that it is rejected."""
    if not more or (home and not isinstance(home.value, list | dict)):
        return home
    return ListView(home, [*home, *more])


def merged(home: Field, *others: Field) -> Field:
    """Return labels or annotations, with missing keys taken from others."""
    members = {key: field for other in reversed(others) for key, field in other.items()}
    return ObjectView(home, {**members, **dict(home.items())}) if members else home


def first(layers: tuple[Field, ...], name: str) -> Field:
    """Return the member of the first layer that has it, else the absent member of the first layer."""
    return next((layer[name] for layer in layers if layer[name].value), layers[0][name])
