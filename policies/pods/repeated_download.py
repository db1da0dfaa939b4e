"""Model server that downloads its model at the start of each Pod.

## Why is this bad?
The GPU is paid for and serves nothing until the model is downloaded, after each scale-up, rollout, eviction and Spot interruption.
Tens of gigabytes take minutes, and several Pods that start together share the network and the rate limit of the hub.

## Instead
Keep the model on a volume that outlives the Pod, and let the server find it there:

```yaml
containers:
  - name: llm
    image: vllm/vllm-openai:v0.11.0
    args: ["--model", "meta-llama/Llama-3.3-70B-Instruct"]
    env:
      - name: HF_HOME
        value: /models
    volumeMounts:
      - name: models
        mountPath: /models
volumes:
  - name: models
    persistentVolumeClaim:
      claimName: models    # ReadWriteMany for several replicas
```

An image volume with the model, a streaming loader that reads from an object store, and a mirror of the hub in the cluster avoid the
download from the hub too.

A container with GPUs is reported if all of these are true:

- It runs an image of vLLM, SGLang or Text Generation Inference of its project. An image of another registry path may contain the model.
- Its arguments, or `MODEL_ID`, name a model as `organization/name`. A name that states less than one billion parameters, such as
  `opt-125m`, is not reported.
- It mounts nothing but `emptyDir`, ConfigMaps, Secrets and the like, or the directory that `--download-dir`, `HF_HUB_CACHE` or
  `HF_HOME` names is in no other volume. An `emptyDir` keeps the model when the container restarts, but each new Pod has an empty one.
- It sets neither `HF_ENDPOINT`, `HF_HUB_OFFLINE` nor `TRANSFORMERS_OFFLINE`, and no init container has a volume.

## Sources
huggingface_hub 1.1 "Environment variables" (HF_HOME, HF_ENDPOINT, HF_HUB_OFFLINE); vLLM 0.11 `vllm/model_executor/model_loader`
(download, `--load-format`); SGLang 0.5 and Text Generation Inference 3.3 (see the options in `policies/data/model_servers.py`);
Kubernetes v1.36 "Volumes" (emptyDir); llm-d/llm-d issue 2216, kaito-project/kaito issue 1023.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from gpugate.policies.pods._amounts import requested_amounts
from gpugate.policies.sdk.findings import Stance, Violation
from gpugate.policies.sdk.gpu_demand import NAMES_ACCELERATOR
from gpugate.policies.sdk.model_servers import programs, repository_of, running_server
from gpugate.policies.sdk.objects import POD
from gpugate.policies.sdk.policy import validates
from gpugate.policies.sdk.workload_class import ceiling_of_templates, owner_kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.model_servers import Running
    from gpugate.policies.sdk.policy import AnyContext

# Kinds whose Pods have exactly the volumes of their templates, or of claims that the Pods mount by name.
_KINDS: Final = frozenset({"", "Deployment", "LeaderWorkerSet", "ReplicaSet", "StatefulSet"})
_HUB_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,95}/[A-Za-z0-9][A-Za-z0-9_.-]{0,95}")
# The number of parameters in the name of a model, in millions or billions.
_SIZE: Final = re.compile(r"(?<![a-z0-9.])([0-9]{1,4}(?:\.[0-9]{1,3})?)([mb])(?![a-z0-9])", re.IGNORECASE)
# Volumes that are empty when a Pod starts.
_EMPTY: Final = frozenset({"configMap", "downwardAPI", "emptyDir", "name", "projected", "secret"})
_ELSEWHERE: Final = frozenset({"HF_ENDPOINT", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"})
# Variables that name the directory of the cache, in order of precedence; below `HF_HOME` it is a folder.
_CACHES: Final = ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME")
# Loaders of vLLM and SGLang that do not read a model from a hub.
_LOADS_NOTHING: Final = frozenset({"dummy"})


@validates(POD, mode=Stance.AUDIT, concerns=NAMES_ACCELERATOR)
def check(pod: Field, ctx: AnyContext) -> Iterator[Violation]:
    """Report each container with GPUs whose server downloads its model."""
    owner = owner_kind(pod, ctx)
    if (ctx.wrapper is None and owner) or owner not in _KINDS:
        return
    with_gpus = {amount.container.path for amount in requested_amounts(pod, ctx) if amount.amount > 0}
    if not with_gpus or any(container["volumeMounts"].value for container in pod["spec", "initContainers"]):
        return
    empty = {volume["name"].text for volume in pod["spec", "volumes"] if volume.mapping.keys() <= _EMPTY}
    for container in pod["spec", "containers"]:
        if container.path not in with_gpus:
            continue
        running = running_server(container, ctx.derived(programs)[container.path])
        if running is None or repository_of(container) not in running.server.repositories:
            continue
        variables = {variable["name"].text: variable["value"].text for variable in container["env"]}
        persistent = [mount["mountPath"].text for mount in container["volumeMounts"] if mount["name"].text not in empty]
        name = _downloaded(running, variables)
        if name and not (persistent and _is_in(persistent, _cache(running, variables))):
            cache = running.server.cache
            hint = f"mount a PersistentVolumeClaim for the model {f'at {cache}' if cache else 'and set HF_HOME to its path'}"
            yield Violation(
                container["volumeMounts"].path,
                f"{running.server.name} downloads {name} at the start of each Pod: no volume keeps the model",
                ceiling_of_templates(ctx),
                hint,
            )


def _cache(running: Running, variables: dict[str, str]) -> str:
    """Return the directory for a server's downloads; empty if it is unknown."""
    named = (running.arguments.option(("--download-dir",)), *(variables.get(name) for name in _CACHES))
    directory = next((path for path in named if path), running.server.cache)
    return directory if directory.startswith("/") and "$" not in directory else ""


def _is_in(mounts: list[str], directory: str) -> bool:
    """Tell whether a directory may be in one of some mounts; an unknown directory may be in any."""
    return not directory or any(f"{directory}/".startswith(f"{path.rstrip('/')}/") for path in mounts)


def _downloaded(running: Running, variables: dict[str, str]) -> str:
    """Return the name of the model that a server loads from a hub; empty if it may load another one."""
    arguments, server = running.arguments, running.server
    if not variables.keys().isdisjoint(_ELSEWHERE) or arguments.option(("--load-format",)) in _LOADS_NOTHING:
        return ""
    first = arguments.words[:1] if server.model_first else ()
    names = (arguments.option(server.models), *first, variables.get(server.model_variable))
    name = next((name for name in names if name), "")
    return name if _HUB_NAME.fullmatch(name) and not _is_small(name) else ""


def _is_small(name: str) -> bool:
    sizes = [float(number) / (1000 if unit in "mM" else 1) for number, unit in _SIZE.findall(name)]
    return bool(sizes) and max(sizes) < 1
