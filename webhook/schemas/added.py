"""Makes a table of a definition that a user has."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from gpugate.webhook.schemas import places
from gpugate.webhook.schemas.definition import names, served
from gpugate.webhook.schemas.nodes import Nodes
from gpugate.webhook.schemas.table import Release, Table
from gpugate.webhook.schemas.tables import TableError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Unchecked:
    """A rule or a pattern of a definition that is not checked: at which field, what it is, and why not."""

    path: str
    what: str
    why: str


@dataclass(frozen=True, slots=True)
class Added:
    """A table, and what of its definition is not in it."""

    table: Table
    unchecked: tuple[Unchecked, ...]


def table_of(definition: Mapping[str, Any], source: str) -> Added:
    """Make the table of one CustomResourceDefinition; `source` names its file.

    Raises:
        DefinitionError: it cannot be read, or serves no version.
    """
    name, nodes = names(definition), Nodes()
    unchecked: list[Unchecked] = []
    versions = served(definition, nodes, lambda *said: unchecked.append(Unchecked(*said)))
    release = Release("", source, versions)
    table = Table(name.group, name.kind, "", name.namespaced, (release,), nodes.all())
    return Added(table, tuple(dict.fromkeys(unchecked)))


def write(table: Table, folder: Path) -> Path:
    """Write a table into a folder, whole or not at all; return its file.

    Raises:
        TableError: it cannot be written.
    """
    file = folder / places.file_name(table.group, table.kind)
    part = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        part.write_bytes(msgspec.json.encode(table) + b"\n")
        part.replace(file)
    except OSError as error:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
        raise TableError(f"{file}: cannot be written: {error.strerror}") from None
    return file
