"""What `gpugate check` does where a hook names the files of a commit, whatever they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

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
    file.write_text("a: [\n")

    assert gpugate("check", "--allow-empty", "--force-exclude", file).code == 4
