"""Edit YAML and JSON text step by step, keeping everything else as it is."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from gpugate.policies.sdk.field import render
from gpugate.policies.sdk.structs import Struct
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


class Put(Struct, frozen=True):
    """Write a member of an object, or an element of a list, in place of the present one if there is one."""

    path: Path
    value: Json


class Insert(Struct, frozen=True):
    """Write a new element of a list, before the one that is there now, or at the end."""

    path: Path
    value: Json


class Drop(Struct, frozen=True):
    """Remove a member or an element."""

    path: Path


def first_step(now: Json, wanted: Json, path: Path = ()) -> Put | Insert | Drop | None:
    """Return the first step from one value to another; None when they mean the same."""
    if isinstance(now, dict) and isinstance(wanted, dict):
        return _in_object(now, wanted, path)
    if isinstance(now, list) and isinstance(wanted, list):
        return _in_list(now, wanted, path)
    return None if same(now, wanted) else Put(path, wanted)


def same(left: Json, other: Json) -> bool:
    """Tell whether two values are the same in JSON, where 1 is 1.0 and is not true."""
    if isinstance(left, dict) and isinstance(other, dict):
        return left.keys() == other.keys() and all(same(value, other[key]) for key, value in left.items())
    if isinstance(left, list) and isinstance(other, list):
        return len(left) == len(other) and all(map(same, left, other))
    return isinstance(left, bool) == isinstance(other, bool) and left == other


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
        return _after(text, container, style.member(part, value, column(text, entries[0].start)), style)
    lines = _item(text, container, value, style)
    if part >= len(entries):
        return _after(text, container, lines, style)
    mark = dash(text, container, part)
    at = _line_start(text, mark)
    if text[at:mark].strip():
        raise EditError("the list begins on a line of another list")
    at = _about(text, at, column(text, mark), container.entries[part - 1].value.end if part else 0)
    return text[:at] + "".join(line + style.newline for line in lines) + text[at:]


def replace_in_block(text: str, container: Node, entry: Entry, value: Json, style: Style) -> str:
    """Write another value in place of that of a member or element."""
    old = entry.value
    remainder = text[old.end : _line_end(text, old.end)]
    one_line = "\n" not in text[old.start : old.end]
    if value and isinstance(value, dict | list) and container.sort == "object" and one_line and _is_blank(remainder):
        indent = column(text, entry.start) + (style.dash if isinstance(value, list) else style.step)
        head = text[: old.start].rstrip(" \t") + (f" {remainder.strip()}" if remainder.strip() else "")
        lines = style.block(value, indent)
        return head + "".join(style.newline + line for line in lines) + text[old.end + len(remainder) :]
    whole_lines = old.sort in {"object", "list"} and not old.flow
    line = _line_start(text, old.start)
    if (
        has_comment(text, old)
        or (whole_lines and remainder.strip())
        or (whole_lines and _about(text, line, column(text, old.start), entry.start) < line)
    ):
        raise EditError("the value contains a comment")
    if whole_lines:
        return clear(text, container, entry, style.inline(value))
    if old.sort == "block":
        written = text[old.start : old.end].rstrip()
        _, mark, comment = written.partition("\n")[0].rstrip().partition(" #")
        return text[: old.start] + style.inline(value) + mark + comment + text[old.start + len(written) :]
    space = "" if text[old.start - 1 : old.start] in {" ", "\t", "\n"} else " "
    return text[: old.start] + space + style.inline(value, text[old.start : old.end]) + text[old.end :]


def remove_from_block(text: str, container: Node, index: int) -> str:
    """Remove a member or an element, with its lines and the comments about it.

    The comments about it are those behind it, those in it, and those on the lines right above it in its column. Above the first
    member of the document they are about the document.
    """
    entries = container.entries
    entry = entries[index]
    start = entry.start if container.sort == "object" else dash(text, container, index)
    end = entry.value.end
    if len(entries) == 1:
        raise EditError("the document would be empty")
    line = _line_start(text, start)
    if not text[line:start].strip():
        at = column(text, start)
        before = container.entries[index - 1].value.end if index else 0
        first = _about(text, line, at, before)
        if not index and _is_head(text[:first]):
            first = line
        return text[:first] + text[_past(text, _inside(text, entry.value, end, at)) :]
    if index + 1 == len(entries):
        raise EditError("the value ends on a line of another value")
    following = entries[index + 1]
    stop = following.start if container.sort == "object" else dash(text, container, index + 1)
    if "#" in text[_line_end(text, end) : stop]:
        raise EditError("a comment is between the value and the next one")
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
            raise EditError("the value contains a comment")
        return text[: old.start] + written + text[old.end :]
    start = _about(text, _line_start(text, old.start), column(text, old.start), mark)
    stop = _past(text, _inside(text, old.entries[-1].value, old.end, column(text, old.start)))
    return f"{text[: mark + 1]} {written}{text[mark + 1 : start]}{text[stop:]}"


def dash(text: str, container: Node, index: int) -> int:
    """Return the offset of the dash before an element of a list."""
    begin = container.entries[index - 1].value.end if index else container.start
    between = text[begin : container.entries[index].start]
    dash_mark = next((mark for mark in _DASH.finditer(between) if mark[0] == "-"), None)
    if dash_mark is None:
        raise EditError("the dash of an element cannot be found")
    return begin + dash_mark.start()


def column(text: str, offset: int) -> int:
    """Return how many characters stand before an offset on its line."""
    return offset - _line_start(text, offset)


def _item(text: str, container: Node, value: Json, style: Style) -> list[str]:
    indent = column(text, dash(text, container, 0))
    quotes = common_quotes(text, container) if isinstance(value, str) else ""
    if quotes or all(entry.value.flow for entry in container.entries):
        return [f"{' ' * indent}- {style.inline(value, quotes)}"]
    return style.item(value, indent)


def _after(text: str, container: Node, lines: list[str], style: Style) -> str:
    """Write lines behind the lines of a value, and behind the comments in it."""
    end, last = container.end, container.entries[-1]
    indent = column(text, last.start if container.sort == "object" else dash(text, container, 0))
    if text[end - 1 : end] != "\n" and not _is_blank(text[end : _line_end(text, end)]):
        raise EditError("the last line of the value contains something else")
    at = _inside(text, last.value, end, indent)
    if at == len(text) and text[at - 1 : at] != "\n" and at == _line_end(text, end):
        text, at = _stripped(text, last.value)
    if text[at - 1 : at] == "\n":  # behind the blank lines that are part of a block scalar
        return text[:at] + "".join(line + style.newline for line in lines) + text[at:]
    return text[:at] + "".join(style.newline + line for line in lines) + text[at:]


def _is_head(before: str) -> bool:
    """Tell whether nothing of a document stands in the text before a line."""
    return all(not line.strip() or line.startswith(("#", "---", "%")) for line in before.splitlines())


_KEEPING: Final = re.compile(r"(?P<sign>[|>])(?P<indent>[0-9]?)[+]?(?P<same>[0-9]?)")


def _stripped(text: str, value: Node) -> tuple[str, int]:
    """Return a text without a line break at its end, which can be continued: a block scalar that ends it says `-` then."""
    while value.entries:
        value = value.entries[-1].value
    head = _line_end(text, value.start)
    keeping = list(_KEEPING.finditer(text, value.start, head)) if value.sort == "block" else []
    if not keeping or "-" in text[keeping[0].start() : keeping[0].end() + 1]:
        return text, len(text)
    mark = f"{keeping[0]['sign']}{keeping[0]['indent']}{keeping[0]['same']}-"
    text = text[: keeping[0].start()] + mark + text[keeping[0].end() :]
    return text, len(text)


# A line with a comment only, and whether it is an element of a list that is left out.
_COMMENT_LINE: Final = re.compile(r"(?P<indent>[ \t]*)#(?P<element>[ \t]*-[ \t])?")


def _about(text: str, line: int, indent: int, begin: int) -> int:
    """Return where the comments begin that stand right above a line and in its column, at or behind the offset `begin`."""
    while line > begin:
        above = _line_start(text, line - 1)
        comment = _COMMENT_LINE.match(text, above, line)
        if comment is None or len(comment["indent"]) != indent or above < begin:
            return line
        line = above
    return line


def _inside(text: str, value: Node, end: int, indent: int) -> int:
    """Return the end of the lines of a value and of the comments in it.

    These follow it and stand further to the right than the column `indent` of its key or dash, or are elements that are left out
    of a list which begins in that column.
    """
    at = end if text[end - 1 : end] == "\n" else _line_end(text, end)
    in_column = value.sort == "list" and not value.flow and column(text, value.start) == indent
    line, is_left_out = _past(text, at), False
    while line < len(text):
        stop = _line_end(text, line)
        comment = _COMMENT_LINE.match(text, line, stop)
        if comment:
            is_left_out = in_column and len(comment["indent"]) == indent and (is_left_out or bool(comment["element"]))
            if len(comment["indent"]) <= indent and not is_left_out:
                return at
            at = stop
        elif text[line:stop].strip():
            return at
        else:
            is_left_out = False
        line = _next_line(text, stop)
    return at


def _is_blank(remainder: str) -> bool:
    return not remainder.strip() or remainder.lstrip().startswith("#")


def _line_start(text: str, offset: int) -> int:
    return text.rfind("\n", 0, offset) + 1


def _line_end(text: str, offset: int) -> int:
    """The offset of the line break behind an offset, or of the end."""
    newline = text.find("\n", offset)
    at = len(text) if newline < 0 else newline
    return at - 1 if text[at - 1 : at] == "\r" and at > offset else at


def _past(text: str, end: int) -> int:
    """The begin of the line behind that on which a value ends; a block scalar ends behind its last line break."""
    return end if text[end - 1 : end] == "\n" else _next_line(text, end)


def _next_line(text: str, offset: int) -> int:
    newline = text.find("\n", offset)
    return len(text) if newline < 0 else newline + 1


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
        raise EditError("the value contains a comment")
    space = " " if text[old.start - 1 : old.start] == ":" else ""
    return text[: old.start] + space + style.inline(value, text[old.start : old.end]) + text[old.end :]


def remove_from_flow(text: str, container: Node, index: int) -> str:
    """Remove a member or an element."""
    entries = container.entries
    start, end = entries[index].start, entries[index].value.end
    if len(entries) == 1:
        start, end = container.start + 1, container.end - 1
        between = text[start : entries[0].start] + text[entries[0].value.end : end]
    elif index + 1 < len(entries):
        end = entries[index + 1].start
        _, _, between = text[entries[index].value.end : end].partition("\n")
    else:
        between = text[entries[index - 1].value.end : start]
        start = entries[index - 1].value.end
    if "#" in between:
        raise EditError("a comment follows the value")
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
    value = _read(text, style)
    for _ in range(_MOST_STEPS):
        step = first_step(value, wanted)
        if step is None:
            return text
        before, text = text, _apply(text, step, style)
        try:
            value = _read(text, style)
        except EditError:
            if any(node.sort == "alias" for node in walk(parse(before))):
                raise EditError(f"{render(step.path)} has an anchor that aliases refer to") from None
            raise
    raise EditError("the edited text does not have the wanted value")


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
    root = parse(text)
    return Style(_dash(text, root), newline_of(text), as_json, _step(text, root))


def newline_of(text: str) -> str:
    """Return how most lines of a text end."""
    return "\r\n" if 2 * text.count("\r\n") > text.count("\n") else "\n"


def _dash(text: str, root: Node) -> int:
    """How far to the right of their keys most lists of a document begin; 2 where it has none."""
    columns = [
        column(text, dash(text, member.value, 0)) - column(text, member.start)
        for node in walk(root)
        for member in node.entries
        if node.sort == "object" and member.value.sort == "list" and member.value.entries and not member.value.flow
    ]
    return _most(columns)


def _step(text: str, root: Node) -> int:
    """How far to the right of their keys most objects of a document begin; 2 where it has none."""
    columns = [
        column(text, member.value.start) - column(text, member.start)
        for node in walk(root)
        for member in node.entries
        if node.sort == "object" and member.value.sort == "object" and member.value.entries and not member.value.flow
    ]
    return _most([column for column in columns if column > 0])


def _most(columns: list[int]) -> int:
    return max(sorted(set(columns)), key=columns.count) if columns else 2


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
