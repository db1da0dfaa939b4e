"""The fenced blocks of every page."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path(__file__).resolve().parents[3]

_FENCE: Final = re.compile(r"(?P<pad>[ >]*)(?P<ticks>`{3,})(?P<info>[^`]*)\Z")
_GENERATED: Final = "<!-- Written by `make generate`"


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block.

    Attributes:
        page: path of the page from the root of the repository.
        line: of its opening fence, counted from 1.
        language: the first word behind the fence; empty where there is none.
        words: the others; those without `=` say how it is checked, `file=NAME` what a reader would call it.
        text: what is in it, without the indentation of the fence.
        generated: whether its page is written by a program.
    """

    page: str
    line: int
    language: str
    words: tuple[str, ...]
    text: str
    generated: bool

    @property
    def file(self) -> str:
        """What a reader would call it; empty where the page does not say."""
        return self.value("file")

    def value(self, key: str) -> str:
        """Return what is behind `KEY=`, or nothing."""
        return next((word.partition("=")[2] for word in self.words if word.startswith(f"{key}=")), "")

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def pages() -> list[Path]:
    """Return every page that is kept in the repository."""
    hand = [ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")]
    return [*hand, ROOT / "charts" / "gpugate" / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks() -> list[Block]:
    """Return the blocks of every page, in their order."""
    return [block for page in pages() for block in blocks_of(page)]


def blocks_of(page: Path) -> Iterator[Block]:
    """Yield the blocks of a page.

    Raises:
        ValueError: a fence is opened and never closed.
    """
    text = page.read_text()
    name = page.relative_to(ROOT).as_posix()
    lines = iter(enumerate(text.splitlines(), start=1))
    for number, line in lines:
        opening = _FENCE.match(line)
        if not opening:
            continue
        inside: list[str] = []
        for _, each in lines:
            if each.strip(" >") == opening["ticks"]:
                break
            inside.append(each.removeprefix(opening["pad"]))
        else:
            raise ValueError(f"{name}:{number}: this block is never closed")
        language, *words = opening["info"].split() or [""]
        yield Block(name, number, language, tuple(words), "\n".join(inside) + "\n", text.startswith(_GENERATED))
