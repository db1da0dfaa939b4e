from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpugate.policies.data.instance_types import load_instance_types
from gpugate.policies.nodepools.unreachable_limit import check
from gpugate.policies.sdk.facts import NoFacts
from gpugate.policies.sdk.field import Field
from gpugate.policies.sdk.findings import Violation
from gpugate.policies.sdk.node_pools import INSTANCE_TYPES
from gpugate.policies.sdk.objects import GroupVersionKind, Operation, Request
from gpugate.policies.sdk.platform import Platform, Target
from gpugate.policies.sdk.policy import Context, Params

if TYPE_CHECKING:
    from gpugate.policies.sdk.field import Json


def findings(types: list[str], limits: Json) -> list[Violation]:
    requirements: Json = [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": [*types]}]
    pool: dict[str, Json] = {"spec": {"limits": limits, "template": {"spec": {"requirements": requirements}}}}
    request = Request(GroupVersionKind("karpenter.sh", "v1", "NodePool"), Operation.CREATE, pool)
    tables = {INSTANCE_TYPES.name: load_instance_types()}
    ctx = Context(Params(), Field(pool), None, request, NoFacts(), Platform(), Target(), tables)
    return [each for each in check(ctx.subject, ctx) if isinstance(each, Violation)]


LARGE = ["p5.48xlarge", "p4d.24xlarge"]  # 192 and 96 CPUs, 2048 and 1152 GiB, 8 GPUs each


@pytest.mark.parametrize(
    ("types", "limits", "paths"),
    [
        (LARGE, {"nvidia.com/gpu": 8}, []),
        (LARGE, {"nvidia.com/gpu": "7999m"}, ["nvidia.com/gpu"]),
        (LARGE, {"nvidia.com/gpu": 0}, []),
        (LARGE, {"nvidia.com/gpu": -1}, []),
        (LARGE, {"nvidia.com/gpu": "eight"}, []),
        (LARGE, {"nvidia.com/gpu": "8k"}, []),
        (LARGE, {"cpu": 96}, []),
        (LARGE, {"cpu": "95.9"}, ["cpu"]),
        (LARGE, {"cpu": "96m"}, ["cpu"]),
        (LARGE, {"memory": "1152Gi"}, []),
        (LARGE, {"memory": "2048"}, ["memory"]),
        (LARGE, {"memory": "512Gi", "cpu": 4, "nvidia.com/gpu": 8}, ["memory", "cpu"]),
        (LARGE, {"amd.com/gpu": 1}, []),
        (LARGE, {"nodes": 1}, []),
        (["trn1.32xlarge", "inf2.48xlarge"], {"aws.amazon.com/neuron": 8}, ["aws.amazon.com/neuron"]),
        (["trn1.32xlarge", "inf2.48xlarge"], {"aws.amazon.com/neuron": 12}, []),
        ([*LARGE, "p9.xlarge"], {"nvidia.com/gpu": 4}, []),
        ([*LARGE, "c7i.large"], {"nvidia.com/gpu": 4}, ["nvidia.com/gpu"]),
        (["c7i.4xlarge", "c7i.8xlarge"], {"cpu": 8}, []),
    ],
)
def test_limits_below_one_node_of_every_type(types: list[str], limits: Json, paths: list[str]) -> None:
    assert [each.path for each in findings(types, limits)] == [("spec", "limits", path) for path in paths]


def test_limits_that_exclude_all_types_only_together() -> None:
    (together,) = findings(["g5.16xlarge", "g6.12xlarge"], {"cpu": 48, "nvidia.com/gpu": 2})
    assert together.path == ("spec", "limits")
    assert together.hint.endswith("g5.16xlarge has cpu 64")


def test_the_message_names_the_smallest_type_and_its_size() -> None:
    (small,) = findings(LARGE, {"memory": "1Ti"})
    assert small.message.endswith("below one node: p4d.24xlarge, the smallest instance type of the pool, has 1152Gi")
    assert small.hint.startswith("raise the limit to 1152Gi or more")
