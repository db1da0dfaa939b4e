"""gpugate as the executables that pip makes, and the tools that run it."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from integrations.snapshot import ROOT

if TYPE_CHECKING:
    from pathlib import Path

ENTRY_POINTS = {
    "gpugate": "gpugate.webhook.cli.main",
    "kubectl-gpugate": "gpugate.webhook.cli.main",
    "kubectl_complete-gpugate": "gpugate.webhook.cli.completing",
}


@pytest.fixture(scope="session")
def executables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory, to be put on a PATH."""
    directory = tmp_path_factory.mktemp("bin")
    for name, module in ENTRY_POINTS.items():
        file = directory / name
        file.write_text(f"#!{sys.executable}\nimport sys\nfrom {module} import run\nsys.exit(run())\n")
        file.chmod(0o755)
    return directory


@pytest.fixture(scope="session")
def integrations() -> Path:
    """The environment with pre-commit and zizmor, in build/integrations; made when its lock file is new."""
    lock, directory = ROOT / "requirements" / "integrations.txt", ROOT / "build" / "integrations"
    ready = directory / ".ready"
    if not ready.exists() or ready.stat().st_mtime < lock.stat().st_mtime:
        pip = [directory / "bin" / "python", "-I", "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
        for command in ([sys.executable, "-m", "venv", directory], [*pip, "--require-hashes", "-r", lock]):
            ran = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 -- fixed words
            if ran.returncode:
                pytest.skip(f"requirements/integrations.txt cannot be installed here: {ran.stderr.strip()[-300:]}")
        ready.touch()
    return directory
