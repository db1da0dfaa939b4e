"""Server or launcher that is started for another number of GPUs than its container requests.

## Why is this bad?
GPUs that the server does not use stay idle, and no other Pod can use them. A server whose arguments need more GPUs
than its container has exits with an error.

## Instead
Choose parallel sizes whose product is the number of GPUs of the container:

```yaml
containers:
  - name: llm
    image: vllm/vllm-openai:v0.11.0
    args: ["--model", "meta-llama/Llama-3.3-70B-Instruct", "--tensor-parallel-size", "4"]
    resources:
      limits:
        nvidia.com/gpu: "4"
```

The policy reads the commands of vLLM, SGLang and torchrun. vLLM and SGLang use one GPU if no size is given. A server is not
reported in these cases:

- It is spread over several nodes (Ray, LeaderWorkerSet, `--nnodes`).
- It has a configuration file, or its arguments contain variables.
- Its container sets `CUDA_VISIBLE_DEVICES`.

## Sources
vLLM 0.11 `vllm/engine/arg_utils.py`, `vllm/config/parallel.py` (world size); SGLang 0.5 `python/sglang/srt/server_args.py`;
PyTorch 2.9 `torch/distributed/run.py` (`--nproc-per-node`, one GPU for each process by convention).
"""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Final

from gpugate.policies.pods._amounts import requested_amounts
from gpugate.policies.sdk.findings import Stance, Violation
from gpugate.policies.sdk.gpu_demand import NAMES_ACCELERATOR
from gpugate.policies.sdk.model_servers import Arguments, programs, running_server
from gpugate.policies.sdk.objects import POD
from gpugate.policies.sdk.policy import validates
from gpugate.policies.sdk.workload_class import ceiling_of_templates, owner_kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.pods._amounts import RequestedAmount
    from gpugate.policies.sdk.commands import Started
    from gpugate.policies.sdk.field import Field, Path
    from gpugate.policies.sdk.policy import AnyContext

# Whole GPUs; servers count other accelerators differently.
_GPUS: Final = frozenset({"amd.com/gpu", "nvidia.com/gpu"})
_VISIBLE: Final = frozenset({"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"})
# Workloads whose Pods share the GPUs of one server.
_SPREAD: Final = frozenset({"LeaderWorkerSet", "RayCluster", "RayJob", "RayService"})
_PROCESSES: Final = ("--nproc-per-node",)
_MOST_DIGITS: Final = 4
_TORCHRUN: Final = "torchrun"
_IDLE: Final = "GPUs that the server does not use are paid for, and no other Pod can use them."
_MAY_BE_IDLE: Final = "If each process uses one GPU, the others are idle."
_TOO_MANY: Final = "It does not start, because the container has fewer GPUs."


@validates(POD, mode=Stance.WARN, concerns=NAMES_ACCELERATOR)
def check(pod: Field, ctx: AnyContext) -> Iterator[Violation]:
    """Report a container whose command uses a different number of GPUs than it requests."""
    owner = owner_kind(pod, ctx)
    if (owner and ctx.wrapper is None) or owner in _SPREAD:
        return
    amounts: dict[Path, list[RequestedAmount]] = {}
    for amount in requested_amounts(pod, ctx):
        amounts.setdefault(amount.container.path, []).append(amount)
    for container in pod["spec", "containers"]:
        own = amounts.get(container.path, [])
        if len(own) == 1 and own[0].name in _GPUS and own[0].amount >= 1 and not _selects_devices(container):
            for violation in _of_container(container, own[0], ctx.derived(programs)[container.path]):
                yield replace(violation, at_most=ceiling_of_templates(ctx))


def _of_container(container: Field, own: RequestedAmount, started: tuple[Started, ...]) -> Iterator[Violation]:
    gpus = int(own.amount)
    name = container["name"].text
    parallelism = _of_server(container, started) or _of_torchrun(started)
    if parallelism is None or parallelism[1] == gpus:
        return
    program, used, sizes = parallelism
    if program == _TORCHRUN:
        message = (
            f"torchrun starts {_count(used, 'process')} ({sizes}), but container {name} requests {_count(gpus, 'GPU')}"
        )
        hint = f"write --nproc-per-node={gpus}, or request {_count(used, 'GPU')}"
    else:
        idle = f": {_count(gpus - used, 'GPU')} idle" if used < gpus else ""
        message = f"{program} {'uses' if used < gpus else 'needs'} {_count(used, 'GPU')} ({sizes}), but container {name} requests {gpus}{idle}"
        hint = f"request {_count(used, 'GPU')}, or choose sizes whose product is {gpus}"
    why = _TOO_MANY if used > gpus else _MAY_BE_IDLE if program == _TORCHRUN else _IDLE
    yield Violation(own.field.path, message, hint=hint, why=why)


def _of_server(container: Field, started: tuple[Started, ...]) -> tuple[str, int, str] | None:
    """Return a server, the number of GPUs that it uses, and the sizes that determine it; None if unknown."""
    running = running_server(container, started)
    if running is None or not running.alone or not running.server.factors:
        return None
    arguments = running.arguments
    if arguments.has_expansions or arguments.has_beginning(running.server.distributed):
        return None
    sizes = {names[0]: arguments.option(names) for names in running.server.factors}
    given_sizes = {name: _number(size) for name, size in sizes.items() if size is not None}
    numbers = [number for number in given_sizes.values() if number]
    if len(numbers) < len(given_sizes):
        return None
    description = (
        ", ".join(f"{name} {number}" for name, number in given_sizes.items()) or f"{next(iter(sizes))} is 1 by default"
    )
    return running.server.name, prod(numbers), description


def _of_torchrun(started: tuple[Started, ...]) -> tuple[str, int, str] | None:
    launchers = [program for program in started if program.program == _TORCHRUN]
    if len(launchers) != 1:
        return None
    size = Arguments(launchers[0].words).option(_PROCESSES)
    number = _number(size or "")
    return (_TORCHRUN, number, f"{_PROCESSES[0]} {number}") if number else None


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS else 0


def _selects_devices(container: Field) -> bool:
    return any(variable["name"].text in _VISIBLE for variable in container["env"])


def _count(number: int, noun: str) -> str:
    plural = f"{noun}es" if noun.endswith("s") else f"{noun}s"
    return f"{number} {noun if number == 1 else plural}"
