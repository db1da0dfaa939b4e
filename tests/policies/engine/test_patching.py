from __future__ import annotations

import copy
import json
import shutil
import subprocess
from typing import TYPE_CHECKING

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpugate.policies.engine.patching import Draft, PatchError, apply, apply_all
from gpugate.policies.sdk.findings import Patch

if TYPE_CHECKING:
    from pathlib import Path

    from gpugate.policies.engine.patching import Operation
    from gpugate.policies.sdk.field import Json

# Of a kind that kubectl does not know, so that it keeps every member as it is written.
THING: dict[str, Json] = {
    "apiVersion": "example.com/v1",
    "kind": "Thing",
    "metadata": {"name": "p", "annotations": None},
    "spec": {
        "containers": [{"name": "a", "resources": {"limits": {"nvidia.com/mig-1g.10gb": "1", "~": "1Gi"}}}],
        "tolerations": [{"key": "a", "operator": "Exists"}],
    },
}
LIMITS = ("spec", "containers", 0, "resources", "limits")

FITTING: dict[str, tuple[Patch, Operation]] = {
    "set a member whose parent is null": (
        Patch("set", ("metadata", "annotations", "karpenter.sh/do-not-disrupt"), "true", ""),
        {"op": "replace", "path": "/metadata/annotations", "value": {"karpenter.sh/do-not-disrupt": "true"}},
    ),
    "set a member whose parents are missing": (
        Patch("set", ("spec", "affinity", "nodeAffinity", "x"), 1, ""),
        {"op": "add", "path": "/spec/affinity", "value": {"nodeAffinity": {"x": 1}}},
    ),
    "set a member that exists": (
        Patch("set", ("metadata", "name"), "q", ""),
        {"op": "replace", "path": "/metadata/name", "value": "q"},
    ),
    "set a member whose key has both characters that a pointer escapes": (
        Patch("set", (*LIMITS, "a/~1"), "1", ""),
        {"op": "add", "path": "/spec/containers/0/resources/limits/a~1~01", "value": "1"},
    ),
    "append to a list": (
        Patch("append", ("spec", "tolerations"), {"key": "b"}, ""),
        {"op": "add", "path": "/spec/tolerations/-", "value": {"key": "b"}},
    ),
    "append to a missing list": (
        Patch("append", ("spec", "resourceClaims"), {"name": "c"}, ""),
        {"op": "add", "path": "/spec/resourceClaims", "value": [{"name": "c"}]},
    ),
    "append to a missing list in a list element": (
        Patch("append", ("spec", "containers", 0, "resources", "claims"), {"name": "c"}, ""),
        {"op": "add", "path": "/spec/containers/0/resources/claims", "value": [{"name": "c"}]},
    ),
    "remove a member": (
        Patch("remove", (*LIMITS, "nvidia.com/mig-1g.10gb"), None, ""),
        {"op": "remove", "path": "/spec/containers/0/resources/limits/nvidia.com~1mig-1g.10gb"},
    ),
    "remove a list element": (
        Patch("remove", ("spec", "tolerations", 0), None, ""),
        {"op": "remove", "path": "/spec/tolerations/0"},
    ),
}
fitting = pytest.mark.parametrize(("patch", "operation"), FITTING.values(), ids=FITTING)


@fitting
def test_a_patch_is_said_as_an_operation_whose_parent_exists(patch: Patch, operation: Operation) -> None:
    assert apply(THING, patch)[1] == operation


@fitting
def test_jsonpatch_makes_the_same_object(patch: Patch, operation: Operation) -> None:
    assert jsonpatch.apply_patch(THING, [operation]) == apply(THING, patch)[0]


@fitting
def test_the_api_servers_library_makes_the_same_object(patch: Patch, operation: Operation, tmp_path: Path) -> None:
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("kubectl carries the API server's JSON patch library; it is not on PATH")
    file = tmp_path / "thing.json"
    file.write_text(json.dumps(THING))
    command = [kubectl, "patch", "--local", "-f", file, "--type=json", "-p", json.dumps([operation]), "-o", "json"]
    shown = subprocess.run(command, check=True, capture_output=True)  # noqa: S603 -- a fixed command
    assert json.loads(shown.stdout) == apply(THING, patch)[0]


