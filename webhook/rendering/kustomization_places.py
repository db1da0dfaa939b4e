"""Map fields of a built kustomization to the files they come from."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpugate.policies.sdk.field import render
from gpugate.webhook.manifests.bounded_file import MAX_BYTES, read_regular
from gpugate.webhook.manifests.documents import Document, Positions, SourceText, read_bytes, read_text
from gpugate.webhook.manifests.objects import Manifest, objects
from gpugate.webhook.manifests.within import Wanted, refusal, tree_of
from gpugate.webhook.rendering.kustomizations import KustomizationJob
from gpugate.webhook.report.located import Location

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gpugate.policies.sdk.field import Path as FieldPath
    from gpugate.webhook.manifests.documents import Span
    from gpugate.webhook.rendering.render import ObjectOrigin, Text
    from gpugate.webhook.report.located import Located, ObjectName


def place_of(documents: Iterable[Document], name: ObjectName, built: Any, field: str) -> tuple[Document, Span] | None:
    """Return the document of an object and the place of a field in it; None when either is not certain.

    Args:
        documents: those of the file that the object is from.
        name: the object, as kustomize made it.
        built: its value, as kustomize made it.
        field: the field as people write it.
    """
    manifests = [manifest for document in documents for manifest in _alike(document, name)]
    if len(manifests) != 1:
        return None
    manifest = manifests[0]
    path, original = path_of(built, field), manifest.request.object
    if path_of(original, field) != path or _known(built, path, field) != _known(original, path, field):
        return None
    return manifest.document, Positions(manifest.document).find((*manifest.prefix, *path))


def path_of(value: Any, field: str) -> FieldPath:
    """Return the path that people write as `field`, or as much of it as leads to something."""
    path: FieldPath = ()
    while True:
        keys: Iterable[str | int] = (
            value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
        )
        step = next((key for key in keys if _leads(render((*path, key)), field)), None)
        if step is None:
            return path
        path, value = (*path, step), value[step]


def _leads(prefix: str, field: str) -> bool:
    return field == prefix or (field.startswith(prefix) and field[len(prefix)] in ".[")


def _alike(document: Document, name: ObjectName) -> Iterator[Manifest]:
    """Yield the objects that may have become the one of this name: kustomize adds to names, in front and behind."""
    for part in objects(document, lenient=True):
        if isinstance(part, Manifest):
            request = part.request
            same = (request.kind.api_version, request.kind.kind) == (name.api_version, name.kind)
            if same and request.name and request.name in name.name:
                yield part


def _known(value: Any, path: FieldPath, field: str) -> list[Any]:
    """Return what must be equal: the names of the list items on the way, and the value where the path is the field's."""
    identities: list[Any] = []
    for key in path:
        value = value[key]
        if isinstance(key, int):
            identities.append(value.get("name") if isinstance(value, dict) else value)
    # The object as a whole is known by its name, and an overlay changes something of it always.
    return [*identities, value] if field and render(path) == field else identities


class KustomizationPlaces:
    """Where the objects of one kustomization are from."""

    def __init__(self, text: Text) -> None:
        assert isinstance(text.job, KustomizationJob)  # noqa: S101 -- the caller checked the type
        self._job = text.job
        self._text = text
        self._top = tree_of(text.job.file.directory) or text.job.file.directory
        self._built = [part for part in read_text(text.job.label, text.text) if isinstance(part, Document)]
        self._read: dict[str, list[Document]] = {}

    def of(self, finding: Located) -> Location:
        """Return the place of a finding in a file of the kustomization, or what is known of it."""
        location = finding.location
        # The origin of an object is an annotation, which a transformer of the kustomization can write.
        origin = next(
            (origin for origin in self._text.origins if origin.first_line <= location.line <= origin.last_line), None
        )
        origin = origin if origin and not refusal(origin.file, self._top, Wanted.FILE) else None
        certain = self._certain(finding, origin) if origin else None
        if certain:
            return certain
        file = self._name_of(origin.file) if origin else self._job.file.file
        return replace(location, file=file, line=1, column=1, end=2, rendered=location.line)

    def _certain(self, finding: Located, origin: ObjectOrigin) -> Location | None:
        built = next((part for part in reversed(self._built) if part.first_line <= finding.location.line), None)
        if origin.generated or finding.object is None or built is None:
            return None
        file = self._name_of(origin.file)
        if file not in self._read:
            self._read[file] = _documents(file)
        original = place_of(self._read[file], finding.object, built.value, finding.path)
        if original is None:
            return None
        document, span = original
        around = SourceText(document).around(span.line)
        return Location(file, span.line, span.column, span.end, around.lines, around.first_line)

    def _name_of(self, file: str) -> str:
        """Write a path as the user writes those of kustomizations: from the working directory on, or absolute."""
        return file if Path(self._job.name).is_absolute() else os.path.relpath(file)


def _documents(file: str) -> list[Document]:
    try:
        data = read_regular(Path(file), MAX_BYTES)
    except OSError:
        return []
    return [part for part in read_bytes(file, data) if isinstance(part, Document)]
