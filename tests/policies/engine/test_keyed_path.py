"""Paths that stay the same when a list is written in another order, and what an UPDATE may be patched with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import pytest

from gpugate.policies.engine.update_ratchet import Ratchet, keyed_path
from gpugate.policies.sdk.findings import Patch
from gpugate.policies.sdk.objects import GroupVersionKind, Operation, Request

if TYPE_CHECKING:
    from gpugate.policies.sdk.field import Json, Path

POD: dict[str, Json] = {
    "metadata": {"labels": {"a/b": "c"}},
    "spec": {
        "containers": [{"name": "main", "args": ["x"]}, {"image": "unnamed"}],
        "tolerations": [{"key": "nvidia.com/gpu"}, {"name": 1, "key": "a"}, {"key": "first", "name": "wins"}],
    },
}


@pytest.mark.parametrize(
    ("path", "written"),
    [
        ((), ""),
        (("spec",), "spec"),
        (("spec", "containers", 0, "image"), "spec.containers[name=main].image"),
        (("spec", "containers", 0, "args", 0), "spec.containers[name=main].args[0]"),
        (("spec", "containers", 1, "image"), "spec.containers[1].image"),
        (("spec", "containers", 2, "image"), "spec.containers[2].image"),
        (("spec", "tolerations", 0), "spec.tolerations[key=nvidia.com/gpu]"),
        (("spec", "tolerations", 1), "spec.tolerations[key=a]"),
        (("spec", "tolerations", 2), "spec.tolerations[name=wins]"),
        (("metadata", "labels", "a/b"), 'metadata.labels["a/b"]'),
        (("a/b", "c"), '["a/b"].c'),
        (("missing", 0, "x"), "missing[0].x"),
    ],
    ids=str,
)
def test_elements_are_named_by_their_merge_key(path: Path, written: str) -> None:
    assert keyed_path(path, POD) == written


OLD: dict[str, Json] = {"metadata": {"annotations": {"kept": "yes", "none": None}}, "spec": {"tolerations": []}}


@pytest.mark.parametrize(
    ("kind", "op", "path", "may"),
    [
        ("Pod", "append", ("spec", "tolerations"), True),
        ("Pod", "append", ("spec", "containers"), False),
        ("Pod", "set", ("spec", "tolerations"), False),
        ("Pod", "set", ("metadata", "annotations", "new"), True),
        ("Pod", "set", ("metadata", "annotations", "none"), True),
        ("Pod", "set", ("metadata", "annotations", "kept"), False),
        ("Pod", "set", ("metadata", "annotations"), False),
        ("Pod", "set", ("metadata", "annotations", "new", "er"), False),
        ("Pod", "set", ("metadata", "labels", "new"), False),
        ("Pod", "set", ("spec", "annotations", "new"), False),
        ("Pod", "remove", ("metadata", "annotations", "new"), False),
        ("NodePool", "append", ("spec", "tolerations"), False),
        ("NodePool", "set", ("metadata", "annotations", "new"), False),
    ],
)
def test_a_stored_pod_may_get_tolerations_and_annotations(
    kind: str,
    op: Literal["append", "set", "remove"],
    path: Path,
    may: bool,  # noqa: FBT001 -- a column of the table
) -> None:
    request = Request(GroupVersionKind("", "v1", kind), Operation.UPDATE, {}, OLD)
    assert Ratchet(request).may_patch(request, Patch(op, path, "true", "")) is may
