"""What a `console` block shows: commands behind `$ `, and below each what it prints."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_PROMPT: Final = "$ "
_HERE_DOCUMENT: Final = re.compile(r"<<-?\s*['\"]?(?P<end>\w+)['\"]?")
_OPENING: Final = re.compile(r"^(for|while|if)\b")


@dataclass(frozen=True, slots=True)
class Command:
    """A command as it is typed, over several lines perhaps, with what it prints; `offset` is its line in the block."""

    text: str
    output: str
    offset: int


def commands(block: str) -> list[Command]:
    """Return the commands of a block; what stands before the first is no command's.

    Raises:
        ValueError: the block does not start with a command, or one is not ended.
    """
    found: list[Command] = []
    lines = block.splitlines()
    index = 0
    while index < len(lines):
        if not lines[index].startswith(_PROMPT):
            raise ValueError(f"line {index + 1} of the block stands behind no `$ `: {lines[index]}")
        start = index
        typed = [lines[index].removeprefix(_PROMPT)]
        while _goes_on(typed):
            index += 1
            if index == len(lines):
                raise ValueError(f"line {start + 1} of the block: this command is not ended")
            typed.append(lines[index].removeprefix("> "))
        index += 1
        printed: list[str] = []
        while index < len(lines) and not lines[index].startswith(_PROMPT):
            printed.append(lines[index])
            index += 1
        found.append(Command("\n".join(typed), "\n".join(printed), start))
    return found


def _goes_on(typed: list[str]) -> bool:
    here = next((found for line in typed for found in [_HERE_DOCUMENT.search(line)] if found), None)
    if here:
        return typed[-1] != here["end"] or len(typed) == 1
    if _OPENING.match(typed[0]):
        return typed[-1].strip() not in {"done", "fi"}
    return typed[-1].endswith("\\") or _is_open("\n".join(typed))


def _is_open(text: str) -> bool:
    """Say whether a quotation is not closed."""
    try:
        shlex.split(text, comments=True)
    except ValueError:
        return True
    return False


def programs(text: str) -> Iterator[list[str]]:
    """Yield every program that a command calls, with its arguments: parts of a pipe, of a list, of a loop."""
    body = text.partition("\n")[0] if _HERE_DOCUMENT.search(text) else text.replace("\\\n", " ")
    lexer = shlex.shlex(body, posix=True, punctuation_chars="();|&<>\n")
    lexer.whitespace = " \t"
    lexer.whitespace_split = True
    lexer.commenters = "#"
    words: list[str] = []
    redirected = False
    for word in lexer:
        if word and set(word) <= set(";|&\n()"):
            if words:
                yield words
            words = []
        elif set(word) <= set("<>&"):
            redirected = True
            # The number of a descriptor, as in `2>`.
            words = words[:-1] if words and words[-1].isdigit() else words
        elif redirected:
            redirected = False
        elif words or (word not in _KEYWORDS and not re.fullmatch(r"[A-Z_]+=.*", word)) or word == "for":
            words.append(word)
    if words:
        yield words


_KEYWORDS: Final = {"do", "done", "then", "fi", "else", "!"}
