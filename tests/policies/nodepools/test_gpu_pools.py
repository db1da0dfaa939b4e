"""Laws on which pools are for GPUs: what stands beside a GPU type in a requirement never lowers a finding."""

from __future__ import annotations

import copy
import datetime as dt
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from gpugate.policies.catalog import CATALOG
from gpugate.policies.data.instance_types import load_instance_types
from gpugate.policies.engine.config import PolicyConfig
from gpugate.policies.engine.defaults import with_defaults
from gpugate.policies.engine.evaluate import evaluate
from gpugate.policies.engine.ruleset import bind
from gpugate.policies.sdk.objects import GroupVersionKind, Operation, Request
from gpugate.webhook.manifests.load import RunFacts

if TYPE_CHECKING:
    from gpugate.policies.engine.verdict import Finding
    from gpugate.policies.sdk.findings import Stance

Pool = dict[str, Any]

CATALOGUE = load_instance_types()
RULES = bind(CATALOG, PolicyConfig())
TYPE = "node.kubernetes.io/instance-type"
AWS = "karpenter.k8s.aws/instance-"
NAMING = {TYPE: CATALOGUE.positions.keys()} | {
    f"{AWS}{part}": CATALOGUE.values[f"{AWS}{part}"].keys() for part in ("family", "category")
}
PLAIN = {
    key: sorted(value for value in values if not CATALOGUE.of(key, value) & CATALOGUE.accelerated)
    for key, values in NAMING.items()
}
ACCELERATED = {
    key: sorted(value for value in values if CATALOGUE.of(key, value) & CATALOGUE.accelerated)
    for key, values in NAMING.items()
}
MISSING = ("p5.96xlarge", "g5.fake", "t9.nano")


def pool(
    requirements: list[Any], capacity: list[str], limits: Any = None, taints: Any = None, labels: Any = None
) -> Pool:
    capacity_type = {"key": "karpenter.sh/capacity-type", "operator": "In", "values": capacity}
    node = {
        "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "gpu"},
        "requirements": [*requirements, capacity_type],
        "taints": taints or [],
    }
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "gpu"},
        "spec": {"limits": limits or {}, "template": {"metadata": {"labels": labels or {}}, "spec": node}},
    }


def one_of(key: str, *values: str) -> Pool:
    return {"key": key, "operator": "In", "values": [*values]}


def findings(obj: Pool) -> tuple[Finding, ...]:
    kind = GroupVersionKind.of(obj["apiVersion"], obj["kind"])
    request = with_defaults(Request(kind=kind, operation=Operation.CREATE, object=obj, name=obj["metadata"]["name"]))
    verdict = evaluate(RULES, request, RunFacts(()), today=dt.date(2026, 11, 21))
    assert [outcome.error for outcome in verdict.outcomes if outcome.error] == []
    return verdict.findings


def costs(obj: Pool) -> dict[str, Stance]:
    """The highest mode of the findings of each policy, and of those that another one stands for."""
    return {
        policy: each.stance
        for each in sorted(findings(obj), key=lambda found: found.stance)
        for policy in (each.policy, *each.covers)
    }


def widened(obj: Pool, values: list[str]) -> Pool:
    """The same pool with more values in its first requirement."""
    wider = copy.deepcopy(obj)
    wider["spec"]["template"]["spec"]["requirements"][0]["values"] += values
    return wider


def lowered(before: dict[str, Stance], after: dict[str, Stance]) -> dict[str, Stance]:
    return {policy: stance for policy, stance in before.items() if after.get(policy, 0) < stance}


