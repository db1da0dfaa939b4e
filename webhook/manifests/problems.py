"""What can be wrong with a manifest before any policy looks at it."""

from __future__ import annotations

from dataclasses import dataclass

from gpugate.webhook.manifests.excerpt import NO_EXCERPT, Excerpt


@dataclass(frozen=True, slots=True)
class Problem:
    """Something in a file that could not be read, or that Kubernetes reads in another way than it looks.

    `line`, `column` and `end` (behind the region) count from 1; line 0 means the file as a whole. `remedy` says what to do. A `warning` leaves
    the object readable; any other problem means that it was not judged. `excerpt` shows the line.
    """

    source: str
    line: int
    column: int
    message: str
    remedy: str
    warning: bool = False
    excerpt: Excerpt = NO_EXCERPT
    end: int = 0


class ReadError(Exception):
    """A text cannot be read at `line` and `column` (from 1, in that text); `remedy` says what to do."""

    def __init__(self, message: str, line: int, column: int, remedy: str) -> None:
        super().__init__(message)
        self.message = message
        self.line = line
        self.column = column
        self.remedy = remedy
