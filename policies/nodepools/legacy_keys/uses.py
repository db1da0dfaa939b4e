"""Finds the dropped keys in Pods and node pools, and whether what took their place stands beside them.

Source: where a Pod and a node name labels, annotations and taints: `k8s.io/api/core/v1/types.go`, v0.36.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from gpugate.policies.data.legacy_apis import LEGACY_KEYS
from gpugate.policies.sdk.concerns import Each, Key, Text, any_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gpugate.policies.sdk.field import Field

Place: TypeAlias = Literal[
    "annotation",
    "label",
    "selector",
    "exclusion",
    "preference",
    "topology",
    "toleration",
    "requirement",
    "taint",
]

_KEYS: Final = tuple(LEGACY_KEYS)
_IN_TERM: Final = Each("matchExpressions", Text("key", _KEYS))
_NODE_AFFINITY: Final = "spec.affinity.nodeAffinity"
_POD_AFFINITIES: Final = ("spec.affinity.podAffinity", "spec.affinity.podAntiAffinity")
# What the scheduler must find, and what it prefers.
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
# Which Pods hold or name a dropped key at all.
USED_IN_POD: Final = any_of(
    *(Key(path, _KEYS) for path in ("metadata.annotations", "metadata.labels", "spec.nodeSelector")),
    Each("spec.tolerations", Text("key", _KEYS)),
    Each("spec.topologySpreadConstraints", Text("topologyKey", _KEYS)),
    Each(f"{_NODE_AFFINITY}.{_REQUIRED}.nodeSelectorTerms", _IN_TERM),
    Each(f"{_NODE_AFFINITY}.{_PREFERRED}", Each("preference.matchExpressions", Text("key", _KEYS))),
    *(Each(f"{path}.{_REQUIRED}", Text("topologyKey", _KEYS)) for path in _POD_AFFINITIES),
    *(Each(f"{path}.{_PREFERRED}", Text("podAffinityTerm.topologyKey", _KEYS)) for path in _POD_AFFINITIES),
)


@dataclass(frozen=True, slots=True)
class Use:
    """A dropped key: the field that holds or names it, the key, and what it is there for."""

    field: Field
    key: str
    place: Place


def in_pod(pod: Field) -> Iterator[Use]:
    """Yield the uses in a Pod or Pod template that have no effect any more."""
    yield from in_metadata(pod)
    spec = pod["spec"]
    yield from _of_map(spec["nodeSelector"], "selector", excused=False)
    yield from _of_topology(spec["topologySpreadConstraints"])
    yield from _of_list(tuple(spec["tolerations"]), "toleration")
    affinity = spec["affinity"]
    if affinity:
        yield from _in_affinity(affinity)


def _in_affinity(affinity: Field) -> Iterator[Use]:
    node = affinity["nodeAffinity"]
    yield from _in_terms(tuple(node[_REQUIRED, "nodeSelectorTerms"]))
    preferred = node[_PREFERRED]
    yield from _of_list([e for p in preferred for e in p["preference", "matchExpressions"]], "preference")
    for kind in (affinity["podAffinity"], affinity["podAntiAffinity"]):
        yield from _of_topology(kind[_REQUIRED])
        yield from _of_topology(p["podAffinityTerm"] for p in kind[_PREFERRED])


def in_node_template(template: Field) -> Iterator[Use]:
    """Yield the uses in the template of a NodePool."""
    yield from in_metadata(template)
    spec = template["spec"]
    yield from _of_list(tuple(spec["requirements"]), "requirement", excused=False)
    yield from _of_list(tuple(chain(spec["taints"], spec["startupTaints"])), "taint", excused=False)


def in_metadata(obj: Field) -> Iterator[Use]:
    """Yield the uses among labels and annotations."""
    yield from _of_map(obj["metadata", "annotations"], "annotation")
    yield from _of_map(obj["metadata", "labels"], "label")


def _in_terms(terms: tuple[Field, ...]) -> Iterator[Use]:
    """A node has to fit one of the terms: one that no node fits does no harm beside others."""
    excluding = [[e for e in term["matchExpressions"] if _excludes(e)] for term in terms]
    selecting = [[e for e in term["matchExpressions"] if not _excludes(e)] for term in terms]
    for expressions in excluding:
        yield from _of_list(expressions, "exclusion")
    impossible = [any(e["key"].text in LEGACY_KEYS for e in expressions) for expressions in selecting]
    for expressions in selecting if all(impossible) else ():
        yield from _of_list(expressions, "selector", excused=False)


def _excludes(expression: Field) -> bool:
    return expression["operator"].text in {"NotIn", "DoesNotExist"}


def _of_map(block: Field, place: Place, *, excused: bool = True) -> Iterator[Use]:
    present = block.mapping
    for key in sorted(LEGACY_KEYS.keys() & present.keys()) if present else ():
        if not (excused and LEGACY_KEYS[key] in present):
            yield Use(block[key], key, place)


def _of_list(items: Iterable[Field], place: Place, *, excused: bool = True) -> Iterator[Use]:
    keys = [item["key"] for item in items]
    if LEGACY_KEYS.keys().isdisjoint(key.text for key in keys):
        return
    present = {key.text for key in keys} if excused else set()
    for key in keys:
        successor = LEGACY_KEYS.get(key.text)
        if successor and successor not in present:
            yield Use(key, key.text, place)


def _of_topology(items: Iterable[Field]) -> Iterator[Use]:
    for item in items:
        key = item["topologyKey"].text
        if key in LEGACY_KEYS:
            yield Use(item["topologyKey"], key, "topology")
