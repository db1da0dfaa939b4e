"""What a Pod requires of the labels of its node.

Source: `k8s.io/component-helpers/scheduling/corev1/nodeaffinity`, v0.36: the node selector and one of the terms of the
required node affinity hold; a term that says nothing holds nowhere.
"""

from __future__ import annotations

from collections import ChainMap
from typing import TYPE_CHECKING, Final

from gpugate.policies.sdk import requirements
from gpugate.policies.sdk.concerns import Each, Key, Text

if TYPE_CHECKING:
    from gpugate.policies.sdk.concerns import Concern
    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.policy import AnyContext
    from gpugate.policies.sdk.requirements import Requirement, Requirements

# Where the terms of the required node affinity are.
REQUIRED: Final = (
    "spec",
    "affinity",
    "nodeAffinity",
    "requiredDuringSchedulingIgnoredDuringExecution",
    "nodeSelectorTerms",
)


def alternatives(pod: Field, _ctx: AnyContext) -> tuple[Requirements, ...]:
    """Return what a Pod or Pod template requires of each label: one of these, of which each narrows all it names."""
    selector = {requirements.normalized(k): requirements.is_only(v) for k, v in _selector(pod).items()}
    terms = [term for term in pod[REQUIRED] if term.mapping]
    return tuple(_narrowed(selector, term) for term in terms) if terms else (selector,)


def may_have(key: str, value: str, ctx: AnyContext) -> bool:
    """Tell whether the Pod may run on a node whose label has this value, as far as this label goes."""
    return any(key not in required or required[key].allows(value) for required in ctx.derived(alternatives))


def selected(key: str, ctx: AnyContext) -> frozenset[str]:
    """Return the values, one of which the label of the Pod's node must have; empty where it may have others."""
    found = [required.get(key) for required in ctx.derived(alternatives)]
    named = [r.values for r in found if r is not None and r.operator == "In"]
    return frozenset().union(*named) if len(named) == len(found) else frozenset()


def selecting_by(*keys: str) -> Concern:
    """Return which Pods require something of one of these labels."""
    in_terms = Each(".".join(REQUIRED), Each("matchExpressions", Text("key", keys)))
    return Key("spec.nodeSelector", keys) | in_terms


def _selector(pod: Field) -> dict[str, str]:
    return pod["spec", "nodeSelector"].labels


def _narrowed(selector: dict[str, Requirement], term: Field) -> Requirements:
    """Return what a term requires, in front of the selector, which all terms share rather than copy."""
    read = (requirements.read(entry) for entry in term["matchExpressions"])
    found = requirements.combined(each for each in read if each)
    if not selector:
        return found
    for key in found:
        if key in selector:
            found[key] = found[key].intersect(selector[key])
    return ChainMap(found, selector)
