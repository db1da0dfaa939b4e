"""Where something stands in a file, with the lines around it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpugate.webhook.manifests.excerpt import excerpt
from gpugate.webhook.manifests.positions import Positions
from gpugate.webhook.report.located import Place

if TYPE_CHECKING:
    from gpugate.policies.sdk.field import Path
    from gpugate.webhook.manifests.documents import Document


class DocumentPlaces:
    """The places of one document, which is composed when the first of them is asked for."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._positions: Positions | None = None
        self._lines: list[str] = []

    def find(self, path: Path) -> Place:
        """Return the place of a path, or of its nearest ancestor that is there."""
        if self._positions is None:
            self._positions = Positions(self._document)
            self._lines = self._document.text.splitlines()
        span = self._positions.find(path)
        around = excerpt(self._lines, span.line, self._document.first_line)
        return Place(self._document.source, span.line, span.column, span.end, around.lines, around.first_line)
