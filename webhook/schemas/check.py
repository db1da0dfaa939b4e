"""Validate an object against the schema of its kind, as the API server does.

Sources: apiextensions-apiserver v0.36 `pkg/apiserver/schema/` (`pruning/algorithm.go`,
`defaulting/{prunenulls,algorithm}.go`, `listtype/validation.go`, `objectmeta/validation.go`); KEP-4008 (ratcheting, on since
Kubernetes v1.30).
"""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any, Final

from gpugate.policies.sdk import formats
from gpugate.policies.sdk.structs import Struct
from gpugate.webhook.schemas import metadata, tables, wording
from gpugate.webhook.schemas.rules import Rules, is_same, leading
from gpugate.webhook.schemas.values import Values
from gpugate.webhook.schemas.wording import Fault, SchemaProblem

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from gpugate.policies.sdk.field import Path as FieldPath
    from gpugate.policies.sdk.platform import Target
    from gpugate.webhook.schemas.table import Node, Served, Table


HEAD: Final = frozenset({"apiVersion", "kind", "metadata"})


class Coerced(Struct, frozen=True):
    """An object as it would be validated, its unknown fields, and the paths of the fields that they probably mean."""

    value: Any
    unknown: list[SchemaProblem]
    meant: set[FieldPath]


def coerced(value: Any, schema: int, nodes: Sequence[Node], at: FieldPath = ()) -> Coerced:
    """Return a copy of an object, or of its part at a path, as it would be validated."""
    unknown: list[SchemaProblem] = []
    meant: set[FieldPath] = set()
    return Coerced(_Coercion(nodes, unknown, meant).of(value, schema, at, root=True), unknown, meant)


class _Coercion:
    def __init__(self, nodes: Sequence[Node], unknown: list[SchemaProblem], meant: set[FieldPath]) -> None:
        self._nodes = nodes
        self._unknown = unknown
        self._meant = meant

    def of(self, value: Any, schema: int, path: FieldPath, *, root: bool = False) -> Any:
        node = self._nodes[schema]
        if isinstance(value, dict):
            return self._object(value, node, path, root=root)
        if isinstance(value, list) and node.items is not None:
            items = node.items
            return [self.of(element, items, (*path, index)) for index, element in enumerate(value)]
        return value

    def _object(self, value: dict[str, Any], node: Node, path: FieldPath, *, root: bool) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for key, member in value.items():
            child = node.properties.get(key, node.values)
            if (root or node.embedded) and key in HEAD:
                out[key] = member
            elif child is not None:
                if member is not None or self._nodes[child].nullable:
                    out[key] = self.of(member, child, (*path, key))
            elif node.preserve:
                out[key] = member
            else:
                problem, near = wording.unknown((*path, key), node, value)
                self._unknown.append(problem)
                self._meant.add((*path, near))
        for key, default in node.defaults.items():
            if key not in out:
                out[key] = self.of(default, node.properties[key], (*path, key))
        return out


