"""Server or training with several GPUs whose `/dev/shm` is limited to 64 MiB.

## Why is this bad?
NCCL or PyTorch can fail with "No space left on device" or a bus error, after the node was launched and paid for. The processes of
the container exchange data in `/dev/shm`, which container runtimes limit to 64 MiB.

## Instead
Mount memory at `/dev/shm`:

```yaml
containers:
  - name: llm
    resources:
      limits:
        memory: 64Gi
        nvidia.com/gpu: "4"
    volumeMounts:
      - name: shm
        mountPath: /dev/shm
volumes:
  - name: shm
    emptyDir:
      medium: Memory
      sizeLimit: 8Gi
```

`sizeLimit` reserves no memory. Files in the volume count against the memory limit of the container that writes them, so leave room
for them in this limit. gpugate adds the volume to Pods if the parameter `add_volume` is true and the mode is `enforce`. It gives the
volume at most half of the smallest memory limit, and leaves a Pod unchanged if less than 64 MiB remain. `gpugate check --fix` writes
the same volume.

The policy reads the commands of vLLM, SGLang, TensorRT-LLM, Text Generation Inference, torchrun, DeepSpeed and Accelerate. It
reports a container with two or more GPUs only if its command starts several processes. Not reported are:

- Pods with `hostIPC: true`, or with an annotation of CRI-O for the size of `/dev/shm`.
- Containers with any volume at `/dev/shm`, or with `NCCL_SHM_DISABLE`.
- Workloads whose controller adds the volume or writes the containers (KubeRay, KServe, Dynamo, NIM).
- Containers without whole NVIDIA or AMD GPUs.

## Sources
- Limit: containerd v2.1.4 `internal/cri/server/podsandbox/helpers_linux.go` (defaultShmSize; `sandbox_run_linux.go` uses the
  node's `/dev/shm` for hostIPC); CRI-O v1.34 `pkg/annotations` (`io.kubernetes.cri-o.ShmSize`, `shm-size.crio.io`).
- Size of the volume: Kubernetes v1.36 `pkg/volume/emptydir/empty_dir.go` calculateEmptyDirMemorySize (the smallest of sizeLimit,
  the Pod's memory limit and the node's memory); documentation "Volumes", emptyDir (files count against the memory limit of the
  container that wrote them).
- Use: NCCL 2.28 "Troubleshooting", Shared memory (since 2.24, NCCL allocates most of it otherwise if driver and CUDA are 12.6 or
  later); vLLM 0.11 documentation "Using Kubernetes" and "Parallelism and Scaling"; Text Generation Inference 3.3 README, "A note
  on Shared Memory", and `launcher/src/main.rs` find_num_shards; TensorRT-LLM 1.1 `tensorrt_llm/commands/serve.py`.
- Launchers: PyTorch 2.9 `torch/distributed/run.py` (one process by default), DeepSpeed 0.18 `deepspeed/launcher/runner.py` (all
  GPUs by default), Accelerate 1.12 `accelerate/commands/launch.py`.
- Controllers: KubeRay v1.7.0 `controllers/ray/common/pod.go` (SharedMemoryVolumeName).
- Reports: vllm-project/vllm issue 37982, vllm-project/production-stack issues 97 and 899, NVIDIA/nccl issues 290 and 525.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.pods._amounts import OWN_AMOUNTS, requested_amounts
from gpugate.policies.sdk import quantity
from gpugate.policies.sdk.findings import Patch, Patches, Stance, Violation
from gpugate.policies.sdk.gpu_demand import NAMES_ACCELERATOR
from gpugate.policies.sdk.model_servers import Arguments, programs, running_server
from gpugate.policies.sdk.objects import POD
from gpugate.policies.sdk.policy import Context, mutates, validates
from gpugate.policies.sdk.policy import Params as PolicyParams
from gpugate.policies.sdk.workload_class import owner_kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.commands import Started
    from gpugate.policies.sdk.field import Field, Json
    from gpugate.policies.sdk.policy import AnyContext

_GPUS: Final = frozenset({"amd.com/gpu", "nvidia.com/gpu"})
_PATH: Final = "/dev/shm"  # noqa: S108 -- a path in containers
_DEFAULT: Final = 64 * 1024**2  # bytes
_MEBIBYTE: Final = 1024**2
_NAMES: Final = ("shm", "dshm", "shared-memory")
_ANNOTATIONS: Final = ("io.kubernetes.cri-o.ShmSize", "shm-size.crio.io")
_DISABLED: Final = "NCCL_SHM_DISABLE"
# Kinds whose controller adds the volume, or writes the containers itself.
_OWN_VOLUMES: Final = OWN_AMOUNTS | {"NIMService", "RayCluster", "RayCronJob", "RayJob", "RayService"}
# Environment variables of Text Generation Inference for its options.
_SHARDS: Final = frozenset({"CUDA_VISIBLE_DEVICES", "NUM_SHARD", "SHARDED"})
_SHARDED: Final = ("--sharded",)
_TORCH_MODULES: Final = frozenset({"torch.distributed.launch", "torch.distributed.run"})
_EACH_GPU: Final = frozenset({"auto", "gpu"})
_MOST_DIGITS: Final = 4


class Params(PolicyParams, frozen=True, kw_only=True):
    """What Pods without the volume get.

    Attributes:
        add_volume: add the volume to Pods when they are created.
        size_limit: the most memory that the volume may take.
    """

    add_volume: bool = False
    size_limit: str = "8Gi"

    def __post_init__(self) -> None:
        if quantity.parse(self.size_limit) <= _DEFAULT:
            raise ValueError(f"size_limit {self.size_limit} is not above the default of 64Mi")


@mutates(POD, params=Params, mode=Stance.WARN, concerns=NAMES_ACCELERATOR)
def mutate(pod: Field, ctx: Context[Params]) -> Iterator[Patch]:
    """Add a volume at /dev/shm, if the platform enables that."""
    if ctx.params.add_volume:
        yield from _added(pod, tuple(container for container, _ in _limited(pod, ctx)), ctx.params)


@validates(POD, params=Params, mode=Stance.WARN, at_most=Stance.WARN, concerns=NAMES_ACCELERATOR)
def check(pod: Field, ctx: Context[Params]) -> Iterator[Violation]:
    """Report each container whose processes share 64 MiB."""
    if ctx.wrapper is None and owner_kind(pod, ctx):
        return
    limited = tuple(_limited(pod, ctx))
    # The containers of a Pod share the volume, so the first finding has the fix for all of them.
    patches = tuple(_added(pod, tuple(container for container, _ in limited), ctx.params))
    for container, command in limited:
        message = f"container {container['name'].text} runs {command} and has no volume at {_PATH} (default: 64 MiB)"
        hint = (
            f"mount an emptyDir with medium: Memory and a sizeLimit at {_PATH}; what is written there counts against the "
            "memory limit of the container"
        )
        yield Violation(container["volumeMounts"].path, message, hint=hint, fix=Patches(patches) if patches else None)
        patches = ()


def _limited(pod: Field, ctx: AnyContext) -> Iterator[tuple[Field, str]]:
    """Yield the containers whose processes need more than the default of /dev/shm, and the text of their command."""
    annotations = pod["metadata", "annotations"]
    if (
        pod["spec", "hostIPC"].value is True
        or owner_kind(pod, ctx) in _OWN_VOLUMES
        or any(annotations[key] for key in _ANNOTATIONS)
    ):
        return
    amounts = {
        amount.container.path: int(amount.amount) for amount in requested_amounts(pod, ctx) if amount.name in _GPUS
    }
    for container in pod["spec", "containers"]:
        gpus = amounts.get(container.path, 0)
        if gpus > 1 and not _has_own(container):
            command = _processes(container, ctx.derived(programs)[container.path], gpus)
            if command:
                yield container, command


def _has_own(container: Field) -> bool:
    """Tell whether a volume is mounted at /dev/shm or above it, or NCCL does not use it."""
    mounts = (mount["mountPath"].text.rstrip("/") for mount in container["volumeMounts"])
    return any(path in {_PATH, "/dev"} for path in mounts) or any(
        variable["name"].text == _DISABLED for variable in container["env"]
    )


def _processes(container: Field, started: tuple[Started, ...], gpus: int) -> str:
    """Return the command that starts several processes on the GPUs of a container, with its evidence; empty if unknown."""
    running = running_server(container, started)
    if running is not None:
        sizes = _shards(
            container, running.arguments, running.server.shards, gpus if running.server.shards_by_default else 1
        )
        return f"{running.server.name} on {gpus} GPUs ({sizes})" if sizes else ""
    return next((command for program in started if (command := _launched(program, gpus))), "")


def _shards(container: Field, arguments: Arguments, shards: tuple[tuple[str, ...], ...], default: int) -> str:
    """Return the options with which a server starts several processes; empty if unknown."""
    options = [(names[0], value) for names in shards if (value := arguments.option(names)) is not None]
    several = [f"{name} {_number(value)}" for name, value in options if _number(value) > 1]
    if several or options or default == 1 or arguments.has_expansions or arguments.has_beginning(_SHARDED):
        return ", ".join(several)
    return "" if any(v["name"].text in _SHARDS for v in container["env"]) else "one process for each GPU"


def _launched(started: Started, gpus: int) -> str:
    """Return a launcher that starts several processes in the container, with its options."""
    program, words = started.program, started.words
    if program.startswith("python") and words[:1] == ("-m",) and words[1:2] and words[1] in _TORCH_MODULES:
        program, words = "torchrun", words[2:]
    arguments = Arguments(words)
    if program == "torchrun":
        size = arguments.option(("--nproc-per-node",)) or ""
        command = f"torchrun on {gpus} GPUs (--nproc-per-node {size})"
        return command if size in _EACH_GPU or _number(size) > 1 else ""
    if program == "deepspeed":
        chosen = arguments.has_beginning(("--num-gpus", "--include", "--exclude", "--hostfile"))
        size = arguments.option(("--num-gpus",)) or ""
        if _number(size) > 1:
            return f"deepspeed on {gpus} GPUs (--num_gpus {size})"
        return "" if chosen else f"deepspeed on {gpus} GPUs (one process for each GPU)"
    if program == "accelerate" and words[:1] == ("launch",):
        number, machines = (arguments.option((name,)) or "" for name in ("--num-processes", "--num-machines"))
        of_one = _number(number) > max(_number(machines), 1) and (not machines or bool(_number(machines)))
        return f"accelerate on {gpus} GPUs (--num_processes {number})" if of_one else ""
    return ""


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS else 0


def _added(pod: Field, containers: tuple[Field, ...], params: Params) -> Iterator[Patch]:
    """Yield the patches that mount a volume for some containers; none if memory or names do not allow it."""
    if not containers:
        return
    size = _size(pod, containers, params)
    taken = {volume["name"].text for volume in pod["spec", "volumes"]}
    name = next((name for name in _NAMES if name not in taken), "")
    if not name or size <= _DEFAULT:
        return
    whole, remainder = divmod(size // _MEBIBYTE, 1024)
    limit = f"{size // _MEBIBYTE}Mi" if remainder else f"{whole}Gi"
    volume: dict[str, Json] = {"name": name, "emptyDir": {"medium": "Memory", "sizeLimit": limit}}
    mounting = ", ".join(container["name"].text for container in containers)
    yield Patch("append", pod["spec", "volumes"].path, volume, f"adds {limit} of memory for {_PATH} of {mounting}")
    for container in containers:
        mount: dict[str, Json] = {"name": name, "mountPath": _PATH}
        reason = f"mounts it at {_PATH} of container {container['name'].text}"
        yield Patch("append", container["volumeMounts"].path, mount, reason)


def _size(pod: Field, containers: tuple[Field, ...], params: Params) -> int:
    """Return the size of the volume in bytes: half of the smallest memory limit, at most the parameter."""
    limits = [_bytes(owner["resources", "limits", "memory"]) for owner in (pod["spec"], *containers)]
    return min([int(quantity.parse(params.size_limit)), *(limit // 2 for limit in limits if limit is not None)])


def _bytes(field: Field) -> int | None:
    amount = quantity.parse_or_none(field.value)
    return None if amount is None else int(amount)
