from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpugate.policies.data.instance_types import load_instance_types
from gpugate.policies.nodepools.untolerated_taint import is_meant_for, untolerated
from gpugate.policies.sdk.facts import NoFacts
from gpugate.policies.sdk.field import Field
from gpugate.policies.sdk.node_pools import INSTANCE_TYPES
from gpugate.policies.sdk.objects import GroupVersionKind, Operation, Request
from gpugate.policies.sdk.platform import Platform, Target
from gpugate.policies.sdk.policy import Context, Params
from gpugate.policies.sdk.scheduling import REQUIRED

if TYPE_CHECKING:
    from gpugate.policies.sdk.field import Json

TABLES = {INSTANCE_TYPES.name: load_instance_types()}
NVIDIA: Json = {"key": "nvidia.com/gpu", "value": "true", "effect": "NoSchedule"}
TOLERATION: Json = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
FAMILY = "karpenter.k8s.aws/instance-family"


def pool(*taints: Json, family: str = "g5", **labels: Json) -> Field:
    requirements: Json = [
        {"key": FAMILY, "operator": "In", "values": [family]},
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]},
    ]
    template: Json = {"metadata": {"labels": labels}, "spec": {"requirements": requirements, "taints": [*taints]}}
    return Field({"metadata": {"name": "gpu-spot"}, "spec": {"template": template}})


def pods(*tolerations: Json, selector: Json = None, term: Json = None) -> Field:
    spec: dict[str, Json] = {"tolerations": [*tolerations], "nodeSelector": selector}
    if term:
        spec["affinity"] = {"nodeAffinity": {REQUIRED[-2]: {REQUIRED[-1]: [{"matchExpressions": [term]}]}}}
    return Field({"spec": spec})


def meant(template: Field, where: Field) -> bool:
    request = Request(GroupVersionKind("karpenter.sh", "v1", "NodePool"), Operation.CREATE, dict(where.mapping))
    return is_meant_for(
        template, where, Context(Params(), where, None, request, NoFacts(), Platform(), Target(), TABLES)
    )


@pytest.mark.parametrize(
    ("taint", "toleration", "kept_off"),
    [
        pytest.param({"key": "a", "value": "b", "effect": "NoSchedule"}, {"key": "a", "value": "b"}, False, id="equal"),
        pytest.param({"key": "a", "value": "b", "effect": "NoSchedule"}, {"key": "a", "value": "c"}, True, id="value"),
        pytest.param({"key": "a", "effect": "NoExecute"}, {"key": "a", "effect": "NoSchedule"}, True, id="effect"),
        pytest.param({"key": "a", "effect": "NoSchedule"}, {"operator": "Exists"}, False, id="everything"),
        pytest.param({"key": "a", "effect": "PreferNoSchedule"}, {"key": "b"}, False, id="a preference"),
        pytest.param(
            {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}, {"key": "b"}, False, id="not ready"
        ),
    ],
)
def test_which_taints_keep_a_daemon_set_off(taint: Json, toleration: Json, *, kept_off: bool) -> None:
    assert bool(untolerated(pods(toleration), pool(taint))) is kept_off


@pytest.mark.parametrize(
    ("template", "where", "expected"),
    [
        pytest.param(pods(TOLERATION), pool(NVIDIA), True, id="its accelerator"),
        pytest.param(pods(TOLERATION), pool(), True, id="its accelerator, which no taint covers"),
        pytest.param(pods({"key": "aws.amazon.com/neuron"}), pool(NVIDIA), False, id="another accelerator"),
        pytest.param(pods({"operator": "Exists"}), pool(NVIDIA), False, id="no accelerator by name"),
        pytest.param(
            pods(TOLERATION, selector={"nvidia.com/gpu.present": "true"}), pool(NVIDIA), True, id="discovered"
        ),
        pytest.param(pods(TOLERATION, selector={"tier": "a"}), pool(NVIDIA, tier="a"), True, id="label of the pool"),
        pytest.param(pods(TOLERATION, selector={"tier": "a"}), pool(NVIDIA, tier="b"), False, id="another label"),
        pytest.param(pods(TOLERATION, selector={"tier": "a"}), pool(NVIDIA), False, id="label of nobody"),
        pytest.param(pods(TOLERATION, selector={"karpenter.sh/nodepool": "b"}), pool(NVIDIA), False, id="another pool"),
        pytest.param(
            pods(TOLERATION, term={"key": "karpenter.sh/capacity-type", "operator": "NotIn", "values": ["spot"]}),
            pool(NVIDIA),
            False,
            id="not on spot",
        ),
        pytest.param(
            pods(TOLERATION, term={"key": "eks.amazonaws.com/compute-type", "operator": "NotIn", "values": ["auto"]}),
            pool(NVIDIA),
            True,
            id="not on other nodes",
        ),
        pytest.param(
            pods(
                TOLERATION,
                term={"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["p5.48xlarge"]},
            ),
            pool(NVIDIA),
            False,
            id="other types",
        ),
    ],
)
def test_which_pools_a_daemon_set_is_meant_for(template: Field, where: Field, *, expected: bool) -> None:
    assert meant(template, where) is expected