class Doubles:
    """Converts integers to doubles where the schema says `number`, as CEL rules see them."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._nodes = nodes
        self._leading = leading(nodes, lambda node: node.type == "number")

    def of(self, value: Any, schema: int) -> Any:
        """Return a copy of a value as CEL rules see it."""
        if schema not in self._leading:
            return value
        node = self._nodes[schema]
        if isinstance(value, dict):
            children = {key: node.properties.get(key, node.values) for key in value}
            return {
                key: member if (child := children[key]) is None else self.of(member, child)
                for key, member in value.items()
            }
        if isinstance(value, list) and node.items is not None:
            items = node.items
            return [self.of(element, items) for element in value]
        if node.type == "number" and isinstance(value, int) and not isinstance(value, bool):
            with contextlib.suppress(OverflowError):
                return float(value)
        return value


def unchanged(owner: FieldPath, new: Any, old: Any, schema: int, nodes: Sequence[Node]) -> bool:
    """Tell whether the value at a path is as it was; within lists whose elements have no keys, whether the list is."""
    at: int | None = schema
    for step in owner:
        node = nodes[at] if at is not None else None
        if isinstance(step, int):
            if node is None or node.list_type != "map" or not isinstance(new[step], dict):
                return is_same(new, old)
            keys = node.list_keys
            before = [e for e in old or () if isinstance(e, dict) and all(e.get(k) == new[step].get(k) for k in keys)]
            new, old, at = new[step], before[0] if before else None, node.items
        else:
            new = new.get(step) if isinstance(new, dict) else None
            old = old.get(step) if isinstance(old, dict) else None
            at = node.properties.get(step, node.values) if node else None
    return old is not None and is_same(new, old)


_KEYED: Final = frozenset({"set", "map"})


class Uniqueness:
    """Finds duplicates in lists of the types `set` and `map`."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._nodes = nodes
        self._keyed = leading(nodes, lambda node: node.list_type in _KEYED)

    def faults(self, value: Any, schema: int, path: FieldPath = ()) -> Iterator[Fault]:
        """Yield the second of equal elements, in a value and below it."""
        node = self._nodes[schema]
        if isinstance(value, dict):
            for key, member in value.items():
                child = node.properties.get(key, node.values)
                if child is not None and child in self._keyed:
                    yield from self.faults(member, child, (*path, key))
        elif isinstance(value, list):
            if node.list_type in _KEYED and len(value) > 1:
                yield from _doubles(value, node, path)
            if node.items is not None and node.items in self._keyed:
                for index, element in enumerate(value):
                    yield from self.faults(element, node.items, (*path, index))


def _doubles(value: list[Any], node: Node, path: FieldPath) -> Iterator[Fault]:
    counts: dict[str, int] = {}
    for index, element in enumerate(value):
        key = json.dumps(_key(element, node), sort_keys=True)
        counts[key] = counts.get(key, 0) + 1
        if counts[key] == 2:
            yield Fault(wording.repeated((*path, index), node.list_keys), path)


def _key(element: Any, node: Node) -> Any:
    if node.list_type == "set":
        return element
    return {key: element[key] for key in node.list_keys if key in element} if isinstance(element, dict) else element


