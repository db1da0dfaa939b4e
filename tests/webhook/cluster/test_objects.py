from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from cluster.reflected import needs_of

from gpugate.policies.sdk.objects import DEPLOYMENT
from gpugate.webhook.cluster.objects import Objects, Projection

if TYPE_CHECKING:
    from gpugate.policies.sdk.facts import Known
    from gpugate.webhook.cluster.objects import StoredField


PROJECTION = Projection(DEPLOYMENT, needs_of())


def item(name: str, namespace: str = "", **spec: int) -> StoredField:
    return PROJECTION({"metadata": {"name": name, "namespace": namespace}, "spec": dict(spec)})


def names(known: Known) -> list[str]:
    return [each["metadata", "name"].text for each in known.items]


OBJECTS = Objects.of([item("b", "web"), item("a", "ml"), item("c", "ml")])
LISTS = {
    "of every namespace": (None, ["a", "c", "b"]),
    "of one namespace": ("ml", ["a", "c"]),
    "of a namespace without any": ("other", []),
}


@pytest.mark.parametrize(("namespace", "found"), LISTS.values(), ids=LISTS)
def test_objects_by_namespace_in_the_order_of_their_names(namespace: str | None, found: list[str]) -> None:
    known = OBJECTS.list(namespace)

    assert names(known) == found
    assert known.complete
    assert set(known.by_name) == set(found)


@pytest.mark.parametrize("namespace", [None, "ml", "other"])
def test_the_same_value_is_handed_out_again(namespace: str | None) -> None:
    assert OBJECTS.list(namespace) is OBJECTS.list(namespace)


CHANGES = {
    "a new one": (OBJECTS.put(item("b", "ml")), ["a", "b", "c"], ["b"]),
    "one that changed": (OBJECTS.put(item("a", "ml", replicas=1)), ["a", "c"], ["b"]),
    "one of a new namespace": (OBJECTS.put(item("z", "a")), ["a", "c"], ["b"]),
    "one that went": (OBJECTS.remove(item("a", "ml")), ["c"], ["b"]),
    "the last of its namespace": (OBJECTS.remove(item("b", "web")), ["a", "c"], []),
}


@pytest.mark.parametrize(("changed", "ml", "web"), CHANGES.values(), ids=CHANGES)
def test_a_change_makes_other_objects(changed: Objects, ml: list[str], web: list[str]) -> None:
    assert (names(changed.list("ml")), names(changed.list("web"))) == (ml, web)
    assert changed.count == len(changed.list(None).items)
    assert (names(OBJECTS.list("ml")), names(OBJECTS.list("web"))) == (["a", "c"], ["b"])


@pytest.mark.parametrize("changed", [OBJECTS.put(item("d", "ml")), OBJECTS.remove(item("a", "ml"))])
def test_a_change_leaves_other_namespaces_as_they_are(changed: Objects) -> None:
    assert changed.list("web") is OBJECTS.list("web")


NOTHING = {
    "an object as it was": OBJECTS.put(item("a", "ml")),
    "the removal of one that is not there": OBJECTS.remove(item("x", "ml")),
    "the removal from a namespace without any": OBJECTS.remove(item("a", "other")),
}


@pytest.mark.parametrize("same", NOTHING.values(), ids=NOTHING)
def test_what_changes_nothing_makes_nothing(same: Objects) -> None:
    assert same is OBJECTS
