from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gpugate.policies.engine import patching
from gpugate.policies.sdk.findings import Patch
from gpugate.webhook.manifests.documents import Document, read_text
from gpugate.webhook.manifests.edit import edited
from gpugate.webhook.manifests.edit_tree import EditError

if TYPE_CHECKING:
    from gpugate.policies.sdk.field import Path

TOLERATION = {"key": "nvidia.com/gpu", "operator": "Exists"}


def changed(text: str, op: Any, path: Path, value: Any = None) -> str:
    """Apply a patch to a text by way of the object that it means."""
    (document,) = (part for part in read_text("a.yaml", text) if isinstance(part, Document))
    wanted, _ = patching.apply({"": document.value}, Patch(op, ("", *path), value, ""))
    return edited(text, wanted[""])


SPEC = ("spec",)
EDITS: dict[str, tuple[str, tuple[Any, ...], str]] = {
    "a member, behind the last": (
        "spec:  # ours\n  a: 1  # one\n\n# end\n",
        ("set", (*SPEC, "b"), "x"),
        "spec:  # ours\n  a: 1  # one\n  b: x\n\n# end\n",
    ),
    "a member, without a line break at the end": ("spec:\n  a: 1", ("set", (*SPEC, "b"), 2), "spec:\n  a: 1\n  b: 2"),
    "a member, with parents": ("a: 1\n", ("set", (*SPEC, "b"), "x"), "a: 1\nspec:\n  b: x\n"),
    "a member where nothing is": ("spec:  # ours\na: 1\n", ("set", (*SPEC, "b"), 2), "spec: # ours\n  b: 2\na: 1\n"),
    "a member of {}": ("spec: {}\na: 1\n", ("set", (*SPEC, "b"), {"c": 1}), "spec:\n  b:\n    c: 1\na: 1\n"),
    "a member in braces": ("spec: { a: 1 }\n", ("set", (*SPEC, "b"), "on"), 'spec: { a: 1, b: "on" }\n'),
    "a member behind a block of lines": (
        "spec:\n  a: |\n    x\n\nb: 1\n",
        ("set", (*SPEC, "c"), 1),
        "spec:\n  a: |\n    x\n  c: 1\n\nb: 1\n",
    ),
    "a value": ("a: 1 # one\n", ("set", ("a",), 2), "a: 2 # one\n"),
    "a value in its quotes": ("a: 'x'\n", ("set", ("a",), "it's"), "a: 'it''s'\n"),
    "a value that needs quotes": ("a: x\n", ("set", ("a",), "1e3"), 'a: "1e3"\n'),
    "a value in the last place that counts": ("a: 1\na: 2\n", ("set", ("a",), 3), "a: 1\na: 3\n"),
    "a block of lines": ("a: |- # text\n  x\n  y\nb: 1\n", ("set", ("a",), "z"), "a: z # text\nb: 1\n"),
    "an element": ("a:\n- x # one\n# end\n", ("append", ("a",), "z"), "a:\n- x # one\n- z\n# end\n"),
    "an element in their quotes": ('a: ["x"] # one\n', ("append", ("a",), "y"), 'a: ["x", "y"] # one\n'),
    "an object as an element": (
        "spec:\n  a:\n    - key: x\n",
        ("append", (*SPEC, "a"), TOLERATION),
        "spec:\n  a:\n    - key: x\n    - key: nvidia.com/gpu\n      operator: Exists\n",
    ),
    "an object as an element in braces": (
        "a:\n  - {key: x}\n",
        ("append", ("a",), TOLERATION),
        "a:\n  - {key: x}\n  - {key: nvidia.com/gpu, operator: Exists}\n",
    ),
    "an element of []": ("a: []\n", ("append", ("a",), TOLERATION), f"a:\n  - key: {TOLERATION['key']}\n    operator: Exists\n"),
    "an element behind a comma": ("a: [\n  x,\n]\n", ("append", ("a",), "z"), "a: [\n  x,\n  z,\n]\n"),
    "an element behind a comment": (
        "a: [\n  x # one\n]\n",
        ("append", ("a",), "z"),
        "a: [\n  x, # one\n  z\n]\n",
    ),
    "a list as the others are": ("a:\n- x\nb: {}\n", ("set", ("c",), ["z"]), "a:\n- x\nb: {}\nc:\n- z\n"),
    "a member removed": ("a: 1 # one\nb: 2\n", ("remove", ("a",)), "b: 2\n"),
    "the first member of an element removed": ("- a: 1\n  b: 2\n", ("remove", (0, "a")), "- b: 2\n"),
    "the only member removed": ("spec: # ours\n  a:\n    b: 1\nc: 1\n", ("remove", (*SPEC, "a")), "spec: {} # ours\nc: 1\n"),
    "an element removed": ("a:\n  - x\n  # why\n  - y\n", ("remove", ("a", 0)), "a:\n  # why\n  - y\n"),
    "the last element in brackets removed": ("a: [x, y]\n", ("remove", ("a", 1)), "a: [x]\n"),
    "a member removed with the comment right above it": (
        "a:\n  # section\n\n  # about b\n  b: 1 # one\n  # about c\n  c: 2\n",
        ("remove", ("a", "b")),
        "a:\n  # section\n\n  # about c\n  c: 2\n",
    ),
    "a member removed with the comments in it": (
        "a:\n  b:\n    x: 1\n\n    # no more\n  # about c\n  c: 1\n",
        ("remove", ("a", "b")),
        "a:\n  # about c\n  c: 1\n",
    ),
    "the first member of a document removed": ("# ours\na: 1\nb: 2\n", ("remove", ("a",)), "# ours\nb: 2\n"),
    "the only member removed with its comment": (
        "spec: # ours\n  # about a\n  a: 1\n  # b: 2\nc: 1\n",
        ("remove", (*SPEC, "a")),
        "spec: {} # ours\n  # b: 2\nc: 1\n",
    ),
    "a block of lines removed": (
        "a:\n  b: |\n    x\n    # y\n  # about c\n  c: 1\n",
        ("remove", ("a", "b")),
        "a:\n  # about c\n  c: 1\n",
    ),
    "an element behind the comment in the last one": (
        "a:\n- b: 1\n  # c: 2\n# about d\nd: 1\n",
        ("append", ("a",), {"b": 3}),
        "a:\n- b: 1\n  # c: 2\n- b: 3\n# about d\nd: 1\n",
    ),
    "a member behind an element that is left out": (
        "a:\n  b:\n  - x\n  # - y\n  #   z\nc: 1\n",
        ("set", ("a", "d"), 1),
        "a:\n  b:\n  - x\n  # - y\n  #   z\n  d: 1\nc: 1\n",
    ),
    "a member behind a comment on lines of its own": (
        "a: 1 # one\n     # and more\n# end\n",
        ("set", ("b",), 2),
        "a: 1 # one\n     # and more\nb: 2\n# end\n",
    ),
    "a member behind a block of lines with a width": (
        "a:\n  b: |2\n      x\n     y\n  c: 1\n",
        ("set", ("a", "d"), 1),
        "a:\n  b: |2\n      x\n     y\n  c: 1\n  d: 1\n",
    ),
    "a member behind a block of lines that keeps its end": (
        "a:\n  b: |+\n    x\n\nc: 1\n",
        ("set", ("a", "d"), 1),
        "a:\n  b: |+\n    x\n\n  d: 1\nc: 1\n",
    ),
    "a member behind a block of lines without a line break": (
        "a:\n  b: |2 # x\n    y",
        ("set", ("a", "d"), 1),
        "a:\n  b: |2- # x\n    y\n  d: 1",
    ),
    "a text of many lines": ("a: 1\n", ("set", ("b",), "x\n  y\n"), "a: 1\nb: |\n  x\n    y\n"),
    "a text of many lines as an element": ("a:\n- x\n", ("append", ("a",), ["x\ny"]), "a:\n- x\n- - |-\n    x\n    y\n"),
    "objects as far to the right as the others": (
        "a:\n    b:\n        c: 1\n",
        ("set", ("a", "d"), {"e": {"f": 1}}),
        "a:\n    b:\n        c: 1\n    d:\n        e:\n            f: 1\n",
    ),
    "null": ("a:\n  b: null # none\n  c: 1\n", ("append", ("a", "b"), "x"), "a:\n  b: # none\n    - x\n  c: 1\n"),
    "[] before a tab": ("a: []\t# none\n", ("append", ("a",), "x"), "a: # none\n  - x\n"),
    "a value behind a tab": ("a:\tb\n", ("set", ("a",), "c"), "a:\tc\n"),
    "a member beside a merge": (
        "a: &x {b: 1}\nc:\n  <<: *x\n  d: 1\n",
        ("set", ("c", "b"), 2),
        "a: &x {b: 1}\nc:\n  <<: *x\n  d: 1\n  b: 2\n",
    ),
    "lines of which few are DOS lines": ("a: 1\r\nb: 2\nc: 3\n", ("set", ("d",), 4), "a: 1\r\nb: 2\nc: 3\nd: 4\n"),
    "DOS lines": ("a: 1\r\nb: 2\r\n", ("set", ("c",), {"d": 1}), "a: 1\r\nb: 2\r\nc:\r\n  d: 1\r\n"),
    "characters beyond 16 bits": ("a: \U0001f600 # x\nb: 1\n", ("set", ("b",), 2), "a: \U0001f600 # x\nb: 2\n"),
    "JSON": ('{"a": {"b": 1}}\n', ("set", ("a", "c"), "x"), '{"a": {"b": 1, "c": "x"}}\n'),
    "JSON over many lines": (
        '{\n  "a": [\n    1\n  ]\n}\n',
        ("append", ("a",), {"b": None}),
        '{\n  "a": [\n    1,\n    {"b": null}\n  ]\n}\n',
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "patch", "expected"), EDITS.values(), ids=EDITS)
def test_a_text_is_changed_in_one_place(text: str, patch: Any, expected: str) -> None:
    assert changed(text, *patch) == expected


