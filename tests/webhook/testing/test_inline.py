"""Expectations in the comments of manifests."""

from __future__ import annotations

from textwrap import indent
from typing import TYPE_CHECKING

import pytest

from .conftest import POD, POOL

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LIMIT = "nodepools/missing-gpu-limit"
TOLERATES = "pods/missing-gpu-toleration"
EXPECTING_POD = POD.replace("spec:", f"spec:  # expect: {TOLERATES}")
UNLIMITED = POOL.replace('  limits: {nvidia.com/gpu: "32"}\n', "").replace(
    "spec:\n  temp", f"spec:  # expect: {LIMIT}\n  temp"
)


@pytest.mark.parametrize(
    "text",
    [
        EXPECTING_POD,
        UNLIMITED,
        f"{UNLIMITED}---\n{EXPECTING_POD}",
        f"# context\n{POOL}---\n{EXPECTING_POD}",
        f"# old\n{POOL}---\n{UNLIMITED}",
        f"# old\n{POOL}---\n# old\n{POD}---\n{UNLIMITED}---\n{EXPECTING_POD}",
        f"{POOL}  # expect: nothing\n",
        f"apiVersion: gpugate.dev/v1\nkind: PolicyConfig\nmode: warn\n---\n{UNLIMITED}",
        f"apiVersion: v1\nkind: List\nitems:\n-\n{indent(EXPECTING_POD, '  ')}",
        EXPECTING_POD.replace("1}}\n", "1}}\n      args:\n        - |\n          x  # expect: pods/not-in-a-comment\n"),
        EXPECTING_POD.replace("name: embedder\n      im", 'name: "embedder # expect: what?"\n      im'),
        f"# expect: nothing\n{POOL}",
        f"# A pool.\n#expect:nothing\n---\n{POOL}",
    ],
)
def test_each_policy_finds_what_is_expected_on_its_line(inline: Callable[..., str], text: str) -> None:
    assert inline(text) == "passed"


@pytest.mark.parametrize(
    ("text", "comes"),
    [
        (POD, f"{TOLERATES} mutates, which is not expected"),
        (POOL.replace("metadata:", f"metadata:  # expect: {LIMIT}"), f"{LIMIT} finds nothing on this line"),
        (
            UNLIMITED.replace(f"  # expect: {LIMIT}", "").replace(
                "kind: NodePool", f"kind: NodePool  # expect: {LIMIT}"
            ),
            f"{LIMIT} finds nothing on this line; {LIMIT} denies, which is not expected",
        ),
        (
            POD.replace("spec:", "spec:  # expect: pods/missing-gpu-tolerations"),
            f"x.yaml:7:18: unknown policy pods/missing-gpu-tolerations; did you mean {TOLERATES}?",
        ),
        ("a: [  # expect: pods/x\n", "broken: x.yaml:2:1: not YAML"),
        ("kind: Pod  # expect: pods/x\n", "broken: x.yaml:1:"),
        (f"apiVersion: gpugate.dev/v1\nkind: PolicyConfig\nmod: warn\n---\n{UNLIMITED}", "broken: x.yaml:3:"),
        (f"# context\n{EXPECTING_POD}", "no object to evaluate"),
    ],
)
def test_what_differs_is_said(inline: Callable[..., str], text: str, comes: str) -> None:
    assert comes in inline(text)


UNREADABLE = {
    "a reason behind the ids": ("spec:", f"spec:  # expect: {TOLERATES} (GPU pods need it)", ":7:8: `# expect:` takes"),
    "another comment behind them": ("spec:", f"spec:  # expect: {TOLERATES}  # why", ":7:8: `# expect:` takes"),
    "another expectation": ("spec:", f"spec:  # expect: nothing # expect: {TOLERATES}", ":7:8: `# expect:` takes"),
    "no id": ("spec:", "spec:  # expect:", ":7:8: `# expect:` takes"),
    "a comma too many": ("spec:", f"spec:  # expect: {TOLERATES},", ":7:8: `# expect:` takes"),
    "nothing and something": ("spec:", f"spec:  # expect: nothing, {TOLERATES}", ":7:8: `# expect:` takes"),
    "behind a quoted text with a #": ("embedder", "'a # expect: x' # expect: x y", ":4:25: `# expect:` takes"),
    "at the beginning of a text of lines": (
        "name: embedder\n ",
        "name: |  # expect: x y\n   embedder\n ",
        ":4:12: `# expe",
    ),
    "alone on a line": ("spec:", f"# expect: {TOLERATES}\nspec:", ":7:1: stands alone on its line"),
    "alone and indented": ("  containers", f"  # expect: {TOLERATES}\n  containers", ":8:3: stands alone on its line"),
    "alone as the first line": ("apiVersion", f"# expect: {TOLERATES}\napiVersion", ":1:1: stands alone on its line"),
    "above the first document": ("apiVersion", f"# expect: {TOLERATES}\n---\napiVersion", ":1:1: stands alone"),
}


@pytest.mark.parametrize(("old", "new", "says"), UNREADABLE.values(), ids=UNREADABLE)
def test_an_expectation_that_cannot_be_read_is_refused(
    inline: Callable[..., str], old: str, new: str, says: str
) -> None:
    assert f"broken: x.yaml{says}" in inline(POD.replace(old, new, 1))


def test_an_expectation_below_the_last_document_is_refused(inline: Callable[..., str]) -> None:
    assert "broken: x.yaml:13:1: stands alone on its line" in inline(f"{POD}---\n# expect: {TOLERATES}\n")


OTHERS = {
    "another name": (POOL.replace("gpu-inference", "other"), UNLIMITED),
    "another kind": (POD, UNLIMITED),
    "another namespace, of several": (POD.replace("serving", "other"), f"{UNLIMITED}---\n{EXPECTING_POD}"),
}


@pytest.mark.parametrize(("old", "judged"), OTHERS.values(), ids=OTHERS)
def test_an_object_before_an_update_of_none_is_refused(inline: Callable[..., str], old: str, judged: str) -> None:
    assert "is before an UPDATE of no object in this file" in inline(f"# old\n{old}---\n{judged}")


def test_an_update_is_told_from_a_creation_by_the_object_before_it(inline: Callable[..., str]) -> None:
    before = UNLIMITED.replace(f"  # expect: {LIMIT}", "")
    assert inline(f"# old\n{before}---\n{UNLIMITED}") == "passed"


FIXED = POD.replace(
    "spec:\n", "spec:\n  tolerations:\n    - {key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}\n"
)


@pytest.mark.parametrize(
    ("fixed", "comes"),
    [
        (FIXED, "passed"),
        (FIXED.replace("embedder:1", "embedder:2"), "the bad example becomes something else"),
    ],
)
def test_a_bad_example_becomes_the_fixed_one(inline: Callable[..., str], folder: Path, fixed: str, comes: str) -> None:
    (folder / "bad-pod.yaml").write_text(EXPECTING_POD)
    assert inline(fixed, "fixed-pod.yaml") == comes


def test_a_fixed_example_without_a_bad_one_is_broken(inline: Callable[..., str], folder: Path) -> None:
    (folder / "bad-other.yaml").write_text(EXPECTING_POD)
    assert "bad-pod.yaml, which becomes this one, cannot be read" in inline(FIXED, "fixed-pod.yaml")


def test_a_file_that_only_happens_to_be_called_so_is_no_pair(inline: Callable[..., str]) -> None:
    assert inline(FIXED, "fixed-pod.yaml") == "passed"
