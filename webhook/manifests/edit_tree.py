"""A parsed text with positions for editing, and the writing of new values into it."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

import yaml
from msgspec import field

from gpugate.policies.sdk.structs import MutableStruct, Struct
from gpugate.webhook.manifests import yaml_reader
from gpugate.webhook.manifests.yaml_reader import Loader

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Json, Path


class EditError(Exception):
    """A text cannot be changed safely; the message says which shape of it stands in the way."""


class Node(MutableStruct):
    """A value in a text.

    `sort` is `scalar`, `block` (a scalar after `|` or `>`), `object`, `list` or `alias`. The text from `start` to `end`
    is the value, with its anchor and tag and without comments and blank lines behind it; an empty value has no text.
    `flow` says that it is written in brackets.
    """

    sort: str
    start: int
    end: int
    flow: bool = False
    entries: list[Entry] = field(default_factory=list)


class Entry(MutableStruct):
    """A member of an object, or an element of a list; `start` is where it begins, `key_end` where its key ends."""

    name: str
    start: int
    value: Node
    key_end: int = 0


def parse(text: str) -> Node:
    """Read where the values of a document stand.

    Raises:
        EditError: the parser for YAML cannot read it, as JSON with some escapes, or it holds no object or list.
    """
    loader = None
    try:
        loader = Loader(text)
        return _Builder(text).build(loader)
    except yaml.YAMLError:
        raise EditError("the text cannot be read as YAML") from None
    finally:
        if loader is not None:
            loader.dispose()


def find(root: Node, path: Path) -> tuple[Node, ...]:
    """Return the values on the way to a path, from the root on.

    Raises:
        EditError: a value on the way is an alias, or comes out of one with `<<`.
    """
    way = [root]
    for part in path:
        entry = child(way[-1], part)
        if entry is None:
            raise EditError("the value is merged in with `<<`")
        if entry.value.sort == "alias":
            raise EditError("the value is an alias of another one")
        way.append(entry.value)
    return tuple(way)


def child(node: Node, part: str | int) -> Entry | None:
    """Return a member, the last one where a key is repeated, or an element."""
    if isinstance(part, int):
        return node.entries[part] if node.sort == "list" and part < len(node.entries) else None
    entries = [entry for entry in node.entries if entry.name == part] if node.sort == "object" else []
    return entries[-1] if entries else None


def walk(node: Node) -> Iterator[Node]:
    """Yield a value and all in it."""
    yield node
    for entry in node.entries:
        yield from walk(entry.value)


def texts(root: Node) -> Iterator[tuple[int, int]]:
    """Yield begin and end of each key and each single value, in which a `#` begins no comment."""
    for node in walk(root):
        if node.sort not in {"object", "list"}:
            yield node.start, node.end
        for entry in node.entries:
            if entry.key_end:
                yield entry.start, entry.key_end


def has_comment(text: str, node: Node) -> bool:
    """Tell whether a comment stands in a value."""
    position = node.start
    for start, end in sorted(texts(node)):
        if "#" in text[position:start]:
            return True
        position = end
    return "#" in text[position : node.end]


def common_quotes(text: str, container: Node) -> str:
    """Return the quotes in which all elements of a list are written; empty where there are none."""
    first = {text[entry.value.start] for entry in container.entries if entry.value.end > entry.value.start}
    return "".join(first) if container.sort == "list" and first in ({'"'}, {"'"}) else ""


class _Builder:
    """Builds the tree out of the parser's events."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._open: list[tuple[Node, Node | None, str]] = []
        self._key: Node | None = None
        self._name = ""
        self._root: Node | None = None

    def build(self, loader: Any) -> Node:  # Any: PyYAML's loaders have no common type
        while True:
            event = loader.get_event()
            kind = type(event)
            if kind is yaml.StreamEndEvent:
                break
            if kind is yaml.ScalarEvent:
                self._scalar(event)
            elif kind is yaml.AliasEvent:
                self._put(Node("alias", event.start_mark.index, event.end_mark.index))
            elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
                sort = "object" if kind is yaml.MappingStartEvent else "list"
                node = Node(sort, event.start_mark.index, event.end_mark.index, bool(event.flow_style))
                self._open.append((node, self._key, self._name))
                self._key = None
            elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
                node, self._key, self._name = self._open.pop()
                if node.flow:
                    node.end = event.end_mark.index
                elif node.entries:
                    node.end = node.entries[-1].value.end
                self._put(node)
        if self._root is None or self._root.sort not in {"object", "list"}:
            raise EditError("the document is neither an object nor a list")
        return self._root

    def _scalar(self, event: Any) -> None:
        start, end = event.start_mark.index, event.end_mark.index
        block = event.style in {"|", ">"}
        if block:
            written = self._text[start:end]
            # With `+` the blank lines at the end are part of the value.
            if "+" not in written.partition("\n")[0].partition("#")[0]:
                end = start + len(written.rstrip())
        name = yaml_reader.key_text(event.value, quoted=not event.implicit[0])
        self._put(Node("block" if block else "scalar", start, end), name)

    def _put(self, node: Node, name: str = "") -> None:
        if not self._open:
            self._root = self._root or node
            return
        parent = self._open[-1][0]
        if parent.sort == "list":
            parent.entries.append(Entry("", node.start, node))
        elif self._key is None:
            self._key, self._name = node, name
        else:
            parent.entries.append(Entry(self._name, self._key.start, node, self._key.end))
            self._key = None


