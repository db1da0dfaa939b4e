"""The real Helm 3 and 4 and the real kustomize in kubectl, as `gpugate check` finds them on PATH."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import tools

if TYPE_CHECKING:
    from collections.abc import Callable

Json = dict[str, Any]
GPUGATE = Path(sys.executable).with_name("gpugate")


@pytest.fixture(scope="session", params=["helm", "helm3"])
def programs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with helm and kubectl, and nothing else."""
    folder: Path = tmp_path_factory.mktemp("programs")
    try:
        (folder / "helm").symlink_to(tools.path(request.param))
        (folder / "kubectl").symlink_to(tools.path("kubectl"))
    except tools.ToolsError as error:
        pytest.exit(str(error), returncode=1)
    return folder


@pytest.fixture
def tree(tmp_path: Path) -> Callable[[dict[str, str]], Path]:
    """Write files below a directory, and return it."""

    def written(files: dict[str, str]) -> Path:
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        return tmp_path

    return written


@pytest.fixture
def ran(programs: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run `gpugate` in a directory."""

    def run(directory: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        command = [str(GPUGATE), *map(str, arguments)]
        environment = {"PATH": f"{programs}"}
        return subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, check=False)  # noqa: S603 -- our own program

    return run


@pytest.fixture
def checked(ran: Callable[..., subprocess.CompletedProcess[str]]) -> Callable[..., Json]:
    """Check paths in a directory; the report."""

    def check(directory: Path, *arguments: str) -> Json:
        done = ran(directory, "check", "-o", "json", *arguments)
        assert done.stdout, done.stderr
        report: Json = json.loads(done.stdout)
        return report

    return check
