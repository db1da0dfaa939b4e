"""Makes of a Pod's description what a kubelet hands to the container runtime: its command, environment and files."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from image.container import TEMPORARY, Container

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cluster.api import Api
    from cluster.control_plane import ControlPlane

_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
# A kubelet writes a volume into a folder of its own, and leads to it by a link that it can replace at one stroke.
_LINK, _WRITTEN = "..data", "..2026_01_01_00_00_00.1"


def container_of(workload: dict[str, Any], api: Api, control_plane: ControlPlane, folder: Path) -> Container:
    """Return the first container of a workload's Pods, with the token of their ServiceAccount and their volumes.

    Args:
        workload: a Deployment or a Job, as it is stored.
        api: reads what the volumes hold.
        control_plane: what is around the Pod.
        folder: an empty one, for the contents of volumes.

    Raises:
        KeyError: the Pod uses what is not understood here, such as `valueFrom`.
    """
    namespace, spec = workload["metadata"]["namespace"], workload["spec"]["template"]["spec"]
    described = spec["containers"][0]
    mounted = {each["name"]: each["mountPath"] for each in described["volumeMounts"]}
    files = {_ACCOUNT: _account(spec["serviceAccountName"], namespace, api, control_plane, folder / "account")}
    for volume in spec["volumes"]:
        target = mounted[volume["name"]]
        if "emptyDir" not in volume:
            files[target] = _written(folder / volume["name"], dict(_contents(volume, namespace, api)))
        elif target != TEMPORARY:
            raise KeyError(f"an emptyDir at {target}")
    host, _, port = control_plane.url.removeprefix("https://").rpartition(":")
    around = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
    said = {each["name"]: each["value"] for each in described.get("env", ())}
    return Container(described.get("args"), described.get("command"), around | said, files)


def _account(name: str, namespace: str, api: Api, control_plane: ControlPlane, folder: Path) -> Path:
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}}
    request = {**account, "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    answer = api.create_subresource(account, "token", request)
    assert answer.ok, answer.message
    token: str = answer.body["status"]["token"]
    ca = control_plane.ca_file.read_bytes()
    return _written(folder, {"token": token.encode(), "ca.crt": ca, "namespace": namespace.encode()})


def _contents(volume: dict[str, Any], namespace: str, api: Api) -> Iterator[tuple[str, bytes]]:
    if "secret" in volume:
        kind, name = "Secret", volume["secret"]["secretName"]
    else:
        kind, name = "ConfigMap", volume["configMap"]["name"]
    stored = api.get({"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": namespace}})
    for key, value in stored["data"].items():
        yield key, base64.b64decode(value) if kind == "Secret" else value.encode()


def _written(folder: Path, contents: dict[str, bytes]) -> Path:
    (folder / _WRITTEN).mkdir(parents=True)
    (folder / _LINK).symlink_to(_WRITTEN)
    for name, content in contents.items():
        (folder / _WRITTEN / name).write_bytes(content)
        (folder / name).symlink_to(f"{_LINK}/{name}")
    return folder
