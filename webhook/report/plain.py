"""Makes text from manifests harmless in a terminal and in a CI log."""

from __future__ import annotations


def plain(text: str) -> str:
    """Replace what a terminal would act on, and what cannot be seen; the length stays, so that carets fit."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else " " if c == "\t" else "\N{REPLACEMENT CHARACTER}" for c in text)
