"""Reads the parts of a policy's documentation."""

from __future__ import annotations

import re

WHY = "Why is this bad?"
INSTEAD = "Instead"
SOURCES = "Sources"

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z`])")


def section(doc: str, heading: str) -> str:
    """Return the text under a `## heading`; empty when there is none."""
    _, found, rest = f"\n{doc}".partition(f"\n## {heading}\n")
    return rest.partition("\n## ")[0].strip() if found else ""


def first_sentence(text: str) -> str:
    """Return the first sentence, on one line."""
    return " ".join(_SENTENCE_END.split(text, maxsplit=1)[0].split())
