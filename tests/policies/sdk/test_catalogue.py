from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gpugate.policies.data.instance_types import INSTANCE_TYPE
from gpugate.policies.engine.config import ConfigError, parse_config
from gpugate.policies.sdk.catalogue import MOST_TYPES
from gpugate.policies.sdk.facts import Known
from gpugate.policies.sdk.field import Field
from gpugate.policies.sdk.node_pools import INSTANCE_TYPES, ec2_types, is_gpu_pool, matching_types
from gpugate.policies.sdk.objects import NODE, GroupVersionKind, Operation, Request
from gpugate.policies.sdk.platform import Target
from gpugate.policies.sdk.policy import Context, Params

if TYPE_CHECKING:
    from gpugate.policies.data.instance_types import InstanceTypes
    from gpugate.policies.sdk.facts import Fact
    from gpugate.policies.sdk.field import Json
    from gpugate.policies.sdk.objects import Kind
    from gpugate.policies.sdk.platform import Platform

A100: Json = {
    "name": "a100",
    "labels": {"example.com/gpus": "4"},
    "allocatable": {"cpu": "95500m", "memory": "860Gi", "nvidia.com/gpu": 4},
}
CPU: Json = {"name": "cpu", "capacity": {"cpu": 64, "memory": "256Gi"}, "usd_per_hour": 2.5}
DRA: Json = {
    "name": "dra",
    "allocatable": {"cpu": 8, "memory": "64Gi"},
    "devices": [{"driver": "gpu.nvidia.com", "count": 2}],
}


def platform(*types: Json, **catalogue: Json) -> Platform:
    body: dict[str, Json] = {"catalogue": {"types": [*types], **catalogue}}
    return parse_config({"apiVersion": "gpugate.dev/v1", "kind": "PolicyConfig", "platform": body}).platform


def listed(*types: Json, **catalogue: Json) -> InstanceTypes:
    types = platform(*types, **catalogue).listed_types
    assert types
    return types


def test_types_are_indexed_like_those_of_ec2() -> None:
    types = listed(A100, CPU, DRA)
    assert types.names == ("a100", "cpu", "dra")
    assert types.prices == (None, 2.5, None)
    assert list(types.decode(types.accelerated)) == ["a100", "dra"]
    assert list(types.decode(types.of(INSTANCE_TYPE, "cpu"))) == ["cpu"]
    assert list(types.decode(types.allocatable["nvidia.com/gpu"].at_least(4))) == ["a100"]
    assert list(types.decode(types.allocatable["cpu"].at_least(95_501))) == []
    assert list(types.decode(types.capacity["cpu"].at_least(96))) == ["a100"]
    assert list(types.decode(types.allocatable["memory"].at_least(256 * 1024))) == ["a100", "cpu"]
    assert types.scales["example.com/gpus"].numbers == (4,)
    assert types.has_devices


@pytest.mark.parametrize(
    ("entry", "error"),
    [
        ({"name": "a"}, "types[1].allocatable: missing cpu"),
        ({"name": "a", "allocatable": {"cpu": 1}}, "types[1].allocatable: missing memory"),
        ({"name": "", "allocatable": {}}, "types[1].name: expected `str` of length >= 1"),
        ({"name": "cpu", "capacity": {"cpu": 1, "memory": "1Gi"}}, "types[1].name: is the name of types[0] too"),
        (
            {"name": "a", "capacity": {"cpu": "many", "memory": "1Gi"}},
            'types[1].capacity.cpu: "many" is not a quantity',
        ),
        ({"name": "a", "capacity": {"cpu": 0, "memory": "1Gi"}}, "types[1].capacity.cpu: 0 is less than 1m"),
        (
            {"name": "a", "capacity": {"cpu": 1, "memory": "1Gi", "nvidia.com/gpu": -1}},
            'types[1].capacity["nvidia.com/gpu"]: -1 is less than 0',
        ),
        (
            {
                "name": "a",
                "capacity": {"cpu": 1, "memory": "1Gi"},
                "devices": [{"driver": "d", "count": 1, "memory": "x"}],
            },
            'types[1].devices[0].memory: "x" is not a quantity',
        ),
        ({"name": "a", "usd_per_hour": 0}, "types[1].usd_per_hour: expected `float` > 0"),
        ({"name": "a", "gpus": 8}, "types[1].gpus: unknown key"),
        ({"name": "a", "labels": {f"l{i}": "" for i in range(101)}}, "types[1].labels: has 101 labels (limit: 100)"),
        (
            {"name": "a", "allocatable": {f"r{i}": 1 for i in range(101)}},
            "types[1].allocatable: has 101 resources (limit: 100)",
        ),
    ],
)
def test_an_error_says_what_is_wrong_and_where(entry: Json, error: str) -> None:
    with pytest.raises(ConfigError) as raised:
        platform(CPU, entry)
    assert str(raised.value).startswith(f"platform.catalogue.{error}")


