"""Which commands start several processes, and how large a volume they get."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gpugate.policies.pods.missing_shared_memory import Params, check, mutate

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpugate.policies.sdk.policy import Context

VLLM = {"image": "vllm/vllm-openai:v0.11.0", "args": ["--tensor-parallel-size", "4"]}


def pod(container: dict[str, Any], gpus: str = "4", **spec: Any) -> dict[str, Any]:
    resources = {"limits": {"nvidia.com/gpu": gpus, **container.pop("limits", {})}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {**spec, "containers": [{"name": "c", **container, "resources": resources}]},
    }


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("torchrun --nproc_per_node=4 train.py", "torchrun on 4 GPUs (--nproc-per-node 4)"),
        ("torchrun --nproc-per-node auto train.py", "torchrun on 4 GPUs (--nproc-per-node auto)"),
        ("torchrun --nproc-per-node 1 train.py", ""),
        ("torchrun --nproc-per-node $GPUS train.py", ""),
        ("python3 -m torch.distributed.run --nproc-per-node=2 train.py", "torchrun on 4 GPUs (--nproc-per-node 2)"),
        ("python3 -m torch.utils.collect_env", ""),
        ("deepspeed train.py", "deepspeed on 4 GPUs (one process for each GPU)"),
        ("deepspeed --num_gpus=1 train.py", ""),
        ("deepspeed --include localhost:0 train.py", ""),
        ("accelerate launch --num_processes 4 train.py", "accelerate on 4 GPUs (--num_processes 4)"),
        ("accelerate launch --num_processes 2 --num_machines 2 train.py", ""),
        ("accelerate launch train.py", ""),
        ("vllm serve m -tp 2", "vLLM on 4 GPUs (--tensor-parallel-size 2)"),
        ("vllm serve m", ""),
        ("trtllm-serve m --tp_size 4", "TensorRT-LLM on 4 GPUs (--tp-size 4)"),
        ("text-generation-launcher --model-id m", "Text Generation Inference on 4 GPUs (one process for each GPU)"),
        ("text-generation-launcher --model-id m --num-shard 1", ""),
        ("text-generation-launcher --model-id m --sharded false", ""),
        ("llama-server -m m.gguf", ""),
        ("python3 train.py", ""),
    ],
)
def test_only_commands_that_start_several_processes_are_found(
    context: Callable[..., Context[Any]], command: str, shown: str
) -> None:
    ctx = context(pod({"command": command.split()}), params=Params())
    messages = [violation.message for violation in check(ctx.subject, ctx)]
    expected = [f"container c runs {shown} and has no volume at /dev/shm (default: 64 MiB)"] if shown else []
    assert messages == expected


@pytest.mark.parametrize(
    ("memory", "size_limit", "size"),
    [
        ("64Gi", "8Gi", "8Gi"),
        ("6Gi", "8Gi", "3Gi"),
        ("1000Mi", "8Gi", "500Mi"),
        (None, "2Gi", "2Gi"),
        ("128Mi", "8Gi", None),
        ("much", "8Gi", "8Gi"),
    ],
)
def test_the_volume_gets_at_most_half_of_the_memory_limit(
    context: Callable[..., Context[Any]], memory: str | None, size_limit: str, size: str | None
) -> None:
    limits = {"limits": {"memory": memory}} if memory else {}
    ctx = context(pod({**VLLM, **limits}), params=Params(add_volume=True, size_limit=size_limit))
    patches = list(mutate(ctx.subject, ctx))
    volume = {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": size}}
    expected = [
        (("spec", "volumes"), volume),
        (("spec", "containers", 0, "volumeMounts"), {"name": "shm", "mountPath": "/dev/shm"}),  # noqa: S108
    ]
    assert [(patch.path, patch.value) for patch in patches] == (expected if size else [])


def test_the_smallest_limit_of_pod_and_container_counts(context: Callable[..., Context[Any]]) -> None:
    resources = {"limits": {"memory": "2Gi"}}
    ctx = context(pod({**VLLM, "limits": {"memory": "64Gi"}}, resources=resources), params=Params(add_volume=True))
    volume, _ = mutate(ctx.subject, ctx)
    assert volume.value == {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}}


def test_a_name_that_is_taken_is_not_used(context: Callable[..., Context[Any]]) -> None:
    ctx = context(pod({**VLLM}, volumes=[{"name": "shm", "emptyDir": {}}]), params=Params(add_volume=True))
    volume, mount = mutate(ctx.subject, ctx)
    assert isinstance(volume.value, dict)
    assert isinstance(mount.value, dict)
    assert (volume.value["name"], mount.value["name"]) == ("dshm", "dshm")


def test_a_size_that_is_no_more_than_the_default_is_an_error() -> None:
    with pytest.raises(ValueError, match="size_limit 64Mi is not above the default of 64Mi"):
        Params(size_limit="64Mi")
