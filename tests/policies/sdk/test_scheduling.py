"""The labels that requirements are about."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpugate.policies.sdk.field import Field
from gpugate.policies.sdk.scheduling import Requirement, read_requirement

if TYPE_CHECKING:
    from gpugate.policies.sdk.field import Json


@pytest.mark.parametrize(
    ("alias", "label"),
    [
        ("beta.kubernetes.io/arch", "kubernetes.io/arch"),
        ("beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type"),
        ("beta.kubernetes.io/os", "kubernetes.io/os"),
        ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"),
        ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"),
        ("team", "team"),
    ],
)
def test_old_names_of_labels_stand_for_the_new_ones(alias: str, label: str) -> None:
    entry: Json = {"key": alias, "operator": "In", "values": ["a"]}
    assert read_requirement(Field(entry)) == (
        label,
        Requirement(complement=False, values=frozenset({"a"})),
    )
