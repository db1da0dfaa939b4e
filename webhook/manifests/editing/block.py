"""Changes to objects and lists in block style: each member and each element on lines of its own."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from gpugate.webhook.manifests.editing.errors import EditError
from gpugate.webhook.manifests.editing.tree import common_quotes, has_comment

if TYPE_CHECKING:
    from gpugate.policies.sdk.field import Json
    from gpugate.webhook.manifests.editing.tree import Entry, Node
    from gpugate.webhook.manifests.editing.writing import Style


# What may stand between two elements of a list: a dash, and comments.
_DASH: Final = re.compile(r"(?:^|(?<=\s))(?:#[^\n]*|-(?=\s|$))")


def insert(text: str, container: Node, part: str | int, value: Json, style: Style) -> str:
    """Write a new member at the end of an object, or a new element of a list before the element `part`."""
    entries = container.entries
    if isinstance(part, str):
        return _after(text, container.end, style.member(part, value, column(text, entries[0].start)), style)
    lines = _item(text, container, value, style)
    if part >= len(entries):
        return _after(text, container.end, lines, style)
    mark = dash(text, container, part)
    at = _line_start(text, mark)
    if text[at:mark].strip():
        raise EditError("the list begins on the line of another one")
    # The comments right above an element are about it.
    while at and text[_line_start(text, at - 1) : at].lstrip().startswith("#"):
        at = _line_start(text, at - 1)
    return text[:at] + "".join(line + style.newline for line in lines) + text[at:]


def replace(text: str, container: Node, entry: Entry, value: Json, style: Style) -> str:
    """Write another value in place of that of a member or element."""
    old = entry.value
    rest = text[old.end : _line_end(text, old.end)]
    one_line = "\n" not in text[old.start : old.end]
    if value and isinstance(value, dict | list) and container.sort == "object" and one_line and _is_blank(rest):
        indent = column(text, entry.start) + (style.dash if isinstance(value, list) else 2)
        head = text[: old.start].rstrip(" ") + (f" {rest.strip(' ')}" if rest.strip() else "")
        lines = style.block(value, indent)
        return head + "".join(style.newline + line for line in lines) + text[old.end + len(rest) :]
    whole_lines = old.sort in {"object", "list"} and not old.flow
    if has_comment(text, old) or (whole_lines and rest.strip()):
        raise EditError("a comment stands in the value")
    if whole_lines:
        return clear(text, container, entry, style.inline(value))
    if old.sort == "block":
        written = text[old.start : old.end].rstrip()
        _, mark, comment = written.partition("\n")[0].rstrip().partition(" #")
        return text[: old.start] + style.inline(value) + mark + comment + text[old.start + len(written) :]
    space = "" if text[old.start - 1 : old.start] in {" ", "\n"} else " "
    return text[: old.start] + space + style.inline(value, text[old.start : old.end]) + text[old.end :]


def remove(text: str, container: Node, index: int) -> str:
    """Remove a member or an element, with its lines."""
    entries = container.entries
    entry = entries[index]
    start = entry.start if container.sort == "object" else dash(text, container, index)
    end = entry.value.end
    if len(entries) == 1:
        raise EditError("nothing would be left of the document")
    line = _line_start(text, start)
    if not text[line:start].strip():
        return text[:line] + text[_next_line(text, _behind(text, end)) :]
    if index + 1 == len(entries):
        raise EditError("the value ends on the line of another one")
    following = entries[index + 1]
    stop = following.start if container.sort == "object" else dash(text, container, index + 1)
    if "#" in text[_line_end(text, end) : stop]:
        raise EditError("a comment stands between the value and the next one")
    return text[:start] + text[stop:]


def clear(text: str, parent: Node, entry: Entry, written: str) -> str:
    """Write a value on one line in place of the object or list that is that of a member or element."""
    old = entry.value
    mark = (
        text.index(":", entry.key_end) if parent.sort == "object" else dash(text, parent, parent.entries.index(entry))
    )
    head = _line_end(text, mark)
    if old.start < head:
        if has_comment(text, old):
            raise EditError("a comment stands in the value")
        return text[: old.start] + written + text[old.end :]
    start, stop = _line_start(text, old.start), _next_line(text, _behind(text, old.end))
    return f"{text[: mark + 1]} {written}{text[mark + 1 : start]}{text[stop:]}"


def dash(text: str, container: Node, index: int) -> int:
    """Return the offset of the dash before an element of a list."""
    begin = container.entries[index - 1].value.end if index else container.start
    between = text[begin : container.entries[index].start]
    found = next((mark for mark in _DASH.finditer(between) if mark[0] == "-"), None)
    if found is None:
        raise EditError("the dash of an element cannot be found")
    return begin + found.start()


def column(text: str, offset: int) -> int:
    """Return how many characters stand before an offset on its line."""
    return offset - _line_start(text, offset)


def _item(text: str, container: Node, value: Json, style: Style) -> list[str]:
    indent = column(text, dash(text, container, 0))
    quotes = common_quotes(text, container) if isinstance(value, str) else ""
    if quotes or all(entry.value.flow for entry in container.entries):
        return [f"{' ' * indent}- {style.inline(value, quotes)}"]
    return style.item(value, indent)


def _after(text: str, end: int, lines: list[str], style: Style) -> str:
    """Write lines behind the line on which a value ends."""
    if text[end - 1 : end] == "\n":  # a block of lines with its blank lines
        return text[:end] + "".join(line + style.newline for line in lines) + text[end:]
    at = _line_end(text, end)
    if not _is_blank(text[end:at]):
        raise EditError("something else stands on the last line of the value")
    return text[:at] + "".join(style.newline + line for line in lines) + text[at:]


def _is_blank(rest: str) -> bool:
    return not rest.strip() or rest.lstrip().startswith("#")


def _line_start(text: str, offset: int) -> int:
    return text.rfind("\n", 0, offset) + 1


def _line_end(text: str, offset: int) -> int:
    """The offset of the line break behind an offset, or of the end."""
    found = text.find("\n", offset)
    at = len(text) if found < 0 else found
    return at - 1 if text[at - 1 : at] == "\r" and at > offset else at


def _behind(text: str, end: int) -> int:
    """The end of the line on which a value ends."""
    return end - 1 if text[end - 1 : end] == "\n" else _line_end(text, end)


def _next_line(text: str, offset: int) -> int:
    found = text.find("\n", offset)
    return len(text) if found < 0 else found + 1
