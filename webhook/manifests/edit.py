"""Edit YAML and JSON text step by step, keeping everything else as it is."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gpugate.policies.sdk.field import render
from gpugate.webhook.manifests import json_reader, yaml_reader
from gpugate.webhook.manifests.edit_tree import (
    EditError,
    Entry,
    Node,
    Style,
    child,
    common_quotes,
    find,
    has_comment,
    parse,
    scalar,
    walk,
)
from gpugate.webhook.manifests.problems import ReadError

if TYPE_CHECKING:
    from gpugate.policies.sdk.field import Json, Path


@dataclass(frozen=True, slots=True)
class Put:
    """Write a member of an object, or an element of a list, in place of the present one if there is one."""

    path: Path
    value: Json


@dataclass(frozen=True, slots=True)
class Insert:
    """Write a new element of a list, before the one that is there now, or at the end."""

    path: Path
    value: Json


@dataclass(frozen=True, slots=True)
class Drop:
    """Remove a member or an element."""

    path: Path


def first_step(now: Json, wanted: Json, path: Path = ()) -> Put | Insert | Drop | None:
    """Return the first step from one value to another; None when they mean the same."""
    if isinstance(now, dict) and isinstance(wanted, dict):
        return _in_object(now, wanted, path)
    if isinstance(now, list) and isinstance(wanted, list):
        return _in_list(now, wanted, path)
    return None if same(now, wanted) else Put(path, wanted)


def same(one: Json, other: Json) -> bool:
    """Tell whether two values are the same in JSON, where 1 is 1.0 and is not true."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return isinstance(one, bool) == isinstance(other, bool) and one == other


def _in_object(now: dict[str, Json], wanted: dict[str, Json], path: Path) -> Put | Insert | Drop | None:
    for key, value in now.items():
        if key in wanted:
            step = first_step(value, wanted[key], (*path, key))
            if step:
                return step
    for key in now:
        if key not in wanted:
            return Drop((*path, key))
    for key, value in wanted.items():
        if key not in now:
            return Put((*path, key), value)
    return None


def _in_list(now: list[Json], wanted: list[Json], path: Path) -> Put | Insert | Drop | None:
    shorter = min(len(now), len(wanted))
    start = next((index for index in range(shorter) if not same(now[index], wanted[index])), shorter)
    alike = 0
    while alike < shorter - start and same(now[-1 - alike], wanted[-1 - alike]):
        alike += 1
    if start + alike == len(now) == len(wanted):
        return None
    if start + alike >= len(now):
        return Insert((*path, start), wanted[start])
    if start + alike >= len(wanted):
        return Drop((*path, start))
    return first_step(now[start], wanted[start], (*path, start))


# What may stand between two elements of a list: a dash, and comments.
_DASH: Final = re.compile(r"(?:^|(?<=\s))(?:#[^\n]*|-(?=\s|$))")


def insert_in_block(text: str, container: Node, part: str | int, value: Json, style: Style) -> str:
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


def replace_in_block(text: str, container: Node, entry: Entry, value: Json, style: Style) -> str:
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


def remove_from_block(text: str, container: Node, index: int) -> str:
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


_COMMENT: Final = re.compile(r"(?P<comma>\s*,)?[ \t]+#")


def insert_in_flow(text: str, container: Node, part: str | int, value: Json, style: Style) -> str:
    """Write a new member at the end of an object, or a new element of a list before the element `part`."""
    entries = container.entries
    written = style.inline(value, common_quotes(text, container))
    if isinstance(part, str):
        written = f"{style.inline(part) if style.json else scalar(part)}: {written}"
    if not entries:
        return text[: container.start + 1] + written + text[container.end - 1 :]
    # Where each stands on a line of its own, a new one does too.
    begin = entries[-1].start
    lead = text[text.rfind("\n", 0, begin) + 1 : begin]
    between = style.newline + lead if "\n" in text[:begin] and not lead.strip() else " "
    if isinstance(part, int) and part < len(entries):
        at = entries[part].start
        return f"{text[:at]}{written},{between}{text[at:]}"
    end = entries[-1].value.end
    line_end = text.find("\n", end) if "\n" in text[end : container.end] else end
    comment = _COMMENT.match(text, end, line_end)
    if comment and comment["comma"]:
        return f"{text[:line_end].rstrip()}{between}{written},{text[line_end:]}"
    if comment:
        return f"{text[:end]},{text[end:line_end].rstrip()}{between}{written}{text[line_end:]}"
    return f"{text[:end]},{between}{written}{text[end:]}"


