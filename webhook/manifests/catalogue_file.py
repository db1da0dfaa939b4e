"""Read a catalogue of instance types, as `gpugate catalogue` writes it, and locate mistakes in it by line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from gpugate.policies.engine.config import ConfigError, GpugateError, PolicyConfig, parse
from gpugate.policies.sdk.catalogue import API_VERSION, KIND, CatalogueError, CatalogueFile, check_types
from gpugate.policies.sdk.field import render
from gpugate.webhook.manifests.bounded_file import read_named
from gpugate.webhook.manifests.documents import Positions, read_bytes
from gpugate.webhook.manifests.problems import Problem

if TYPE_CHECKING:
    from pathlib import Path

    from gpugate.policies.sdk.field import Json

# Above what 2,000 types with 100 members need.
MAX_BYTES: Final = 16 * 2**20


class CatalogueFileError(GpugateError):
    """The file cannot be read, or is refused; the text begins with file, line and column."""


def read_catalogue(path: Path, data: bytes | None = None) -> CatalogueFile:
    """Read a file of instance types.

    Args:
        path: the file.
        data: its content where that is not the file on disk.

    Raises:
        CatalogueFileError: the file cannot be read, is not one YAML or JSON document, or is refused.
    """
    if data is None:
        try:
            data = read_named(path, MAX_BYTES)
        except OSError as error:
            raise CatalogueFileError(f"{path}: {(error.strerror or 'cannot be read').lower()}") from None
    documents = list(read_bytes(str(path), data))
    for document in documents:
        if isinstance(document, Problem):
            raise CatalogueFileError(f"{path}:{document.line}:{document.column}: {document.message}: {document.remedy}")
    if len(documents) != 1 or isinstance(documents[0], Problem):
        raise CatalogueFileError(f"{path}: holds {len(documents)} documents: write one {KIND}")
    try:
        return _parsed(documents[0].value)
    except ConfigError as error:
        span = Positions(documents[0]).find(error.path)
        where = f"{render(error.path)}: " if error.path else ""
        raise CatalogueFileError(f"{path}:{span.line}:{span.column}: {where}{error.message}") from None


def _parsed(value: Json) -> CatalogueFile:
    if not isinstance(value, dict):
        raise ConfigError((), f"the catalogue is not a YAML mapping; start it with `apiVersion: {API_VERSION}`")
    for key, wanted in (("apiVersion", API_VERSION), ("kind", KIND)):
        if value.get(key) != wanted:
            raise ConfigError((key,), f"must be {wanted}")
    body = {key: member for key, member in value.items() if key not in {"apiVersion", "kind"}}
    catalogue = parse(body, CatalogueFile, ())
    try:
        check_types(catalogue.types)
    except CatalogueError as error:
        raise ConfigError(error.path, error.message) from None
    return catalogue


def with_catalogue(config: PolicyConfig, file: CatalogueFile) -> PolicyConfig:
    """Return a configuration with the types of a file instead of those that it lists itself."""
    replace = msgspec.structs.replace
    own = config.platform.catalogue
    catalogue = replace(own, types=file.types, complete=file.complete or own.complete)
    return replace(config, platform=replace(config.platform, catalogue=catalogue))
