"""`--update` makes expectations say what comes, and leaves everything else of a file as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpugate.webhook.testing.cases import InlineCase
from gpugate.webhook.testing.run import run_tests
from gpugate.webhook.testing.updating import updates

from .conftest import POD

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gpugate.webhook.testing.cases import Case
    from gpugate.webhook.testing.setup import Setup

    Read = Callable[[str], tuple[Case, ...]]

LIMIT = "nodepools/missing-gpu-limit"
TOLERATES = "pods/missing-gpu-toleration"
HEAD = """\
# Kept.
tests:
- name: fine  # kept
  object: pool.yaml
  expect: {allow: true}
- name: it
  object: {base: pool.yaml, patch: {spec: {limits: null}}}   # kept
"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("  expect: {}  # kept\n", f"  expect: # kept\n    deny:\n    - {LIMIT}\n"),
        ("  expect: {allow: true}\n", f"  expect: {{allow: false, deny: [{LIMIT}]}}\n"),
        (f"  expect: {{warn: [{LIMIT}]}}\n", f"  expect:\n    deny:\n    - {LIMIT}\n"),
        (
            "  expect:\n    # why\n    deny: [pods/wildcard-toleration]\n    at: {pods/wildcard-toleration: spec}\n",
            f"  expect:\n    # why\n    deny: [{LIMIT}]\n",
        ),
        (
            f"  expect:\n    deny: [{LIMIT}]  # kept\n    at: {{{LIMIT}: spec}}\n",
            f"  expect:\n    deny: [{LIMIT}]  # kept\n    at: {{{LIMIT}: spec.limits}}\n",
        ),
        (
            f"  expect:\n    deny: [{LIMIT}]\n    at: {{{LIMIT}: {{path: spec, line: 3}}}}\n",
            f"  expect:\n    deny: [{LIMIT}]\n    at: {{{LIMIT}: {{path: spec.limits, line: 16}}}}\n",
        ),
        (
            f"  expect:\n    deny: [{LIMIT}]\n    message: {{{LIMIT}: [nothing, TPU]}}\n",
            f"  expect:\n    deny: [{LIMIT}]\n    message: {{{LIMIT}: [nothing, nothing limits how many nvidia.com/gpu the pool may have]}}\n",
        ),
        ("  expect: {allow: true, also: any}\n", "  expect: {allow: false, also: any}\n"),
        ("  expect: {deny: [pods/wildcard-toleration], also: any}\n", "  expect: {also: any, allow: false}\n"),
        ("  expect: {patch: [{op: remove, path: /a}], also: any}\n", "  expect: {patch: [], also: any}\n"),
    ],
)
def test_the_expectations_of_a_case_file(cases: Read, folder: Path, setup: Setup, before: str, after: str) -> None:
    run = run_tests(cases(HEAD + before), setup)
    made = updates(run.failed)
    assert made.left == []
    (file,) = made.files.values()
    assert file.after == HEAD + after
    (folder / "x.gpugate-test.yaml").write_text(file.after)
    assert run_tests(cases(file.after), setup).failed == []


def test_what_has_parameters_is_left_to_its_author(cases: Read, setup: Setup) -> None:
    text = "tests:\n- {name: a, parametrize: {ct: [x, z]}, object: pod.yaml, expect: {}}\n"
    made = updates(run_tests(cases(text), setup).failed)
    assert made.files == {}
    assert made.left == [
        f"x.gpugate-test.yaml:2: a [{value}] was not updated: it has parameters, which its expectations may need"
        for value in ("x", "z")
    ]


def test_an_object_in_another_file_is_left_to_its_author(cases: Read, setup: Setup) -> None:
    made = updates(
        run_tests(cases("tests:\n- {name: a, object: pod.yaml, expect: {fixed: pool.yaml}}\n"), setup).failed
    )
    assert made.left == ["x.gpugate-test.yaml:2: a was not updated: what it expects of `fixed` stands in another file"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (POD, POD.replace("spec:\n", f"spec:  # expect: {TOLERATES}\n")),
        (
            POD.replace("kind: Pod", f"kind: Pod  # note  # expect: {LIMIT}"),
            POD.replace("kind: Pod", "kind: Pod  # note").replace("spec:\n", f"spec:  # expect: {TOLERATES}\n"),
        ),
        (
            "# A Pod.\r\n" + POD.replace("\n", "\r\n"),
            ("# A Pod.\n" + POD).replace("spec:\n", f"spec:  # expect: {TOLERATES}\n").replace("\n", "\r\n"),
        ),
        (
            POD.replace("kind: Pod", f"kind: Pod  # expect: {LIMIT}").replace("nvidia.com/gpu", "cpu"),
            POD.replace("v1\n", "v1  # expect: nothing\n", 1).replace("nvidia.com/gpu", "cpu"),
        ),
    ],
)
def test_the_comments_of_a_manifest(folder: Path, setup: Setup, before: str, after: str) -> None:
    (folder / "x.yaml").write_text(before, newline="")
    made = updates(run_tests([InlineCase("x.yaml", "x.yaml", before)], setup).failed)
    assert made.left == []
    assert made.files["x.yaml"].after == after


def test_a_line_without_room_for_a_comment_is_left_to_its_author(folder: Path, setup: Setup) -> None:
    container = '{name: a, image: "x\n  y", resources: {limits: {nvidia.com/gpu: 1}}}'
    text = POD.partition("spec:")[0] + f"spec: {{containers: [{container}]}}\n"
    (folder / "x.yaml").write_text(text)
    made = updates(run_tests([InlineCase("x.yaml", "x.yaml", text)], setup).failed)
    assert made.files == {}
    (left,) = made.left
    assert left.startswith("x.yaml:1: x.yaml was not updated: a line on which something is found has no room")
