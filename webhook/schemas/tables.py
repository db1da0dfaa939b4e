"""Reads a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from gpugate.policies.engine.errors import GpugateError
from gpugate.webhook.schemas.branching import refuse_branching
from gpugate.webhook.schemas.patterns import PatternError, translated
from gpugate.webhook.schemas.places import BUNDLED
from gpugate.webhook.schemas.table import Table

if TYPE_CHECKING:
    from pathlib import Path

_AGAIN: Final = "make it again with `gpugate schema add`"
_MOST: Final = 16 * 1024 * 1024  # bytes; the largest table that comes with gpugate has 50 KB


class TableError(GpugateError):
    """A table cannot be read: which, why, and what to do."""


def read(file: Path) -> Table:
    """Read a table that comes with gpugate, or one that a user added.

    Raises:
        TableError: the file cannot be read, or is no table of this version of gpugate.
    """
    try:
        if file.stat().st_size > _MOST:
            raise TableError(f"{file}: larger than {_MOST:,} bytes: {_AGAIN}")
        table = msgspec.json.decode(file.read_bytes(), type=Table)
        return table if file.parent == BUNDLED else of_user(table)
    except OSError as error:
        raise TableError(f"{file}: cannot be read: {error.strerror}") from None
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        raise TableError(f"{file}: no table of schemas that this version reads ({error}): {_AGAIN}") from None


def of_user(table: Table) -> Table:
    """Make a table safe that comes with the files that are checked: whoever changes those can change it.

    Raises:
        ValueError: it names nodes that are not there, is of no release, or would take too long.
    """
    if not (table.releases and all(release.served for release in table.releases)):
        raise ValueError("it is of no release, or of one that serves no version")
    from gpugate.webhook.schemas.rules import rules  # noqa: PLC0415 -- brings the translator along

    def pass_over(*_: str) -> None:
        """What is not checked was told when the table was added."""

    nodes = tuple(
        msgspec.structs.replace(
            node,
            pattern=node.pattern if _is_quick(node.pattern) else "",
            rules=rules([rule.written for rule in node.rules], pass_over),
        )
        for node in table.nodes
    )
    # A node names those before it only, so that there is an end.
    for place, node in enumerate(nodes):
        _refuse_unless(place, *node.properties.values(), *node.all_of, *node.any_of, *node.one_of)
        _refuse_unless(place, *(each for each in (node.values, node.items, node.none_of) if each is not None))
        if not node.defaults.keys() <= node.properties.keys():
            raise ValueError("a default is of no member")
    _refuse_unless(len(nodes), *(version.root for release in table.releases for version in release.served.values()))
    refuse_branching(nodes)
    return msgspec.structs.replace(table, project="", nodes=nodes)


def _refuse_unless(below: int, *places: int) -> None:
    if not all(0 <= place < below for place in places):
        raise ValueError("a node names one that is not there")


def _is_quick(pattern: str) -> bool:
    try:
        translated(pattern)
    except PatternError:
        return False
    return True
