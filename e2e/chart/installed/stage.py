"""A control plane for installations, with custom resources and what examples of policies take for granted."""

from __future__ import annotations

from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cluster.api import Api
from cluster.connections import Connections
from cluster.control_plane import running_control_plane
from cluster.custom_resources import definitions, install
from cluster.namespaces import until_ready
from cluster.stand_ins import stand_in
from library.standing import STANDING

from gpugate.policies.sdk.objects import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cluster.control_plane import ControlPlane

POLICIES = Path(__file__).parents[3] / "policies"
_CERT_MANAGER = (
    Kind("cert-manager.io", ("v1",), "Issuer", "issuers", namespaced=True),
    Kind("cert-manager.io", ("v1",), "Certificate", "certificates", namespaced=True),
)


@dataclass(frozen=True)
class Stage:
    """`api` is its administrator."""

    control_plane: ControlPlane
    api: Api


@contextmanager
def running_stage(folder: Path) -> Iterator[Stage]:
    """Start it, and stop it at the end.

    Raises:
        CustomResourceError: a definition is refused.
        ProcessError: a component died, or did not become ready.
        ToolsError: a program or a module is missing.
    """
    with (
        running_control_plane(folder) as control_plane,
        closing(Connections(control_plane.url, control_plane.ca_file, control_plane.admin)) as connections,
    ):
        api = Api(connections)
        install(api, [*definitions(POLICIES), *map(stand_in, _CERT_MANAGER)])
        for each in STANDING:
            answer = api.create(each)
            assert answer.ok, answer.message
        for each in STANDING:
            if each["kind"] == "Namespace":
                until_ready(api, each["metadata"]["name"])
        yield Stage(control_plane, api)
