from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from gpugate.policies.pods.invalid_gpu_quantity import Params, check
from gpugate.policies.sdk.catalogue import Catalogue, Devices, InstanceType
from gpugate.policies.sdk.findings import Stance
from gpugate.policies.sdk.node_pools import INSTANCE_TYPES, is_on_ec2
from gpugate.policies.sdk.platform import Platform

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpugate.policies.sdk.policy import Context


def pool(reference: str) -> str:
    return f"""
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {{name: gpu}}
spec: {{template: {{spec: {{nodeClassRef: {reference}}}}}}}
"""


EC2 = pool("{group: karpenter.k8s.aws, kind: EC2NodeClass, name: gpu}")


@pytest.mark.parametrize(
    ("facts", "ec2", "expected"),
    [
        ("", None, False),
        ("", True, True),
        (EC2, None, True),
        (EC2, False, False),
        (pool("{kind: EC2NodeClass, name: gpu}"), None, True),
        (pool("{group: eks.amazonaws.com, kind: NodeClass, name: gpu}"), None, True),
        (pool("{group: karpenter.azure.com, kind: AKSNodeClass, name: gpu}"), None, False),
        (pool("{name: gpu}"), None, False),
    ],
)
def test_the_configuration_or_a_pool_says_that_nodes_are_ec2_instances(
    context: Callable[..., Context[Any]],
    facts: str,
    ec2: bool | None,  # noqa: FBT001 -- a column of the table
    expected: bool,  # noqa: FBT001 -- a column of the table
) -> None:
    ctx = context({}, facts=facts, platform=Platform(ec2=ec2))
    assert ctx.derived(is_on_ec2) is expected


@pytest.mark.parametrize(
    ("resource", "count", "facts", "expected"),
    [
        ("nvidia.com/gpu", 12, "", None),
        ("nvidia.com/gpu", 17, "", ("(maximum of any known machine: 16)", Stance.WARN)),
        ("nvidia.com/gpu", 12, EC2, ("(maximum of any EC2 instance type: 8)", Stance.ENFORCE)),
        ("nvidia.com/mig-1g.10gb", 100, "", None),
        ("nvidia.com/mig-1g.10gb", 100, EC2, ("(maximum of any EC2 instance type: 56)", Stance.ENFORCE)),
        ("aws.amazon.com/neuron", 17, "", ("(maximum of any EC2 instance type: 16)", Stance.ENFORCE)),
    ],
)
def test_the_most_of_a_node_depends_on_the_provider(
    context: Callable[..., Context[Any]], resource: str, count: int, facts: str, expected: tuple[str, Stance] | None
) -> None:
    limits = {"resources": {"limits": {resource: count}}}
    ctx = context({"spec": {"containers": [limits]}}, facts=facts, params=Params())
    ctx = replace(ctx, tables={INSTANCE_TYPES.name: INSTANCE_TYPES.load()})
    found = [("(" + each.message.partition("(")[2], each.at_most) for each in check(ctx.subject, ctx)]
    assert found == ([expected] if expected else [])


SMALL = InstanceType(name="small", allocatable={"cpu": 8, "memory": "64Gi", "nvidia.com/gpu": 4})
DRA = InstanceType(
    name="dra", allocatable={"cpu": 8, "memory": "64Gi"}, devices=(Devices(driver="gpu.amd.com", count=8),)
)


@pytest.mark.parametrize(
    ("resource", "count", "types", "message"),
    [
        ("nvidia.com/gpu", 4, (SMALL,), None),
        (
            "nvidia.com/gpu",
            5,
            (SMALL,),
            "the Pod requests 5 nvidia.com/gpu (maximum of any instance type of the platform: 4)",
        ),
        ("amd.com/gpu", 1, (SMALL,), "no instance type of the platform offers amd.com/gpu"),
        ("amd.com/gpu", 1, (SMALL, DRA), None),
        ("nvidia.com/mig-1g.10gb", 1, (SMALL,), "no instance type of the platform offers nvidia.com/mig-1g.10gb"),
        ("nvidia.com/mig-1g.11gb", 1, (SMALL,), None),
        ("nvidia.com/gpumem", 8000, (SMALL,), None),
    ],
)
def test_the_most_of_a_platform_is_that_of_its_largest_type(
    context: Callable[..., Context[Any]],
    resource: str,
    count: int,
    types: tuple[InstanceType, ...],
    message: str | None,
) -> None:
    limits = {"resources": {"limits": {resource: count}}}
    catalogue = Catalogue(complete=True, types=types)
    ctx = context({"spec": {"containers": [limits]}}, platform=Platform(catalogue=catalogue), params=Params())
    assert [violation.message for violation in check(ctx.subject, ctx)] == ([message] if message else [])
