"""Where the API server's JSON Patch differs from RFC 6902, and that our applier reads it alike."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import jsonpatch
import pytest
from api_server import json_patch, patch_conduct
from api_server.errors import ConductError, PatchDoesNotApplyError, UndecodablePatchError
from hypothesis import given, settings
from hypothesis import strategies as st

if TYPE_CHECKING:
    from pathlib import Path

REFUSED = object()
DOCUMENT: dict[str, Any] = {"a": {"b": 1}, "l": [1, 2, 3], "n": None, "t/t": 1, "t~t": 2}


def applied(*operations: dict[str, Any]) -> Any:
    try:
        return json_patch.apply(DOCUMENT, operations)
    except PatchDoesNotApplyError:
        return REFUSED


def op(kind: str, path: str, *value: Any, **members: Any) -> dict[str, Any]:
    return {"op": kind, "path": path, **({"value": value[0]} if value else {}), **members}


# One operation on DOCUMENT, and what differs afterwards; all of this was seen of the library itself.
UNUSUAL = {
    "replace-adds-a-missing-key": (op("replace", "/x", 1), {"x": 1}),
    "add-index-from-the-end": (op("add", "/l/-1", 9), {"l": [1, 2, 3, 9]}),
    "remove-index-from-the-end": (op("remove", "/l/-1"), {"l": [1, 2]}),
    "index-with-a-leading-zero": (op("add", "/l/01", 9), {"l": [1, 9, 2, 3]}),
    "first-segment-without-a-slash-is-dropped": (op("add", "foo/x", 1), {"x": 1}),
    "bad-escape-is-kept": (op("add", "/~2", 1), {"~2": 1}),
    "add-without-a-value-writes-null": (op("add", "/x"), {"x": None}),
    "test-null-of-a-missing-key": (op("test", "/x", None), {}),
    "test-1-is-not-1.0": (op("test", "/a/b", 1.0), REFUSED),
    "add-the-root": (op("add", "", {}), REFUSED),
    "replace-the-root-by-a-scalar": (op("replace", "", 1), REFUSED),
}
COMMON = {
    "add": (op("add", "/a/c", [1]), {"a": {"b": 1, "c": [1]}}),
    "add-over-a-key": (op("add", "/a", 1), {"a": 1}),
    "add-in-a-list": (op("add", "/l/1", 9), {"l": [1, 9, 2, 3]}),
    "add-at-the-end": (op("add", "/l/3", 9), {"l": [1, 2, 3, 9]}),
    "append": (op("add", "/l/-", 9), {"l": [1, 2, 3, 9]}),
    "add-past-the-end": (op("add", "/l/4", 9), REFUSED),
    "add-without-its-parent": (op("add", "/x/y", 1), REFUSED),
    "add-below-null": (op("add", "/n/y", 1), REFUSED),
    "add-below-a-number": (op("add", "/a/b/c", 1), REFUSED),
    "add-at-no-index": (op("add", "/l/x", 1), REFUSED),
    "remove": (op("remove", "/a/b"), {"a": {}}),
    "remove-a-missing-key": (op("remove", "/x"), REFUSED),
    "remove-past-the-end": (op("remove", "/l/3"), REFUSED),
    "remove-null": (op("remove", "/n"), {"n": REFUSED}),
    "replace": (op("replace", "/a/b", 2), {"a": {"b": 2}}),
    "replace-past-the-end": (op("replace", "/l/3", 2), REFUSED),
    "escaped-slash": (op("replace", "/t~1t", 2), {"t/t": 2}),
    "escaped-tilde": (op("replace", "/t~0t", 3), {"t~t": 3}),
    "move": (op("move", "/x", **{"from": "/a/b"}), {"a": {}, "x": 1}),
    "move-into-its-own-child": (op("move", "/a/x", **{"from": "/a"}), REFUSED),
    "copy": (op("copy", "/x", **{"from": "/l"}), {"x": [1, 2, 3]}),
    "test": (op("test", "/l", [1, 2, 3]), {}),
    "test-fails": (op("test", "/l", [1, 2]), REFUSED),
    "unknown": (op("frobnicate", "/a", 1), REFUSED),
    "upper-case": (op("ADD", "/a", 1), REFUSED),
    "without-op": ({"path": "/a", "value": 1}, REFUSED),
    "more-members": (op("add", "/x", 1, comment="y"), {"x": 1}),
}
CASES = UNUSUAL | COMMON
# kubectl reads its patch as YAML, which writes 1.0 as 1; and v4.12.0, which kubectl 1.32 has, ignores a scalar root.
NOT_FOR_KUBECTL = {"test-1-is-not-1.0", "replace-the-root-by-a-scalar"}
FOR_KUBECTL = {name: case for name, case in CASES.items() if name not in NOT_FOR_KUBECTL}


def expected(change: Any) -> Any:
    if change is REFUSED:
        return REFUSED
    return {key: value for key, value in (DOCUMENT | change).items() if value is not REFUSED}


@pytest.mark.parametrize(("operation", "change"), CASES.values(), ids=CASES)
def test_P_094_one_operation(operation: dict[str, Any], change: Any) -> None:  # noqa: N802 -- the contract's number
    assert applied(operation) == expected(change)


@pytest.mark.parametrize(("operation", "change"), COMMON.values(), ids=COMMON)
def test_P_094_where_the_second_opinion_agrees(operation: dict[str, Any], change: Any) -> None:  # noqa: N802 -- the contract's number
    try:
        result = jsonpatch.apply_patch(DOCUMENT, [operation])
    except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException, TypeError):
        result = REFUSED
    assert result == expected(change)


def by_kubectl(operation: dict[str, Any], file: Path) -> Any:
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}} | DOCUMENT))
    command = ["kubectl", "patch", "--local", "-f", str(file), "--type", "json", "-o", "json"]
    done = subprocess.run(  # noqa: S603 -- ours
        [*command, "-p", json.dumps([operation])], capture_output=True, text=True, check=False
    )
    if done.returncode:
        return REFUSED
    return {
        key: value for key, value in json.loads(done.stdout).items() if key not in {"apiVersion", "kind", "metadata"}
    }


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl, which is the judge here, is not installed")
@pytest.mark.parametrize(("operation", "change"), FOR_KUBECTL.values(), ids=FOR_KUBECTL)
def test_P_094_kubectl_agrees_with_the_tables(operation: dict[str, Any], change: Any, tmp_path: Path) -> None:  # noqa: N802 -- the contract's number
    assert by_kubectl(operation, tmp_path / "x.json") == expected(change)


def test_P_069_copies_may_not_grow_without_end() -> None:  # noqa: N802 -- the contract's number
    document = {"a": "x" * 1024 * 1024}
    copies = [op("copy", f"/b{number}", **{"from": "/a"}) for number in range(3)]
    with pytest.raises(PatchDoesNotApplyError, match="accumulated size"):
        json_patch.apply(document, copies)


def test_a_list_that_holds_null_equals_nothing() -> None:
    # The library panics, which fails the request too.
    with pytest.raises(PatchDoesNotApplyError, match="testing value"):
        json_patch.apply({"l": [1, None]}, [op("test", "/l", [1, None])])


def test_the_document_stays_as_it_is() -> None:
    before = json.dumps(DOCUMENT)
    applied(op("add", "/l/-", 9), op("remove", "/a"))
    assert json.dumps(DOCUMENT) == before


@pytest.mark.parametrize(("patch", "operations"), [(b"null", []), (b"[]", []), (b"[null]", [{}])])
def test_P_064_empty_patches(patch: bytes, operations: list[Any]) -> None:  # noqa: N802 -- the contract's number
    assert json_patch.decode(patch) == operations


@pytest.mark.parametrize("patch", [b"", b"{}", b'"x"', b"[1]", b"[{]", b"[NaN]", b"\xff"])
def test_P_062_undecodable_patches(patch: bytes) -> None:  # noqa: N802 -- the contract's number
    with pytest.raises(UndecodablePatchError):
        json_patch.decode(patch)


keys = st.sampled_from(["a", "b", "", "x/y", "m~n", "~1", "0"])
scalars = st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3)
values = (
    scalars | st.lists(scalars, max_size=3) | st.dictionaries(keys, scalars | st.lists(scalars, max_size=2), max_size=3)
)
documents = st.dictionaries(keys, values, max_size=4)
segments = keys | st.integers(0, 3).map(str) | st.just("-")
pointers = st.lists(segments.map(lambda s: s.replace("~", "~0").replace("/", "~1")), min_size=1, max_size=4)
operations = st.one_of(
    st.builds(op, st.sampled_from(["add", "replace"]), pointers.map(lambda parts: "/" + "/".join(parts)), values),
    st.builds(op, st.just("remove"), pointers.map(lambda parts: "/" + "/".join(parts))),
)


@settings(deadline=None, max_examples=150)
@given(documents, st.lists(operations, max_size=4))
def test_what_our_rule_lets_through_is_read_alike_by_both(document: Any, patch: list[dict[str, Any]]) -> None:
    try:
        patch_conduct.check(document, patch)
    except ConductError:
        return
    assert json_patch.apply(document, patch) == jsonpatch.apply_patch(document, patch)


@settings(deadline=None, max_examples=150)
@given(documents, operations.filter(lambda operation: operation["op"] != "replace"))
def test_add_and_remove_by_canonical_paths_are_read_alike_by_both(document: Any, operation: dict[str, Any]) -> None:
    try:
        one: Any = json_patch.apply(document, [operation])
    except PatchDoesNotApplyError:
        one = REFUSED
    try:
        other = jsonpatch.apply_patch(document, [operation])
    except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException, TypeError):
        other = REFUSED
    assert one == other
