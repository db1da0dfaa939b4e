from __future__ import annotations

import pytest

from gpugate.policies.sdk.field import Field
from gpugate.policies.sdk.platform import Taint
from gpugate.policies.sdk.tolerations import tolerated, tolerates

GPU = Taint(key="nvidia.com/gpu", value="true")


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        ({"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}, True),
        ({"key": "nvidia.com/gpu", "operator": "Exists"}, True),
        ({"key": "nvidia.com/gpu", "value": "true", "effect": "NoSchedule"}, True),
        ({"key": "nvidia.com/gpu", "operator": "Equal", "value": "true"}, True),
        ({"operator": "Exists"}, True),
        ({"operator": "Exists", "effect": "NoSchedule"}, True),
        ({"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule", "tolerationSeconds": 5}, True),
        ({"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "nvidia.com/gpu", "operator": "Equal", "value": "present"}, False),
        ({"key": "nvidia.com/gpu"}, False),
        ({"key": "nvidia.com/mig-1g.10gb", "operator": "Exists"}, False),
        ({"key": "nvidia.com/gpu", "operator": "Gt", "value": "1"}, False),
        ({"key": "", "operator": "Equal", "value": "true"}, False),
        ({}, False),
        ("nvidia.com/gpu", False),
    ],
    ids=str,
)
def test_a_toleration_covers_the_taint(toleration: object, *, expected: bool) -> None:
    assert tolerates(Field(toleration), GPU) is expected


def test_one_of_several_tolerations_is_enough() -> None:
    pod = Field({"spec": {"tolerations": [{"key": "a"}, {"key": "nvidia.com/gpu", "operator": "Exists"}]}})
    assert tolerated(pod, GPU)


def test_a_pod_without_tolerations_tolerates_nothing() -> None:
    assert not tolerated(Field({"spec": {}}), GPU)
