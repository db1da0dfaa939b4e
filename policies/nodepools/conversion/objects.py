"""The parts that every conversion is made of."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpugate.policies.sdk.node_pools import AWS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gpugate.policies.data.legacy_apis import Move
    from gpugate.policies.sdk.field import Field, Json

# Annotations that only Karpenter, kubectl and the conversion webhook of Karpenter v1.0 read.
_BOOKKEEPING = ("kubectl.kubernetes.io/last-applied-configuration", "compatibility.karpenter.sh/", "karpenter.sh/")


@dataclass(frozen=True, slots=True)
class Converted:
    """The v1 objects, and what a person has yet to see to, each as a phrase."""

    objects: tuple[dict[str, Json], ...]
    open_points: tuple[str, ...] = ()


def moved(obj: Field, moves: Iterable[Move], api_version: str, kind: str) -> dict[str, Json]:
    """Return an object of another type with the fields that only changed their place."""
    out: dict[str, Json] = {"apiVersion": api_version, "kind": kind, "metadata": metadata(obj), "spec": {}}
    for move in moves:
        field = obj[tuple(move.old.split("."))]
        if field:
            put(out, move.new, field.value)
    return out


def metadata(obj: Field) -> dict[str, Json]:
    """Return the metadata that a person wrote."""
    fields = obj["metadata"]
    kept: dict[str, Json] = {key: fields[key].text for key in ("name", "generateName") if fields[key].text}
    if fields["labels"].labels:
        kept["labels"] = dict(fields["labels"].labels)
    annotations = {k: v for k, v in fields["annotations"].labels.items() if not k.startswith(_BOOKKEEPING)}
    if annotations:
        kept["annotations"] = dict(annotations)
    return kept


def put(obj: dict[str, Json], path: str, value: Json) -> None:
    """Write a copy of a value at a path, making the objects that lead to it."""
    *parents, last = path.split(".")
    for parent in parents:
        inner = obj.setdefault(parent, {})
        if not isinstance(inner, dict):
            return
        obj = inner
    obj[last] = deepcopy(value)


def ordered(block: Json, *keys: str) -> None:
    """Put the members of an object in an order; others come last."""
    if isinstance(block, dict):
        for key in (*(k for k in keys if k in block), *(k for k in tuple(block) if k not in keys)):
            block[key] = block.pop(key)


def node_class_ref(reference: Field) -> dict[str, Json] | None:
    """Return the reference to a node class with group, kind and name; None where there is no name."""
    name = reference["name"].text
    if not name:
        return None
    group, slash, _ = reference["apiVersion"].text.rpartition("/")
    kind = reference["kind"].text.replace("AWSNodeTemplate", "EC2NodeClass")
    own_group = reference["group"].text
    return {"group": own_group or (group if slash else AWS), "kind": kind or "EC2NodeClass", "name": name}


def left_over(spec: Field, moves: Iterable[Move], *handled: str) -> Iterator[str]:
    """Name the fields of a spec that no part of the conversion reads."""
    read = {move.old.split(".")[1] for move in moves}
    for key in spec.mapping:
        if key not in read and key not in handled:
            yield f"spec.{key} has no place in v1 and is left out"