@st.composite
def gpu_pools(draw: st.DrawFn) -> tuple[Pool, str]:
    """A pool that names GPU types, families or categories, and which of the three."""
    key = draw(st.sampled_from(sorted(NAMING)))
    named = draw(st.lists(st.sampled_from(ACCELERATED[key]), min_size=1, max_size=4, unique=True))
    further = draw(
        st.lists(
            st.sampled_from(
                [
                    one_of("kubernetes.io/arch", "amd64"),
                    {"key": f"{AWS}generation", "operator": "Gt", "values": ["3"]},
                    {"key": f"{AWS}cpu", "operator": "Lt", "values": ["33"]},
                    one_of("topology.kubernetes.io/zone", "us-east-1a"),
                ]
            ),
            max_size=2,
            unique_by=str,
        )
    )
    limits = draw(
        st.sampled_from([{}, {"nvidia.com/gpu": "8"}, {"cpu": "100000"}, {"nodes": "4"}, {"amd.com/gpu": "4"}])
    )
    taint = draw(st.sampled_from(["", "nvidia.com/gpu", "amd.com/gpu", "spot"]))
    taints = [{"key": taint, "value": "true", "effect": "NoSchedule"}] if taint else []
    labels = draw(st.sampled_from([{}, {"workload": "training"}, {"workload": "inference", "team": "search"}]))
    capacity = draw(st.sampled_from([["on-demand"], ["spot"], ["on-demand", "spot"]]))
    return pool([one_of(key, *named), *further], capacity, limits, taints, labels), key


def types_of(obj: Pool) -> int:
    """The types that the requirements of a pool made here leave, by brute force over their values."""
    left = CATALOGUE.everything
    for entry in obj["spec"]["template"]["spec"]["requirements"]:
        key, values = entry["key"], entry["values"]
        if key not in CATALOGUE:
            continue
        if entry["operator"] == "In":
            left &= sum(CATALOGUE.of(key, value) for value in set(values))
        else:
            above, bound = entry["operator"] == "Gt", int(values[0])
            fitting = [v for v in CATALOGUE.values[key] if (int(v) > bound) == above and int(v) != bound]
            left &= sum(CATALOGUE.of(key, value) for value in fitting)
    return left


@settings(max_examples=120, deadline=None)
@given(gpu_pools(), st.data())
@example((pool([one_of(TYPE, "p5.48xlarge")], ["on-demand"]), TYPE), None)
def test_a_type_without_gpus_beside_gpu_types_lowers_no_finding(
    made: tuple[Pool, str], data: st.DataObject | None
) -> None:
    obj, key = made
    assume(types_of(obj) & CATALOGUE.accelerated)
    decoys = data.draw(st.lists(st.sampled_from(PLAIN[key]), min_size=1, max_size=5)) if data else ["t3.nano"]
    assert lowered(costs(obj), costs(widened(obj, decoys))) == {}


@settings(max_examples=60, deadline=None)
@given(gpu_pools(), st.lists(st.sampled_from(MISSING), min_size=1, max_size=3))
@example((pool([one_of(TYPE, "g5.xlarge")], ["on-demand"]), TYPE), ["g5.fake"])
def test_a_type_that_ec2_does_not_have_lowers_no_finding(made: tuple[Pool, str], names: list[str]) -> None:
    obj, key = made
    assume(key == TYPE)
    assume(types_of(obj) & CATALOGUE.accelerated)
    before, after = costs(obj), costs(widened(obj, names))
    assert lowered(before, after) == {}


@settings(max_examples=120, deadline=None)
@given(
    st.sampled_from([{"amd.com/gpu": "4"}, {"nvidia.com/gpu": "8"}, {"aws.amazon.com/neuron": "4"}]),
    st.sampled_from(["amd.com/gpu", "nvidia.com/gpu", "aws.amazon.com/neuron"]),
    st.data(),
)
def test_a_type_of_another_make_leaves_a_missing_limit_or_taint_a_denial(
    limits: Pool, taint: str, data: st.DataObject
) -> None:
    key = data.draw(st.sampled_from(sorted(NAMING)))
    named = data.draw(st.lists(st.sampled_from(ACCELERATED[key]), min_size=1, max_size=3, unique=True))
    more = data.draw(st.lists(st.sampled_from(ACCELERATED[key]), min_size=1, max_size=3))
    taints = [{"key": taint, "value": "true", "effect": "NoSchedule"}]
    obj = pool([one_of(key, *named)], ["on-demand"], limits, taints)
    found = lowered(costs(obj), costs(widened(obj, more)))
    assert found.keys() & {"nodepools/missing-gpu-limit", "nodepools/missing-gpu-taint"} == set()


