"""Shapes and defaults are written by hand, because few fields are read and the schemas load too slowly for a review."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest

from gpugate.policies.engine import shapes
from gpugate.policies.engine.defaults import with_defaults
from gpugate.policies.sdk.objects import GroupVersionKind, Operation, Request
from gpugate.webhook.schemas import tables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.webhook.schemas.table import Node

# Pods and HorizontalPodAutoscalers have no definition among the bundled ones.
KINDS = sorted(key for key in shapes._SHAPES if tables.find(*key, None))
TYPES = {"a string": "string", "true or false": "boolean", "a whole number": "integer"}


def newest(group: str, kind: str) -> tuple[tuple[Node, ...], Node]:
    """Return the schemas of a kind, and the one of its objects in the newest release."""
    file = tables.find(group, kind, None)
    assert file is not None
    table = tables.read(file)
    (served,) = table.releases[-1].served.values()
    return table.nodes, table.nodes[served.root]


def inner(shape: Any, node: Node) -> Iterator[tuple[str, Any, int | None]]:
    """Yield the parts of a shape: what they are called, their shape, and where their schema is; None without one."""
    if isinstance(shape, shapes._Object):
        # The definitions only say that `metadata` is an object.
        yield from ((f".{name}", m, node.properties.get(name)) for name, m in shape.members if name != "metadata")
    elif isinstance(shape, shapes._List):
        yield "[]", shape.element, node.items
    elif isinstance(shape, shapes._Map):
        yield "{}", shape.member, node.values


def differences(shape: Any, node: Node, nodes: tuple[Node, ...], path: str) -> Iterator[str]:
    if isinstance(shape, shapes._Quantity) and not (node.quantity or node.int_or_string):
        yield f"{path} is {node.type}, not a quantity"
    if isinstance(shape, shapes._Scalar) and node.type != TYPES[shape.wanted]:
        yield f"{path} is {node.type or 'anything'}, not {shape.wanted}"
    for name, part, index in inner(shape, node):
        if index is None:
            yield f"{path}{name} does not exist"
        else:
            yield from differences(part, nodes[index], nodes, path + name)


@pytest.mark.parametrize(("group", "kind"), KINDS)
def test_a_shape_has_the_fields_and_types_of_the_definition(group: str, kind: str) -> None:
    nodes, root = newest(group, kind)

    assert list(differences(shapes._SHAPES[group, kind], root, nodes, "")) == []


def test_a_shape_with_other_fields_or_types_differs() -> None:
    nodes, root = newest("karpenter.sh", "NodePool")
    misspelt = shapes._object(
        spec=shapes._object(
            wieght=shapes._INTEGER,
            weight=shapes._STRING,
            limits=shapes._STRINGS,
            replicas=shapes._List(shapes._STRING),
            disruption=shapes._object(budgets=shapes._STRINGS, consolidateAfter=shapes._Quantity()),
        )
    )

    assert list(differences(misspelt, root, nodes, "")) == [
        ".spec.wieght does not exist",
        ".spec.weight is integer, not a string",
        ".spec.limits{} is anything, not a string",
        ".spec.replicas[] does not exist",
        ".spec.disruption.budgets{} does not exist",
        ".spec.disruption.consolidateAfter is string, not a quantity",
    ]


def defaulted(value: Any, node: Node, nodes: tuple[Node, ...]) -> Any:
    """Fill in defaults as the API server does (`k8s.io/apiextensions-apiserver` v0.36 pkg/apiserver/schema/defaulting)."""
    if isinstance(value, list) and node.items is not None:
        return [defaulted(element, nodes[node.items], nodes) for element in value]
    if not isinstance(value, dict):
        return value
    filled = {**copy.deepcopy(node.defaults), **value}
    return {
        key: defaulted(member, nodes[node.properties[key]], nodes) if key in node.properties else member
        for key, member in filled.items()
    }


POOL: dict[str, Any] = {"template": {"spec": {}}}
OBJECTS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "a pool without anything": ("karpenter.sh/v1", "NodePool", {}),
    "a pool": ("karpenter.sh/v1", "NodePool", POOL),
    "a pool with a disruption": ("karpenter.sh/v1", "NodePool", {**POOL, "disruption": {"consolidateAfter": "1h"}}),
    "a pool with a budget": (
        "karpenter.sh/v1",
        "NodePool",
        {**POOL, "disruption": {"budgets": [{"schedule": "@daily"}]}},
    ),
    "a pool without disruption": ("karpenter.sh/v1", "NodePool", {**POOL, "disruption": {"budgets": []}}),
    "a pool whose nodes stay": ("karpenter.sh/v1", "NodePool", {"template": {"spec": {"expireAfter": "Never"}}}),
    "a claim": ("karpenter.sh/v1", "NodeClaim", {}),
    "a claim that expires": ("karpenter.sh/v1", "NodeClaim", {"expireAfter": "1h"}),
    "a node class": ("karpenter.k8s.aws/v1", "EC2NodeClass", {}),
    "a node class with options": (
        "karpenter.k8s.aws/v1",
        "EC2NodeClass",
        {"metadataOptions": {"httpTokens": "optional"}},
    ),
    "a scaler": ("keda.sh/v1alpha1", "ScaledObject", {"scaleTargetRef": {"name": "a"}}),
}


@pytest.mark.parametrize(("version", "kind", "spec"), OBJECTS.values(), ids=OBJECTS)
def test_an_object_gets_the_defaults_of_the_definition(version: str, kind: str, spec: dict[str, Any]) -> None:
    gvk = GroupVersionKind.of(version, kind)
    nodes, root = newest(gvk.group, kind)

    filled = with_defaults(Request(gvk, Operation.CREATE, {"spec": spec})).object

    assert filled == defaulted({"spec": spec}, root, nodes)
