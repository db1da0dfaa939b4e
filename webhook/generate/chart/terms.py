"""The words the chart's objects are described in: JSON values in which some parts depend on the chart's values.

One description has two readings: `go_template.py` writes it as a template for Helm, `evaluation.py` works it out without
Helm. So there is nothing in the chart that the other way could forget.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

# What stands in a description: JSON, and terms that become JSON.
Node: TypeAlias = "bool | int | str | list[Node] | dict[str, Node] | Term | None"


@dataclass(frozen=True)
class Term:
    """Something that is worked out when values are there."""


class _Absent(Term):
    """Nothing: a member or an element that is not written."""


ABSENT: Final = _Absent()


@dataclass(frozen=True)
class Value(Term):
    """The chart's value at a path such as `image.tag`."""

    path: str


@dataclass(frozen=True)
class Release(Term):
    """What Helm knows of the release: `Name`, `Namespace` or `IsInstall`."""

    name: str


@dataclass(frozen=True)
class Named(Term):
    """A text that is described once (`names.py`) and used in many places."""

    name: str


@dataclass(frozen=True)
class File(Term):
    """The text of a file of the chart."""

    path: str


@dataclass(frozen=True)
class Variable(Term):
    """What an `Each` around it goes through."""

    name: str


@dataclass(frozen=True)
class Call(Term):
    """A function of Helm's templates; `functions.py` says what each does."""

    function: str
    arguments: tuple[Node, ...]


@dataclass(frozen=True)
class If(Term):
    """One thing or another; a test fails on what is false, 0 or empty."""

    test: Node
    then: Node
    otherwise: Node = ABSENT


@dataclass(frozen=True)
class Each(Term):
    """One thing for each element of a list, or for each member of an object in the order of its keys.

    Attributes:
        variables: the names of the element, or of key and value.
        among: the list or the object.
        what: what is written for each; in a `Text` they follow each other.
    """

    variables: tuple[str] | tuple[str, str]
    among: Node
    what: Node


@dataclass(frozen=True)
class Text(Term):
    """Texts one after the other."""

    parts: tuple[Node, ...]


def call(function: str, *arguments: Node) -> Call:
    """Return a call."""
    return Call(function, arguments)


def text(*parts: Node) -> Text:
    """Return texts one after the other."""
    return Text(parts)


def same(one: Node, other: Node) -> Call:
    """Return whether two values are equal."""
    return call("eq", one, other)


def either(*tests: Node) -> Call:
    """Return the first that holds, or the last."""
    return call("or", *tests)


def both(*tests: Node) -> Call:
    """Return the last, if all hold."""
    return call("and", *tests)


def no(test: Node) -> Call:
    """Return whether something does not hold."""
    return call("not", test)
