"""What the webhook writes itself: the release has both, empty, so that they go with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpugate.webhook.generate.chart.names import AUTHORITIES, IS_SELF, metadata
from gpugate.webhook.generate.chart.terms import If

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.webhook.generate.chart.terms import Node


def kept() -> Iterator[Node]:
    """Yield the Secret of the authorities and the Lease of who writes it.

    What they hold is in no manifest, so that neither the three-way merge of Helm 3 nor server-side apply takes it back.
    """
    secret: Node = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata(AUTHORITIES), "type": "Opaque"}
    lease: Node = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata()}
    yield If(IS_SELF, secret)
    yield If(IS_SELF, lease)
