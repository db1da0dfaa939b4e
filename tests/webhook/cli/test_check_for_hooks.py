"""What `gpugate check` does where a hook names the files of a commit, whatever they are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

if TYPE_CHECKING:
    from collections.abc import Callable

    Run = Callable[..., Any]

CODES = {
    "nothing to check": ((), 4),
    "that is fine": (("--allow-empty",), 4),
    "named by a hook": (("--force-exclude",), 3),
    "both": (("--allow-empty", "--force-exclude"), 0),
}


@pytest.mark.parametrize(("flags", "code"), CODES.values(), ids=CODES)
def test_yaml_that_is_no_manifest(flags: tuple[str, ...], code: int, gpugate: Run, tmp_path: Path) -> None:
    file = tmp_path / "workflow.yaml"
    file.write_text("on: push\n")

    assert gpugate("check", *flags, file).code == code


def test_a_denial_is_one_still(gpugate: Run, tmp_path: Path) -> None:
    file = tmp_path / "pod.yaml"
    file.write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: many}\n")

    assert gpugate("check", "--allow-empty", "--force-exclude", file).code == 1


def test_what_cannot_be_read_is_incomplete_still(gpugate: Run, tmp_path: Path) -> None:
    file = tmp_path / "pod.yaml"
    file.write_text("apiVersion: v1\nkind: Pod\na: [\n")

    assert gpugate("check", "--allow-empty", "--force-exclude", file).code == 4


POD = """apiVersion: v1
kind: Pod
metadata: {name: a}
spec:
  containers:
    - {name: main, image: a, resources: {limits: {nvidia.com/gpu: 1}}}
"""
NAMED_LIKE_FLAGS = ("--fix.yaml", "--policy-file=evil.yaml", "-pevil.yaml", "--output=text=stolen.yaml", "--no-ignores")


@pytest.mark.parametrize("name", NAMED_LIKE_FLAGS)
def test_a_file_that_is_called_like_a_flag_is_no_flag(name: str, gpugate: Run, tree: Callable[..., Path]) -> None:
    tree({"evil.yaml": "a: b\n", "pod.yaml": POD})
    Path(name).write_text("a: b\n")

    ran = gpugate("check", "--force-exclude", name, "pod.yaml")

    assert (ran.code, "end the arguments of the hook with `--`" in ran.err) == (2, True)


@pytest.mark.parametrize("name", NAMED_LIKE_FLAGS)
def test_behind_two_dashes_it_is_a_file(name: str, gpugate: Run, tree: Callable[..., Path]) -> None:
    tree({"evil.yaml": "a: b\n"})
    Path(name).write_text(POD)

    ran = gpugate("check", "--force-exclude", "--quiet", "-o", "concise", "--", name)

    assert "pods/" in ran.out
    assert not Path("stolen.yaml").exists()


def test_a_hook_ends_its_arguments() -> None:
    hooks = yaml.safe_load((Path(__file__).parents[3] / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))

    assert [hook["args"] for hook in hooks if hook.get("pass_filenames", True)] == [["--"]]