def test_the_number_of_types_is_limited() -> None:
    types: list[Any] = [{"name": f"t{i}", "capacity": {"cpu": 1, "memory": "1Gi"}} for i in range(MOST_TYPES + 1)]
    with pytest.raises(ConfigError, match=r"platform.catalogue.types: has 2,001 types \(limit: 2,000\)"):
        platform(*types)


class _Nodes:
    def __init__(self, *nodes: Json) -> None:
        self._known = Known([Field(node) for node in nodes], complete=True)

    def list(self, kind: Kind, namespace: str | None = None) -> Fact:  # noqa: ARG002 -- the protocol's signature
        return self._known if kind is NODE else Known((), complete=True)


def pool(group: str, *requirements: Json) -> dict[str, Json]:
    reference: Json = {"group": group, "kind": "Some", "name": "gpu"}
    return {"spec": {"template": {"spec": {"nodeClassRef": reference, "requirements": [*requirements]}}}}


def named(*names: str) -> Json:
    return {"key": INSTANCE_TYPE, "operator": "In", "values": [*names]}


SHAPE: Json = {"key": "example.com/gpus", "operator": "In", "values": ["4"]}
NODE_A: Json = {
    "metadata": {"name": "a", "labels": {INSTANCE_TYPE: "own"}},
    "status": {"capacity": {"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": "1"}},
}


@pytest.mark.parametrize(
    ("obj", "catalogue", "expected", "for_gpus"),
    [
        pytest.param(pool("karpenter.azure.com", named("a100")), {}, ["a100"], True, id="all types named"),
        pytest.param(pool("karpenter.azure.com", named("cpu")), {}, ["cpu"], False, id="no accelerator"),
        pytest.param(pool("karpenter.azure.com", named("a100", "newer")), {}, None, None, id="one is not listed"),
        pytest.param(pool("karpenter.azure.com", SHAPE), {}, None, None, id="others may have the label too"),
        pytest.param(pool("karpenter.azure.com", SHAPE), {"complete": True}, ["a100"], True, id="complete"),
        pytest.param(pool("karpenter.azure.com", named("newer")), {"complete": True}, [], False, id="none of it"),
        pytest.param(pool("karpenter.example.com", named("own")), {"from_nodes": True}, ["own"], True, id="nodes"),
        pytest.param(pool("karpenter.example.com", named("own")), {}, None, None, id="nodes do not count"),
        pytest.param(pool("karpenter.example.com", named("a100")), {"from_nodes": True}, ["a100"], True, id="both"),
    ],
)
def test_pools_of_other_providers_have_the_types_of_the_platform(
    obj: dict[str, Json],
    catalogue: dict[str, Json],
    expected: list[str] | None,
    for_gpus: bool | None,  # noqa: FBT001 -- a column of the table
) -> None:
    request = Request(GroupVersionKind("karpenter.sh", "v1", "NodePool"), Operation.CREATE, obj)
    tables = {INSTANCE_TYPES.name: INSTANCE_TYPES.load()}
    config = platform(A100, CPU, **catalogue)
    ctx = Context(Params(), Field(obj), None, request, _Nodes(NODE_A), config, Target(), tables)
    types = ctx.derived(matching_types)
    assert (None if types is None else list(types.catalogue.decode(types.known))) == expected
    assert ctx.derived(is_gpu_pool) is for_gpus
    assert ec2_types(ctx.subject, ctx) is None
