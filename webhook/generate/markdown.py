"""The few words of Markdown that generated pages are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def cell(text: str) -> str:
    """Return a text as it may stand in a cell of a table: on one line, without its signs for columns."""
    return " ".join(text.split()).replace("|", "\\|")


def code(text: str) -> str:
    """Return a text in the type of a program, whatever backticks it holds; nothing for an empty one."""
    fence = "``" if "`" in text else "`"
    return f"{fence}{text}{fence}" if text else ""


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table, with a line feed at its end."""
    lines = [_line(head), "|" + "---|" * len(head), *(_line(row) for row in rows)]
    return "\n".join(lines) + "\n"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
