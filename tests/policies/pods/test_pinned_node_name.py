"""Which stored GPU Pods with the name of a node are reported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gpugate.policies.pods.pinned_node_name import check

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpugate.policies.sdk.policy import Context

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "namespace": "research"},
    "spec": {
        "nodeName": "gpu-node-1",
        "containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": "1"}}}],
    },
}


@pytest.mark.parametrize(
    ("status", "found"),
    [
        ({"phase": "Pending"}, True),
        ({"phase": "Running"}, False),
        ({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "True"}]}, False),
    ],
)
def test_the_scheduler_may_have_written_the_node_of_a_stored_pod(
    context: Callable[..., Context[Any]],
    status: dict[str, Any],
    found: bool,  # noqa: FBT001 -- a column of the table
) -> None:
    ctx = context({**POD, "status": status})
    assert any(check(ctx.subject, ctx)) == found
