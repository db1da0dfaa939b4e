"""Tables that scripts can sort: a cell of a number carries it as `data-v` when it is written in another way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpugate.webhook.report.audit_html.markup import Html, join, tag

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def table(caption: str, header: Sequence[str], rows: Iterable[Html], *, numbers: Iterable[int] = ()) -> Html:
    """Return a table; `numbers` are the columns of numbers."""
    right = set(numbers)
    heads = [tag("th", name, class_="n" if index in right else None) for index, name in enumerate(header)]
    body = (tag("thead", tag("tr", *heads)), tag("tbody", join(rows)))
    return tag("div", tag("table", tag("caption", caption), *body), class_="scroll")


def row(*cells: Html) -> Html:
    """Return a row."""
    return tag("tr", *cells)


def cell(*children: str) -> Html:
    """Return a cell of text."""
    return tag("td", *children)


def number(text: str, value: float | None = None) -> Html:
    """Return a cell of a number; `value` sorts it where the text does not."""
    return tag("td", text, class_="n" if text not in {"0", "-"} else "n z", data_v=value)
