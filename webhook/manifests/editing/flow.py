"""Changes to objects and lists in brackets, in YAML and in JSON."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from gpugate.webhook.manifests.editing.errors import EditError
from gpugate.webhook.manifests.editing.tree import common_quotes, has_comment
from gpugate.webhook.manifests.editing.writing import scalar

if TYPE_CHECKING:
    from gpugate.policies.sdk.field import Json
    from gpugate.webhook.manifests.editing.tree import Entry, Node
    from gpugate.webhook.manifests.editing.writing import Style

_COMMENT: Final = re.compile(r"(?P<comma>\s*,)?[ \t]+#")


def insert(text: str, container: Node, part: str | int, value: Json, style: Style) -> str:
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


def replace(text: str, container: Node, entry: Entry, value: Json, style: Style) -> str:  # noqa: ARG001 -- as in block
    """Write another value in place of that of a member or element."""
    old = entry.value
    if has_comment(text, old):
        raise EditError("a comment stands in the value")
    space = " " if text[old.start - 1 : old.start] == ":" else ""
    return text[: old.start] + space + style.inline(value, text[old.start : old.end]) + text[old.end :]


def remove(text: str, container: Node, index: int) -> str:
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
