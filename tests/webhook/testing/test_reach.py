"""Tests name files of their repository, and no others of who runs them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from gpugate.webhook.testing.cases import InlineCase, read_case_file
from gpugate.webhook.testing.run import run_one

from .conftest import POD, outcome

if TYPE_CHECKING:
    from pathlib import Path

    from gpugate.webhook.testing.setup import Setup

PRIVATE = "phone: 5550123 5550123\n  x\n"


@pytest.fixture
def tree(folder: Path) -> Path:
    """A directory with a file that is nobody's business, and a repository with tests in it."""
    (folder / "out.yaml").write_text(PRIVATE)
    for name in ("repo/.git", "repo/tests/deep", "repo/manifests"):
        (folder / name).mkdir(parents=True)
    (folder / "repo/manifests/pod.yaml").write_text(POD)
    (folder / "repo/.git/config.yaml").write_text(PRIVATE)
    (folder / "repo/link.yaml").symlink_to("../out.yaml")
    (folder / "repo/linked").symlink_to("..")
    return folder


def ran(file: Path, setup: Setup, test: str) -> str:
    file.write_text(f"tests:\n- {{name: a, {test}}}\n")
    (case,) = read_case_file(os.path.relpath(file)).cases
    return outcome(run_one(case, setup))


MUTATED = "expect: {mutate: [pods/missing-gpu-toleration]}"


@pytest.mark.parametrize(
    "test",
    [
        "object: ../../../out.yaml, expect: {}",
        "object: ../../link.yaml, expect: {}",
        "object: ../../linked/out.yaml, expect: {}",
        "object: {file: ../../../out.yaml, kind: Pod}, expect: {}",
        "object: {base: ../../../out.yaml, patch: {}}, expect: {}",
        "object: ../../manifests/pod.yaml, context: [../../../out.yaml], expect: {}",
        "object: ../../manifests/pod.yaml, policy_file: ../../../out.yaml, expect: {}",
        "object: ../../manifests/pod.yaml, expect: {fixed: ../../../out.yaml}",
        "object: ../../manifests/pod.yaml, request: {old: ../../../out.yaml}, expect: {}",
        "object: ../../.git/config.yaml, expect: {}",
        "object: /dev/zero, expect: {}",
    ],
)
def test_what_is_out_of_the_work_tree_is_refused(tree: Path, setup: Setup, test: str) -> None:
    came = ran(tree / "repo/tests/deep/x.gpugate-test.yaml", setup, test)
    assert came.startswith("broken: repo/tests/deep/x.gpugate-test.yaml:2:"), came
    assert "leads out of" in came
    assert "5550123" not in came


@pytest.mark.parametrize(
    "path", ["../../manifests/pod.yaml", "{tree}/repo/manifests/pod.yaml", "../../linked/repo/manifests/pod.yaml"]
)
def test_what_is_in_the_work_tree_is_read(tree: Path, setup: Setup, path: str) -> None:
    test = f"object: '{path.format(tree=tree)}', {MUTATED}"
    assert ran(tree / "repo/tests/deep/x.gpugate-test.yaml", setup, test) == "passed"


@pytest.mark.parametrize(
    ("here", "path", "comes"),
    [
        (".", "../pod.yaml", "passed"),
        ("a", "../pod.yaml", "passed"),
        ("a/b", "../../pod.yaml", "broken: x.gpugate-test.yaml:2:21: ../../pod.yaml leads out of"),
        (".", "../../pod.yaml", "passed"),
        (".", "../../../pod.yaml", "broken: a/b/x.gpugate-test.yaml:2:21: ../../../pod.yaml leads out of"),
    ],
)
def test_without_a_work_tree_the_folder_above_and_the_working_directory_are_read(
    folder: Path, setup: Setup, monkeypatch: pytest.MonkeyPatch, here: str, path: str, comes: str
) -> None:
    (folder / "a/b").mkdir(parents=True)
    (folder / "a/pod.yaml").write_text(POD)
    monkeypatch.chdir(folder / here)
    assert ran(folder / "a/b/x.gpugate-test.yaml", setup, f"object: {path}, {MUTATED}").startswith(comes)


@pytest.mark.parametrize(("path", "says"), [('"-"', "`-` is not a file"), ('"a\\0b"', "is not a valid file name")])
def test_what_is_no_name_of_a_file_is_refused(folder: Path, setup: Setup, path: str, says: str) -> None:
    came = ran(folder / "x.gpugate-test.yaml", setup, f"object: {path}, expect: {{}}")
    assert came.startswith("broken: x.gpugate-test.yaml:2:21: ")
    assert says in came


@pytest.mark.parametrize(
    ("target", "says"),
    [("/dev/zero", "leads out of"), ("../out.yaml", "leads out of"), ("fifo", "is not a regular file")],
)
def test_a_bad_example_that_is_no_file_of_the_work_tree_is_refused(
    tree: Path, setup: Setup, target: str, says: str
) -> None:
    os.mkfifo(tree / "repo/fifo")
    (tree / "repo/bad-x.yaml").symlink_to(target)
    came = outcome(run_one(InlineCase("repo/fixed-x.yaml", "fixed-x.yaml", f"# expect: nothing\n{POD}"), setup))
    assert came.startswith("broken: repo/fixed-x.yaml: ")
    assert says in came
