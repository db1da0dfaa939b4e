"""Where something stands in a file, with the lines around it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpugate.webhook.manifests.documents import SourceText
from gpugate.webhook.report.located import Place

if TYPE_CHECKING:
    from gpugate.policies.sdk.field import Path
    from gpugate.webhook.manifests.documents import Document


class DocumentPlaces:
    """The places of one document, which is composed when the first of them is asked for."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self._text = SourceText(document)

    def find(self, path: Path) -> Place:
        """Return the place of a path, or of its nearest ancestor that is there."""
        span, around = self._text.find(path)
        return Place(self.document.source, span.line, span.column, span.end, around.lines, around.first_line)
