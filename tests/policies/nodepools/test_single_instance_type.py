from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from gpugate.policies.data.instance_types import load_instance_types
from gpugate.policies.nodepools._instance_choice import siblings
from gpugate.policies.nodepools.single_instance_type import Params, check
from gpugate.policies.sdk.facts import NoFacts
from gpugate.policies.sdk.field import Field
from gpugate.policies.sdk.findings import Patches, Stance, Violation
from gpugate.policies.sdk.node_pools import INSTANCE_TYPES
from gpugate.policies.sdk.objects import GroupVersionKind, Operation, Request
from gpugate.policies.sdk.platform import Platform, Target
from gpugate.policies.sdk.policy import Context

if TYPE_CHECKING:
    from gpugate.policies.sdk.field import Json

CATALOGUE = load_instance_types()
TYPE, GPU = "node.kubernetes.io/instance-type", "karpenter.k8s.aws/instance-gpu-name"
ON_DEMAND: Json = {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]}


def one_of(key: str, *values: str, **more: Json) -> Json:
    return {"key": key, "operator": "In", "values": [*values], **more}


def findings(
    *requirements: Json, params: dict[str, Any] | None = None, capacity: Json = ON_DEMAND, **spec: Json
) -> list[Violation]:
    template: Json = {"spec": {"requirements": [*requirements, capacity]}}
    pool: dict[str, Json] = {"spec": {**spec, "template": template}}
    request = Request(GroupVersionKind("karpenter.sh", "v1", "NodePool"), Operation.CREATE, pool)
    ctx = Context(
        msgspec.convert(params or {}, Params),
        Field(pool),
        None,
        request,
        NoFacts(),
        Platform(),
        Target(),
        {INSTANCE_TYPES.name: CATALOGUE},
    )
    return [found for found in check(ctx.subject, ctx) if isinstance(found, Violation)]


def costs(*requirements: Json, **rest: Any) -> list[str]:
    return [found.at_most.word for found in findings(*requirements, **rest)]


P5, B200, CPU = one_of(TYPE, "p5.48xlarge"), one_of(GPU, "b200"), one_of(TYPE, "c7i.large")
KNOWN_AND_NOT, NOT_KNOWN = one_of(TYPE, "p5.48xlarge", "p9.metal"), one_of(TYPE, "p9.metal", "p9.large")


@pytest.mark.parametrize(
    ("requirement", "params", "costs_this"),
    [
        (P5, {}, ["enforce"]),
        (P5, {"inherent_singles": "ignore"}, ["enforce"]),
        (B200, {}, ["warn"]),
        (B200, {"inherent_singles": "enforce"}, ["enforce"]),
        (B200, {"inherent_singles": "ignore"}, []),
        (one_of(TYPE, "p6-b200.48xlarge"), {}, ["warn"]),
        (one_of(TYPE, "p9.metal"), {"only_gpu_pools": False}, ["enforce"]),
        (KNOWN_AND_NOT, {}, ["enforce"]),
        (KNOWN_AND_NOT, {"at_least": {"default": 1}}, []),
        (KNOWN_AND_NOT, {"unknown_types": "count"}, []),
        (KNOWN_AND_NOT, {"unknown_types": "deny"}, ["enforce"]),
        (NOT_KNOWN, {"only_gpu_pools": False}, ["warn"]),
        (NOT_KNOWN, {"only_gpu_pools": False, "unknown_types": "deny"}, ["enforce"]),
        (NOT_KNOWN, {}, ["warn"]),
        (one_of(TYPE, "m99.large", "m99.metal"), {}, []),
        (CPU, {}, []),
        (one_of(TYPE, "c7i.large", "m7i.large"), {"only_gpu_pools": False}, []),
        (CPU, {"only_gpu_pools": False}, ["enforce"]),
        (one_of(GPU, "h100"), {}, []),
        (one_of(GPU, "h100"), {"at_least": {"default": 3}}, ["warn"]),
        (one_of(GPU, "h100"), {"offered_types": ["p5.48xlarge", "c7i.large"]}, ["enforce"]),
        (one_of(GPU, "h100"), {"offered_types": ["c7i.large"]}, ["enforce"]),
        (P5, {"at_least": {"default": 1}}, []),
        (one_of(GPU, "h100", minValues=3), {}, ["enforce"]),
        (one_of(GPU, "h100", minValues=3), {"min_values_policy": "best_effort"}, []),
    ],
)
def test_parameters_say_what_it_costs(requirement: Json, params: dict[str, Any], costs_this: list[str]) -> None:
    assert costs(requirement, params=params) == costs_this


@pytest.mark.parametrize(
    ("requirements", "costs_this"),
    [
        ([one_of(GPU, "h100"), one_of("karpenter.k8s.aws/instance-gpu-count", "8")], ["enforce"]),
        ([one_of(TYPE, "p5.48xlarge"), one_of("karpenter.k8s.aws/instance-gpu-count", "8")], ["enforce"]),
        ([one_of(GPU, "a100"), one_of("karpenter.k8s.aws/instance-gpu-memory", "81920")], ["warn"]),
        ([one_of(TYPE, "p4de.24xlarge")], ["enforce"]),
    ],
    ids=["count", "type and count", "memory", "type"],
)
def test_only_the_gpu_itself_makes_a_single_type_inherent(requirements: list[Json], costs_this: list[str]) -> None:
    assert costs(*requirements) == costs_this


