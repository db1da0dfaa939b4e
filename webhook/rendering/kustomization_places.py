"""Finds fields of what a kustomization became in the files that its objects are from."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from gpugate.webhook.manifests.bounded_file import MAX_BYTES, read_regular
from gpugate.webhook.manifests.documents import Document, SourceText, read_bytes, read_text
from gpugate.webhook.manifests.within import Wanted, refusal, tree_of
from gpugate.webhook.rendering.kustomizations import KustomizationJob
from gpugate.webhook.rendering.object_places import place_of
from gpugate.webhook.report.located import Place

if TYPE_CHECKING:
    from gpugate.webhook.rendering.origins import ObjectOrigin
    from gpugate.webhook.rendering.render import Text
    from gpugate.webhook.report.located import Located


class KustomizationPlaces:
    """Where the objects of one kustomization are from."""

    def __init__(self, text: Text) -> None:
        assert isinstance(text.job, KustomizationJob)  # noqa: S101 -- whoever makes this has looked
        self._job = text.job
        self._text = text
        self._top = tree_of(text.job.file.directory) or text.job.file.directory
        self._made = [part for part in read_text(text.job.label, text.text) if isinstance(part, Document)]
        self._read: dict[str, list[Document]] = {}

    def of(self, finding: Located) -> Place:
        """Return the place of a finding in a file of the kustomization, or what is known of it."""
        place = finding.place
        # The origin of an object is an annotation, which a transformer of the kustomization can write.
        origin = next((each for each in self._text.origins if each.first_line <= place.line <= each.last_line), None)
        origin = origin if origin and not refusal(origin.file, self._top, Wanted.FILE) else None
        found = self._certain(finding, origin) if origin else None
        if found:
            return found
        file = self._shown(origin.file) if origin else self._job.file.file
        return replace(place, file=file, line=1, column=1, end=2, rendered=place.line)

    def _certain(self, finding: Located, origin: ObjectOrigin) -> Place | None:
        made = next((part for part in reversed(self._made) if part.first_line <= finding.place.line), None)
        if origin.generated or finding.object is None or made is None:
            return None
        file = self._shown(origin.file)
        if file not in self._read:
            self._read[file] = _documents(file)
        found = place_of(self._read[file], finding.object, made.value, finding.path)
        if found is None:
            return None
        document, span = found
        around = SourceText(document).around(span.line)
        return Place(file, span.line, span.column, span.end, around.lines, around.first_line)

    def _shown(self, file: str) -> str:
        """Write a path as the user writes those of kustomizations: from the working directory on, or absolute."""
        return file if Path(self._job.name).is_absolute() else os.path.relpath(file)


def _documents(file: str) -> list[Document]:
    try:
        data = read_regular(Path(file), MAX_BYTES)
    except OSError:
        return []
    return [part for part in read_bytes(file, data) if isinstance(part, Document)]
