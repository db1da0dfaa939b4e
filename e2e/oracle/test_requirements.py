"""Which instance types a NodePool may launch: as Karpenter's scheduling package decides it, for the whole catalogue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given
from oracle.requirement_strategies import CATALOGUE, pools, type_labels

from gpugate.policies.sdk.facts import NoFacts
from gpugate.policies.sdk.field import Field
from gpugate.policies.sdk.node_pools import INSTANCE_TYPES, MatchingTypes, matching_types
from gpugate.policies.sdk.objects import GroupVersionKind, Operation, Request
from gpugate.policies.sdk.platform import Platform, Target
from gpugate.policies.sdk.policy import Context, Params

if TYPE_CHECKING:
    from oracle.process import Oracle

    from gpugate.policies.sdk.scheduling import Requirement

NODE_POOL = GroupVersionKind("karpenter.sh", "v1", "NodePool")
CLASS = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}


@pytest.fixture(scope="session")
def karpenter(oracle: Oracle) -> Oracle:
    """Karpenter, which knows the catalogue."""
    assert oracle.ask("catalogue", type_labels()) == len(CATALOGUE.names)
    return oracle


def read(pool: dict[str, Any]) -> MatchingTypes:
    spec = {"nodeClassRef": CLASS, "requirements": pool["requirements"]}
    obj = {"spec": {"template": {"metadata": {"labels": pool["labels"]}, "spec": spec}}}
    request = Request(NODE_POOL, Operation.CREATE, obj)
    tables = {INSTANCE_TYPES.name: CATALOGUE}
    context = Context(Params(), Field(obj), None, request, NoFacts(), Platform(), Target(), tables)
    types = matching_types(context.subject, context)
    assert types
    return types


def described(requirement: Requirement) -> dict[str, Any]:
    return {
        "operator": requirement.operator,
        "values": sorted(requirement.values),
        "gte": requirement.gte,
        "lte": requirement.lte,
        "minValues": requirement.min_values,
    }


def needs(operator: str, bound: str) -> dict[str, Any]:
    entry = {"key": "karpenter.k8s.aws/instance-gpu-count", "operator": operator, "values": [bound], "minValues": 2}
    return {"requirements": [entry], "labels": {}}


@given(pools())
@example(needs("Gt", "1000000000000000000"))
@example(needs("Gt", "9223372036854775807"))
@example(needs("Lte", f"+{'0' * 30}1"))
def test_karpenter_matches_the_same_types(karpenter: Oracle, pool: dict[str, Any]) -> None:
    theirs = karpenter.ask("requirements", pool)

    ours = read(pool)

    assert {label: described(found) for label, found in ours.requirements.items()} == theirs["required"]
    assert list(CATALOGUE.decode(ours.known)) == list(CATALOGUE.decode(int(theirs["types"], 16)))
