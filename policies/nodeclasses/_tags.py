"""Whether a tag tells anything, and whether two keys are meant to be the same."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

from gpugate.policies.sdk import formats

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

# What a template engine or a manual leaves where a value belongs.
_UNFILLED = ("${", "{{", "<")
# Letters and signs by their category, but drawn as nothing: Hangul fillers and the empty braille cell.
_BLANK_LETTERS = "\u115f\u1160\u3164\uffa0\u2800"


def fault(key: str, value: str, forms: Mapping[str, Sequence[str]], placeholders: Iterable[str]) -> str:
    """Say what is wrong with a value, as the end of a sentence about the tag; empty when it is good."""
    if not _visible(value).strip():
        return "has no value"
    if _visible(value) != value:
        return "has an invisible character in its value"
    if value.strip().casefold() in {placeholder.casefold() for placeholder in placeholders}:
        return f'has the placeholder "{value.strip()}" for a value'
    unfilled = next((sign for sign in _UNFILLED if sign in value), "")
    if unfilled:
        return f'has "{unfilled}" in its value: a template that was not filled in'
    allowed = forms.get(key, ())
    if allowed and not any(formats.fits(form, value) for form in allowed):
        return f"is not of the form {' or '.join(allowed)} (# is a digit, * anything)"
    return ""


def alike(key: str, present: Iterable[str]) -> str:
    """Return a key that is this one but for case, separators or invisible characters; empty when there is none."""
    wanted = _folded(key)
    return next((other for other in present if other != key and _folded(other) == wanted), "")


def _folded(key: str) -> str:
    return "".join(character for character in key.casefold() if character.isalnum())


def _visible(text: str) -> str:
    """Leave out what shows nothing, such as the zero-width space."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(c for c in text if c not in _BLANK_LETTERS and unicodedata.category(c) not in {"Cf", "Cc"})
