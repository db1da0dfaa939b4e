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
    return [field["metadata", "name"].text for field in known.items]


OBJECTS = Objects.of([item("b", "web"), item("a", "ml"), item("c", "ml")])
LISTS = {
    "all namespaces": (None, ["a", "c", "b"]),
    "one namespace": ("ml", ["a", "c"]),
    "an empty namespace": ("other", []),
}


@pytest.mark.parametrize(("namespace", "expected"), LISTS.values(), ids=LISTS)
def test_objects_are_listed_by_namespace_and_name(namespace: str | None, expected: list[str]) -> None:
    known = OBJECTS.list(namespace)

    assert names(known) == expected
    assert known.complete
    assert set(known.by_name) == set(expected)


@pytest.mark.parametrize("namespace", [None, "ml", "other"])
def test_lists_are_the_same_value(namespace: str | None) -> None:
    assert OBJECTS.list(namespace) is OBJECTS.list(namespace)


CHANGES = {
    "added": (OBJECTS.put(item("b", "ml")), ["a", "b", "c"], ["b"]),
    "changed": (OBJECTS.put(item("a", "ml", replicas=1)), ["a", "c"], ["b"]),
    "added in a new namespace": (OBJECTS.put(item("z", "a")), ["a", "c"], ["b"]),
    "removed": (OBJECTS.remove(item("a", "ml")), ["c"], ["b"]),
    "the last in its namespace removed": (OBJECTS.remove(item("b", "web")), ["a", "c"], []),
}


@pytest.mark.parametrize(("changed", "ml", "web"), CHANGES.values(), ids=CHANGES)
def test_a_change_creates_a_new_value(changed: Objects, ml: list[str], web: list[str]) -> None:
    assert (names(changed.list("ml")), names(changed.list("web"))) == (ml, web)
    assert changed.count == len(changed.list(None).items)
    assert (names(OBJECTS.list("ml")), names(OBJECTS.list("web"))) == (["a", "c"], ["b"])


@pytest.mark.parametrize("changed", [OBJECTS.put(item("d", "ml")), OBJECTS.remove(item("a", "ml"))])
def test_a_change_shares_the_other_namespaces(changed: Objects) -> None:
    assert changed.list("web") is OBJECTS.list("web")


NOTHING = {
    "an unchanged object": OBJECTS.put(item("a", "ml")),
    "removal of an unknown object": OBJECTS.remove(item("x", "ml")),
    "removal from an empty namespace": OBJECTS.remove(item("a", "other")),
}


@pytest.mark.parametrize("same", NOTHING.values(), ids=NOTHING)
def test_without_a_change_the_value_is_the_same(same: Objects) -> None:
    assert same is OBJECTS
