from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from gpugate.policies.data.instance_types import load_instance_types
from gpugate.policies.pods.time_sliced_models import remedy
from gpugate.policies.sdk.node_pools import INSTANCE_TYPES

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpugate.policies.sdk.policy import Context

TABLE = load_instance_types()
PRODUCT = "nvidia.com/gpu.product"
GPU_NAME = "karpenter.k8s.aws/instance-gpu-name"


@pytest.mark.parametrize(
    ("selector", "memory", "says"),
    [
        ({}, "", "request a MIG slice; on GPUs without MIG"),
        ({}, "not a quantity", "request a MIG slice; on GPUs without MIG"),
        ({}, "24Gi", "request a MIG slice, such as 1g.34gb, 1g.35gb, 2g.35gb"),
        ({}, "500G", "request a whole GPU"),
        ({PRODUCT: "NVIDIA-A10G-SHARED"}, "", "share these GPUs, which have no MIG"),
        ({PRODUCT: "Tesla-T4-SHARED"}, "8Gi", "share these GPUs, which have no MIG"),
        ({PRODUCT: "NVIDIA-A100-SXM4-40GB-SHARED"}, "20G", "request a MIG slice, such as 3g.20gb, 4g.20gb, 7g.40gb"),
        ({PRODUCT: "NVIDIA-H100-80GB-HBM3-SHARED"}, "", "request a MIG slice, such as 1g.10gb, 1g.20gb, 2g.20gb"),
        ({PRODUCT: "NVIDIA-H200-SHARED"}, "", "request a MIG slice, such as 1g.18gb, 1g.35gb, 2g.35gb"),
        ({GPU_NAME: "l4"}, "", "share these GPUs, which have no MIG"),
        ({GPU_NAME: "h200"}, "40G", "request a MIG slice, such as 3g.71gb, 4g.71gb, 7g.141gb"),
    ],
)
def test_it_depends_on_the_gpu_and_the_memory(
    context: Callable[..., Context[Any]], selector: dict[str, str], memory: str, says: str
) -> None:
    annotations = {"gpugate.dev/gpu-memory": memory} if memory else {}
    ctx = context({"metadata": {"annotations": annotations}, "spec": {"nodeSelector": selector}})
    assert remedy(ctx.subject, replace(ctx, tables={INSTANCE_TYPES.name: TABLE})).startswith(says)
