"""Starts a container of a Pod as a process on this machine: its command, environment, files and ServiceAccount."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from cluster.kubeconfig import write_kubeconfig
from cluster.process import Process
from image.pod import container_of, update_config_maps

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cluster.api import Api
    from cluster.control_plane import ControlPlane
    from image.container import Container

Json = dict[str, Any]
# Kubernetes mounts it there into every container.
_TOKEN_FOLDER = "/var/run/secrets/kubernetes.io/serviceaccount"  # noqa: S105 -- where it is
_VOLUMES = "volumes"
_PROGRAMS = {"gpugate": [sys.executable, "-m", "gpugate.webhook.cli.main"]}


def started_container(
    pod: Json, name: str, address: str, api: Api, control_plane: ControlPlane, folder: Path
) -> Process:
    """Start the container or init container of this name; it listens on the address.

    What it is given, and its log, are in the folder, which all containers of the Pod share.
    Files of the container are in other places here, which its arguments and variables are told; so the token is in a kubeconfig.

    Raises:
        KeyError: the Pod uses what is not understood here.
    """
    spec = pod["spec"]
    workload = {"metadata": {"namespace": pod["metadata"]["namespace"]}, "spec": {"template": {"spec": spec}}}
    container = container_of(workload, api, control_plane, folder / _VOLUMES, name=name, shared=folder / "shared")
    temporary = folder / "tmp"
    temporary.mkdir(exist_ok=True)
    said = {
        key: _path_here(value, container)
        for key, value in container.environment.items()
        if not key.startswith("KUBERNETES_SERVICE_")
    }
    here = {"GPUGATE_HOST": address, "TMPDIR": str(temporary), "HOME": str(temporary)}
    if _TOKEN_FOLDER in container.files:
        token = (container.files[_TOKEN_FOLDER] / "token").read_text(encoding="ascii")
        kubeconfig = write_kubeconfig(folder / "kubeconfig", control_plane.url, control_plane.ca_file, token)
        here["GPUGATE_KUBECONFIG"] = str(kubeconfig)
    environment = {"PATH": os.environ["PATH"], **said, **here}
    return Process(pod["metadata"]["name"], list(_command(container)), folder / "log", environment)


def update_volumes(spec: Json, namespace: str, api: Api, folder: Path) -> None:
    """Write the ConfigMaps of a container again that was started with this folder."""
    update_config_maps(spec, namespace, api, folder / _VOLUMES)


def _command(container: Container) -> Iterator[str]:
    (program,) = container.command or ()
    yield from _PROGRAMS[program]
    for argument in container.arguments or ():
        flag, equals, value = argument.rpartition("=") if argument.startswith("--") else ("", "", argument)
        yield f"{flag}{equals}{_path_here(value, container)}"


def _path_here(value: str, container: Container) -> str:
    """Return where a path of the container is on this machine; another value stays as it is."""
    if not value.startswith("/"):
        return value
    for target, source in container.files.items():
        if f"{value}/".startswith(f"{target}/"):
            return f"{source}{value.removeprefix(target)}"
    for target, source in container.files.items():
        if target.startswith(f"{value}/"):
            # A folder in which others are mounted.
            return str(source).removesuffix(target.removeprefix(value))
    return value
