"""GPU Pod on Spot capacity whose shutdown does not fit the two minutes of a Spot interruption.

## Why is this bad?
EC2 takes a Spot instance back two minutes after its notice, even if a Pod has a longer grace period. Requests and work
since the last checkpoint are lost where the shutdown takes longer.

## Instead
Let the whole shutdown end within two minutes, and leave the process time after its `preStop` hook:

```yaml
terminationGracePeriodSeconds: 110
containers:
  - name: llm
    lifecycle:
      preStop:
        sleep:
          seconds: 20    # until no more requests are sent; 90 s remain to finish them
```

Two cases are reported, in Pods that request a GPU and select only Spot capacity by `karpenter.sh/capacity-type`:

- `terminationGracePeriodSeconds` is above 120;
- a `preStop` hook sleeps for the whole grace period, so that the process is killed as soon as it may stop. The hook is
  `sleep`, or an `exec` that runs `sleep` with a number of seconds. The grace period is 30 s by default.

Run work that needs a longer shutdown on on-demand capacity. A Pod that a controller owns is reported at its workload.

## Sources
Amazon EC2 User Guide "Spot Instance interruption notices" (two minutes), 2026-11; Kubernetes v1.36 `k8s.io/api/core/v1`
Lifecycle (the grace period begins before the hook) and PodSpec (default of 30 s);
Karpenter v1.14 documentation "Disruption", Interruption.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.sdk.findings import Stance, Violation
from gpugate.policies.sdk.gpu_demand import CLAIM_NEEDS, MAY_DEMAND, gpu_demand
from gpugate.policies.sdk.node_pools import CAPACITY_TYPE
from gpugate.policies.sdk.objects import POD
from gpugate.policies.sdk.policy import AnyContext, validates
from gpugate.policies.sdk.scheduling import selected
from gpugate.policies.sdk.workload_class import owner_kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field

_NOTICE: Final = 120
_DEFAULT: Final = 30
_SPOT: Final = frozenset({"spot"})
_MOST_DIGITS: Final = 6
_SHELLS: Final = frozenset({"bash", "sh"})


@validates(
    POD,
    mode=Stance.WARN,
    at_most=Stance.WARN,
    needs=CLAIM_NEEDS,
    concerns=MAY_DEMAND,
)
def check(pod: Field, ctx: AnyContext) -> Iterator[Violation]:
    """Compare the grace period with the notice, and the sleep of hooks with the grace period."""
    if (ctx.wrapper is None and owner_kind(pod, ctx)) or selected(CAPACITY_TYPE, ctx) != _SPOT:
        return
    if not ctx.derived(gpu_demand):
        return
    period = pod["spec", "terminationGracePeriodSeconds"]
    grace = _DEFAULT if period.integer is None else period.integer
    if grace > _NOTICE:
        message = f"the grace period is {grace} s; EC2 takes a Spot instance back {_NOTICE} s after its notice"
        hint = f"let the Pod stop within {_NOTICE} s, or select on-demand capacity"
        yield Violation(period.path, message, hint=hint)
        return
    for container in pod["spec", "containers"]:
        hook = container["lifecycle", "preStop"]
        seconds = _slept(hook)
        if seconds is not None and seconds >= grace:
            message = f"preStop sleeps {seconds} s, which is the whole grace period ({grace} s)"
            hint = f"set terminationGracePeriodSeconds above {seconds} and at most {_NOTICE}, or sleep less"
            if seconds >= _NOTICE:
                hint = f"sleep less: EC2 takes a Spot instance back {_NOTICE} s after its notice"
            why = "The process is killed as soon as the hook has ended, with the requests that it still answers."
            yield Violation(hook.path, message, hint=hint, why=why)


def _slept(hook: Field) -> int | None:
    """Return the seconds that a hook sleeps; None if it does anything else."""
    if hook["sleep"]:
        return hook["sleep", "seconds"].integer
    words = list(hook["exec", "command"].texts)
    if len(words) == 3 and words[0].rpartition("/")[2] in _SHELLS and words[1] == "-c":
        words = words[2].split() if len(words[2]) <= 2 * _NOTICE else []
    if len(words) != 2 or words[0].rpartition("/")[2] != "sleep":
        return None
    digits = words[1].removesuffix("s")
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) <= _MOST_DIGITS else None
