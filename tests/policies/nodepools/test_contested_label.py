from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpugate.policies.data.instance_types import load_instance_types
from gpugate.policies.nodepools.contested_label import check
from gpugate.policies.sdk.facts import NoFacts
from gpugate.policies.sdk.field import Field
from gpugate.policies.sdk.findings import Violation
from gpugate.policies.sdk.node_pools import INSTANCE_TYPES
from gpugate.policies.sdk.objects import GroupVersionKind, Operation, Request
from gpugate.policies.sdk.platform import Platform, Target
from gpugate.policies.sdk.policy import Context, Params

if TYPE_CHECKING:
    from gpugate.policies.sdk.field import Json


def findings(family: str, label: str, value: str) -> list[Violation]:
    requirements: Json = [{"key": "karpenter.k8s.aws/instance-family", "operator": "In", "values": [family]}]
    template: Json = {
        "metadata": {"labels": {f"nvidia.com/gpu.{label}": value}},
        "spec": {"requirements": requirements},
    }
    pool: dict[str, Json] = {"spec": {"template": template}}
    request = Request(GroupVersionKind("karpenter.sh", "v1", "NodePool"), Operation.CREATE, pool)
    tables = {INSTANCE_TYPES.name: load_instance_types()}
    ctx = Context(Params(), Field(pool), None, request, NoFacts(), Platform(), Target(), tables)
    return [each for each in check(ctx.subject, ctx) if isinstance(each, Violation)]


@pytest.mark.parametrize(
    ("family", "label", "value", "contested"),
    [
        ("g4dn", "product", "Tesla-T4", False),
        ("g4dn", "product", "NVIDIA-Tesla-T4", True),
        ("g4dn", "product", "NVIDIA-T4", True),
        ("g4dn", "product", "T4", True),
        ("g5", "product", "NVIDIA-A10G", False),
        ("g5", "product", "A10G", False),
        ("g5", "product", "NVIDIA-A10", True),
        ("g5", "product", "NVIDIA-A10G-SHARED", False),
        ("p4d", "product", "NVIDIA-A100-SXM4-40GB-MIG-3g.20gb", False),
        ("p4d", "product", "NVIDIA-A100-SXM4-80GB", True),
        ("p5", "product", "NVIDIA-H100-80GB-HBM3", False),
        # Its products are not known: shares of an L4, and GPUs of which no source is known.
        ("g6f", "product", "anything", False),
        ("p6-b300", "product", "anything", False),
        ("g4ad", "product", "anything", False),
        ("p4d", "count", "8", False),
        ("p4d", "count", "56", False),
        ("p4d", "count", "57", True),
        ("p4d", "count", "4", True),
        ("g4dn", "count", "eight", True),
        ("g4dn", "count", "1" * 5000, True),
        ("g5", "memory", "23028", False),
        ("g5", "memory", "24576", False),
        ("g5", "memory", "24", True),
        ("p4d", "memory", "4864", False),
        ("p4d", "memory", "81920", True),
        ("g5", "family", "ampere", False),
        ("g6", "family", "ada", True),
        ("p6-b200", "family", "anything", False),
        ("g5", "replicas", "4", False),
    ],
)
def test_declared_values_are_compared_with_the_gpus_of_the_types(
    family: str, label: str, value: str, *, contested: bool
) -> None:
    assert bool(findings(family, label, value)) is contested


def test_the_message_names_only_types_with_the_value() -> None:
    (count,) = findings("g5", "count", "1")
    assert count.message.endswith("writes 4 on g5.12xlarge, g5.24xlarge")
    assert count.hint.startswith("remove the label")
    (product,) = findings("g4dn", "product", "NVIDIA-T4")
    assert product.hint.startswith("write Tesla-T4")
