"""A cluster of kind (https://kind.sigs.k8s.io), with our image in it, where there is Docker."""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import yaml
from cluster.certificates import Files
from cluster.control_plane import ControlPlane

if TYPE_CHECKING:
    from collections.abc import Iterator

IMAGE = "gpugate:e2e"
ROOT = Path(__file__).parents[2]


class KindMissingError(Exception):
    """There can be no such cluster here; says what is missing."""


class KindError(Exception):
    """There should be one and it cannot be made; says why."""


@contextmanager
def running_kind(folder: Path, root: Path = ROOT) -> Iterator[ControlPlane]:
    """Build the image, make a cluster, load the image into it, and delete the cluster at the end.

    Args:
        folder: an empty one, for credentials.
        root: where the Dockerfile is.

    Raises:
        KindMissingError: Docker or kind is not here, or Docker does not answer.
        KindError: there is no Dockerfile, or a command failed.
    """
    started = time.monotonic()
    for program in ("docker", "kind"):
        if shutil.which(program) is None:
            raise KindMissingError(f"CLUSTER=kind needs {program}, which is not installed; leave CLUSTER out")
    if _ran("docker", "info").returncode:
        raise KindMissingError("CLUSTER=kind needs Docker, which does not answer (`docker info`); leave CLUSTER out")
    if not (root / "Dockerfile").is_file():
        raise KindError(f"CLUSTER=kind builds an image of gpugate, and there is no {root / 'Dockerfile'}")
    name, kubeconfig = f"gpugate-e2e-{os.getpid()}", folder / "admin.kubeconfig"
    _run(sys.executable, str(root / "image/build.py"), "--engine", "docker", "--allow-unpinned", "--tag", IMAGE)
    try:
        # Of its own choice of Kubernetes: each release of kind comes with images that were built for it.
        _run("kind", "create", "cluster", "--name", name, "--kubeconfig", str(kubeconfig), "--wait", "180s")
        _run("kind", "load", "docker-image", IMAGE, "--name", name)
        yield _read(kubeconfig, started)
    finally:
        _ran("kind", "delete", "cluster", "--name", name)


def _read(kubeconfig: Path, started: float) -> ControlPlane:
    read = yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))
    cluster, user = read["clusters"][0]["cluster"], read["users"][0]["user"]
    ca_file = _decoded(kubeconfig.with_name("ca.crt"), cluster["certificate-authority-data"])
    admin = Files(
        _decoded(kubeconfig.with_name("admin.crt"), user["client-certificate-data"]),
        _decoded(kubeconfig.with_name("admin.key"), user["client-key-data"]),
    )
    return ControlPlane(cluster["server"], ca_file, admin, kubeconfig, {}, time.monotonic() - started)


def _decoded(file: Path, data: str) -> Path:
    file.write_bytes(base64.b64decode(data))
    return file


def _run(*command: str) -> None:
    ran = _ran(*command)
    if ran.returncode:
        last = "\n".join(f"  {line}" for line in ran.stderr.splitlines()[-15:])
        raise KindError(f"{' '.join(command)} failed:\n{last}")


def _ran(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 -- docker and kind
