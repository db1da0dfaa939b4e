"""Puts the checks of one version of a kind together, in the API server's order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from gpugate.webhook.schemas import metadata, wording
from gpugate.webhook.schemas.coerce import coerced
from gpugate.webhook.schemas.doubles import Doubles
from gpugate.webhook.schemas.embedded import Embedded
from gpugate.webhook.schemas.judging import Judge
from gpugate.webhook.schemas.problem import Fault, SchemaProblem
from gpugate.webhook.schemas.ratchet import unchanged
from gpugate.webhook.schemas.uniqueness import Uniqueness
from gpugate.webhook.schemas.values import Values

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.webhook.schemas.table import Served, Table

_MOST_REPLICAS: Final = 2**31 - 1


class Checker:
    """Checks objects of one kind.

    Args:
        table: the kind's schemas.
        meta: the table of `metadata`, which is the same for all kinds.
    """

    def __init__(self, table: Table, meta: Table) -> None:
        self._table = table
        self._meta = meta
        self._values = Values(table.nodes)
        self._meta_values = Values(meta.nodes)
        self._judge = Judge(table.nodes)
        self._doubles = Doubles(table.nodes)
        self._uniqueness = Uniqueness(table.nodes)
        self._embedded = Embedded(table.nodes)

    def problems(self, value: Any, served: Served, old: Any = None) -> Iterator[SchemaProblem]:
        """Yield what the API server refuses in an object: unknown fields first, then the rest in the order of the file.

        Args:
            value: the object as written.
            served: the version to hold it against.
            old: the object before, on UPDATE.
        """
        root, nodes = served.root, self._table.nodes
        new = coerced(value, root, nodes)
        yield from new.unknown
        whole = new.value
        before = coerced(old, root, nodes).value if isinstance(old, dict) else None
        if served.status and isinstance(whole, dict):
            whole.pop("status", None)
        found = [*self._metadata(whole), *self._values.faults(whole, root), *_replicas(whole, served)]
        found += [*self._embedded.faults(whole, root), *self._uniqueness.faults(whole, root)]
        if not any(fault.blocking for fault in found):
            found += self._judge.faults(self._doubles.of(whole, root), root, self._doubles.of(before, root))
        for fault in found:
            kept = before is not None and not fault.transition and unchanged(fault.owner, whole, before, root, nodes)
            if not kept and fault.problem.path not in new.meant:
                yield fault.problem

    def _metadata(self, whole: Any) -> Iterator[Fault]:
        written = whole.get("metadata") if isinstance(whole, dict) else None
        place = self._meta.releases[-1].served["v1"].root
        meta = coerced({} if written is None else written, place, self._meta.nodes)
        for problem in meta.unknown:
            yield Fault(_below(problem), ("metadata",))
        wrong = [*self._meta_values.faults(meta.value, place)]
        for fault in wrong:
            yield Fault(_below(fault.problem), ("metadata", *fault.owner), blocking=fault.blocking)
        if not wrong:
            yield from metadata.faults(meta.value, ("metadata",), root=True, namespaced=self._table.namespaced)


def _below(problem: SchemaProblem) -> SchemaProblem:
    return SchemaProblem(("metadata", *problem.path), problem.message, problem.remedy, problem.whole)


def _replicas(whole: Any, served: Served) -> Iterator[Fault]:
    """The field behind the subresource `scale` is a whole number of 32 bits, whatever the schema says of it."""
    value = whole if served.scale else None
    for key in served.scale:
        value = value.get(key) if isinstance(value, dict) else None
    if isinstance(value, int) and not isinstance(value, bool) and value > _MOST_REPLICAS:
        yield Fault(wording.out_of_range(served.scale, value, "int32"), served.scale)
