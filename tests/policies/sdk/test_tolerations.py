from __future__ import annotations

import pytest

from gpugate.policies.sdk.field import Field
from gpugate.policies.sdk.platform import Taint
from gpugate.policies.sdk.scheduling import tolerated, tolerates

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


@pytest.mark.parametrize(
    ("operator", "value", "taint", "expected"),
    [
        ("Gt", "4", "8", True),
        ("Gt", "8", "8", False),
        ("Lt", "9", "8", True),
        ("Lt", "8", "8", False),
        ("Gt", "-1", "0", True),
        ("Gt", "0", "true", False),
        ("Gt", "", "8", False),
        ("Gt", "04", "8", False),
        ("Gt", "+4", "8", False),
        ("Lt", "99999999999999999999", "8", False),
    ],
)
def test_a_comparison_is_of_decimal_integers(operator: str, value: str, taint: str, *, expected: bool) -> None:
    toleration = Field({"key": "nvidia.com/gpu", "operator": operator, "value": value})
    assert tolerates(toleration, Taint(key="nvidia.com/gpu", value=taint)) is expected


def test_one_of_several_tolerations_is_enough() -> None:
    pod = Field({"spec": {"tolerations": [{"key": "a"}, {"key": "nvidia.com/gpu", "operator": "Exists"}]}})
    assert tolerated(pod, GPU)


def test_a_pod_without_tolerations_tolerates_nothing() -> None:
    assert not tolerated(Field({"spec": {}}), GPU)
