from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gpugate.policies.pods.wildcard_toleration import check

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpugate.policies.sdk.policy import Context

EVERYTHING = {"operator": "Exists"}
ANY_POD = "the Pod may run on GPU nodes, and Karpenter does not drain it"
GPU_POD = "Karpenter does not drain the Pod"


@pytest.mark.parametrize(
    ("resources", "toleration", "consequence"),
    [
        ({}, EVERYTHING, ANY_POD),
        ({}, {**EVERYTHING, "effect": "NoSchedule"}, ANY_POD),
        ({}, {**EVERYTHING, "effect": "NoExecute"}, "the Pod stays on failed nodes"),
        ({"limits": {"nvidia.com/gpu": "1"}}, EVERYTHING, GPU_POD),
        ({"limits": {"nvidia.com/gpu": "1"}}, {**EVERYTHING, "effect": "NoSchedule"}, GPU_POD),
        ({"limits": {"nvidia.com/gpu": "1"}}, {**EVERYTHING, "effect": "NoExecute"}, "the Pod stays on failed nodes"),
    ],
)
def test_the_consequence_is_that_of_the_pod(
    context: Callable[..., Context[Any]], resources: dict[str, Any], toleration: dict[str, str], consequence: str
) -> None:
    containers = [{"name": "a", "image": "a:1", "resources": resources}]
    ctx = context({"apiVersion": "v1", "kind": "Pod", "spec": {"containers": containers, "tolerations": [toleration]}})
    assert [found.message.partition(": ")[2] for found in check(ctx.subject, ctx)] == [consequence]
