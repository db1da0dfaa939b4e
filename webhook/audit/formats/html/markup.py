"""Build escaped HTML: tags, tables, charts and colours.

End tags that HTML implies are omitted, which makes large reports noticeably smaller.
"""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING, Final

from gpugate.webhook.audit.model import Action
from gpugate.webhook.report.plain import plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# The next element implies the end of these (HTML living standard, 13.1.2.4 "Optional tags").
_IMPLIED_END: Final = {"li", "dt", "dd", "tr", "td", "th", "thead", "tbody"}
_VOID: Final = {"meta", "input"}
_NEEDS_NO_QUOTES: Final = re.compile(r"[A-Za-z0-9_.:#-]+")


class Html(str):
    """Escaped markup."""

    __slots__ = ()


NOTHING: Final = Html()


def escape(text: str) -> Html:
    """Escape a text, and replace invisible characters such as a change of writing direction."""
    if isinstance(text, Html):
        return text
    printable = "\n".join(map(plain, text.split("\n")))
    return Html(html.escape(printable, quote=False))


def join(parts: Iterable[str], separator: str = "") -> Html:
    """Join texts and markup."""
    return Html(separator.join(map(escape, parts)))


def tag(name: str, /, *children: str, **attributes: Attribute) -> Html:
    """Return an element.

    Attribute names use `_` for `-`, and a final `_` after a Python keyword. An attribute with the value None is omitted,
    and one with an empty value is written without a value.
    """
    start = f"<{name}{''.join(_attribute(key, value) for key, value in attributes.items() if value is not None)}>"
    if name in _VOID:
        return Html(start)
    end = "" if name in _IMPLIED_END else f"</{name}>"
    return Html(f"{start}{join(children)}{end}")


def last_paragraphs(texts: Iterable[str]) -> Html:
    """Return paragraphs without end tags; they must be the last children of their element."""
    return Html("".join(f"<p>{escape(text)}" for text in texts))


def _attribute(key: str, value: Attribute) -> str:
    name = key.rstrip("_").replace("_", "-")
    text = f"{value:g}" if isinstance(value, float) else plain(str(value))
    if not text:
        return f" {name}"
    if _NEEDS_NO_QUOTES.fullmatch(text):
        return f" {name}={text}"
    return f' {name}="{html.escape(text)}"'


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
    """Return a cell with a number; `value` is for sorting if the text is not a plain number."""
    return tag("td", text, class_="n" if text not in {"0", "-"} else "n z", data_v=value)


CLASSES: Final = {
    Action.DENY: "deny",
    Action.MUTATE: "mutate",
    Action.WARN: "warn",
    Action.RECORD: "record",
    Action.ALLOW: "allow",
}
# One letter, because each object has one.
MARKS: Final = {Action.DENY: "d", Action.MUTATE: "m", Action.WARN: "w", Action.RECORD: "r", Action.ALLOW: "a"}
VERBS: Final = {
    Action.DENY: "denied",
    Action.MUTATE: "mutated",
    Action.WARN: "allowed with a warning",
    Action.RECORD: "recorded",
    Action.ALLOW: "allowed without findings",
}


Part = tuple[str, float]
"""The CSS class of a colour, and an amount."""
_WIDTH = 1000
_HEIGHT = 10
_GAP = 3


def bar(parts: Sequence[Part], whole: float, *, label: str = "", kind: str = "bar") -> Html:
    """Return a bar of parts; `whole` is the amount of the full width.

    A bar without a label is hidden from screen readers, because a number is beside it.
    """
    if whole <= 0:
        return NOTHING
    segments = [(name, amount / whole * _WIDTH) for name, amount in parts if amount > 0]
    rects, left = [], 0.0
    for index, (name, width) in enumerate(segments):
        drawn = max(width - (_GAP if index + 1 < len(segments) else 0), 1)
        rects.append(tag("rect", class_=name, x=round(left), width=max(round(drawn), 1), height=_HEIGHT))
        left += width
    described = {"role": "img", "aria_label": label} if label else {"aria_hidden": "true"}
    return tag(
        "svg",
        *rects,
        class_=kind,
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
        preserveAspectRatio="none",
        **described,
    )


_SPARK_HEIGHT = 100


def spark(points: Sequence[tuple[float, float]], *, label: str, kind: str) -> Html:
    """Return values over time as a line and the area below it, of which the lower edge is 0.

    Args:
        points: time and value, in the order of time; the last one fills the rest if there is only one.
        label: the text for screen readers.
        kind: the CSS class of a colour.
    """
    first, whole = points[0][0], points[-1][0] - points[0][0]
    most = max(value for _, value in points)
    places = [
        (
            round((time - first) / whole * _WIDTH) if whole else 0,
            round(_SPARK_HEIGHT - (value / most * _SPARK_HEIGHT if most > 0 else 0)),
        )
        for time, value in points
    ]
    if len(places) == 1:
        places.append((_WIDTH, places[0][1]))
    line = " ".join(f"{x},{y}" for x, y in places)
    return tag(
        "svg",
        tag("polygon", points=f"0,{_SPARK_HEIGHT} {line} {places[-1][0]},{_SPARK_HEIGHT}"),
        tag("polyline", points=line),
        class_=f"spark {kind}",
        viewBox=f"0 -4 {_WIDTH} {_SPARK_HEIGHT + 8}",
        preserveAspectRatio="none",
        role="img",
        aria_label=label,
    )


def legend(entries: Iterable[tuple[str, str, str]]) -> Html:
    """Return a legend of (class, name, amount)."""
    items = [
        tag("li", tag("i", class_=f"key {name}"), tag("b", amount) if amount else NOTHING, " ", escape(text))
        for name, text, amount in entries
    ]
    return tag("ul", join(items), class_="legend")


if TYPE_CHECKING:
    Attribute = str | int | float | None
