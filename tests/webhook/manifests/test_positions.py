from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpugate.webhook.manifests.documents import Document, Positions, Span, read_text

if TYPE_CHECKING:
    from gpugate.policies.sdk.field import Path

MANIFEST = """\
# The document does not begin on the first line of the file.
---
kind: List
items:
  - kind: Pod
    metadata: {name: a, labels: {}}
    spec:
      containers:
        - name: main
          args: ["--x", --y]
          command: [
            a]
          script: |
            text
        -   # a comment
          name: second
      nodeSelector:
      on: 8
      on: 9
      base: &base
        inherited: yes
      derived:
        <<: *base
        "own key": 'quoted'
"""
SPEC = ("items", 0, "spec")
EXACT: dict[str, tuple[Path, Span]] = {
    "the document": ((), Span(3, 1, 5)),
    "a key with a block": (("items",), Span(4, 1, 6)),
    "a list item": (("items", 0), Span(5, 5, 9)),
    "a value on the line of its key": (("items", 0, "kind"), Span(5, 11, 14)),
    "an object on one line": (("items", 0, "metadata"), Span(6, 15, 36)),
    "a member of an object on one line": (("items", 0, "metadata", "name"), Span(6, 22, 23)),
    "an empty object": (("items", 0, "metadata", "labels"), Span(6, 33, 35)),
    "an item of a list on one line": ((*SPEC, "containers", 0, "args", 1), Span(10, 25, 28)),
    "a list over two lines": ((*SPEC, "containers", 0, "command"), Span(11, 11, 18)),
    "a block of text": ((*SPEC, "containers", 0, "script"), Span(13, 11, 17)),
    "an item whose key is on the next line": ((*SPEC, "containers", 1), Span(16, 11, 15)),
    "a key without a value": ((*SPEC, "nodeSelector"), Span(17, 7, 19)),
    "a repeated key that is a word for true": ((*SPEC, "true"), Span(19, 11, 12)),
    "a merged key": ((*SPEC, "derived", "inherited"), Span(21, 20, 23)),
    "a quoted key": ((*SPEC, "derived", "own key"), Span(24, 20, 28)),
}
NEAREST: dict[str, tuple[Path, Span]] = {
    "a missing key": ((*SPEC, "tolerations"), Span(7, 5, 9, exact=False)),
    "far below a missing key": ((*SPEC, "a", 3, "b"), Span(7, 5, 9, exact=False)),
    "behind the end of a list": ((*SPEC, "containers", 2), Span(8, 7, 17, exact=False)),
    "below a value": (("items", 0, "kind", "x"), Span(5, 5, 9, exact=False)),
    "below nothing": ((*SPEC, "nodeSelector", "x"), Span(17, 7, 19, exact=False)),
    "beside everything": (("metadata",), Span(3, 1, 5, exact=False)),
}
CASES = {**EXACT, **NEAREST}


@pytest.fixture(scope="module")
def positions() -> Positions:
    *_, document = read_text("f.yaml", MANIFEST)
    assert isinstance(document, Document)
    return Positions(document)


@pytest.mark.parametrize(("path", "span"), CASES.values(), ids=CASES)
def test_a_path_has_its_line_and_columns(path: Path, span: Span, positions: Positions) -> None:
    assert positions.find(path) == span


def test_json_has_positions_too() -> None:
    _, document = read_text("f.jsonl", '{"a": 1}\n{"b":\n  {"c": [1, 22]}}\n')

    assert isinstance(document, Document)
    assert Positions(document).find(("b", "c", 1)) == Span(3, 13, 15)


def test_json_that_is_no_yaml_is_placed_on_its_first_line() -> None:
    _, document = read_text("f.jsonl", '{"a": 1}\n{"b": "\\ud83d\\ude00"}\n')

    assert isinstance(document, Document)
    assert Positions(document).find(("b",)) == Span(2, 1, 2, exact=False)
