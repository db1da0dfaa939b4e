"""The reports of ours that a cluster holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from gpugate.webhook.audit.report_objects.bodies import MANAGED_BY, is_ours
from gpugate.webhook.audit.report_objects.results import SOURCE
from gpugate.webhook.audit.sources.paging import Listing
from gpugate.webhook.audit.sources.retrying import retried

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.webhook.audit.sources.throttle import Throttle
    from gpugate.webhook.cluster.connection import Connection
    from gpugate.webhook.report.report_kinds import ReportKinds

Json = dict[str, Any]  # Any: the JSON edge

_PAGE: Final = 500


class Key(NamedTuple):
    """Which report: the namespace of the object that it is on, and its own name."""

    namespace: str
    name: str


def stored_reports(connection: Connection, kinds: ReportKinds, throttle: Throttle) -> Iterator[tuple[Key, Json]]:
    """Yield every report of ours in a group, read in pages.

    Raises:
        CallError: they cannot be listed, or no more of them.
    """

    def get(path: str, parameters: dict[str, str]) -> bytes:
        chosen = {**parameters, "labelSelector": f"{MANAGED_BY}={SOURCE}"}
        return retried(lambda: connection.read(path, chosen), throttle)

    for kind in kinds.both:
        for found in Listing(get, kinds.collection(kind), _PAGE).objects():
            if is_ours(found):
                metadata = found["metadata"]
                yield Key(metadata.get("namespace", ""), metadata["name"]), found
