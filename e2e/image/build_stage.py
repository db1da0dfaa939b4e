"""Carries out the first stage of the Dockerfile, without a container engine: what it copies, and what it runs.

The host, read-only, stands for the image that the stage begins with; folders of ours for what the stage writes to.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from image.confinement import Confinement
from image.dockerfile import DockerfileError

if TYPE_CHECKING:
    from image.dockerfile import Stage

_MADE_HERE = ("/opt", "/tmp")  # noqa: S108 -- a folder of ours stands there
# How packages are reached where there is a proxy, a mirror or a certificate authority in between.
_PASSED_ON = ("PIP_", "SSL_CERT", "REQUESTS_CA", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")


def carry_out(stage: Stage, context: Path, folder: Path, python_folder: Path) -> Path:
    """Copy and run, step by step; returns the folder that stands for `/` of the result.

    Args:
        stage: the one that builds.
        context: what the engine would be sent.
        folder: an empty one, for everything that is made.
        python_folder: where the Python that the stage calls is found.

    Raises:
        DockerfileError: a step that is not understood, or that failed.
    """
    result = folder / "result"
    working_directory = Path("/")
    for step in stage.instructions:
        if step.name == "WORKDIR":
            working_directory = Path(step.words[0])
            _at(result, working_directory).mkdir(parents=True)
        elif step.name == "COPY":
            *sources, target = step.words
            _copy([context / source for source in sources], _at(result, working_directory / target), target)
        elif step.name == "RUN" and step.shell:
            _run(step.words[0], stage, result, working_directory, python_folder)
        else:
            raise DockerfileError(f"{step.name} {' '.join(step.words)}: not understood in the stage {stage.name}")
    return result


def _at(result: Path, path: Path) -> Path:
    return result / str(path).lstrip("/")


def _copy(sources: list[Path], target: Path, written: str) -> None:
    # As COPY does: of a folder it takes the contents, and a target that ends in a slash is a folder.
    if not written.endswith("/"):
        (source,) = sources
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(source, target, symlinks=True, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        return
    target.mkdir(parents=True, exist_ok=True)
    for source in sources:
        shutil.copy(source, target)


def _run(command: str, stage: Stage, result: Path, working_directory: Path, python_folder: Path) -> None:
    root = result.with_name("root")
    root.mkdir()
    confinement = Confinement(root, user=0, working_directory=str(working_directory))
    ours = {f"/{working_directory.parts[1]}", *_MADE_HERE}
    for entry in sorted(Path("/").iterdir()):
        if entry.is_symlink():
            confinement.link(str(entry), str(entry.readlink()))
        elif entry.is_dir() and str(entry) not in ours:
            confinement.show(entry)
    for path in sorted(ours):
        _at(result, Path(path)).mkdir(exist_ok=True)
        confinement.show(_at(result, Path(path)), path, writable=True)
    passed_on = {name: value for name, value in os.environ.items() if name.upper().startswith(_PASSED_ON)}
    path = f"{python_folder}:/usr/local/bin:/usr/bin:/bin"
    environment = {"HOME": "/tmp", "PATH": path, **passed_on, **stage.build_arguments}  # noqa: S108 -- ours
    started = confinement.command(["/bin/sh", "-c", command], environment)
    ran = subprocess.run(started, capture_output=True, text=True, check=False)  # noqa: S603 -- a step of ours
    if ran.returncode:
        raise DockerfileError(f"RUN {command} failed:\n{ran.stdout}{ran.stderr}")
