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


def test_a_stored_object_reads_as_any_other(stored: StoredField) -> None:
    plain = Field(stored.value)

    assert stored["spec", "replicas"].integer == 3
    assert stored["spec"]["replicas"].path == ("spec", "replicas")
    assert [key for key, _ in stored.items()] == [key for key, _ in plain.items()]
    assert bool(stored)


def test_name_and_namespace_are_at_hand(stored: StoredField) -> None:
    assert (stored.name, stored.namespace) == ("a", "ml")


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [(SOME, needs_of("scaling/wrong-metric"), True), (SOME, MORE, False)],
    ids=["the same", "more fields"],
)
def test_projections_are_equal_when_they_keep_the_same(one: object, other: object, equal: bool) -> None:  # noqa: FBT001 -- a table's column
    assert (Projection(DEPLOYMENT, one) == Projection(DEPLOYMENT, other)) is equal  # type: ignore[arg-type] # Needs
