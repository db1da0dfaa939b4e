"""Compiles a definition of a user into a table."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from gpugate.webhook.schemas import tables
from gpugate.webhook.schemas.compile import DefinitionError, Nodes, names, served
from gpugate.webhook.schemas.table import Release, Table
from gpugate.webhook.schemas.tables import TableError, of_user

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Unchecked:
    """A rule or a pattern of a definition that is not checked: its field, its text, and the reason."""

    path: str
    expression: str
    why: str


@dataclass(frozen=True, slots=True)
class Added:
    """A table, and the rules and patterns of its definition that it does not contain."""

    table: Table
    unchecked: tuple[Unchecked, ...]


def table_of(definition: Mapping[str, Any], source: str) -> Added:
    """Make the table of one CustomResourceDefinition; `source` names its file.

    Raises:
        DefinitionError: it cannot be read, or serves no version.
    """
    name, nodes = names(definition), Nodes()
    unchecked: list[Unchecked] = []
    try:
        versions = served(definition, nodes, lambda *details: unchecked.append(Unchecked(*details)))
    except (AttributeError, TypeError, ValueError):
        raise DefinitionError(
            "a part of spec.versions has another type than it must have: is the file whole?"
        ) from None
    release = Release("", source, versions)
    table = Table(name.group, name.kind, "", name.namespaced, (release,), nodes.all())
    _refuse_unreadable(table)
    return Added(table, tuple(dict.fromkeys(unchecked)))


def _refuse_unreadable(table: Table) -> None:
    try:
        of_user(msgspec.json.decode(msgspec.json.encode(table), type=Table))
    except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError) as error:
        raise DefinitionError(f"spec.versions: {error}") from None


def write(table: Table, folder: Path) -> Path:
    """Write a table into a folder, whole or not at all; return its file.

    Raises:
        TableError: it cannot be written.
    """
    file = folder / tables.file_name(table.group, table.kind)
    # An unpredictable name: a repository might have a link at a known one, which would be followed.
    part = file.with_name(f".{file.name}.{os.urandom(8).hex()}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        part.write_bytes(msgspec.json.encode(table) + b"\n")
        part.replace(file)
    except OSError as error:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
        raise TableError(f"{file}: cannot be written: {error.strerror}") from None
    return file
