"""The releases that tables are made of, the hash of each module as `go.sum` has it, and its download by Go's client.

Of a project every minor release is wanted; those missing here are not to be had from the module proxy, and what lies
between two is held against both.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gpugate.policies.engine.config import GpugateError


@dataclass(frozen=True, slots=True)
class Module:
    """A Go module in one version: its hash, and the folder of it that is read."""

    path: str
    version: str
    sum: str
    folder: str

    @property
    def minor(self) -> str:
        """The release as a target names it: `1.14` of `v1.14.1`."""
        return ".".join(self.version.removeprefix("v").split(".")[:2])


def _all(path: str, folder: str, sums: dict[str, str]) -> tuple[Module, ...]:
    return tuple(Module(path, version, checksum, folder) for version, checksum in sums.items())


KARPENTER: Final = _all(
    "github.com/aws/karpenter-provider-aws",
    "pkg/apis/crds",
    {
        "v1.0.8": "h1:iJrOIXwBKedKZuDJC133twh9muRzsnBej0nIez6oTTI=",
        "v1.3.3": "h1:enY+3TMdqwNAMjq4uOCuVUxjavb8jrAUvsZ/NNYZdAM=",
        "v1.6.3": "h1:+qI/dw3gaEEWTubxwYJUj+QBuh5yUTdBk2GBB+CLxzY=",
        "v1.12.1": "h1:GOIYhlnXOmiVrxIMRPQrxor0KXSJw7x3p1FH3eBaBPs=",
        "v1.14.1": "h1:WGtIQTQcxpElYMdWfWuPwaF2+9muR+hYhPZsTtoY8Gs=",
    },
)
KEDA: Final = _all(
    "github.com/kedacore/keda/v2",
    "config/crd/bases",
    {
        "v2.14.1": "h1:8HShe/6GPo2h1BQ/vkW4k874wHAnkzE7aLbk04rH0u4=",
        "v2.15.1": "h1:Kb3woYuCeCPICH037vTIcUopXgOYpdP2qa+CmHgV3SE=",
        "v2.16.1": "h1:LfYsxfSX8DjetLW8q9qnriImH936POrQJvE+caRoScI=",
        "v2.17.2": "h1:xlrcK5TKABJF9PebK79sgL07s/csGjL3H4m72OkZXxk=",
        "v2.18.3": "h1:PY3o80tzBAzCffS8J6eBZctT4B+g/r26zErNSMleC50=",
        "v2.19.0": "h1:IP3iMTwr9HkaAwPtLnhngPv74LghMf7ubLrsGLQo52M=",
        "v2.20.2": "h1:SR60v8uIcelbveS8n/1jcl8tLdBBIbHMxmdOHw8tKqA=",
        "v2.21.0": "h1:R6z2HZvstK4RLUMxroNACzBj74xGxt3kG59b5Xc+Xps=",
    },
)
KUBERNETES: Final = _all(
    "k8s.io/kubernetes",
    "api/openapi-spec/v3",
    {
        "v1.32.13": "h1:5TGYdZ6YZqdp6h/Rp1vX/4TIoybMPdgv97LCZCtPuNQ=",
        "v1.33.13": "h1:bmH31xUdSzeA5vk0wZAK9MZp11mdLuzUSeKk0qN3hPQ=",
        "v1.34.4": "h1:Yy6R4QB8C9kJPp25GFqEvX5XQwY5qzKeqD0Xx6oAcmk=",
        "v1.35.4": "h1:o/8dBC/pHVpYoGV4OAIytAlNPZbdYVTXJHoYvXC4qzM=",
        "v1.36.3": "h1:qDQdoMiluAE2Eab6Fa52YV+WjiGz9mZFFoagEA6cI+o=",
    },
)
PROJECTS: Final = {"karpenter": KARPENTER, "keda": KEDA, "kubernetes": KUBERNETES}


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
