"""Deleting is never in anybody's way, whatever is deleted and however."""

from __future__ import annotations

from typing import TYPE_CHECKING

from violating import node_class, pod

if TYPE_CHECKING:
    from cluster.api import Api
    from operations.conftest import StoreBefore


def test_violating_objects_are_deleted_without_a_word(api: Api, namespace: str, store_before: StoreBefore) -> None:
    for stored in store_before(node_class(), pod(namespace)):
        answer = api.delete(stored)
        assert (answer.ok, answer.warnings) == (True, [])
        assert api.eventually(stored, lambda left: not left) == {}


def test_a_collection_of_violating_objects_is_deleted(api: Api, namespace: str, store_before: StoreBefore) -> None:
    stored = store_before(*(pod(namespace, f"sees-all-gpus-{number}") for number in range(3)))
    answer = api.delete_collection("v1", "Pod", namespace)
    assert (answer.ok, answer.warnings) == (True, [])
    for each in stored:
        assert api.eventually(each, lambda left: not left) == {}


def test_a_dry_run_of_a_deletion_deletes_nothing(api: Api, namespace: str, store_before: StoreBefore) -> None:
    (stored,) = store_before(pod(namespace))
    assert api.delete(stored, dry_run=True).ok
    assert "deletionTimestamp" not in api.get(stored)["metadata"]
