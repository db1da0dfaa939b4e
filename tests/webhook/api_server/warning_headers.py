"""What becomes of a webhook's warnings: which of them the user's client gets as Warning headers.

Source: `k8s.io/apiserver` pkg/endpoints/filters/warning.go, `k8s.io/apimachinery` pkg/util/net/http.go, v1.36.
"""

from __future__ import annotations

import unicodedata

# From this many characters in all, each is cut and new ones come to an end.
TOTAL = 4096
ITEM = 256


class WarningRecorder:
    """The warnings of one request, of all webhooks together."""

    def __init__(self) -> None:
        self._seen: set[str] = set()
        self._ordered: list[str] = []
        self._truncating = False
        self.sent: list[str] = []

    def add(self, text: str) -> None:
        """Add one; empty, repeated and unprintable ones are dropped without a word."""
        if not text or (self._truncating and self._written() >= TOTAL) or text in self._seen:
            return
        self._seen.add(text)
        if not _fits_a_header(text):
            return
        self._ordered.append(text)
        self.sent.append(text[:ITEM] if self._truncating else text)
        if not self._truncating and self._written() > TOTAL:
            self._truncating = True
            self.sent = [each[:ITEM] for each in self._ordered]

    def _written(self) -> int:
        return sum(map(len, self.sent))


def _fits_a_header(text: str) -> bool:
    return not any(unicodedata.category(character) in {"Cc", "Cs"} for character in text)
