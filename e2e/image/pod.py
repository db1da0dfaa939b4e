"""Makes of a Pod's description what a kubelet hands to the container runtime: its command, environment and files."""

from __future__ import annotations

import base64
import shutil
from typing import TYPE_CHECKING, Any

from image.container import TEMPORARY, Container

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cluster.api import Api
    from cluster.control_plane import ControlPlane

_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
# A kubelet writes a volume into a folder of its own, and leads to it by a link that it can replace at one stroke.
_LINK, _NEXT_LINK, _WRITTEN = "..data", "..data_tmp", "..2026_01_01_00_00_00.{}"


def container_of(
    workload: dict[str, Any],
    api: Api,
    control_plane: ControlPlane,
    folder: Path,
    *,
    name: str = "",
    shared: Path | None = None,
) -> Container:
    """Return a container of a workload's Pods, with the token of their ServiceAccount and the volumes that it mounts.

    It has no token where the Pod declines it, unless it mounts one itself.

    Args:
        workload: a Deployment or a Job, as it is stored.
        api: reads what the volumes hold.
        control_plane: what is around the Pod.
        folder: an empty one, or that of another container of the Pod, for the contents of volumes.
        name: the name of the container or init container; else it is the first one that is no init container.
        shared: a folder of the Pod, for volumes that its containers write; without it there may be none.

    Raises:
        KeyError: the Pod uses what is not understood here, such as `valueFrom`.
    """
    namespace, spec = workload["metadata"]["namespace"], workload["spec"]["template"]["spec"]
    described = _described(spec, name)
    mounted = {each["name"]: each["mountPath"] for each in described["volumeMounts"]}
    volumes = {mounted[each["name"]]: each for each in spec["volumes"] if each["name"] in mounted}
    accounts = [target for target, volume in volumes.items() if _has_token(volume)]
    if not accounts and spec.get("automountServiceAccountToken", True):
        accounts = [_ACCOUNT]
    account = spec["serviceAccountName"], namespace, api, control_plane, folder / "account"
    files = {target: _account(*account) for target in accounts}
    for target, volume in volumes.items():
        if target in files:
            continue
        if "emptyDir" not in volume:
            # Beside each other as in the container, so that a folder of several volumes is there too.
            files[target] = _written(folder / target.removeprefix("/"), dict(_contents(volume, namespace, api)))
        elif target != TEMPORARY:
            if shared is None:
                raise KeyError(f"an emptyDir at {target}")
            files[target] = shared / volume["name"]
            files[target].mkdir(parents=True, exist_ok=True)
    host, _, port = control_plane.url.removeprefix("https://").rpartition(":")
    around = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
    said = {each["name"]: each["value"] for each in described.get("env", ())}
    return Container(described.get("args"), described.get("command"), around | said, files)


def _described(spec: dict[str, Any], name: str) -> dict[str, Any]:
    containers: list[dict[str, Any]] = [*spec["containers"], *spec.get("initContainers", ())]
    return next(each for each in containers if not name or each["name"] == name)


def _has_token(volume: dict[str, Any]) -> bool:
    return any("serviceAccountToken" in each for each in volume.get("projected", {}).get("sources", ()))


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
        kind, source = "Secret", volume["secret"]
        name = source["secretName"]
    else:
        kind, source = "ConfigMap", volume["configMap"]
        name = source["name"]
    stored = api.get({"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": namespace}})["data"]
    paths = {each["key"]: each["path"] for each in source.get("items", ())} or {key: key for key in stored}
    for key, path in paths.items():
        yield path, base64.b64decode(stored[key]) if kind == "Secret" else stored[key].encode()


def update_config_maps(spec: dict[str, Any], namespace: str, api: Api, folder: Path) -> None:
    """Write the ConfigMaps that a Pod mounts again, as a kubelet does within a minute of a change.

    Args:
        spec: the Pod's.
        namespace: the Pod's.
        api: reads what the volumes hold.
        folder: what `container_of` was given.
    """
    volumes = {each["name"]: each for each in spec["volumes"] if "configMap" in each}
    for mount in spec["containers"][0]["volumeMounts"]:
        if mount["name"] in volumes:
            contents = dict(_contents(volumes[mount["name"]], namespace, api))
            _written(folder / mount["mountPath"].removeprefix("/"), contents)


def _written(folder: Path, contents: dict[str, bytes]) -> Path:
    """Write a volume, or its next content, in the order of pkg/volume/util/atomic_writer.go (v1.36)."""
    folder.mkdir(parents=True, exist_ok=True)
    link = folder / _LINK
    before = link.resolve() if link.is_symlink() else None
    written = _WRITTEN.format(1 if before is None else int(before.suffix[1:]) + 1)
    (folder / written).mkdir()
    for name, content in contents.items():
        (folder / written / name).write_bytes(content)
    (folder / _NEXT_LINK).symlink_to(written)
    (folder / _NEXT_LINK).rename(link)
    shown = {each.name for each in folder.iterdir() if not each.name.startswith("..")}
    for name in contents.keys() - shown:
        (folder / name).symlink_to(f"{_LINK}/{name}")
    for name in shown - contents.keys():
        (folder / name).unlink()
    if before is not None:
        shutil.rmtree(before)
    return folder
