from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import pytest

from gpugate.policies.data.instance_types import load_instance_types
from gpugate.policies.sdk import node_pools
from gpugate.policies.sdk.facts import NoFacts
from gpugate.policies.sdk.field import Field
from gpugate.policies.sdk.node_pools import INSTANCE_TYPES, MatchingTypes, matching_types
from gpugate.policies.sdk.objects import GroupVersionKind, Operation, Request
from gpugate.policies.sdk.platform import Platform, Target
from gpugate.policies.sdk.policy import Context, Params

if TYPE_CHECKING:
    from gpugate.policies.sdk.field import Json

CATALOGUE = load_instance_types()
TYPE, GPU, COUNT = (
    "node.kubernetes.io/instance-type",
    "karpenter.k8s.aws/instance-gpu-name",
    "karpenter.k8s.aws/instance-gpu-count",
)
TAINT: Json = {"key": "nvidia.com/gpu", "value": "true", "effect": "NoSchedule"}


def pool(
    *requirements: Json,
    reference: Json = None,
    labels: Json = None,
    limits: Json = None,
    taints: Json = None,
) -> dict[str, Json]:
    spec: Json = {"requirements": [*requirements], "nodeClassRef": reference, "taints": taints}
    return {"spec": {"limits": limits, "template": {"metadata": {"labels": labels}, "spec": spec}}}


def needs(key: str, operator: str, *values: str) -> Json:
    return {"key": key, "operator": operator, "values": [*values]}


def context(obj: dict[str, Json], kind: str = "NodePool") -> Context[Params]:
    request = Request(GroupVersionKind("karpenter.sh", "v1", kind), Operation.CREATE, obj)
    tables = {INSTANCE_TYPES.name: CATALOGUE}
    return Context(Params(), Field(obj), None, request, NoFacts(), Platform(), Target(), tables)


def types_of(obj: dict[str, Json], kind: str = "NodePool") -> MatchingTypes | None:
    ctx = context(obj, kind)
    return matching_types(ctx.subject, ctx)


def names(obj: dict[str, Json], kind: str = "NodePool") -> list[str]:
    types = types_of(obj, kind)
    assert types
    return list(CATALOGUE.decode(types.known))


P5 = needs(TYPE, "In", "p5.48xlarge")


def test_a_label_of_the_template_is_a_requirement() -> None:
    assert names(pool(needs(COUNT, "Gt", "0"), labels={TYPE: "p5.48xlarge"})) == ["p5.48xlarge"]


def test_a_label_of_a_node_claim_is_none() -> None:
    claim: dict[str, Json] = {"metadata": {"labels": {TYPE: "p4d.24xlarge"}}, "spec": {"requirements": [P5]}}
    assert names(claim, "NodeClaim") == ["p5.48xlarge"]


def test_types_that_the_catalogue_lacks_are_named() -> None:
    types = types_of(pool(needs(TYPE, "In", "p9.metal", "p5.48xlarge", "p5.96xlarge")))
    assert types
    assert types.unknown == ("p5.96xlarge", "p9.metal")


FAMILY = "karpenter.k8s.aws/instance-family"


@pytest.mark.parametrize(
    ("requirement", "found"),
    [
        pytest.param(
            needs(TYPE, "In", "p9.metal", "p5.48xlarge", "p5.96xlarge"), ("p5.96xlarge", "p9.metal"), id="types"
        ),
        pytest.param(needs(FAMILY, "In", "p9", "p5", "g99"), ("g99", "p9"), id="families"),
        pytest.param(needs(FAMILY, "NotIn", "p9"), (), id="excluded families"),
        pytest.param(needs(FAMILY, "In", "m99"), (), id="a category without accelerators"),
        pytest.param(needs(FAMILY, "In", "99"), (), id="no category"),
    ],
)
def test_the_category_tells_whether_an_unknown_type_has_accelerators(requirement: Json, found: tuple[str, ...]) -> None:
    types = types_of(pool(requirement))
    assert types
    assert node_pools.unknown_accelerated(types) == found


