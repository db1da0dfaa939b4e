"""Builds HTML: text is escaped wherever it stands, and only `tag` makes markup.

End tags are left out where HTML lets them be implied, which a report of ten thousand findings feels.
"""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING, Final

from gpugate.webhook.report.plain import plain

if TYPE_CHECKING:
    from collections.abc import Iterable

    Attribute = str | int | float | None

# HTML living standard, 13.1.2.4 "Optional tags": what follows each of these here ends it.
_IMPLIED_END: Final = {"li", "dt", "dd", "tr", "td", "th", "thead", "tbody"}
_VOID: Final = {"meta", "input"}
_NEEDS_NO_QUOTES: Final = re.compile(r"[A-Za-z0-9_.:#-]+")


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


NOTHING: Final = Html()


def escape(text: str) -> Html:
    """Take the meaning from a text; what cannot be seen, such as a change of writing direction, is replaced."""
    if isinstance(text, Html):
        return text
    shown = "\n".join(map(plain, text.split("\n")))
    return Html(html.escape(shown, quote=False))


def join(parts: Iterable[str], separator: str = "") -> Html:
    """Join texts and markup."""
    return Html(separator.join(map(escape, parts)))


def tag(name: str, /, *children: str, **attributes: Attribute) -> Html:
    """Return an element.

    An attribute is called as in HTML, with `_` for `-` and one `_` behind a Python keyword; it is left out where its
    value is None, and has no value where that is empty.
    """
    start = f"<{name}{''.join(_attribute(key, value) for key, value in attributes.items() if value is not None)}>"
    if name in _VOID:
        return Html(start)
    end = "" if name in _IMPLIED_END else f"</{name}>"
    return Html(f"{start}{join(children)}{end}")


def last_paragraphs(texts: Iterable[str]) -> Html:
    """Return paragraphs that are the last in their element: the next of them ends each, or the end of that element does."""
    return Html("".join(f"<p>{escape(text)}" for text in texts))


def _attribute(key: str, value: Attribute) -> str:
    name = key.rstrip("_").replace("_", "-")
    text = f"{value:g}" if isinstance(value, float) else plain(str(value))
    if not text:
        return f" {name}"
    if _NEEDS_NO_QUOTES.fullmatch(text):
        return f" {name}={text}"
    return f' {name}="{html.escape(text)}"'
