"""The image, made by the steps of the Dockerfile without a container engine."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from image.build_stage import carry_out
from image.container import Image
from image.dockerfile import read

ROOT = Path(__file__).parents[2]
DOCKERFILE = ROOT / "Dockerfile"
TREE = "opt/gpugate"


def proven_image(folder: Path) -> Image:
    """Carry out the Dockerfile, with the Python it names where that is here, else with the one that runs this.

    Raises:
        DockerfileError: a step failed, or is not understood.
    """
    version = read(DOCKERFILE)[0].build_arguments["PYTHON"]
    python = _python(f"python{version}") or Path(sys.executable)
    named = {"PYTHON": "{}.{}".format(*_version(python))}
    build, last = read(DOCKERFILE, named)
    return Image(last, carry_out(build, ROOT, folder, python.parent), python)


def _python(name: str) -> Path | None:
    """Find it if it can be run (a shim of pyenv may say no) and has pip."""
    found = shutil.which(name)
    if found is None:
        return None
    ran = subprocess.run([found, "-I", "-m", "pip", "--version"], capture_output=True, check=False)  # noqa: S603 -- a Python
    return Path(found) if ran.returncode == 0 else None


def _version(python: Path) -> tuple[int, int]:
    written = "import sys; print(*sys.version_info[:2])"
    ran = subprocess.run([python, "-I", "-c", written], capture_output=True, text=True, check=True)  # noqa: S603 -- as above
    major, minor = map(int, ran.stdout.split())
    return major, minor