@pytest.mark.parametrize(
    ("reference", "known"),
    [
        (None, True),
        ({"name": "gpu"}, True),
        ({"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "gpu"}, True),
        ({"group": "eks.amazonaws.com", "kind": "NodeClass", "name": "gpu"}, True),
        ({"kind": "AKSNodeClass", "name": "gpu"}, False),
        ({"group": "karpenter.azure.com", "kind": "AKSNodeClass", "name": "gpu"}, False),
        ({"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "gpu"}, False),
        ("gpu", True),
    ],
)
def test_the_types_of_aws_are_known(reference: Json, known: bool) -> None:  # noqa: FBT001 -- a column of the table
    assert (types_of(pool(P5, reference=reference)) is not None) is known


@pytest.mark.parametrize(("group", "types"), [("eks.amazonaws.com", 1), ("", 1), ("karpenter.k8s.aws", 1363)])
def test_auto_mode_has_its_own_names_for_labels(group: str, types: int) -> None:
    obj = pool(needs("eks.amazonaws.com/instance-family", "In", "p5e"), reference={"group": group})
    assert len(names(obj)) == types


GPU_POOLS = {
    "all types have GPUs": (pool(P5), True),
    "by requirement": (pool(needs(COUNT, "Gt", "0"), needs(COUNT, "NotIn", "8")), True),
    "by limit": (pool(limits={"nvidia.com/gpu": "8"}), True),
    "by taint": (pool(taints=[TAINT]), True),
    "some types have GPUs, and nothing says so": (pool(), False),
    "by name, beside another type": (pool(needs(TYPE, "In", "p5.48xlarge", "t3.nano")), True),
    "by category, beside others": (pool(needs("karpenter.k8s.aws/instance-category", "In", "p", "g", "t")), True),
    "most types have GPUs, and none is named": (
        pool(
            needs("karpenter.k8s.aws/instance-cpu", "In", "2", "8", "256"),
            needs("karpenter.k8s.aws/instance-generation", "Gt", "5"),
            needs("karpenter.k8s.aws/instance-network-bandwidth", "Gt", "49999"),
            needs("kubernetes.io/arch", "In", "amd64"),
        ),
        True,
    ),
    "half the types have GPUs, and none is named": (
        pool(
            needs("karpenter.k8s.aws/instance-cpu-manufacturer", "In", "amd"),
            needs("karpenter.k8s.aws/instance-local-nvme", "Gt", "0"),
        ),
        False,
    ),
    "the types named are ruled out, and others with GPUs are not named": (
        pool(
            needs("karpenter.k8s.aws/instance-network-bandwidth", "In", "3200000", "10000"),
            needs("karpenter.k8s.aws/instance-cpu", "Lt", "33"),
        ),
        False,
    ),
    "a GPU excluded": (pool(needs(GPU, "NotIn", "t4")), False),
    "a type of a GPU category that is not known": (pool(needs(TYPE, "In", "p9.48xlarge", "t3.nano")), True),
    "a family of a GPU category that is not known": (
        pool(needs("karpenter.k8s.aws/instance-family", "In", "trn9", "t3")),
        True,
    ),
    "a type of another category that is not known": (pool(needs(TYPE, "In", "m99.large", "hpc9.large")), False),
    "a limit of 0": (pool(limits={"nvidia.com/gpu": 0}), False),
    "no GPU required": (pool(needs(COUNT, "DoesNotExist")), False),
    "a GPU taint on types without": (pool(needs(TYPE, "In", "c7i.large"), taints=[TAINT]), False),
    "no type at all": (pool(needs(GPU, "In", "H100"), taints=[TAINT]), False),
    "another provider": (pool(P5, reference={"group": "karpenter.azure.com"}), None),
}


@pytest.mark.parametrize("name", GPU_POOLS)
def test_a_pool_is_for_gpus_or_not(name: str) -> None:
    obj, wanted = GPU_POOLS[name]
    ctx = context(obj)
    assert node_pools.is_gpu_pool(ctx.subject, ctx) is wanted


@pytest.mark.parametrize(
    ("requirement", "declares"),
    [
        (needs(COUNT, "Exists"), True),
        (needs(COUNT, "In", "1"), True),
        (needs(COUNT, "Gt", "0"), True),
        (needs(COUNT, "Lt", "9"), True),
        (needs(GPU, "NotIn", "t4"), False),
        (needs(COUNT, "DoesNotExist"), False),
    ],
)
def test_a_requirement_asks_for_accelerators_or_excludes_some(requirement: Json, declares: bool) -> None:  # noqa: FBT001 -- a column
    ctx = context(pool(requirement, reference={"group": "example.com"}))
    assert node_pools.declares_accelerators(ctx.subject, ctx) is declares


@pytest.mark.parametrize(
    ("requirement", "kinds"),
    [
        ([], {"on-demand", "reserved", "spot"}),
        ([needs("karpenter.sh/capacity-type", "Exists")], {"on-demand", "reserved", "spot"}),
        ([needs("karpenter.sh/capacity-type", "NotIn", "on-demand")], {"reserved", "spot"}),
        ([needs("karpenter.sh/capacity-type", "In", "reserved")], {"reserved"}),
        (
            [
                needs("karpenter.sh/capacity-type", "In", "spot", "on-demand"),
                needs("karpenter.sh/capacity-type", "NotIn", "spot"),
            ],
            {"on-demand"},
        ),
    ],
    ids=["absent", "Exists", "NotIn", "In", "both"],
)
def test_capacity_is_what_the_requirements_leave(requirement: list[Json], kinds: set[str]) -> None:
    ctx = context(pool(*requirement))
    assert node_pools.capacity_types(node_pools.pool_requirements(ctx.subject, ctx)) == kinds


@pytest.mark.parametrize(
    ("labels", "name"),
    [
        ({"gpugate.dev/workload-class": "batch", "workload": "training"}, "batch"),
        ({"gpugate.dev/workload-class": "fun", "workload": "training"}, "training"),
        ({"workload": "genai", "node-type": "gpu-inference"}, "inference"),
        ({"node-type": "gpu-training"}, "training"),
        ({"workload": "genai"}, None),
        (None, None),
    ],
)
def test_the_labels_of_its_nodes_tell_the_class(labels: Json, name: str | None) -> None:
    ctx = context(pool(labels=labels))
    assert node_pools.pool_class(ctx.subject, ctx) == name


BATCH, BOTH = "gpugate.dev/workload-class", ["training", "inference"]


@pytest.mark.parametrize(
    ("labels", "requirement", "classes"),
    [
        (None, needs("workload", "In", "training"), {"training"}),
        (None, needs("workload", "In", "training", "genai"), {"training"}),
        (None, needs("workload", "In", *BOTH), {*BOTH}),
        (None, needs("workload", "NotIn", "training"), set()),
        (None, needs("workload", "Exists"), set()),
        (None, needs(BATCH, "In", "batch"), {"batch"}),
        ({"workload": "training"}, needs(BATCH, "In", "batch"), {"training"}),
        ({"workload": "training"}, needs("workload", "In", "inference"), {"training"}),
    ],
)
def test_a_requirement_gives_nodes_a_label_and_so_a_class(labels: Json, requirement: Json, classes: set[str]) -> None:
    ctx = context(pool(requirement, labels=labels))
    assert node_pools.pool_classes(ctx.subject, ctx) == classes


@pytest.mark.parametrize(
    ("resource", "limit", "p5_is_above"),
    [
        ("nvidia.com/gpu", 7, True),
        ("nvidia.com/gpu", 8, False),
        ("nvidia.com/gpu", Fraction(15, 2), True),
        ("nvidia.com/gpu", 0, False),
        ("cpu", 190, True),
        ("cpu", 192, False),
        ("memory", 1024 * 2**30, True),
        ("memory", 2048 * 2**30, False),
        ("pods", 1, False),
    ],
)
def test_a_type_may_be_above_a_limit(
    resource: str,
    limit: int | Fraction,
    p5_is_above: bool,  # noqa: FBT001 -- a column of the table
) -> None:
    p5 = CATALOGUE.of(TYPE, "p5.48xlarge")
    assert bool(node_pools.above(CATALOGUE, resource, limit) & p5) is p5_is_above


@pytest.mark.parametrize(
    "obj",
    [
        {},
        {"spec": None},
        {"spec": {"template": []}},
        {"spec": {"template": {"spec": {"requirements": {"key": "a"}}}}},
        {"spec": {"template": {"spec": {"requirements": [None, 1, "x", []]}}}},
        {"spec": {"limits": ["a"], "template": {"metadata": {"labels": ["a"]}, "spec": {"taints": "x"}}}},
    ],
    ids=range(6),
)
def test_a_malformed_pool_matches_everything(obj: dict[str, Json]) -> None:
    assert len(names(obj)) == 1363
