"""Reads a Helm template line by line: what it writes as it stands, what actions write, where loops are.

The language is that of Go's text/template (Go 1.26), of which only the delimiters, strings and keywords matter here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_KEYWORD: Final = re.compile(r"(?:\{\{-?)\s*(?P<word>[$\w/]*)(?P<assigns>[\w,\s$]*:?=(?!=))?")
_OPENING: Final = frozenset({"if", "with", "range", "define", "block"})
_SILENT: Final = frozenset({"if", "else", "end", "with", "range", "define", "block", "break", "continue", "/"})
_DEFINING: Final = frozenset({"define", "block"})


@dataclass(slots=True)
class TemplateLine:
    """A line of a template.

    Attributes:
        writes: whether text of its own is written where it stands, with or without actions among it.
        begins: that text where the line begins with it, without the space around it.
        markable: whether something may be added at its end that is written with it.
        actions: how many actions on it may write something.
        back_to: the line from which on something may be written after it, because a loop that begins there begins anew;
            0 where the line is part of a definition, which is written somewhere else. None where all goes on forward.
    """

    writes: bool = False
    begins: str = ""
    markable: bool = False
    actions: int = 0
    back_to: int | None = None


@dataclass(slots=True)
class _Reader:
    text: str
    lines: list[TemplateLine] = field(default_factory=lambda: [TemplateLine()])
    blocks: list[tuple[str, int]] = field(default_factory=list)
    acted: bool = False

    def action(self, action: str) -> None:
        line = self.lines[-1]
        self.acted = True
        found = _KEYWORD.match(action)
        word = "/" if action.lstrip("{- ").startswith("/*") else found["word"] if found else ""
        loops = [begin for block, begin in self.blocks if block == "range"]
        closes_loop = word == "end" and self.blocks and self.blocks[-1][0] == "range"
        if word in _DEFINING or self._defines:
            line.back_to = 0
        elif loops and (closes_loop or word in {"break", "continue"}):
            line.back_to = min(loops[-1], line.back_to or loops[-1])
        if word in _OPENING:
            self.blocks.append((word, len(self.lines)))
        elif word == "end" and self.blocks:
            self.blocks.pop()
        if word not in _SILENT and not (found and found["assigns"]):
            line.actions += 1
        line.markable &= "\n" not in action
        for _ in range(action.count("\n")):
            # An action over several lines writes where it ends.
            self.lines.append(TemplateLine(actions=line.actions, back_to=line.back_to))

    def literal(self, text: str, *, trimmed: bool) -> None:
        """Take in text between actions; `trimmed` when the action before it takes the space before this text away."""
        for number, part in enumerate(text.split("\n")):
            if number:
                self.lines.append(TemplateLine())
            if part.strip() and not self._defines:
                line = self.lines[-1]
                line.begins = part.strip() if number or not (line.writes or self.acted) else line.begins
                line.writes = True
                line.markable = not part.lstrip().startswith("---")
            elif trimmed and number == 0:
                self.lines[-1].markable = False

    @property
    def _defines(self) -> bool:
        return any(block in _DEFINING for block, _ in self.blocks)


def template_lines(text: str) -> list[TemplateLine]:
    """Return the lines of a template; only those that end outside of actions and definitions are markable."""
    reader = _Reader(text)
    trimmed = False
    for part, is_action in _parts(text):
        if is_action:
            reader.action(part)
            trimmed = part.endswith("-}}")
            reader.lines[-1].markable = reader.lines[-1].writes and not trimmed
        else:
            reader.literal(part, trimmed=trimmed)
            trimmed = False
    return reader.lines


def _parts(text: str) -> Iterator[tuple[str, bool]]:
    """Yield text and actions in turn."""
    start = 0
    while (opening := text.find("{{", start)) >= 0:
        yield text[start:opening], False
        start = _end(text, opening)
        yield text[opening:start], True
    yield text[start:], False


def _end(text: str, opening: int) -> int:
    """Return where an action ends; at the end of the text when it does not."""
    inside = text[opening + 2 : opening + 6].lstrip("- ")
    if inside.startswith("/*"):
        closing = text.find("}}", max(text.find("*/", opening), opening))
        return closing + 2 if closing >= 0 else len(text)
    position = opening + 2
    while position < len(text):
        character = text[position]
        if text.startswith("}}", position):
            return position + 2
        position = _past_string(text, position) if character in "\"'`" else position + 1
    return len(text)


def _past_string(text: str, position: int) -> int:
    quote, position = text[position], position + 1
    while position < len(text) and text[position] != quote:
        position += 2 if text[position] == "\\" and quote != "`" else 1
    return position + 1