REFUSED: dict[str, tuple[str, tuple[Any, ...], str]] = {
    "an alias": ("a: &x {b: 1}\nc: *x\n", ("set", ("c", "b"), 2), "the value is an alias of another one"),
    "what has an alias": ("a: &x {b: 1}\nc: *x\n", ("set", ("a", "b"), 2), "the value is an alias of another one"),
    "a merge": ("a: &x {b: {c: 1}}\nd: {<<: *x}\n", ("set", ("d", "b", "c"), 2), "the value is merged in with `<<`"),
    "a member that is merged in": (
        "a: &x {b: 1}\nd: {<<: *x, c: 1}\n",
        ("remove", ("d", "b")),
        "the value is merged in with `<<`",
    ),
    "an anchor": ("a: &x 1\nc: *x\n", ("set", ("a",), 2), "a has an anchor that aliases refer to"),
    "a comment above what is in it": ("a:\n  # one\n  b: 1\n", ("set", ("a",), 1), "the value contains a comment"),
    "a comment in []": ("a: [ # none\n]\n", ("append", ("a",), 1), "the value contains a comment"),
    "a comment in it": ("a:\n  - x # one\n", ("set", ("a",), 1), "the value contains a comment"),
    "nothing left": ("a: 1\n", ("remove", ("a",)), "the document would be empty"),
    "a question mark": ("? a\n: 1\n", ("set", ("b",), 1), "the place is written in an unusual way"),
    "JSON that YAML cannot read": ('{"a": "\\ud83d\\ude00"}', ("set", ("b",), 1), "the text cannot be read as YAML"),
}


@pytest.mark.parametrize(("text", "patch", "why"), REFUSED.values(), ids=REFUSED)
def test_a_text_that_cannot_be_changed_safely_is_left_alone(text: str, patch: Any, why: str) -> None:
    with pytest.raises(EditError, match=f"^{why}$"):
        changed(text, *patch)


TEXTS = ["y", "on", "true", "null", "~", "1", "1e3", "0o14", "2024-01-01", "12:30", ".nan", "=", "<<", "a: b", "a #b", "-", "", " a", "é", "a\nb", "\x07"]  # fmt: skip


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("document", ["a: {}\n", "a: {b: 1}\n", "a:\n  b: 1\n", '{"a": {}}'])
def test_a_text_stays_a_text(text: str, document: str) -> None:
    (found,) = read_text("a.yaml", changed(document, "set", ("a", "c"), [text, {text: 1}]))

    assert isinstance(found, Document)
    assert found.value["a"]["c"] == [text, {text: 1}]  # type: ignore[index,call-overload] # as the table is written
