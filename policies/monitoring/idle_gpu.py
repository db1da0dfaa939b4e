"""Pod whose GPUs did not work.

## Why is this bad?
The GPUs cost as much as if they worked, and no other Pod can use them. Typical causes are forgotten notebooks, jobs that hang, and
inference servers without requests.

## Instead
Ask the owner of the Pod. Delete what is not needed any more. Scale an inference server without requests to zero, with a signal that
does not come from its own Pods, such as a queue or a gateway. If the GPUs must stay allocated, exempt the Pods, with a reason, an
owner and an end:

```yaml
exemptions:
  - policies: [monitoring/idle-gpu]
    namespaces: [serving]
    names: ["llm-standby-*"]
    reason: "hot standby of the search cluster"
    owner: search
    expires: 2027-03-31
```

`gpugate audit --prometheus URL` measures the use of GPUs and evaluates this policy for each Pod with an idle or parked GPU; its
report defines when a GPU is idle or parked. The audit states the use in the annotation
`gpugate.dev/gpu-use` of the copy of the Pod that it evaluates. A tool of your platform may write the annotation to Pods too: its value is `idle` or
`parked`, and after a colon the evidence. A finding is only recorded, in every mode of the policy.

## Sources
dcgm-exporter 4.5.3-4.8.2 `etc/dcp-metrics-included.csv`; `docs/how-to/idle-gpus.md`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.sdk.concerns import Key
from gpugate.policies.sdk.findings import Stance, Violation
from gpugate.policies.sdk.objects import POD
from gpugate.policies.sdk.policy import validates

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.policy import AnyContext

GPU_USE: Final = "gpugate.dev/gpu-use"
_MESSAGES: Final = {
    "idle": "its GPUs did not work",
    "parked": "its GPUs did not work, but have data such as a model in memory",
}
_HINTS: Final = {
    "idle": "ask its owner whether it is still needed",
    "parked": "ask its owner whether it can be scaled to zero without requests",
}
_MOST_CHARACTERS: Final = 300


@validates(POD, mode=Stance.AUDIT, at_most=Stance.AUDIT, concerns=Key("metadata.annotations", (GPU_USE,)))
def check(pod: Field, _: AnyContext) -> Iterator[Violation]:
    """Report a Pod by the use that was measured."""
    use, _colon, evidence = pod["metadata", "annotations", GPU_USE].text.partition(":")
    if use not in _MESSAGES:
        return
    evidence = evidence.strip()[:_MOST_CHARACTERS]
    message = f"{_MESSAGES[use]} ({evidence})" if evidence else _MESSAGES[use]
    yield Violation(pod["spec"].path, message, hint=_HINTS[use])