def test_types_without_gpus_do_not_make_a_fix_sufficient() -> None:
    offered = ["p5.48xlarge", "p4d.24xlarge", "t3.nano", "t3.micro", "t3.small"]
    params = {"offered_types": offered, "at_least": {"default": 4}}
    (found,) = findings(one_of(TYPE, "p5.48xlarge", "t3.nano", "t3.micro", "t3.small"), params=params)
    assert (found.at_most, found.fix) == (Stance.ENFORCE, None)


RESERVED: Json = {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["reserved"]}
RESERVED_AND_SPOT: Json = {"key": "karpenter.sh/capacity-type", "operator": "NotIn", "values": ["on-demand"]}


@pytest.mark.parametrize(
    ("capacity", "requirement", "costs_this"),
    [
        (RESERVED, P5, []),
        (RESERVED, one_of(GPU, "H100"), ["enforce"]),
        (RESERVED_AND_SPOT, P5, ["enforce"]),
        (RESERVED_AND_SPOT, one_of(GPU, "h100", "h200"), ["warn"]),
        (None, one_of(GPU, "h100", "h200"), ["warn"]),
        (ON_DEMAND, one_of(GPU, "h100", "h200"), []),
    ],
    ids=["reserved", "reserved, none", "spot, one", "spot, four", "unsaid, four", "on demand, four"],
)
def test_capacity_decides_how_many_are_enough(capacity: Json, requirement: Json, costs_this: list[str]) -> None:
    assert costs(requirement, capacity=capacity) == costs_this


@pytest.mark.parametrize(
    ("params", "costs_this"), [({}, ["enforce"]), ({"allow_static_single": True}, [])], ids=["shipped", "allowed"]
)
def test_a_static_pool_may_have_one_type_where_that_is_allowed(params: dict[str, Any], costs_this: list[str]) -> None:
    assert costs(P5, params=params, replicas=4) == costs_this


def test_the_fix_lets_in_the_nearest_types() -> None:
    (found,) = findings(P5)
    assert isinstance(found.fix, Patches)
    assert [patch.value for patch in found.fix.patches] == ["p5en.48xlarge", "p5e.48xlarge", "p6-b200.48xlarge"]


@pytest.mark.parametrize(
    "requirements",
    [
        (P5, one_of("karpenter.k8s.aws/instance-family", "p5")),
        (one_of(TYPE, "p5.48xlarge", "p4d.24xlarge"), one_of(TYPE, "p5.48xlarge", "g5.48xlarge")),
    ],
    ids=["another requirement is as narrow", "two lists"],
)
def test_there_is_no_fix_where_one_list_does_not_decide(requirements: tuple[Json, ...]) -> None:
    (found,) = findings(*requirements)
    assert found.fix is None


def test_a_message_is_short_however_long_the_names_are() -> None:
    (found,) = findings(one_of(TYPE, "p5.48xlarge", *(f"{number}" * 500 for number in range(1, 9))))
    assert len(found.message) < 500


def test_limits_that_exclude_every_type_are_left_to_the_policy_on_limits() -> None:
    assert findings(one_of(GPU, "h100"), limits={"memory": "1Gi"}) == []
    (among_other_pools,) = findings(
        one_of(TYPE, "c7i.large"), limits={"memory": "1Gi"}, params={"only_gpu_pools": False}
    )
    assert (among_other_pools.path, among_other_pools.at_most) == (("spec", "limits", "memory"), Stance.ENFORCE)


@pytest.mark.parametrize(
    ("present", "smaller", "near"),
    [
        ("p5.48xlarge", True, ["p5en.48xlarge", "p5e.48xlarge", "p6-b200.48xlarge"]),
        ("g5.xlarge", True, ["g5.2xlarge", "g5.4xlarge", "g5.8xlarge"]),
        ("g6e.8xlarge", False, ["g6e.16xlarge", "g6e.12xlarge", "g7e.8xlarge"]),
        ("p6-b300.48xlarge", True, ["p6-b200.48xlarge", "p5e.48xlarge", "p5en.48xlarge"]),
        ("p6-b300.48xlarge", False, []),
        ("trn2.48xlarge", True, ["trn1.32xlarge", "trn1n.32xlarge", "inf1.24xlarge"]),
    ],
)
def test_siblings_are_alike_in_accelerators_size_and_price(present: str, smaller: bool, near: list[str]) -> None:  # noqa: FBT001 -- a table's column
    found = siblings(CATALOGUE.of(TYPE, present), CATALOGUE.accelerated, CATALOGUE, 1, smaller=smaller)
    assert [CATALOGUE.names[position] for position in found] == near
