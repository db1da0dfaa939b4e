"""Training NodePool whose nodes expire while they are in use.

## Why is this bad?
Training Pods lose their work since the last checkpoint, because Karpenter drains a node that reaches `expireAfter`.
Disruption budgets do not prevent that. The default is 30 days. Pods with the annotation `karpenter.sh/do-not-disrupt`
keep running, but their node accepts no other Pods, and it costs money until they end.

With a `terminationGracePeriod` all Pods are deleted after that time, so it must be long enough to write a checkpoint.

## Instead
```yaml
spec:
  template:
    spec:
      expireAfter: Never
```

If nodes must be renewed, write a `terminationGracePeriod` of at least `min_grace`. If it is set, Karpenter also
replaces drifted nodes whose Pods have the annotation `karpenter.sh/do-not-disrupt`, and deletes these Pods. A change of
either field replaces the existing nodes.

A pool counts as a training pool by its labels, as `nodepools/training-on-spot` describes.

## Sources
Karpenter v1.14.1 `pkg/apis/v1/nodeclaim.go` (both fields), `pkg/controllers/nodeclaim/expiration` (no budget, no
annotation), `pkg/apis/crds/karpenter.sh_nodepools.yaml` (default of 720h); documentation v1.14 "Disruption".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpugate.policies.nodepools._gpu_pools import if_gpu_pool, is_training
from gpugate.policies.sdk import durations
from gpugate.policies.sdk.durations import Duration, DurationError
from gpugate.policies.sdk.findings import Patch, Patches, Skip, Stance, Violation
from gpugate.policies.sdk.node_pools import INSTANCE_TYPES
from gpugate.policies.sdk.objects import NODE_POOL
from gpugate.policies.sdk.policy import Context, validates
from gpugate.policies.sdk.policy import Params as PolicyParams

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field


class Params(PolicyParams, frozen=True, kw_only=True):
    """When an expiry is allowed.

    Attributes:
        min_grace: the shortest `terminationGracePeriod` in which a run can save its state.
    """

    min_grace: Duration = "1h"


@validates(NODE_POOL, params=Params, mode=Stance.WARN, tables=(INSTANCE_TYPES,))
def check(pool: Field, ctx: Context[Params]) -> Iterator[Violation | Skip]:
    """Report an age without a grace period, and a grace period that is too short."""
    if is_training(pool, ctx):
        yield from if_gpu_pool(pool, ctx, _violations(pool["spec", "template", "spec"], ctx.params.min_grace))


def _violations(node: Field, min_grace: str) -> Iterator[Violation]:
    age, grace = node["expireAfter"], node["terminationGracePeriod"]
    if age.text in {"", "Never"}:
        return
    hint = f"write expireAfter: Never, or a terminationGracePeriod of {min_grace} or more"
    if not grace:
        patch = Patch("set", age.path, "Never", "lets training finish regardless of the age of its node")
        message = f"expireAfter {age.text[:20]}: Karpenter drains nodes of that age, even if training runs on them"
        yield Violation(age.path, message, hint=hint, fix=Patches((patch,)))
        return
    try:
        short = durations.parse(grace.text) < durations.parse(min_grace)
    except DurationError:  # the API server rejects it
        return
    if short:
        message = f"training has {grace.text} to save its state when a node expires (minimum: {min_grace})"
        why = "When the period ends, Karpenter deletes the remaining Pods, which lose their work since the last checkpoint."
        yield Violation(grace.path, message, hint=hint, why=why)
