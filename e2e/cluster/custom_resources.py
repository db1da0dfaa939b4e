"""Installs custom resource definitions: Karpenter's and KEDA's own, ours, and stand-ins for the rest."""

from __future__ import annotations

import copy
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from cluster.stand_ins import permissive_version, stand_ins

import tools

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cluster.api import Api

_E2E = Path(__file__).parents[1]
# Versions that Karpenter served before v1 and that its definitions no longer name (they left with Karpenter v1.1).
_LEGACY_VERSIONS = {
    "nodepools.karpenter.sh": ("v1beta1",),
    "nodeclaims.karpenter.sh": ("v1beta1",),
    "ec2nodeclasses.karpenter.k8s.aws": ("v1beta1",),
}
_SECONDS = 180
_PAUSE_SECONDS = 0.02


class CustomResourceError(Exception):
    """A definition was refused, or never came into use; says what the API server said."""


def install(api: Api, definitions: Iterable[dict[str, Any]]) -> None:
    """Install definitions, and wait until all of them are served.

    Raises:
        CustomResourceError: one is refused or not established.
    """
    made = [_create(api, definition) for definition in definitions]
    for definition in made:
        _wait_until_served(api, definition)


def definitions(examples: Path) -> list[dict[str, Any]]:
    """Return the definitions of every kind that policies and their examples name.

    Args:
        examples: the folder of the policies.

    Raises:
        ToolsError: a Go module that holds definitions cannot be had.
    """
    real = [_with_legacy_versions(definition) for definition in _read()]
    return [*real, *stand_ins(real, examples)]


def read_definitions(folder: Path) -> Iterator[dict[str, Any]]:
    """Read the definitions in the YAML files of a folder, in the order of the file names."""
    for file in sorted(folder.glob("*.yaml")):
        yield from filter(None, yaml.load_all(file.read_text(encoding="utf-8"), yaml.CSafeLoader))


def _read() -> Iterator[dict[str, Any]]:
    folders = (
        tools.module_folder(*tools.KARPENTER) / "pkg" / "apis" / "crds",
        tools.module_folder(*tools.KEDA) / "config" / "crd" / "bases",
        _E2E / "kinds",
    )
    for folder in folders:
        yield from read_definitions(folder)


def _with_legacy_versions(definition: dict[str, Any]) -> dict[str, Any]:
    """Serve old versions too, with any fields, so that objects of them reach admission as where they are served.

    They cannot have a definition of their own: its name would be that of the real one.
    """
    versions = _LEGACY_VERSIONS.get(definition["metadata"]["name"], ())
    changed = copy.deepcopy(definition)
    changed["spec"]["versions"] += [permissive_version(version, stored=False) for version in versions]
    return changed


def _create(api: Api, definition: dict[str, Any]) -> dict[str, Any]:
    answer = api.create(definition)
    if not answer.ok:
        raise CustomResourceError(f"{definition['metadata']['name']} cannot be installed: {answer.message}")
    return answer.body


def _wait_until_served(api: Api, definition: dict[str, Any]) -> None:
    name, spec = definition["metadata"]["name"], definition["spec"]
    waiting = {f"{spec['group']}/{version['name']}" for version in spec["versions"] if version["served"]}
    deadline = time.monotonic() + _SECONDS
    while waiting := {version for version in waiting if not api.served(version, spec["names"]["kind"])}:
        if time.monotonic() > deadline:
            conditions = api.get(definition).get("status", {}).get("conditions")
            raise CustomResourceError(f"{name} is not served as {', '.join(sorted(waiting))}: {conditions}")
        time.sleep(_PAUSE_SECONDS)
