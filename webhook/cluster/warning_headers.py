"""Reads the warnings of an API server: `Warning: 299 - "text"` (RFC 7234, 5.5)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# 299 is the only code that an API server sends (`k8s.io/apimachinery` pkg/util/net/http.go NewWarningHeader, v0.36).
_WARNING: Final = re.compile(r'299 [^ ]+ "((?:[^"\\]|\\.)*)"')
_ESCAPED: Final = re.compile(r"\\(.)")


def texts(headers: Iterable[str]) -> Sequence[str]:
    """Return what warnings say; one header may hold several."""
    return [_ESCAPED.sub(r"\1", text) for header in headers for text in _WARNING.findall(header)]