def test_a_taint_that_would_keep_other_pods_off_is_no_fix() -> None:
    obj = pool([one_of(TYPE, "p5.48xlarge", "p4d.24xlarge", "m7i.xlarge")], ["on-demand"], {"nvidia.com/gpu": "8"})
    (found,) = (each for each in findings(obj) if each.policy == "nodepools/missing-gpu-taint")
    assert found.fix is None
    assert found.hint.startswith("move the types")


GENERAL = st.fixed_dictionaries(
    {},
    optional={
        f"{AWS}category": st.lists(st.sampled_from(PLAIN[f"{AWS}category"]), min_size=1, unique=True).map(
            lambda values: ("In", values)
        ),
        f"{AWS}generation": st.integers(1, 5).map(lambda number: ("Gt", [str(number)])),
        f"{AWS}cpu": st.sampled_from([1, 3, 7, 15, 31, 63, 95]).map(lambda number: ("Gt", [str(number)])),
        f"{AWS}memory": st.sampled_from([2047, 8191, 65535, 262143]).map(lambda number: ("Gt", [str(number)])),
        f"{AWS}network-bandwidth": st.sampled_from([999, 9999, 24999]).map(lambda number: ("Gt", [str(number)])),
        f"{AWS}hypervisor": st.just(("In", ["nitro"])),
        f"{AWS}size": st.lists(st.sampled_from(["nano", "micro", "small", "medium"]), min_size=1, unique=True).map(
            lambda values: ("NotIn", values)
        ),
        f"{AWS}gpu-name": st.just(("NotIn", ["t4"])),
        "kubernetes.io/arch": st.lists(st.sampled_from(["amd64", "arm64"]), min_size=1, unique=True).map(
            lambda values: ("In", values)
        ),
    },
)


@settings(max_examples=120, deadline=None)
@given(GENERAL)
def test_a_pool_that_names_no_gpu_has_no_finding_about_gpus(required: dict[str, tuple[str, list[str]]]) -> None:
    requirements = [{"key": key, "operator": op, "values": values} for key, (op, values) in required.items()]
    assert costs(pool(requirements, ["on-demand", "spot"], {"cpu": "1000"})) == {}


def without(key: str, *kept: str) -> Pool:
    values = NAMING[key] if key in NAMING else CATALOGUE.values[key].keys()
    return {"key": key, "operator": "NotIn", "values": sorted(values - set(kept))}


@pytest.mark.parametrize(
    ("requirement", "is_one"),
    [
        (one_of(TYPE, "p5.48xlarge", "t3.nano"), True),
        (one_of(f"{AWS}family", "p5", "t3", "m7i", "c7i", "r7i"), True),
        (one_of(f"{AWS}category", "c", "m", "r", "t", "g"), True),
        (one_of(f"{AWS}network-bandwidth", "3200000", "5000"), True),
        (without(f"{AWS}category", "p", "t"), True),
        (without(f"{AWS}family", "g5", "t3", "t3a"), True),
        ({"key": f"{AWS}category", "operator": "NotIn", "values": ["t", "a", "f"]}, False),
        ({"key": f"{AWS}gpu-name", "operator": "NotIn", "values": ["t4"]}, False),
        ({"key": f"{AWS}cpu", "operator": "Gt", "values": ["95"]}, False),
        (one_of(f"{AWS}size", "24xlarge", "48xlarge"), False),
        (one_of(f"{AWS}category", "c", "m", "r"), False),
    ],
)
def test_a_pool_is_for_gpus_if_it_names_them(requirement: Pool, is_one: bool) -> None:  # noqa: FBT001 -- a column
    found = costs(pool([requirement], ["on-demand"]))
    assert ("nodepools/missing-gpu-limit" in found) is is_one


@pytest.mark.parametrize(
    ("families", "kind"),
    [(("g5", "g6"), "GPU"), (("trn1", "inf2"), "Neuron"), (("g5", "trn1"), "accelerator")],
)
def test_messages_call_accelerators_by_their_name(families: tuple[str, ...], kind: str) -> None:
    obj = pool([one_of(f"{AWS}family", *families)], ["on-demand"])
    obj["spec"]["disruption"] = {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "Never"}
    (message,) = [found.message for found in findings(obj) if found.policy == "nodepools/consolidation-disabled"]
    assert message == f"consolidateAfter is Never: Karpenter never removes empty {kind} nodes"