@pytest.mark.parametrize(
    ("patch", "says"),
    [
        (Patch("set", (), {}, ""), "cannot replace the whole object"),
        (Patch("set", ("kind", "x"), 1, ""), "kind is neither an object nor a list"),
        (Patch("set", ("kind", "x"), 1, ""), "^kind is neither an object nor a list$"),
        (
            Patch("set", ("spec", "tolerations", 0, "key", "x"), 1, ""),
            r"^spec.tolerations\[0\].key is neither an object",
        ),
        (Patch("append", ("spec",), 1, ""), "spec is not a list"),
        (Patch("append", ("spec", "tolerations", 1), 1, ""), r"^spec.tolerations\[1\] is not in the list$"),
        (Patch("set", ("spec", "absent", "x", 0), 1, ""), r"^spec.absent.x\[0\] has no parent$"),
        (Patch("set", ("spec", "containers", 7, "x"), 1, ""), r"spec.containers\[7\] is not in the list"),
        (Patch("set", ("spec", "absent", 0), 1, ""), r"spec.absent\[0\] has no parent"),
        (Patch("remove", ("spec", "absent"), None, ""), "spec.absent does not exist, so it cannot be removed"),
        (Patch("remove", ("spec", "absent", "x"), None, ""), "spec.absent.x has no parent"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_a_patch_that_does_not_fit_is_refused_with_its_path(patch: Patch, says: str) -> None:
    with pytest.raises(PatchError, match=says):
        apply(THING, patch)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text("a/~-0", max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("a/~-0", max_size=2), inner, max_size=3),
    max_leaves=8,
)
json_objects = st.dictionaries(st.text("a/~-0", max_size=2), json_values, max_size=4)
patches = st.builds(
    Patch,
    st.sampled_from(["set", "append", "remove"]),
    st.lists(st.text("a/~-0", max_size=2) | st.integers(0, 2), min_size=1, max_size=4).map(tuple),
    json_values,
    st.just(""),
)


@given(json_objects, st.lists(patches, max_size=4))
def test_whatever_fits_jsonpatch_applies_to_the_same_result(obj: dict[str, Json], todo: list[Patch]) -> None:
    patched, operations = obj, []
    for patch in todo:
        try:
            patched, operation = apply(patched, patch)
        except PatchError:
            continue
        operations.append(operation)
    assert jsonpatch.apply_patch(obj, operations) == patched


@given(json_objects, patches)
def test_the_object_itself_is_left_as_it_is(obj: dict[str, Json], patch: Patch) -> None:
    before = copy.deepcopy(obj)
    try:
        apply_all(obj, (patch,))
    except PatchError:
        return
    assert obj == before


@given(json_objects, st.lists(patches, max_size=6))
def test_one_draft_makes_what_patches_one_by_one_make(obj: dict[str, Json], todo: list[Patch]) -> None:
    before, values = copy.deepcopy(obj), copy.deepcopy([patch.value for patch in todo])
    draft, patched = Draft(obj), obj
    for patch in todo:
        try:
            patched, operation = apply(patched, patch)
        except PatchError:
            with pytest.raises(PatchError):
                draft.apply(patch)
            continue
        assert draft.apply(patch) == operation
        assert draft.root == patched
    assert (obj, [patch.value for patch in todo]) == (before, values)


def test_a_part_that_a_patch_moves_is_changed_in_one_place() -> None:
    draft = Draft({"a": {"x": []}})
    draft.apply(Patch("append", ("a", "x"), 1, ""))
    moved = draft.root["a"]
    draft.apply(Patch("set", ("b",), {"in": [moved]}, ""))
    draft.apply(Patch("append", ("b", "in", 0, "x"), 2, ""))
    draft.apply(Patch("append", ("a", "x"), 3, ""))
    assert draft.root == {"a": {"x": [1, 3]}, "b": {"in": [{"x": [1, 2]}]}}


def test_each_list_is_copied_once() -> None:
    draft = Draft({"a": {"x": []}})
    lists = []
    for number in range(3):
        draft.apply(Patch("append", ("a", "x"), number, ""))
        lists.append(draft.root["a"]["x"])  # type: ignore[index,call-overload] # an object
    assert lists[0] is lists[1] is lists[2]
