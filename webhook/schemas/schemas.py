"""Finds the schema of an object and holds the object against it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpugate.policies.sdk.platform import at_least
from gpugate.webhook.schemas import places, tables
from gpugate.webhook.schemas.checking import Checker

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from gpugate.policies.sdk.platform import Target
    from gpugate.webhook.schemas.problem import SchemaProblem
    from gpugate.webhook.schemas.table import Release, Served, Table


class Schemas:
    """Every schema there is; a kind's are read when the first object of it comes.

    Args:
        folder: holds the tables that a user added, which go before those that come with gpugate.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._checkers: dict[tuple[str, str], tuple[Table, Checker] | None] = {}

    def problems(
        self, value: Any, group: str, version: str, kind: str, target: Target, old: Any = None
    ) -> Iterator[SchemaProblem]:
        """Yield what an API server refuses in an object; nothing where no schema of its kind and version is known.

        Of a release between two that are known, only what both refuse is told.

        Args:
            value: the object as written.
            group: of its apiVersion, with `version`.
            version: of its apiVersion.
            kind: its kind.
            target: the releases assumed.
            old: the object before, on UPDATE.

        Raises:
            TableError: a table that the user added cannot be read.
        """
        found = self._of(group, kind)
        if found is None:
            return
        table, checker = found
        schemas = [r.served[version] for r in around(table, target) if version in r.served]
        *others, last = (list(checker.problems(value, each, old)) for each in _different(schemas)) if schemas else [[]]
        elsewhere = [{each.path for each in other} for other in others]
        for problem in last:
            if all(problem.path in paths for paths in elsewhere):
                yield problem

    def _of(self, group: str, kind: str) -> tuple[Table, Checker] | None:
        key = (group, kind)
        if key not in self._checkers:
            file = places.find(group, kind, self._folder)
            table = tables.read(file) if file else None
            meta = tables.read(places.BUNDLED / places.META) if table else None
            self._checkers[key] = (table, Checker(table, meta)) if table and meta else None
        return self._checkers[key]


def around(table: Table, target: Target) -> Sequence[Release]:
    """Return the release that a target names, or the two between which it is; the nearest one outside of all."""
    if not table.project:
        return table.releases
    minor = str(getattr(target, table.project))
    exact = [release for release in table.releases if release.minor == minor]
    if exact:
        return exact
    older = [release for release in table.releases if at_least(minor, release.minor)]
    newer = [release for release in table.releases if not at_least(minor, release.minor)]
    return (*older[-1:], *newer[:1])


def _different(schemas: Sequence[Served]) -> Sequence[Served]:
    """Leave out the first of two equal ones."""
    return schemas[-1:] if len(schemas) > 1 and schemas[0] == schemas[-1] else schemas