class Embedded:
    """Validates the type and metadata of objects that are embedded in objects of one table."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._nodes = nodes
        self._leading = leading(nodes, lambda node: node.embedded)

    def faults(self, value: Any, schema: int, path: FieldPath = ()) -> Iterator[Fault]:
        """Yield the faults of the objects that are embedded in a value."""
        if schema not in self._leading:
            return
        node = self._nodes[schema]
        if isinstance(value, dict):
            if node.embedded:
                yield from _object(value, path)
            for key, member in value.items():
                child = node.properties.get(key, node.values)
                if child is not None:
                    yield from self.faults(member, child, (*path, key))
        elif isinstance(value, list) and node.items is not None:
            for index, element in enumerate(value):
                yield from self.faults(element, node.items, (*path, index))


def _object(value: dict[str, Any], path: FieldPath) -> Iterator[Fault]:
    for key in ("apiVersion", "kind"):
        at, text = (*path, key), value.get(key)
        if key not in value:
            yield Fault(SchemaProblem(at, f'required field "{key}" is missing', f"write {key}"), path, blocking=True)
        elif not isinstance(text, str):
            yield Fault(SchemaProblem(at, "must be a string", f"write {key}"), path)
        elif not text or (key == "kind" and not formats.is_label(text.lower())) or text.count("/") > 1:
            yield Fault(
                SchemaProblem(at, f'"{text[:80]}" is not a valid {key}', "write it as in apps/v1, Deployment"), path
            )
    yield from metadata.faults(value.get("metadata"), (*path, "metadata"), root=False, namespaced=False)


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
        self._rules = Rules(table.nodes)
        self._doubles = Doubles(table.nodes)
        self._uniqueness = Uniqueness(table.nodes)
        self._embedded = Embedded(table.nodes)

    def problems(self, value: Any, served: Served, old: Any = None) -> Iterator[SchemaProblem]:
        """Yield the problems for which the API server refuses an object: unknown fields first, then in schema order.

        Args:
            value: the object as written.
            served: the version to validate against.
            old: the object before, on UPDATE.
        """
        root, nodes = served.root, self._table.nodes
        new = coerced(value, root, nodes)
        yield from new.unknown
        whole = new.value
        before = coerced(old, root, nodes).value if isinstance(old, dict) else None
        if served.status and isinstance(whole, dict):
            whole.pop("status", None)
        faults = [*self._metadata(whole), *self._values.faults(whole, root), *_replicas(whole, served)]
        faults += [*self._embedded.faults(whole, root), *self._uniqueness.faults(whole, root)]
        if not any(fault.blocking for fault in faults):
            faults += self._rules.faults(self._doubles.of(whole, root), root, self._doubles.of(before, root))
        for fault in faults:
            is_unchanged = (
                before is not None and not fault.transition and unchanged(fault.owner, whole, before, root, nodes)
            )
            if not is_unchanged and fault.problem.path not in new.meant and not _is_replaced(whole, fault.problem.path):
                yield fault.problem

    def _metadata(self, whole: Any) -> Iterator[Fault]:
        written = whole.get("metadata") if isinstance(whole, dict) else None
        schema = self._meta.releases[-1].served["v1"].root
        meta = coerced({} if written is None else written, schema, self._meta.nodes, ("metadata",))
        for problem in meta.unknown:
            yield Fault(problem, ("metadata",))
        wrong = [*self._meta_values.faults(meta.value, schema)]
        for fault in wrong:
            yield Fault(_below(fault.problem), ("metadata", *fault.owner), blocking=fault.blocking)
        if not wrong:
            yield from metadata.faults(meta.value, ("metadata",), root=True, namespaced=self._table.namespaced)


def _is_replaced(value: Any, path: FieldPath) -> bool:
    """Tell whether the value at a path is a placeholder."""
    for step in path:
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return False
    return wording.is_placeholder(value)


def _below(problem: SchemaProblem) -> SchemaProblem:
    return SchemaProblem(("metadata", *problem.path), problem.message, problem.remedy, problem.whole)


def _replicas(whole: Any, served: Served) -> Iterator[Fault]:
    """Yield a fault if the field of the subresource `scale` exceeds 32 bits, regardless of its schema."""
    value = whole if served.scale else None
    for key in served.scale:
        value = value.get(key) if isinstance(value, dict) else None
    if isinstance(value, int) and not isinstance(value, bool) and value > _MOST_REPLICAS:
        yield Fault(wording.out_of_range(served.scale, value, "int32"), served.scale)


class Schemas:
    """All schemas; those of a kind are read for the first object of the kind.

    Args:
        folder: contains the tables that a user added, which take precedence over those of gpugate.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._checkers: dict[tuple[str, str], tuple[Table, Checker] | None] = {}

    def problems(
        self, value: Any, group: str, version: str, kind: str, target: Target, old: Any = None
    ) -> Iterator[SchemaProblem]:
        """Yield the problems for which an API server refuses an object; none if its kind and version have no schema.

        For a release between two known ones, only problems in both are reported.

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
        known = self._of(group, kind)
        if known is None:
            return
        table, checker = known
        schemas = [r.served[version] for r in tables.around(table, target) if version in r.served]
        *others, last = (
            (list(checker.problems(value, served, old)) for served in _different(schemas)) if schemas else [[]]
        )
        elsewhere = [{problem.path for problem in other} for other in others]
        for problem in last:
            if all(problem.path in paths for paths in elsewhere):
                yield problem

    def _of(self, group: str, kind: str) -> tuple[Table, Checker] | None:
        key = (group, kind)
        if key not in self._checkers:
            file = tables.find(group, kind, self._folder)
            table = tables.read(file) if file else None
            meta = tables.read(tables.BUNDLED / tables.META) if table else None
            self._checkers[key] = (table, Checker(table, meta)) if table and meta else None
        return self._checkers[key]


def _different(schemas: Sequence[Served]) -> Sequence[Served]:
    """Return the schemas without the first of two equal ones."""
    return schemas[-1:] if len(schemas) > 1 and schemas[0] == schemas[-1] else schemas
