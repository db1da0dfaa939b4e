"""Changes a text step by step, until it means what is wanted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.sdk.field import render
from gpugate.webhook.manifests import json_reader, yaml_reader
from gpugate.webhook.manifests.editing import block, flow
from gpugate.webhook.manifests.editing.errors import EditError
from gpugate.webhook.manifests.editing.steps import Drop, Insert, Put, first_step
from gpugate.webhook.manifests.editing.tree import Entry, Node, child, find, parse, walk
from gpugate.webhook.manifests.editing.writing import Style
from gpugate.webhook.manifests.problems import ReadError

if TYPE_CHECKING:
    from gpugate.policies.sdk.field import Json

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
        block.column(text, block.dash(text, member.value, 0)) - block.column(text, member.start)
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
        return block.clear(text, above[-1], whole, "{}" if container.sort == "object" else "[]")
    if isinstance(step, Drop):
        if entry is None:
            raise EditError("the value is merged in with `<<`")
        remove = flow.remove if container.flow else block.remove
        return remove(text, container, container.entries.index(entry))
    if entry is None:
        insert = flow.insert if container.flow else block.insert
        return insert(text, container, part, step.value, style)
    if entry.value.sort == "alias":
        raise EditError(f"{render(step.path)} is an alias of another value")
    return _replace(text, container, entry, step.value, style)


def _replace(text: str, container: Node, entry: Entry, value: Json, style: Style) -> str:
    replace = flow.replace if container.flow else block.replace
    return replace(text, container, entry, value, style)
