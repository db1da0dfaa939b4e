from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in an empty directory, outside a pull request of a CI."""
    for name in ("GITHUB_BASE_REF", "CI_MERGE_REQUEST_TARGET_BRANCH_SHA", "CI_MERGE_REQUEST_DIFF_BASE_SHA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def git(folder: Path) -> Callable[..., None]:
    """Run git in the directory."""
    named = ("-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "init.defaultBranch=main")

    def run(*arguments: str) -> None:
        subprocess.run(["git", *named, *arguments], cwd=folder, check=True, capture_output=True)  # noqa: S603, S607 -- fixed

    return run
