"""Values of cost labels that do not identify who pays."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from gpugate.policies.sdk.formats import fits

if TYPE_CHECKING:
    from collections.abc import Iterable

_LONGEST: Final = 63
_LEGAL: Final = re.compile(r"([A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?)?")


def fault(value: str, placeholders: Iterable[str], forms: tuple[str, ...]) -> str:
    """Return the fault of a value as text that follows the name of its label; empty if the value is valid.

    A valid value is a legal label value, is not a placeholder, and has one of the forms, if there are any.
    """
    if not value.strip():
        return "is empty"
    if value.casefold() in {placeholder.casefold() for placeholder in placeholders}:
        return f'has the placeholder "{value}"'
    if len(value) > _LONGEST or not _LEGAL.fullmatch(value):
        return "is not a valid label value (at most 63 letters, digits, dots, dashes and underscores)"
    if forms and not any(fits(form, value) for form in forms):
        return f'is "{value}", which does not match {" or ".join(forms)} (# is a digit, * anything)'
    return ""


def lookalike(key: str, labels: Iterable[str]) -> str | None:
    """Return a label that differs from `key` only in case or separators: `CostCenter` for `cost-center`."""
    wanted = _bare(key)
    return next((label for label in labels if label != key and _bare(label) == wanted), None)


_SEPARATORS: Final = str.maketrans("", "", "-_./")


@lru_cache(maxsize=4096)
def _bare(key: str) -> str:
    return key.translate(_SEPARATORS).casefold()
