from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

SCRIPT = Path(__file__).parents[2] / "integrations" / "github" / "action.sh"
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: trainer}
spec:
  containers:
    - name: main
      image: registry.example.org/trainer:1.0
      resources: {limits: {nvidia.com/gpu: many}}
"""


class Step(NamedTuple):
    """How a step of the action ended: its exit code, its log, and the outputs and the summary it wrote."""

    code: int
    log: str
    outputs: dict[str, str]
    summary: str


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A checkout with a Pod whose quantity the API server refuses."""
    directory = tmp_path / "workspace"
    directory.mkdir()
    (directory / "pod.yaml").write_text(POD)
    return directory


@pytest.fixture
def runner_temp(tmp_path: Path) -> Path:
    """What the step before left: gpugate in an environment of its own, here that of the tests."""
    binaries = tmp_path / "runner" / "gpugate" / "bin"
    binaries.mkdir(parents=True)
    (binaries / "python").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (binaries / "gpugate").write_text(
        f"#!{sys.executable} -I\nimport sys\nfrom gpugate.webhook.cli.main import run\nsys.exit(run())\n"
    )
    for file in binaries.iterdir():
        file.chmod(0o755)
    return tmp_path / "runner"


@pytest.fixture
def step(workspace: Path, runner_temp: Path, tmp_path: Path) -> Callable[..., Step]:
    """Run a step as GitHub does: in the checkout, with files for outputs and summary, inputs in the environment."""

    def run(name: str, **inputs: str) -> Step:
        output, summary = tmp_path / "output", tmp_path / "summary"
        for file in (output, summary):
            file.write_text("")
        given = {
            "PATH": os.environ["PATH"],
            "GITHUB_ACTION_PATH": str(SCRIPT.parents[2]),
            "GITHUB_OUTPUT": str(output),
            "GITHUB_STEP_SUMMARY": str(summary),
            "RUNNER_TEMP": str(runner_temp),
        }
        ran = subprocess.run(  # noqa: S603 -- our own script
            [SCRIPT, name],
            cwd=workspace,
            env={**given, **inputs},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        outputs = dict(line.partition("=")[::2] for line in output.read_text().splitlines())
        return Step(ran.returncode, ran.stdout, outputs, summary.read_text())

    return run
