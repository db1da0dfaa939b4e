"""Model server from an image for GPUs whose container requests no GPU.

## Why is this bad?
On a node without GPUs, the server exits at its start. On a node with GPUs it can use those of other Pods, because images for
GPUs ask the container runtime for all GPUs of the node: the models then share memory that is counted for one of them.

## Instead
Request the GPU:

```yaml
containers:
  - name: llm
    image: vllm/vllm-openai:v0.11.0
    resources:
      limits:
        nvidia.com/gpu: "1"
```

Use another image to serve without a GPU. To share a GPU, request a MIG device or a shared GPU of the device plugin.

The policy knows the images of vLLM, SGLang and Text Generation Inference whose tag names no other hardware, such as
`cpu`. It reports a container that starts the server and names no extended resource. Not reported are:

- Pods with ResourceClaims or a runtime class.
- Pods with a label or annotation for GPUs, because GPU schedulers read these.
- Servers that are spread over several nodes, because the first Pod may need no GPU.

`pods/hidden-gpu-access` and `pods/gpu-node-squatter` report Pods that use GPUs, or run on GPU nodes, without a request.

## Sources
vLLM 0.11 `vllm/config/device.py` (fails without a device), `docker/Dockerfile` (CUDA image) and
"--data-parallel-size-local 0"; SGLang 0.5 `docker/Dockerfile`; Text Generation Inference 3.3 `Dockerfile`, documentation "Using
TGI with Intel CPUs" (tags); NVIDIA Container Toolkit "Environment variables" (`NVIDIA_VISIBLE_DEVICES=all` in CUDA images);
KAI Scheduler 0.9 "GPU sharing" (annotations); vllm-project/production-stack pull request 1047.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from gpugate.policies.data.model_servers import SERVERS
from gpugate.policies.pods._amounts import OWN_AMOUNTS
from gpugate.policies.pods._placement import gpu_tolerations
from gpugate.policies.sdk.concerns import Each, Text
from gpugate.policies.sdk.findings import Stance, Violation
from gpugate.policies.sdk.model_servers import image_of, programs, running_server
from gpugate.policies.sdk.objects import POD
from gpugate.policies.sdk.policy import validates
from gpugate.policies.sdk.workload_class import ceiling_of_templates, owner_kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.model_servers import Arguments
    from gpugate.policies.sdk.policy import AnyContext

_OTHER_HARDWARE: Final = re.compile(r"(?<![a-z])(?:cpu|gaudi|habana|hpu|intel|neuron|npu|tpu|xeon|xpu)(?![a-z])")
_IMAGES: Final = tuple(f"*{image}*" for server in SERVERS for image in server.gpu_images)
# An image with a digest has 72 characters after its name, and a private registry 50 and more before it.
_RUNS_SERVER: Final = Each("spec.containers", Text("image", _IMAGES, most=192))
_VISIBLE: Final = "NVIDIA_VISIBLE_DEVICES"
_SELECTED: Final = "CUDA_VISIBLE_DEVICES"
_UNCOUNTED: Final = "It uses a GPU that Kubernetes does not count for it, and another Pod can get the same GPU."
# For vLLM: the option for the device until 0.11, and the variables of the image for CPUs.
_DEVICE: Final = ("--device",)
_CPU_VARIABLES: Final = ("VLLM_CPU_", "VLLM_TARGET_DEVICE")


@validates(POD, mode=Stance.WARN, concerns=_RUNS_SERVER)
def check(pod: Field, ctx: AnyContext) -> Iterator[Violation]:
    """Report each container that runs a server from an image for GPUs but requests no device."""
    kind = owner_kind(pod, ctx)
    if (kind and ctx.wrapper is None) or kind in OWN_AMOUNTS or _gets_gpus_otherwise(pod, ctx):
        return
    for container in pod["spec", "containers"]:
        name, tag = image_of(container)
        if not any(name in server.gpu_images for server in SERVERS) or _OTHER_HARDWARE.search(tag.lower()):
            continue
        running = running_server(container, ctx.derived(programs)[container.path])
        if running is None or name not in running.server.gpu_images or not running.alone:
            continue
        arguments = running.arguments
        if (
            _names_devices(container)
            or arguments.has_beginning((*running.server.distributed, *_DEVICE))
            or _has_unknown_options(arguments)
        ):
            continue
        message = f"container {container['name'].text} runs {running.server.name} and requests no GPU"
        hint = "request a GPU such as nvidia.com/gpu, or use an image for CPUs"
        why = _UNCOUNTED if any(v["name"].text == _SELECTED for v in container["env"]) else ""
        yield Violation(container["image"].path, message, ceiling_of_templates(ctx), hint, why=why)


def _gets_gpus_otherwise(pod: Field, ctx: AnyContext) -> bool:
    """Tell whether a Pod may get GPUs by a claim, a runtime class or a scheduler, or another policy reports how."""
    spec = pod["spec"]
    if spec["resourceClaims"] or spec["runtimeClassName"] or spec["nodeName"] or spec["overhead"]:
        return True
    if any("/" in name for block in ("limits", "requests") for name in spec["resources", block].mapping):
        return True
    keys = (*pod["metadata", "labels"].mapping, *pod["metadata", "annotations"].mapping)
    return any("gpu" in key.lower().replace("gpugate", "") for key in keys) or bool(ctx.derived(gpu_tolerations))


def _names_devices(container: Field) -> bool:
    """Tell whether a container requests an extended resource, claims devices, or sets a variable that selects them."""
    resources = container["resources"]
    zero = {"0", 0}
    return (
        bool(resources["claims"])
        or any(
            "/" in name and value not in zero
            for block in ("limits", "requests")
            for name, value in resources[block].mapping.items()
            if isinstance(value, str | int)
        )
        or any(v["name"].text == _VISIBLE or v["name"].text.startswith(_CPU_VARIABLES) for v in container["env"])
    )


def _has_unknown_options(arguments: Arguments) -> bool:
    """Tell whether an argument other than the value of an option is replaced by unknown arguments."""
    before = ""
    for word in arguments.words:
        if word.startswith(("$", "`")) and not before.startswith("-"):
            return True
        before = word
    return False
