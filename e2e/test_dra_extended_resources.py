"""MIG slices asked for by the name of a resource, for which the scheduler makes the claim: nothing but a toleration lacks.

Kubernetes v1.36 `DRAExtendedResource` (beta, on): a DeviceClass may name an extended resource, and every class has an
implicit one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mig_devices as mig
import pytest
from gpu_pods import added_tolerations, create, is_running, pod, until_unscheduled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cluster.api import Api

    Object = dict[str, Any]

EXPLICIT = "nvidia.com/mig-1g.10gb"
IMPLICIT = f"deviceclass.resource.kubernetes.io/{mig.CLASS}"


@pytest.fixture
def node(api: Api, gpu_node: Callable[..., Object]) -> Iterator[str]:
    """A node with one slice; a class besides offers those of its profile under the name of a resource."""
    only_profile = f"device.attributes['{mig.DRIVER}'].profile == '{mig.PROFILE}'"
    named = mig.device_class("mig-1g-10gb.gpu.nvidia.com", extendedResourceName=EXPLICIT)
    named["spec"]["selectors"].append({"cel": {"expression": only_profile}})
    create(api, named)
    with mig.mig_nodes(api, gpu_node) as make:
        yield make(1)
    api.delete(named)


@pytest.mark.parametrize("resource", [EXPLICIT, IMPLICIT])
@pytest.mark.usefixtures("webhook")
def test_is_scheduled_although_its_manifest_tolerates_nothing(
    resource: str, api: Api, namespace: str, node: str
) -> None:
    stored = create(api, pod("llm", namespace, {resource: "1"})).body
    assert [t["key"] for t in added_tolerations(stored)] == ["nvidia.com/gpu"]
    running = api.eventually(stored, is_running)
    assert running["spec"]["nodeName"] == node
    metadata = {"name": running["status"]["extendedResourceClaimStatus"]["resourceClaimName"], "namespace": namespace}
    claim = api.get({"apiVersion": mig.API_VERSION, "kind": "ResourceClaim", "metadata": metadata})
    assert claim["status"]["allocation"]["devices"]["results"][0]["device"] == mig.device_name(0)


@pytest.mark.parametrize("resource", [EXPLICIT, IMPLICIT])
@pytest.mark.usefixtures("unregistered", "node")
def test_stays_pending_without_gpugate(resource: str, api: Api, namespace: str) -> None:
    stored = create(api, pod("llm", namespace, {resource: "1"})).body
    until_unscheduled(api, stored, "untolerated taint")
