"""The step of the GitHub Action that installs gpugate, and the steps after it, with what it installed."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from integrations.snapshot import ROOT, copy_of_this_repository

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a step, with gpugate installed by the first one."""
    directory = tmp_path_factory.mktemp("action")
    workspace = directory / "workspace"
    workspace.mkdir()
    # What the pull request brings along must not be what Python imports.
    for module in ("pip", "venv", "setuptools", "yaml", "gpugate"):
        (workspace / f"{module}.py").write_text("raise SystemExit('this file is of the pull request')\n")
    for name in ("output", "summary"):
        (directory / name).touch()
    found = {
        "PATH": os.environ["PATH"],
        "HOME": os.environ.get("HOME", str(directory)),
        "GITHUB_ACTION_PATH": str(copy_of_this_repository(directory / "gpugate")),
        "GITHUB_OUTPUT": str(directory / "output"),
        "GITHUB_STEP_SUMMARY": str(directory / "summary"),
        "GITHUB_WORKSPACE": str(workspace),
        "RUNNER_TEMP": str(directory),
        "INPUT_PYTHON": sys.executable,
        **{name: value for name, value in os.environ.items() if name.startswith("PIP_")},
    }
    ran = step("install", found)
    if "NewConnectionError" in ran.stdout:
        pytest.skip("pip reaches no package index here")
    assert ran.returncode == 0, ran.stdout
    return found


def step(name: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = [f"{environment['GITHUB_ACTION_PATH']}/integrations/github/action.sh", name]
    workspace = environment["GITHUB_WORKSPACE"]
    return subprocess.run(  # noqa: S603 -- our own script
        command,
        cwd=workspace,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def test_only_what_check_needs_is_installed(environment: dict[str, str]) -> None:
    command = [f"{environment['RUNNER_TEMP']}/gpugate/bin/python", "-I", "-m", "pip", "list", "--format=freeze"]

    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout  # noqa: S603 -- fixed words

    names = {line.partition("==")[0].partition(" ")[0].lower().replace("_", "-") for line in listed.splitlines()}
    locked = {line.partition("==")[0] for line in lock_lines()}
    assert names <= locked | {"gpugate", "pip", "setuptools"}


def lock_lines() -> list[str]:
    text = (ROOT / "requirements" / "check.txt").read_text()
    return [line for line in text.splitlines() if line[:1].isalpha()]


def test_the_steps_work_with_what_was_installed(environment: dict[str, str], tmp_path: Path) -> None:
    pod = tmp_path / "pod.yaml"
    pod.write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: many}\n")

    checked = step("check", {**environment, "INPUT_PATHS": str(pod)})
    verdict = step("verdict", {**environment, "EXIT_CODE": "1"})

    assert "::error " in checked.stdout
    assert (checked.returncode, verdict.returncode) == (0, 1)
