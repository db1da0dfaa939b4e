"""The text of a document, looked into when something in it is to be shown."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from gpugate.webhook.manifests.excerpt import Excerpt, excerpt, lines_of_document
from gpugate.webhook.manifests.positions import Positions, Span

if TYPE_CHECKING:
    from gpugate.policies.sdk.field import Path
    from gpugate.webhook.manifests.documents import Document


class SourceText:
    """A document that is composed and split into lines when the first place is asked for, and once for all of them."""

    def __init__(self, document: Document) -> None:
        self.document = document

    def find(self, path: Path) -> tuple[Span, Excerpt]:
        """Return the place of a path, or of its nearest ancestor that is there, and the lines around it."""
        span = self._positions.find(path)
        return span, self.around(span.line)

    def around(self, line: int) -> Excerpt:
        """Return a line of the file, by its number, and the lines around it."""
        return excerpt(self._lines, line, self.document.first_line)

    @cached_property
    def _positions(self) -> Positions:
        return Positions(self.document)

    @cached_property
    def _lines(self) -> list[str]:
        return lines_of_document(self.document.text, self._positions.root)
