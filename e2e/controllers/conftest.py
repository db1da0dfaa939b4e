"""Everything is enforced here, and there is a node for GPU Pods and one for others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cluster.served_webhook import ServedWebhook

TAINT = {"key": "nvidia.com/gpu", "value": "true", "effect": "NoSchedule"}
EVERYTHING_ENFORCED = """
apiVersion: gpugate.dev/v1
kind: PolicyConfig
policies:
  "*/*": {mode: enforce}
"""


@pytest.fixture(scope="module", autouse=True)
def everything_enforced(webhook: ServedWebhook) -> Iterator[None]:
    webhook.use(EVERYTHING_ENFORCED)
    yield
    webhook.reset()


@pytest.fixture
def gpu_room(gpu_node: Callable[..., dict[str, Any]]) -> dict[str, Any]:
    """A node with eight GPUs."""
    return gpu_node({}, [TAINT], {"nvidia.com/gpu": "8"})


@pytest.fixture
def plain_room(gpu_node: Callable[..., dict[str, Any]]) -> dict[str, Any]:
    """A node that any Pod may run on."""
    return gpu_node()
