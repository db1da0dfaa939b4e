from __future__ import annotations

import tracemalloc
from functools import lru_cache
from typing import Any

import pytest
from cluster.reflected import deployment, needs_of
from hypothesis import given
from hypothesis import strategies as st

from gpugate.policies.sdk.field import Field
from gpugate.policies.sdk.objects import DEPLOYMENT, REPLICA_SET
from gpugate.webhook.cluster.objects import Objects, Projection, StoredField, decode

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


# More than the first objects, with which later ones are compressed.
MANY = 300
SPECS = st.dictionaries(st.text(max_size=8), st.integers(-(2**63), 2**63 - 1) | st.text() | st.none(), max_size=4)


def workload(number: int, **resources: object) -> dict[str, Any]:
    """A Deployment of which a kilobyte is kept, the same in all but its name, image and resources."""
    obj = deployment(f"d{number:03d}")
    args = [f"--setting-{setting}=the-same-value-everywhere" for setting in range(25)]
    container = {"image": f"registry.example/app:{number}", "args": args, "resources": resources}
    obj["spec"]["template"]["spec"]["containers"] = [container]
    return obj


def test_every_object_has_the_content_that_was_projected() -> None:
    project = Projection(DEPLOYMENT, needs_of())
    objects = [workload(number) for number in range(MANY)]

    stored = [project(obj) for obj in objects]

    images = [field["spec", "template", "spec", "containers", 0, "image"].text for field in stored]
    assert images == [f"registry.example/app:{number}" for number in range(MANY)]
    # Each as the first object of a projection.
    assert [field.value for field in stored] == [Projection(DEPLOYMENT, needs_of())(obj).value for obj in objects]


@given(st.lists(SPECS, max_size=4), st.integers(0, 40))
def test_any_content_is_kept_after_any_objects(contents: list[dict[str, object]], before: int) -> None:
    project = Projection(DEPLOYMENT, needs_of())
    for number in range(before):
        project(workload(number))

    stored = [project(workload(0, limits=content)) for content in contents]

    limits = ("spec", "template", "spec", "containers", 0, "resources", "limits")
    assert [field[limits].value for field in stored] == contents


def test_an_unchanged_object_is_equal_to_itself_in_its_first_form() -> None:
    project = Projection(DEPLOYMENT, needs_of())
    objects = Objects.of([project(workload(number)) for number in range(MANY)])

    again = [project(workload(number)) for number in range(MANY)]

    assert all(objects.put(field) is objects for field in again)
    assert [hash(field) for field in again] == [hash(field) for field in objects.list(None).items]


def test_a_changed_object_differs_from_its_first_form() -> None:
    project = Projection(DEPLOYMENT, needs_of())
    objects = Objects.of([project(workload(number)) for number in range(MANY)])

    changed = objects.put(project(workload(0, limits={"cpu": 1})))

    assert changed is not objects
    assert changed.list("ml").by_name["d000"] != objects.list("ml").by_name["d000"]


def test_kinds_share_a_cache_of_decoded_objects() -> None:
    cached = lru_cache(1024)(decode)
    projects = [Projection(kind, needs_of(), cached) for kind in (DEPLOYMENT, REPLICA_SET)]

    stored = [[project(workload(number)) for number in range(MANY)] for project in projects]

    assert [[field["metadata", "name"].text for field in fields] for fields in stored] == [
        [f"d{number:03d}" for number in range(MANY)]
    ] * 2


def test_similar_objects_take_a_fifth_of_their_size() -> None:
    project = Projection(DEPLOYMENT, needs_of())
    tracemalloc.start()
    try:
        stored = [project(workload(number)) for number in range(MANY)]
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert len(stored) == MANY
    # Not compressed, each takes 2.5 KB.
    assert taken / MANY < 500
