"""Rolling update that needs more GPUs than the node pools or the quota allow.

## Why is this bad?
The rollout does not end. The new Pod waits for a GPU, and the old Pod that has it stops only when the new one is ready.
The old version keeps running, and the Deployment reports a failed rollout after ten minutes.

## Instead
Let the old Pod stop first:

```yaml
strategy:
  type: RollingUpdate
  rollingUpdate:
    maxSurge: 0
    maxUnavailable: 1
```

One replica is then missing while the new Pod starts. If that is not acceptable, raise the limit of the node pool or the
quota by the GPUs of one Pod.

Kubernetes rounds `maxSurge` up and `maxUnavailable` down: with the defaults (25 %), a Deployment with one to three
replicas starts a new Pod before an old one stops. The policy reports a Deployment whose rollout starts a new Pod before
an old one stops, if the limit on GPUs is enough for its replicas but not for one more Pod. The limit is the sum of the
limits of all node pools that can run the Pod, or a ResourceQuota of the namespace. The policy uses the limits of node
pools only if all NodePools are known, and each pool that can run the Pod has a limit. If not even the replicas fit
within the pools, `scaling/gpu-ceiling` reports the Deployment instead.

## Sources
Kubernetes v1.36.3 `pkg/controller/deployment/util/deployment_util.go` ResolveFenceposts, `pkg/apis/apps/v1/defaults.go`
(25 % each), `pkg/apis/apps/validation/validation.go` (both may not be 0); Karpenter v1.14.1
`pkg/controllers/provisioning/scheduling` (limits of pools); ai-runway/airunway issue 400, defilantech/LLMKube issue 192,
bayesimpact/bayes-platform pull request 776.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from gpugate.policies.pods._node_groups import is_of_node_group
from gpugate.policies.pods._placement import pools_for
from gpugate.policies.sdk import quantity
from gpugate.policies.sdk.facts import Known, Need
from gpugate.policies.sdk.findings import Patch, Patches, Skip, Stance, Violation
from gpugate.policies.sdk.gpu_demand import CLAIM_NEEDS, gpu_demand
from gpugate.policies.sdk.node_pools import INSTANCE_TYPES, limits
from gpugate.policies.sdk.objects import DEPLOYMENT, NODE_POOL, RESOURCE_QUOTA
from gpugate.policies.sdk.policy import AnyContext, validates
from gpugate.policies.sdk.queues import QUEUE_NEEDS
from gpugate.policies.sdk.scale_targets import template_contexts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.gpu_demand import GpuDemand
    from gpugate.policies.sdk.quantity import Amount

_DEFAULT: Final = 25  # percent
_MOST_DIGITS: Final = 5
_QUOTA: Final = Need(RESOURCE_QUOTA, ("spec.hard", "spec.scopeSelector", "spec.scopes"))
_POOLS: Final = Need(NODE_POOL, ("spec.limits", "spec.template"))
_SHOWN: Final = 5


class _Ceiling(NamedTuple):
    """The maximum of a resource, with the texts for its messages: what sets it, and what to raise."""

    amount: Amount
    subject: str
    raised: str


@validates(
    DEPLOYMENT,
    mode=Stance.WARN,
    at_most=Stance.WARN,
    needs=(*CLAIM_NEEDS, *QUEUE_NEEDS, _POOLS, _QUOTA),
    tables=(INSTANCE_TYPES,),
)
def check(deployment: Field, ctx: AnyContext) -> Iterator[Violation | Skip]:
    """Compare the GPUs of all replicas and one more with the maximum."""
    spec = deployment["spec"]
    replicas = 1 if spec["replicas"].integer is None else spec["replicas"].integer
    if replicas < 1 or not _starts_first(spec, replicas):
        return
    for pods in template_contexts(DEPLOYMENT, deployment, ctx):
        demand = pods.derived(gpu_demand)
        if not demand.resources or pods.derived(is_of_node_group):
            continue
        surge, pools = spec["strategy", "rollingUpdate", "maxSurge"], _limits(demand, pods)
        for resource, count in sorted(demand.resources.items()):
            for ceiling in _ceilings(resource, pools, pods):
                if isinstance(ceiling, Skip):
                    yield ceiling
                elif replicas * count <= ceiling.amount < (replicas + 1) * count:
                    total = f"{replicas + 1} Pods x {count} {resource} = {(replicas + 1) * count}"
                    message = f"a rollout needs {total}; {ceiling.subject} only {ceiling.amount}"
                    hint = f"set maxSurge: 0 and maxUnavailable: 1, or raise {ceiling.raised}"
                    yield Violation(surge.path, message, hint=hint, fix=_fix(spec))
                    return


def _starts_first(spec: Field, replicas: int) -> bool:
    """Tell whether a rollout starts a Pod before it stops an old one."""
    update = spec["strategy", "rollingUpdate"]
    if spec["strategy", "type"].text not in {"", "RollingUpdate"}:
        return False
    surge, unavailable = _resolved(update["maxSurge"], replicas), _resolved(update["maxUnavailable"], replicas)
    return surge is not None and unavailable is not None and surge[1] > 0 and unavailable[0] == 0


def _resolved(field: Field, replicas: int) -> tuple[int, int] | None:
    """Return a number or percentage of replicas, rounded down and up; None for other values."""
    if field.integer is not None:
        return field.integer, field.integer
    digits = field.text.removesuffix("%")
    if field and not (
        field.text.endswith("%") and digits.isascii() and digits.isdigit() and len(digits) <= _MOST_DIGITS
    ):
        return None
    percent = int(digits) if field else _DEFAULT
    return percent * replicas // 100, -(-percent * replicas // 100)


def _ceilings(resource: str, pools: dict[str, dict[str, Amount]] | Skip, ctx: AnyContext) -> Iterator[_Ceiling | Skip]:
    yield from _of_quotas(resource, ctx)
    if isinstance(pools, Skip):
        yield pools
    elif pools and all(resource in limited for limited in pools.values()):
        names = sorted(pools)
        subject = f"pool {names[0]} allows" if len(names) == 1 else f"{len(names)} pools allow"
        amount = sum(limited[resource] for limited in pools.values())
        yield _Ceiling(amount, subject, f"the limits of {', '.join(names[:_SHOWN])}")


def _limits(demand: GpuDemand, ctx: AnyContext) -> dict[str, dict[str, Amount]] | Skip:
    """Return the limits of each pool that can take the Pod, by its name; a skip if not all pools are known."""
    pools = ctx.facts.list(NODE_POOL)
    if not isinstance(pools, Known):
        return Skip(pools.reason)
    if not pools.complete:
        return Skip("not all NodePools are known")
    matches = pools_for(ctx.subject, demand, ctx)
    return {pool["metadata", "name"].text: limits(pool) for match in matches for pool in match.pools}


def _of_quotas(resource: str, ctx: AnyContext) -> Iterator[_Ceiling]:
    """Yield the ceiling of each known ResourceQuota that counts every Pod of the namespace."""
    quotas = ctx.facts.list(RESOURCE_QUOTA, ctx.request.namespace)
    for quota in quotas.items if isinstance(quotas, Known) else ():
        hard = quota["spec", "hard", f"requests.{resource}"]
        if not hard or quota["spec", "scopes"] or quota["spec", "scopeSelector"]:
            continue
        amount = quantity.parse_or_none(hard.value)
        if amount is None:
            continue
        name = quota["metadata", "name"].text
        yield _Ceiling(amount, f"ResourceQuota {name} allows", f"requests.{resource} of ResourceQuota {name}")


def _fix(spec: Field) -> Patches:
    update = spec["strategy", "rollingUpdate"]
    reason = "stops an old Pod before a new one starts"
    patches = [Patch("set", update["maxSurge"].path, 0, reason)]
    # The API server rejects 0 for both. A share of less than one Pod counts as 1.
    if update["maxUnavailable"].value in {0, "0", "0%"}:
        patches.append(Patch("set", update["maxUnavailable"].path, 1, reason))
    return Patches(tuple(patches))
