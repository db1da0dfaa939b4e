"""What stands between the API server and the webhook: the Service and the Pods behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.webhook.operate.diagnosis import Trouble
from gpugate.webhook.operate.installation import Unread
from gpugate.webhook.operate.reading import Reader

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gpugate.webhook.cluster.connection import Connection
    from gpugate.webhook.operate.installation import Names, Object

# The EndpointSlice controller writes it on each slice of a Service (`k8s.io/api` discovery/v1 well_known_labels.go, v0.36).
_SERVICE: Final = "kubernetes.io/service-name"


def backends(connection: Connection, names: Names) -> Iterator[Trouble]:
    """Say what is missing behind the Service; nothing where it is not there or may not be read."""
    reader = Reader(connection)
    inside = f"namespaces/{names.namespace}"
    what = f"Service {names.namespace}/{names.service}"
    service = reader.one(f"/api/v1/{inside}/services/{names.service}", what)
    if service is None or isinstance(service, Unread):
        return
    slices = reader.several(
        f"/apis/discovery.k8s.io/v1/{inside}/endpointslices", what, {"labelSelector": f"{_SERVICE}={names.service}"}
    )
    if isinstance(slices, Unread):
        return
    ready, known = ready_endpoints(slices)
    if not ready:
        remedy = f"kubectl -n {names.namespace} get pods; what a Pod lacks it says at /readyz and in its log"
        yield Trouble(f"{what} has {known} endpoints, none of them ready", remedy)


def ready_endpoints(slices: Iterable[Object]) -> tuple[int, int]:
    """Return how many endpoints are ready, and how many there are.

    No condition means ready (`k8s.io/api` discovery/v1 types.go, v0.36).
    """
    conditions = [each.get("conditions") or {} for found in slices for each in found.get("endpoints") or ()]
    return sum(each.get("ready") is not False for each in conditions), len(conditions)
