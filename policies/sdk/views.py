"""Objects and lists put together from fields that stand elsewhere, each of which keeps its own path."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpugate.policies.sdk.field import Field

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gpugate.policies.sdk.field import Path


class ObjectView(Field):
    """An object whose members stand in several places.

    A member that is not among `members` is looked up in `home`, whose path is that of the whole.
    """

    __slots__ = ("_home", "_members")

    def __init__(self, home: Field, members: Mapping[str, Field]) -> None:
        present = {key: member for key, member in members.items() if member}
        values = {key: member.value for key, member in present.items()}
        super().__init__({**home.mapping, **values} if home or values else None)
        self._home = home
        self._members = members

    def __getitem__(self, key: str | int | Path) -> Field:
        """Return the field that stands for a member, or for what is at the end of a path below it."""
        first, *rest = key if isinstance(key, tuple) else (key,)
        member = self._members[first] if isinstance(first, str) and first in self._members else self._home[first]
        return member[tuple(rest)] if rest else member

    def items(self) -> Iterator[tuple[str, Field]]:
        """Yield key and field of each member that is present."""
        yield from ((key, self[key]) for key in self.mapping)

    @property
    def path(self) -> Path:
        """The path of `home`."""
        return self._home.path


class ListView(Field):
    """A list whose elements stand in several places; its path is that of `home`, where more would be added."""

    __slots__ = ("_elements", "_home")

    def __init__(self, home: Field, elements: Sequence[Field]) -> None:
        super().__init__([element.value for element in elements] if home or elements else None)
        self._home = home
        self._elements = elements

    def __getitem__(self, key: str | int | Path) -> Field:
        """Return the field that stands for an element, or for what is at the end of a path below it."""
        first, *rest = key if isinstance(key, tuple) else (key,)
        known = isinstance(first, int) and 0 <= first < len(self._elements)
        element = self._elements[first] if isinstance(first, int) and known else self._home[first]
        return element[tuple(rest)] if rest else element

    def __iter__(self) -> Iterator[Field]:
        """Yield the elements."""
        yield from self._elements

    @property
    def path(self) -> Path:
        """The path of `home`."""
        return self._home.path
