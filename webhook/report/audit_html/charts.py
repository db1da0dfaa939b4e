"""Bars as SVG; each stands beside the numbers that it shows, so that nothing is said by colour alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpugate.webhook.report.audit_html.markup import NOTHING, Html, escape, join, tag

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Part = tuple[str, float]
"""The class of a colour, and how much."""
_WIDTH = 1000
_HEIGHT = 10
_GAP = 3


def bar(parts: Sequence[Part], whole: float, *, label: str = "", kind: str = "bar") -> Html:
    """Return one bar of some parts; a bar as long as `whole` fills its place.

    Without a label it is decoration beside a number, and screen readers pass over it.
    """
    if whole <= 0:
        return NOTHING
    shown = [(name, amount / whole * _WIDTH) for name, amount in parts if amount > 0]
    rects, left = [], 0.0
    for index, (name, width) in enumerate(shown):
        drawn = max(width - (_GAP if index + 1 < len(shown) else 0), 1)
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


def legend(entries: Iterable[tuple[str, str, str]]) -> Html:
    """Return a legend of (class, name, amount)."""
    items = [
        tag("li", tag("i", class_=f"key {name}"), tag("b", amount) if amount else NOTHING, " ", escape(text))
        for name, text, amount in entries
    ]
    return tag("ul", join(items), class_="legend")
