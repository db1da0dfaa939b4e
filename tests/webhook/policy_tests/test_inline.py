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
            f"x.yaml:7:18: no policy is called pods/missing-gpu-tolerations; did you mean {TOLERATES}?",
        ),
        ("a: [  # expect: pods/x\n", "broken: x.yaml:2:1: not YAML"),
        ("kind: Pod  # expect: pods/x\n", "broken: x.yaml:1:"),
        (f"apiVersion: gpugate.dev/v1\nkind: PolicyConfig\nmod: warn\n---\n{UNLIMITED}", "broken: x.yaml:3:"),
        (f"# context\n{EXPECTING_POD}", "no object to judge"),
    ],
)
def test_what_differs_is_said(inline: Callable[..., str], text: str, comes: str) -> None:
    assert comes in inline(text)


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
