"""Reads folders of Go modules, which Go's own client downloads and verifies."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from gpugate.policies.engine.config import GpugateError

if TYPE_CHECKING:
    from gpugate.tools.schema_tables.releases import Module


class ModuleError(GpugateError):
    """A module cannot be had, or is another than the one that is pinned."""


def folder(module: Module, go: str | None = None) -> Path:
    """Return the folder that is read of a module; downloads the module where it is not there.

    Args:
        module: which.
        go: the program; that on the path where none is given.

    Raises:
        ModuleError: there is no Go, the module cannot be downloaded, or its hash is not the pinned one.
    """
    program = go or shutil.which("go")
    if program is None:
        raise ModuleError("go is missing: get Go 1.26 from https://go.dev/dl")
    name = f"{module.path}@{module.version}"
    command = [program, "mod", "download", "-json", name]
    # Outside of every module, so that no go.mod has a say.
    ran = subprocess.run(command, cwd=Path(__file__).anchor, capture_output=True, text=True, check=False)  # noqa: S603 -- go, with arguments of ours
    answer = json.loads(ran.stdout or "{}")
    if ran.returncode or "Dir" not in answer:
        raise ModuleError(f"go mod download {name} failed: {answer.get('Error') or ran.stderr}")
    if answer.get("Sum") != module.sum:
        raise ModuleError(f"{name} has the hash {answer.get('Sum')}, and {module.sum} is pinned")
    return Path(answer["Dir"]) / module.folder
