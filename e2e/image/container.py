"""Starts what an image holds, as Kubernetes would start the container, without an engine.

The Python of the host stands for the one of the image's base: its program, its library and the shared libraries it needs are
all there is beside what the Dockerfile puts there; no shell, no other program.
"""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cluster.process import Process
from image.confinement import Confinement

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from image.dockerfile import Stage

# The only place that can be written to, as an emptyDir in memory.
TEMPORARY = "/tmp"  # noqa: S108 -- the container's own
_TEMPORARY_OPTIONS = "size=64m,mode=1777"
_OF_THE_HOST = ("/etc/ld.so.cache", "/etc/ssl", "/etc/hosts", "/etc/resolv.conf", "/etc/nsswitch.conf", "/usr/lib64")
_ABOUT = """import json, sys, sysconfig
names = ("LIBDIR", "INSTSONAME", "MULTIARCH", "Py_ENABLE_SHARED")
about = {name: sysconfig.get_config_var(name) for name in names}
about |= {"program": sys._base_executable, "library": sysconfig.get_path("stdlib"), "version": sys.version_info[:3]}
print(json.dumps(about))
"""


@dataclass(frozen=True)
class Container:
    """What a Pod says of its container, in its words.

    Attributes:
        arguments: `args`; none takes what the image says.
        command: `command`; none takes what the image says.
        environment: `env`, with values in.
        files: what volumes bring, which an image shows read-only: the path in the container, and the file or folder of the host.
    """

    arguments: Sequence[str] | None = None
    command: Sequence[str] | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, Path] = field(default_factory=dict)


@dataclass(frozen=True)
class Image:
    """The last stage of a Dockerfile, and the folder that holds what it copies; `python` is the base's, on the host."""

    stage: Stage
    contents: Path
    python: Path = Path(sys.executable)

    def start(self, container: Container, folder: Path, output: Path | None = None) -> Process:
        """Start a container; its log is `folder/log`, and what it prints goes to `output` (else there too).

        Raises:
            KeyError: the image says neither command nor arguments.
        """
        folder.mkdir(parents=True, exist_ok=True)
        confinement = self._confinement(folder / "root")
        for target, source in container.files.items():
            confinement.show(source, target)
        environment = self.stage.pairs("ENV") | dict(container.environment)
        command = confinement.command(self._command(container), environment)
        return Process("the container", command, folder / "log", {}, output)

    def run(self, command: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
        """Run a command in a container of its own to its end."""
        folder.mkdir(parents=True)
        started = self._confinement(folder / "root").command(command, self.stage.pairs("ENV"))
        return subprocess.run(started, capture_output=True, text=True, check=False, env={})  # noqa: S603 -- of the Dockerfile

    def _command(self, container: Container) -> list[str]:
        # As Kubernetes has it: a command of the Pod's own does away with the image's arguments too.
        command = self.stage.last("ENTRYPOINT") if container.command is None else container.command
        if container.arguments is not None:
            return [*command, *container.arguments]
        return [*command, *(self.stage.last("CMD") if container.command is None else ())]

    def _confinement(self, root: Path) -> Confinement:
        root.mkdir()
        user = int(self.stage.last("USER")[0].partition(":")[0])
        confinement = Confinement(root, user, self.stage.last("WORKDIR")[0])
        confinement.show_devices()
        self._show_base(confinement)
        for copied in self.stage.each("COPY"):
            source, target = copied.words[-2:]
            confinement.show(self.contents / source.lstrip("/"), target)
        confinement.memory[TEMPORARY] = _TEMPORARY_OPTIONS
        return confinement

    def _show_base(self, confinement: Confinement) -> None:
        about = about_python(self.python)
        version = "python{}.{}".format(*about["version"])
        confinement.show(Path(about["program"]).resolve(), f"/usr/bin/{version}")
        confinement.show(about["library"], f"/usr/lib/{version}")
        if (Path(about["library"]) / "site-packages").is_dir():
            confinement.memory[f"/usr/lib/{version}/site-packages"] = ""
        shared = f"/usr/lib/{about['MULTIARCH'] or sysconfig.get_config_var('MULTIARCH')}"
        for path in (shared, *_OF_THE_HOST):
            if Path(path).exists():
                confinement.show(path)
        for name in ("/lib", "/lib64"):
            confinement.link(name, f"usr{name}")
        if about["Py_ENABLE_SHARED"] and not about["LIBDIR"].startswith("/usr/lib"):
            confinement.show(Path(about["LIBDIR"], about["INSTSONAME"]))


@cache
def about_python(python: Path) -> dict[str, Any]:
    """Ask a Python where it keeps its parts."""
    ran = subprocess.run([python, "-I", "-c", _ABOUT], capture_output=True, text=True, check=True)  # noqa: S603 -- a Python
    return dict(json.loads(ran.stdout))
