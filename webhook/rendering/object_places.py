"""Finds in a file of a kustomization what kustomize made an object's field of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpugate.policies.sdk.field import render
from gpugate.webhook.manifests.documents import Positions
from gpugate.webhook.manifests.objects import Manifest, objects

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gpugate.policies.sdk.field import Path
    from gpugate.webhook.manifests.documents import Document, Span
    from gpugate.webhook.report.located import ObjectName


def place_of(documents: Iterable[Document], name: ObjectName, made: Any, field: str) -> tuple[Document, Span] | None:
    """Return the document of an object and the place of a field in it; None when either is not certain.

    Args:
        documents: those of the file that the object is from.
        name: the object, as kustomize made it.
        made: its value, as kustomize made it.
        field: the field as people write it.
    """
    held = [each for document in documents for each in _alike(document, name)]
    if len(held) != 1:
        return None
    manifest = held[0]
    path, original = path_of(made, field), manifest.request.object
    if path_of(original, field) != path or _known(made, path, field) != _known(original, path, field):
        return None
    return manifest.document, Positions(manifest.document).find((*manifest.prefix, *path))


def path_of(value: Any, field: str) -> Path:
    """Return the path that people write as `field`, or as much of it as leads to something."""
    path: Path = ()
    while True:
        keys: Iterable[str | int] = (
            value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
        )
        step = next((key for key in keys if _leads(render((*path, key)), field)), None)
        if step is None:
            return path
        path, value = (*path, step), value[step]


def _leads(shown: str, field: str) -> bool:
    return field == shown or (field.startswith(shown) and field[len(shown)] in ".[")


def _alike(document: Document, name: ObjectName) -> Iterator[Manifest]:
    """Yield the objects that may have become the one of this name: kustomize adds to names, in front and behind."""
    for found in objects(document, lenient=True):
        if isinstance(found, Manifest):
            request = found.request
            same = (request.kind.api_version, request.kind.kind) == (name.api_version, name.kind)
            if same and request.name and request.name in name.name:
                yield found


def _known(value: Any, path: Path, field: str) -> list[Any]:
    """Return what must be equal: the names of the list items on the way, and the value where the path is the field's."""
    seen: list[Any] = []
    for key in path:
        value = value[key]
        if isinstance(key, int):
            seen.append(value.get("name") if isinstance(value, dict) else value)
    # The object as a whole is known by its name, and an overlay changes something of it always.
    return [*seen, value] if field and render(path) == field else seen