def replace_in_flow(text: str, container: Node, entry: Entry, value: Json, style: Style) -> str:  # noqa: ARG001 -- as in block
    """Write another value in place of that of a member or element."""
    old = entry.value
    if has_comment(text, old):
        raise EditError("a comment stands in the value")
    space = " " if text[old.start - 1 : old.start] == ":" else ""
    return text[: old.start] + space + style.inline(value, text[old.start : old.end]) + text[old.end :]


def remove_from_flow(text: str, container: Node, index: int) -> str:
    """Remove a member or an element."""
    entries = container.entries
    start, end = entries[index].start, entries[index].value.end
    if len(entries) == 1:
        start, end = container.start + 1, container.end - 1
        kept = text[start : entries[0].start] + text[entries[0].value.end : end]
    elif index + 1 < len(entries):
        end = entries[index + 1].start
        _, _, kept = text[entries[index].value.end : end].partition("\n")
    else:
        kept = text[entries[index - 1].value.end : start]
        start = entries[index - 1].value.end
    if "#" in kept:
        raise EditError("a comment stands beside the value")
    return text[:start] + text[end:]


_MOST_STEPS: Final = 200


def edited(text: str, wanted: Json) -> str:
    """Return the text of one document, YAML or JSON, changed so that it means `wanted`.

    Comments, order, quotes and everything that need not change stay as they are. What is removed takes the comments in
    it along. The result has been read again: it means `wanted`, or there is none.

    Raises:
        EditError: the text cannot be changed safely; says which shape stands in the way.
    """
    style = _style(text)
    for _ in range(_MOST_STEPS):
        step = first_step(_read(text, style), wanted)
        if step is None:
            return text
        text = _apply(text, step, style)
    raise EditError("the text does not come to mean what is wanted")


def _read(text: str, style: Style) -> Json:
    try:
        if not style.json:
            return yaml_reader.read(text).value
        value = next(json_reader.read(text)).value
    except ReadError:
        raise EditError("the place is written in an unusual way") from None
    if isinstance(value, ReadError):
        raise EditError("the place is written in an unusual way")
    return value


def _style(text: str) -> Style:
    parts = list(json_reader.read(text)) if text.lstrip()[:1] in {"{", "["} else []
    as_json = len(parts) == 1 and not isinstance(parts[0].value, ReadError)
    newline = "\r\n" if "\r\n" in text else "\n"
    return Style(_dash(text, parse(text)), newline, as_json)


def _dash(text: str, root: Node) -> int:
    """How far to the right of their keys most lists of a document begin; 2 where it has none."""
    columns = [
        column(text, dash(text, member.value, 0)) - column(text, member.start)
        for node in walk(root)
        for member in node.entries
        if node.sort == "object" and member.value.sort == "list" and member.value.entries and not member.value.flow
    ]
    return max(set(columns), key=columns.count) if columns else 2


def _apply(text: str, step: Put | Insert | Drop, style: Style) -> str:
    *above, container = find(parse(text), step.path[:-1])
    part = step.path[-1]
    entry = None if isinstance(step, Insert) else child(container, part)
    whole = child(above[-1], step.path[-2]) if above else None
    if whole is not None and not isinstance(step, Drop) and not container.entries:
        # `[]` and `{}` become blocks where there is room for them.
        filled: Json = {part: step.value} if isinstance(part, str) else [step.value]
        return _replace(text, above[-1], whole, filled, style)
    if whole is not None and isinstance(step, Drop) and len(container.entries) == 1 and not container.flow:
        return clear(text, above[-1], whole, "{}" if container.sort == "object" else "[]")
    if isinstance(step, Drop):
        if entry is None:
            raise EditError("the value is merged in with `<<`")
        remove = remove_from_flow if container.flow else remove_from_block
        return remove(text, container, container.entries.index(entry))
    if entry is None:
        insert = insert_in_flow if container.flow else insert_in_block
        return insert(text, container, part, step.value, style)
    if entry.value.sort == "alias":
        raise EditError(f"{render(step.path)} is an alias of another value")
    return _replace(text, container, entry, step.value, style)


def _replace(text: str, container: Node, entry: Entry, value: Json, style: Style) -> str:
    replace = replace_in_flow if container.flow else replace_in_block
    return replace(text, container, entry, value, style)
