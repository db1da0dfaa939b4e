"""What the API server answered."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

# RFC 7234, section 5.5: code, agent and quoted text, which may hold escaped quotes.
_WARNING = re.compile(r'\d{3} \S+ "((?:[^"\\]|\\.)*)"')
_ESCAPED = re.compile(r"\\(.)")


@dataclass(frozen=True)
class Answer:
    """Status code, object and warnings; the object of an error is a `metav1.Status`."""

    code: int
    body: dict[str, Any]
    warnings: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether it was done."""
        return self.code < 300

    @property
    def message(self) -> str:
        """What an error says; empty when it was done."""
        return "" if self.ok else str(self.body.get("message", ""))


def warnings_of(headers: Iterable[str]) -> list[str]:
    """Read the texts of `Warning` headers, whose bytes were taken for Latin-1 and are UTF-8."""
    texts = [text for header in headers for text in _WARNING.findall(header)]
    return [_ESCAPED.sub(r"\1", text).encode("latin-1").decode("utf-8", "replace") for text in texts]
