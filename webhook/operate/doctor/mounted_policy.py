"""Finds the policy file that the webhook's Pods read, in the ConfigMap that they mount."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final, NamedTuple

from gpugate.webhook.operate.doctor.started_with import containers, given

if TYPE_CHECKING:
    from gpugate.webhook.operate.installation import Installation, Object

_FLAG: Final = "--policy-file"


class MountedPolicy(NamedTuple):
    """A policy file: where it stands, and its content."""

    where: str
    text: str


def mounted_policy(installation: Installation) -> MountedPolicy | None:
    """Return the policy file that a container of the namespace is started with, where its ConfigMap could be read."""
    for pod, container in containers(installation):
        for path in given(container, _FLAG):
            found = _in_config_map(installation, pod, container, PurePosixPath(path))
            if found:
                return found
    return None


def _in_config_map(
    installation: Installation, spec: Object, container: Object, path: PurePosixPath
) -> MountedPolicy | None:
    maps = {each["name"]: each["configMap"] for each in spec.get("volumes") or () if each.get("configMap")}
    for mount in container.get("volumeMounts") or ():
        source = maps.get(mount["name"])
        if source is None or not path.is_relative_to(mount["mountPath"]):
            continue
        name = mount.get("subPath") or str(path.relative_to(mount["mountPath"]))
        key = next((item["key"] for item in source.get("items") or () if item["path"] == name), name)
        data = installation.config_maps.get(source.get("name", ""), {})
        if key in data:
            return MountedPolicy(f"ConfigMap {installation.names.namespace}/{source['name']}, {key}", data[key])
    return None
