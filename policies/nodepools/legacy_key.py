"""Label, annotation or taint that Karpenter no longer reads.

## Why is this bad?
The key has no effect, and nothing reports it. A Pod with `karpenter.sh/do-not-evict` is not protected, because
Karpenter v1.0 dropped the key. A Pod that selects nodes by `karpenter.sh/provisioner-name` stays Pending, because no
node has that label. A toleration of `karpenter.sh/disruption` tolerates nothing.

## Instead
- `karpenter.sh/do-not-evict`, `karpenter.sh/do-not-consolidate`: `karpenter.sh/do-not-disrupt: "true"` on the Pod
- `karpenter.sh/provisioner-name`: `karpenter.sh/nodepool`, with the name of the NodePool
- `karpenter.sh/disruption=disrupting`: `karpenter.sh/disrupted`, which has no value

An old annotation together with the new one is allowed, because charts set both to support every version.

## Sources
Karpenter v1.14.1 `designs/v1-api.md` ("Labels/Annotations/Tags"), `designs/v1-roadmap.md` (taints), `pkg/apis/v1/labels.go`,
`taints.go`.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from gpugate.policies.data.legacy_apis import LEGACY_KEYS
from gpugate.policies.sdk.concerns import Each, Key, Text, any_of
from gpugate.policies.sdk.findings import Patch, Patches, Stance, Violation
from gpugate.policies.sdk.objects import EC2_NODE_CLASS, NODE_POOL, POD
from gpugate.policies.sdk.platform import at_least
from gpugate.policies.sdk.policy import Context, Params, validates
from gpugate.policies.sdk.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gpugate.policies.sdk.field import Field

Role: TypeAlias = Literal[
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
# The terms that the scheduler requires, and those that it prefers.
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
# Holds for Pods that contain or name a dropped key.
USED_IN_POD: Final = any_of(
    *(Key(path, _KEYS) for path in ("metadata.annotations", "metadata.labels", "spec.nodeSelector")),
    Each("spec.tolerations", Text("key", _KEYS)),
    Each("spec.topologySpreadConstraints", Text("topologyKey", _KEYS)),
    Each(f"{_NODE_AFFINITY}.{_REQUIRED}.nodeSelectorTerms", _IN_TERM),
    Each(f"{_NODE_AFFINITY}.{_PREFERRED}", Each("preference.matchExpressions", Text("key", _KEYS))),
    *(Each(f"{path}.{_REQUIRED}", Text("topologyKey", _KEYS)) for path in _POD_AFFINITIES),
    *(Each(f"{path}.{_PREFERRED}", Text("podAffinityTerm.topologyKey", _KEYS)) for path in _POD_AFFINITIES),
)


class Use(Struct, frozen=True):
    """A use of a dropped key: the field that contains or names it, the key, and its role."""

    field: Field
    key: str
    role: Role


def in_pod(pod: Field) -> Iterator[Use]:
    """Yield the uses in a Pod or Pod template that no longer have an effect."""
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
    """Yield the uses in terms, one of which a node has to meet: a term that no node meets is harmless next to others."""
    excluding = [[e for e in term["matchExpressions"] if _excludes(e)] for term in terms]
    selecting = [[e for e in term["matchExpressions"] if not _excludes(e)] for term in terms]
    for expressions in excluding:
        yield from _of_list(expressions, "exclusion")
    impossible = [any(e["key"].text in LEGACY_KEYS for e in expressions) for expressions in selecting]
    for expressions in selecting if all(impossible) else ():
        yield from _of_list(expressions, "selector", excused=False)


def _excludes(expression: Field) -> bool:
    return expression["operator"].text in {"NotIn", "DoesNotExist"}


def _of_map(block: Field, role: Role, *, excused: bool = True) -> Iterator[Use]:
    present = block.mapping
    for key in sorted(LEGACY_KEYS.keys() & present.keys()) if present else ():
        if not (excused and LEGACY_KEYS[key] in present):
            yield Use(block[key], key, role)


def _of_list(items: Iterable[Field], role: Role, *, excused: bool = True) -> Iterator[Use]:
    keys = [item["key"] for item in items]
    if LEGACY_KEYS.keys().isdisjoint(key.text for key in keys):
        return
    present = {key.text for key in keys} if excused else set()
    for key in keys:
        successor = LEGACY_KEYS.get(key.text)
        if successor and successor not in present:
            yield Use(key, key.text, role)


def _of_topology(items: Iterable[Field]) -> Iterator[Use]:
    for item in items:
        key = item["topologyKey"].text
        if key in LEGACY_KEYS:
            yield Use(item["topologyKey"], key, "topology")


_DROPPED_IN: Final = "1.0"
_GONE: Final = "no node has the label {key} since Karpenter v1.0"
_MESSAGES: Final[dict[Role, str]] = {
    "annotation": "the annotation {key} is ignored since Karpenter v1.0",
    "label": "the label {key} has no effect since Karpenter v1.0",
    "selector": f"{_GONE}: the Pod stays Pending",
    "exclusion": f"{_GONE}: the term excludes no node",
    "preference": f"{_GONE}: the preference has no effect",
    "topology": f"{_GONE}: the scheduler cannot use it",
    "toleration": "no node has the taint {key} since Karpenter v1.0: the toleration has no effect",
    "requirement": "the API server refuses a requirement on {key}, which no node has since Karpenter v1.0",
    "taint": "Karpenter ignores the taint {key} since v1.0",
}
_REASONS: Final[dict[Role, str]] = {
    "annotation": "Karpenter ignores the annotation, so it does not protect or exclude anything.",
    "label": "Karpenter ignores the label, so it has no effect on nodes.",
    "selector": "No node has the label, so the Pod stays Pending.",
    "exclusion": "No node has the label, so the Pod can run on the nodes that the selector should exclude.",
    "preference": "No node has the label, so the scheduler ignores the preference.",
    "topology": "No node has the label, so the scheduler cannot use it to place Pods.",
    "toleration": "Karpenter writes another taint, which the Pod does not tolerate.",
    "requirement": "The API server refuses the NodePool, so Karpenter launches no node.",
    "taint": "Karpenter treats the taint like any other: only Pods that tolerate it run on the nodes.",
}
_UNPROTECTED: Final = "Karpenter does not read the key, so it may evict the Pod."
_PROTECTION: Final = "karpenter.sh/do-not-disrupt"
_DISRUPTED: Final = "karpenter.sh/disrupted"


@validates(POD, mode=Stance.WARN, concerns=USED_IN_POD)
def check_pod(pod: Field, ctx: Context[Params]) -> Iterator[Violation]:
    """Report each dropped key in a Pod or Pod template, with its successor."""
    if at_least(ctx.target.karpenter, _DROPPED_IN):
        for use in in_pod(pod):
            message = _MESSAGES[use.role].format(key=use.key)
            why = _UNPROTECTED if LEGACY_KEYS[use.key] == _PROTECTION else _REASONS[use.role]
            yield Violation(use.field.path, message, hint=_hint(use), fix=_renamed(use, pod), why=why)


@validates(NODE_POOL, mode=Stance.WARN)
def check_pool(pool: Field, ctx: Context[Params]) -> Iterator[Violation]:
    """Report each dropped key in a NodePool."""
    yield from _to_remove((*in_metadata(pool), *in_node_template(pool["spec", "template"])), ctx)


@validates(EC2_NODE_CLASS, mode=Stance.WARN)
def check_node_class(node_class: Field, ctx: Context[Params]) -> Iterator[Violation]:
    """Report each dropped key in the metadata of a node class."""
    yield from _to_remove(tuple(in_metadata(node_class)), ctx)


def _to_remove(uses: tuple[Use, ...], ctx: Context[Params]) -> Iterator[Violation]:
    for use in uses if at_least(ctx.target.karpenter, _DROPPED_IN) else ():
        protects = LEGACY_KEYS[use.key] == _PROTECTION
        hint = f"remove the key; protect Pods with {_PROTECTION}" if protects else "remove the key"
        removed = Patch("remove", use.field.path, None, f"removes {use.key}, which has no effect")
        fix = Patches((removed,)) if use.role in {"annotation", "label"} else None
        message = _MESSAGES[use.role].format(key=use.key)
        yield Violation(use.field.path, message, hint=hint, fix=fix, why=_REASONS[use.role])


def _hint(use: Use) -> str:
    successor = LEGACY_KEYS[use.key]
    if successor == _PROTECTION:
        return f'write {successor}: "true"'
    return f"write {successor}{', with the name of a NodePool' if use.role in {'selector', 'preference'} else ''}"


def _renamed(use: Use, pod: Field) -> Patches | None:
    """Return the change to the successor of a dropped key; None if a value has to be chosen too."""
    path, new = use.field.path, LEGACY_KEYS[use.key]
    reason = f"writes {new}, which replaced {use.key}"
    if use.role == "annotation" and new == _PROTECTION and use.field.text == "true":
        added = Patch("set", (*path[:-1], new), "true", reason)
        return Patches((Patch("remove", path, None, reason), added))
    renamed = Patch("set", path, new, reason)
    if use.role == "toleration" and new == _DISRUPTED:
        exists = Patch("set", (*path[:-1], "operator"), "Exists", reason)
        value = (*path[:-1], "value")
        dropped = (Patch("remove", value, None, reason),) if pod[value] else ()
        return Patches((renamed, exists, *dropped))
    return Patches((renamed,)) if use.role == "topology" else None
