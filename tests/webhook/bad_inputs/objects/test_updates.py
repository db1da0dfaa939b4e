"""Updates answer for what they add, and nothing stands in the way of a deletion."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

HIDDEN = {"name": "c", "image": "x", "env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]}
BAD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "a", "namespace": "default", "resourceVersion": "1", "finalizers": ["example.com/a"]},
    "spec": {"containers": [HIDDEN]},
    "status": {"phase": "Pending"},
}
GOOD = BAD | {"spec": {"containers": [{"name": "c", "image": "x"}]}}
DELETED = {"deletionTimestamp": "2026-11-21T03:08:16Z"}


def changed(obj: Any, metadata: Any = None, **members: Any) -> Any:
    return copy.deepcopy(obj) | {"metadata": obj["metadata"] | (metadata or {})} | members


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        pytest.param(changed(GOOD, DELETED), changed(BAD, DELETED), "NVIDIA_VISIBLE_DEVICES", id="while-it-is-deleted"),
        pytest.param(GOOD, changed(BAD, DELETED), "NVIDIA_VISIBLE_DEVICES", id="with-a-forged-deletion"),
        pytest.param(BAD, changed(BAD, status={"phase": "Running"}), None, id="status"),
        pytest.param(BAD, changed(BAD, {"resourceVersion": "2"}), None, id="resourceVersion"),
        pytest.param(BAD, changed(BAD, {"managedFields": [{"manager": "a"}]}), None, id="managedFields"),
        pytest.param(GOOD, changed(BAD, status={}), "NVIDIA_VISIBLE_DEVICES", id="spec-beside-the-status"),
        pytest.param(BAD, BAD, None, id="unchanged"),
        pytest.param(BAD, changed(BAD, {"finalizers": []}), None, id="finalizer-removed"),
        pytest.param(
            changed(BAD, DELETED), changed(BAD, DELETED | {"finalizers": []}), None, id="finalizer-at-the-end"
        ),
        pytest.param(
            BAD,
            changed(BAD, spec={"containers": [HIDDEN, HIDDEN | {"name": "d"}]}),
            "name=d|d",
            id="another-one-beside-the-old",
        ),
        pytest.param(changed(BAD, spec=[]), changed(BAD, spec=[]), None, id="wrong-type-unchanged"),
        pytest.param(GOOD, changed(BAD, spec=[]), "must be an object", id="wrong-type-added"),
    ],
)
def test_updates(
    assert_verdict: Callable[..., Any], review: Callable[..., Any], old: Any, new: Any, says: str | None
) -> None:
    assert_verdict(review(new, operation="UPDATE", oldObject=old), says)


def test_what_was_there_before_is_warned_of(ask: Callable[..., Any], review: Callable[..., Any]) -> None:
    answer = ask("/validate", review(BAD, operation="UPDATE", oldObject=BAD))
    assert "pods/hidden-gpu-access" in answer["warnings"][0]


@pytest.mark.parametrize("path", ["/mutate", "/validate"])
def test_deletion_of_a_bad_object(ask: Callable[..., Any], review: Callable[..., Any], path: str) -> None:
    answer = ask(path, review(BAD, operation="DELETE", object=None, oldObject=BAD))
    assert (answer["allowed"], "patch" in answer) == (True, False)
