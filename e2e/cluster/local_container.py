"""Starts the container of a Pod as a process on this machine: its command, environment, files and ServiceAccount."""

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


def started_container(pod: Json, address: str, api: Api, control_plane: ControlPlane, folder: Path) -> Process:
    """Start it; what it is given, and its log, are in the folder. It listens on the address.

    Files of the container are in other places here, which its arguments are told; so the token is in a kubeconfig.

    Raises:
        KeyError: the Pod uses what is not understood here.
    """
    name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
    workload = {"metadata": {"namespace": namespace}, "spec": {"template": {"spec": _without_token(pod["spec"])}}}
    container = container_of(workload, api, control_plane, folder / _VOLUMES)
    token = (container.files[_TOKEN_FOLDER] / "token").read_text(encoding="ascii")
    kubeconfig = write_kubeconfig(folder / "kubeconfig", control_plane.url, control_plane.ca_file, token)
    temporary = folder / "tmp"
    temporary.mkdir()
    said = {key: value for key, value in container.environment.items() if not key.startswith("KUBERNETES_SERVICE_")}
    here = {"GPUGATE_KUBECONFIG": str(kubeconfig), "GPUGATE_HOST": address, "TMPDIR": str(temporary)}
    return Process(name, list(_command(container)), folder / "log", {"PATH": os.environ["PATH"], **said, **here})


def update_volumes(spec: Json, namespace: str, api: Api, folder: Path) -> None:
    """Write the ConfigMaps of a container again that was started with this folder."""
    update_config_maps(spec, namespace, api, folder / _VOLUMES)


def _command(container: Container) -> Iterator[str]:
    (program,) = container.command or ()
    yield from _PROGRAMS[program]
    for argument in container.arguments or ():
        flag, equals, value = argument.partition("=")
        for target, source in container.files.items():
            if value.startswith(f"{target}/"):
                value = f"{source}{value.removeprefix(target)}"
            elif equals and target.startswith(f"{value}/"):
                # A folder in which others are mounted.
                value = str(source).removesuffix(target.removeprefix(value))
        yield f"{flag}{equals}{value}"


def _without_token(spec: Json) -> Json:
    """Leave out the volume that the API server adds for the token (plugin/pkg/admission/serviceaccount, v1.36)."""
    added = {each["name"] for each in spec.get("volumes", ()) if "projected" in each}
    (container,) = spec["containers"]
    mounts = [each for each in container.get("volumeMounts", ()) if each["name"] not in added]
    volumes = [each for each in spec.get("volumes", ()) if each["name"] not in added]
    return {**spec, "containers": [{**container, "volumeMounts": mounts}], "volumes": volumes}
