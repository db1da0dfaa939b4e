"""Pod with an invalid value of the do-not-disrupt annotation.

## Why is this bad?
The Pod is not protected: Karpenter reads `"true"` and, from 1.12 on, a positive duration, and ignores any other
value. `"True"`, `"yes"`, `"1"` and `"-5m"` protect nothing. A duration protects nothing with Karpenter 1.11 or older.

## Instead
Write `"true"`, in quotes, or a duration such as `12h`: the Pod is then protected for the first 12 hours after its
start.

```yaml
metadata:
  annotations:
    karpenter.sh/do-not-disrupt: "true"
```

`"false"` has the same effect as no annotation. This policy reports it on GPU Pods that do not train;
`pods/unprotected-training` reports it on training Pods. Pods that select a node group (of EKS, GKE, AKS, kOps) are
not reported, because Karpenter does not disrupt its nodes.

## Sources
Karpenter v1.14.1 `pkg/utils/pod/scheduling.go` IsDoNotDisruptActive, parseDoNotDisrupt; v1.11.0 the same file, which
compares with "true" only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.pods._node_groups import is_of_node_group
from gpugate.policies.pods._placement import POOL_NEED
from gpugate.policies.sdk import durations
from gpugate.policies.sdk.concerns import Key
from gpugate.policies.sdk.findings import Patch, Patches, Stance, Violation
from gpugate.policies.sdk.gpu_demand import gpu_demand
from gpugate.policies.sdk.objects import POD
from gpugate.policies.sdk.platform import at_least
from gpugate.policies.sdk.policy import AnyContext, validates
from gpugate.policies.sdk.queues import QUEUE_NEEDS
from gpugate.policies.sdk.workload_class import CLASS_NEEDS, workload_class

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field

_KEY: Final = "karpenter.sh/do-not-disrupt"
_DURATIONS_SINCE: Final = "1.12"
_LONGEST_SHOWN: Final = 20
# Usual spellings of true and false.
_MEANT: Final = {
    **dict.fromkeys(("true", "yes", "y", "on", "1", "enabled"), "true"),
    **dict.fromkeys(("false", "no", "n", "off", "0", "disabled"), "false"),
}


@validates(POD, needs=(*CLASS_NEEDS, *QUEUE_NEEDS, POOL_NEED), concerns=Key("metadata.annotations", (_KEY,)))
def check(pod: Field, ctx: AnyContext) -> Iterator[Violation]:
    """Report a value that has no effect. Without a GPU it is a warning, because little is lost."""
    annotation = pod["metadata", "annotations", _KEY]
    value = annotation.value
    if not isinstance(value, str) or value == "true" or _is_template(value, ctx):
        return
    if ctx.derived(is_of_node_group):
        return
    demand = ctx.derived(gpu_demand)
    if value == "false":
        classified = ctx.derived(workload_class)
        if demand and "training" not in {classified.name, classified.possible}:
            message = f'{_KEY} is "false", which is the same as no annotation'
            hint = "delete the annotation, unless it keeps a tool from adding another value"
            why = "Karpenter may evict the Pod, as without the annotation."
            yield Violation(annotation.path, message, Stance.WARN, hint, why=why)
        return
    wrong = _fault(value, ctx.target.karpenter)
    if not wrong:
        return
    meant = _MEANT.get(value.strip().lower())
    fix = None
    if meant:
        fix = Patches((Patch("set", annotation.path, meant, f'writes "{meant}", which Karpenter reads'),), safe=True)
    yield Violation(
        annotation.path,
        f"{_printable(value)} {wrong}: the Pod is not protected",
        Stance.ENFORCE if demand else Stance.WARN,
        f'write "{meant or "true"}"',
        fix,
    )


def _fault(value: str, karpenter: str) -> str:
    """Return why a version of Karpenter ignores a value other than "true"; empty if it does not."""
    try:
        nanoseconds = durations.parse(value)
    except durations.DurationError:
        return 'is neither "true" nor a duration'
    if nanoseconds <= 0:
        return "is a duration that is over before it starts"
    if not at_least(karpenter, _DURATIONS_SINCE):
        return f"is a duration, which Karpenter reads from {_DURATIONS_SINCE} on (the target is {karpenter})"
    return ""


def _is_template(value: str, ctx: AnyContext) -> bool:
    """Tell whether Argo replaces the value before it creates the Pod."""
    return ctx.wrapper is not None and ctx.wrapper.kind.group == "argoproj.io" and "{{" in value


def _printable(value: str) -> str:
    return f'"{value}"' if len(value) <= _LONGEST_SHOWN else f'"{value[:_LONGEST_SHOWN]}..."'
