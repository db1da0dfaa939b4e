"""Liveness probe that restarts a model server before it has loaded its model.

## Why is this bad?
The container is restarted while it loads the model, then loads it again, and never serves a request. The GPU is paid for
all the while. Larger models, a slow network and a cold cache make it happen after weeks without trouble.

## Instead
Add a `startupProbe`: the liveness probe begins only after it has succeeded.

```yaml
startupProbe:
  httpGet:
    path: /health
    port: 8000
  periodSeconds: 10
  failureThreshold: 60    # up to ten minutes
livenessProbe:
  httpGet:
    path: /health
    port: 8000
```

The policy knows vLLM, SGLang, Text Generation Inference, TensorRT-LLM and llama.cpp by their command or image. None of them
answers an HTTP health check with success before the model is loaded. A container with a GPU is reported if its liveness probe
uses `httpGet`, it has no `startupProbe`, and `initialDelaySeconds` + `periodSeconds` * `failureThreshold` is below
`min_seconds`.

## Sources
Kubernetes v1.36 "Configure Liveness, Readiness and Startup Probes", `k8s.io/api/core/v1` Probe (defaults 0, 10 and 3);
vLLM 0.11 `vllm/entrypoints/openai/api_server.py` (listens after the engine is ready); llama.cpp `tools/server/README.md`
(`/health` is 503 while the model loads); kserve/kserve issue 5062, vllm-project/aibrix issue 1054.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec

from gpugate.policies.pods._amounts import requested_amounts
from gpugate.policies.sdk.findings import Patch, Patches, Stance, Violation
from gpugate.policies.sdk.gpu_demand import NAMES_ACCELERATOR
from gpugate.policies.sdk.model_servers import programs, running_server
from gpugate.policies.sdk.objects import POD
from gpugate.policies.sdk.policy import Context, validates
from gpugate.policies.sdk.policy import Params as PolicyParams
from gpugate.policies.sdk.workload_class import ceiling_of_templates, owner_kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field


class Params(PolicyParams, frozen=True, kw_only=True):
    """How long a model may take to load.

    Attributes:
        min_seconds: a probe is reported if it can restart a container sooner than this after its start.
    """

    min_seconds: Annotated[int, msgspec.Meta(ge=0, le=86_400)] = 120


@validates(POD, params=Params, mode=Stance.WARN, concerns=NAMES_ACCELERATOR)
def check(pod: Field, ctx: Context[Params]) -> Iterator[Violation]:
    """Report the liveness probe of each container with a GPU and a model server."""
    if ctx.wrapper is None and owner_kind(pod, ctx):
        return
    with_gpus = {amount.container.path for amount in requested_amounts(pod, ctx) if amount.amount > 0}
    for container in pod["spec", "containers"]:
        probe = container["livenessProbe"]
        if not probe["httpGet"] or container["startupProbe"] or container.path not in with_gpus:
            continue
        running = running_server(container, ctx.derived(programs)[container.path])
        seconds = _seconds_to_restart(probe)
        if running is None or not running.server.answers_when_loaded or seconds >= ctx.params.min_seconds:
            continue
        message = f"restarts {running.server.name} if its model is not loaded about {seconds} s after the start"
        hint = "add a startupProbe that allows as long as the model can take to load"
        yield Violation(probe.path, message, ceiling_of_templates(ctx), hint, _fix(container, probe))


def _seconds_to_restart(probe: Field) -> int:
    delay, period, failures = (
        default if (value := probe[name].integer) is None else value
        for name, default in (("initialDelaySeconds", 0), ("periodSeconds", 10), ("failureThreshold", 3))
    )
    return delay + period * failures


def _fix(container: Field, probe: Field) -> Patches:
    startup = {"httpGet": probe["httpGet"].value, "periodSeconds": 10, "failureThreshold": 60}
    reason = "allows ten minutes to load the model before the liveness probe begins"
    return Patches((Patch("set", container["startupProbe"].path, startup, reason),), safe=True)
