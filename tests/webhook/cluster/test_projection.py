from __future__ import annotations

import pytest
from cluster.reflected import deployment, needs_of

from gpugate.policies.sdk.field import Field
from gpugate.policies.sdk.objects import DEPLOYMENT
from gpugate.webhook.cluster.objects import Projection, StoredField

SOME, MORE = needs_of("scaling/wrong-metric"), needs_of("disruption/blocking-pdb")


@pytest.fixture
def stored() -> StoredField:
    return Projection(DEPLOYMENT, needs_of())(deployment("a", replicas=3))


def test_a_stored_object_reads_like_a_field(stored: StoredField) -> None:
    plain = Field(stored.value)

    assert stored["spec", "replicas"].integer == 3
    assert stored["spec"]["replicas"].path == ("spec", "replicas")
    assert [key for key, _ in stored.items()] == [key for key, _ in plain.items()]
    assert bool(stored)


def test_name_and_namespace_are_attributes(stored: StoredField) -> None:
    assert (stored.name, stored.namespace) == ("a", "ml")


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [(SOME, needs_of("scaling/wrong-metric"), True), (SOME, MORE, False)],
    ids=["the same", "more fields"],
)
def test_projections_of_the_same_fields_are_equal(left: object, right: object, equal: bool) -> None:  # noqa: FBT001 -- a table's column
    assert (Projection(DEPLOYMENT, left) == Projection(DEPLOYMENT, right)) is equal  # type: ignore[arg-type] # Needs