# Texts that need no quotes anywhere, unless a reader takes them for something else than text.
_PLAIN: Final = re.compile(r"[A-Za-z0-9_./][A-Za-z0-9_./+-]*(?:[ :@=][A-Za-z0-9_./+-]+)*")
_QUOTES: Final = {'"', "'"}
_SHORT: Final = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


class Style(Struct, frozen=True):
    """How a document is written.

    Lists begin `dash` columns and objects `step` columns to the right of their keys, and lines end with `newline`.
    """

    dash: int = 2
    newline: str = "\n"
    json: bool = False
    step: int = 2

    def inline(self, value: Json, like: str = "") -> str:
        """Write a value on one line; a text in the quotes in which `like` is written, if it has some."""
        if self.json:
            return json.dumps(value, ensure_ascii=False)
        if isinstance(value, str) and like[:1] in _QUOTES and value.isprintable():
            return _quoted(value, like[0])
        return _flow(value)

    def member(self, key: str, value: Json, indent: int) -> list[str]:
        """Write a member of an object in block style, line by line."""
        head = f"{' ' * indent}{scalar(key)}:"
        if lines := _lines(value, indent + 2):
            return [f"{head} {lines[0]}", *lines[1:]]
        if not _is_block(value):
            return [f"{head} {_flow(value)}"]
        return [head, *self.block(value, indent + (self.dash if isinstance(value, list) else self.step))]

    def item(self, value: Json, indent: int) -> list[str]:
        """Write an element of a list in block style, line by line."""
        dash = f"{' ' * indent}- "
        if lines := _lines(value, indent + 2):
            return [dash + lines[0], *lines[1:]]
        if not _is_block(value):
            return [dash + _flow(value)]
        first, *others = self.block(value, indent + 2)
        return [dash + first[indent + 2 :], *others]

    def block(self, value: Json, indent: int) -> list[str]:
        """Write an object or a list that is not empty in block style, line by line."""
        if isinstance(value, dict):
            return [line for key, member in value.items() for line in self.member(key, member, indent)]
        return [line for member in value for line in self.item(member, indent)] if isinstance(value, list) else []


def scalar(value: Json) -> str:
    """Write a value that is neither an object nor a list, for any place in YAML."""
    if isinstance(value, str):
        return value if _is_plain(value) else _quoted(value, '"')
    return json.dumps(value)


def _flow(value: Json) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{scalar(key)}: {_flow(member)}" for key, member in value.items()) + "}"
    return f"[{', '.join(map(_flow, value))}]" if isinstance(value, list) else scalar(value)


def _lines(value: Json, indent: int) -> list[str]:
    """Write a text of many lines as a block scalar, its header first; nothing where it cannot be written so."""
    body = value.rstrip("\n") if isinstance(value, str) else ""
    if (
        not isinstance(value, str)
        or "\n" not in body
        or body[0].isspace()
        or not body.translate(_IN_BLOCKS).isprintable()
    ):
        return []
    breaks = len(value) - len(body)
    further = [""] * (breaks - 1)
    return [
        "|" + ("-", "", "+")[min(breaks, 2)],
        *(" " * indent + line if line else "" for line in body.split("\n")),
        *further,
    ]


# What a block scalar can hold beside printable characters.
_IN_BLOCKS: Final = {ord("\n"): None, ord("\t"): None}


def _is_block(value: Json) -> bool:
    return isinstance(value, dict | list) and bool(value)


def _is_plain(text: str) -> bool:
    if not _PLAIN.fullmatch(text):
        return False
    # YAML 1.1 as PyYAML has it knows dates and base 60, which kubectl does not; others may know them too.
    resolvers = yaml.SafeLoader.yaml_implicit_resolvers.get(text[0], ())
    if any(pattern.match(text) for _, pattern in resolvers):
        return False
    try:
        return yaml_reader.resolve(text) == text
    except yaml_reader.ScalarError:
        return False


def _quoted(text: str, quote: str) -> str:
    inside = text.replace("'", "''") if quote == "'" else "".join(map(_escaped, text))
    return f"{quote}{inside}{quote}"


def _escaped(character: str) -> str:
    if character in _SHORT:
        return _SHORT[character]
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
