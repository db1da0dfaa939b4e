"""Objects in files, and where each of their fields stands."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gpugate.policies.engine.config import GpugateError
from gpugate.webhook.manifests.documents import Document, read_text
from gpugate.webhook.manifests.inputs import Input
from gpugate.webhook.manifests.load import parts
from gpugate.webhook.manifests.objects import Manifest, objects
from gpugate.webhook.manifests.problems import Problem
from gpugate.webhook.report import yaml_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


class ObjectError(GpugateError):
    """What a test gives is no object, or a file has not the one it asks for; the text says where and why."""


class LoadedObject(dict[str, Any]):
    """An object from a file, to be changed like any dict; findings in it have the places of the file."""

    def __init__(self, manifest: Manifest) -> None:
        super().__init__(manifest.request.object or {})
        self.manifest = manifest


class ManifestFiles:
    """Reads objects from files; a path is looked for in each of some directories."""

    def __init__(self, directories: Sequence[Path]) -> None:
        self._directories = directories

    def __call__(self, path: str, *, kind: str = "", name: str = "", namespace: str = "") -> LoadedObject:
        """Return the one object in a file, or the one of a kind, name or namespace.

        Raises:
            ObjectError: the file holds none that fits, or several.
        """
        found = [each for each in self.all(path) if _fits(each.manifest, kind, name, namespace)]
        if len(found) == 1:
            return found[0]
        names = ", ".join(_name(each.manifest) for each in found or self.all(path))
        what = "several objects fit" if found else "no object fits"
        raise ObjectError(f"{path}: {what}; choose with kind=, name= or namespace= one of {names}")

    def all(self, path: str) -> list[LoadedObject]:
        """Return every object in a file.

        Raises:
            ObjectError: it is missing, cannot be read or holds none.
        """
        file = self._file(path)
        found: list[LoadedObject] = []
        for part in parts(Input(str(file), explicit=True), "default"):
            if isinstance(part, Problem) and not part.warning:
                raise ObjectError(f"{path}:{part.line}:{part.column}: {part.message}: {part.remedy}")
            if isinstance(part, Manifest):
                shown = replace(part.document, source=path)
                found.append(LoadedObject(Manifest(shown, part.prefix, part.request)))
        if not found:
            raise ObjectError(f"{path}: holds no object: write one, with apiVersion and kind")
        return found

    def _file(self, path: str) -> Path:
        for directory in self._directories:
            if (directory / path).is_file():
                return directory / path
        places = " and not in ".join(map(str, dict.fromkeys(self._directories)))
        raise ObjectError(f"{path}: is not in {places}")


def as_manifest(given: Mapping[str, Any], namespace: str) -> Manifest:
    """Return an object with the places of its fields: those of its file, else of itself written as YAML.

    Raises:
        ObjectError: it is none.
    """
    value = dict(given)
    if isinstance(given, LoadedObject):
        return _only(replace(given.manifest.document, value=value), namespace, given.manifest.prefix)
    for document in read_text("object", yaml_text.block(value)):
        if isinstance(document, Document):
            return _only(replace(document, value=value), namespace)
    raise ObjectError("an empty object: give apiVersion, kind and metadata.name")


def _only(document: Document, namespace: str, prefix: tuple[str | int, ...] = ()) -> Manifest:
    for part in objects(document, namespace=namespace):
        if isinstance(part, Problem):
            raise ObjectError(f"{part.message}: {part.remedy}")
        if isinstance(part, Manifest):
            return Manifest(document, prefix + part.prefix, part.request)
    raise ObjectError("no object for the API server: give apiVersion, kind and metadata.name")


def _fits(manifest: Manifest, kind: str, name: str, namespace: str) -> bool:
    request = manifest.request
    pairs = ((kind, request.kind.kind), (name, request.name), (namespace, request.namespace))
    return all(wanted in {"", has} for wanted, has in pairs)


def _name(manifest: Manifest) -> str:
    return f"{manifest.request.kind.kind} {manifest.request.shown_name}"
