from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from gpugate.policies.data.instance_types import load_instance_types
from gpugate.policies.nodepools._accelerators import makes, most_devices, reachable
from gpugate.policies.nodepools.missing_gpu_limit import Params, check
from gpugate.policies.sdk.facts import NoFacts
from gpugate.policies.sdk.field import Field
from gpugate.policies.sdk.findings import Violation
from gpugate.policies.sdk.node_pools import INSTANCE_TYPES, MatchingTypes, matching_types
from gpugate.policies.sdk.objects import GroupVersionKind, Operation, Request
from gpugate.policies.sdk.platform import Platform, Target
from gpugate.policies.sdk.policy import Context

if TYPE_CHECKING:
    from gpugate.policies.sdk.field import Json

CATALOGUE = load_instance_types()
AWS = "karpenter.k8s.aws/instance-"


def context(key: str, *values: str, params: dict[str, Any] | None = None, **spec: Json) -> Context[Params]:
    requirements: Json = [{"key": key, "operator": "In", "values": [*values]}]
    pool: dict[str, Json] = {"spec": {**spec, "template": {"spec": {"requirements": requirements}}}}
    request = Request(GroupVersionKind("karpenter.sh", "v1", "NodePool"), Operation.CREATE, pool)
    tables = {INSTANCE_TYPES.name: CATALOGUE}
    chosen = msgspec.convert(params or {}, Params)
    return Context(chosen, Field(pool), None, request, NoFacts(), Platform(), Target(), tables)


def costs(params: dict[str, Any] | None = None, **spec: Json) -> list[str]:
    ctx = context(f"{AWS}family", "g5", params=params, **spec)
    return [found.at_most.word for found in check(ctx.subject, ctx) if isinstance(found, Violation)]


@pytest.mark.parametrize(
    ("limits", "params", "cost"),
    [
        pytest.param(None, {}, ["enforce"], id="no limits"),
        pytest.param({}, {}, ["enforce"], id="empty limits"),
        pytest.param({"nvidia.com/gpu": 8}, {}, [], id="the resource"),
        pytest.param({"cpu": 192}, {}, ["warn"], id="cpu for at most 64"),
        pytest.param({"cpu": "100000"}, {}, ["enforce"], id="cpu for more than 64"),
        pytest.param({"cpu": 192}, {"at_most_indirect": 8}, ["enforce"], id="cpu for more than the platform takes"),
        pytest.param({"cpu": 192}, {"max_per_pool": 64}, [], id="cpu for no more than the most"),
        pytest.param({"cpu": 1920}, {"max_per_pool": 64}, ["enforce"], id="cpu for more than the most"),
        pytest.param({"cpu": 0}, {}, [], id="cpu for none"),
        pytest.param({"ephemeral-storage": "1Ti"}, {}, ["enforce"], id="a limit on something else"),
        pytest.param({"requests.nvidia.com/gpu": 8}, {}, ["enforce"], id="the resource as a quota has it"),
        pytest.param({"nvidia.com/gpu": 65}, {"max_per_pool": 64}, ["enforce"], id="above the most"),
        pytest.param({"nvidia.com/gpu": "64"}, {"max_per_pool": 64}, [], id="the most"),
        pytest.param({"nvidia.com/gpu": "8", "nodes": 100}, {"max_per_pool": 64}, [], id="nodes beside the resource"),
    ],
)
def test_what_limits_cost(limits: Json, params: dict[str, Any], cost: list[str]) -> None:
    assert costs(params, limits=limits) == cost


@pytest.mark.parametrize(
    ("limits", "cost"),
    [
        pytest.param(None, [], id="no limit, because its replicas bound it"),
        pytest.param({"nodes": 8}, [], id="nodes with 64 GPUs"),
        pytest.param({"nodes": 9}, ["enforce"], id="nodes with 72 GPUs"),
    ],
)
def test_of_a_static_pool_the_limit_of_nodes_counts(limits: Json, cost: list[str]) -> None:
    assert costs({"max_per_pool": 64}, replicas=4, limits=limits) == cost


def types_of(key: str, *values: str) -> MatchingTypes:
    ctx = context(key, *values)
    types = matching_types(ctx.subject, ctx)
    assert types
    return types


@pytest.mark.parametrize(
    ("key", "values", "expected"),
    [
        pytest.param(f"{AWS}family", ["g5", "g4ad"], ["nvidia", "amd"], id="the make with most types first"),
        pytest.param(f"{AWS}category", ["inf", "trn"], ["aws"], id="Neuron"),
        pytest.param(f"{AWS}family", ["dl2q"], [], id="an accelerator that Pods cannot ask for"),
        pytest.param(f"{AWS}category", ["c"], [], id="no accelerator"),
    ],
)
def test_makes(key: str, values: list[str], expected: list[str]) -> None:
    assert [make.manufacturer for make in makes(types_of(key, *values))] == expected


@pytest.mark.parametrize(
    ("family", "limits", "expected"),
    [
        pytest.param("p5", {"nodes": 3}, 24, id="nodes of the largest type"),
        pytest.param("p5", {"cpu": 191}, 11, id="a type with fewer GPUs gets further"),
        pytest.param("p4d", {"cpu": 95}, 0, id="less CPU than the type has"),
        pytest.param("p4d", {"memory": 0}, 0, id="switched off"),
        pytest.param("p4d", {"pods": 10}, None, id="nothing that bounds"),
    ],
)
def test_what_other_limits_let_a_pool_have(family: str, limits: dict[str, int], expected: int | None) -> None:
    make = next(makes(types_of(f"{AWS}family", family)))
    assert reachable(make, limits, CATALOGUE) == expected


def test_the_largest_type_of_a_make() -> None:
    assert most_devices(next(makes(types_of(f"{AWS}family", "g5"))), CATALOGUE) == 8
