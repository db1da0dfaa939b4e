"""GPU Pod for which no NodePool can launch a node.

## Why is this bad?
Karpenter launches no node for the Pod: unless another node has room, the Pod stays Pending.

## Instead
Change the NodePool or the Pod as the finding says. It names, for the NodePools that come closest, the first term that
fails: a taint, a label that nodes of the pool cannot have, instance types without the label or the resources that the
Pod requires in addition to those of DaemonSets, or a limit below the size of one node. `gpugate why` prints this for
each NodePool, and also compares limits that are used up and the zones of volumes.

```yaml
requirements:
  - key: node.kubernetes.io/instance-type
    operator: In
    values: [g6.12xlarge, g6.48xlarge]    # 8 GPUs fit on the second
```

The policy reports a Pod only if all NodePools are known: in a cluster, or in files with `--complete-context`. It does
not report:

- Pods of DaemonSets, and Pods that select nodes of a node group or one node by its name.
- Pods that a known node has room for, and Pods in clusters with GPU nodes that Karpenter did not launch.
- Pods in clusters without a NodePool for GPUs, where something else than Karpenter starts GPU nodes.
- Pods of a Kueue queue whose flavors are not known.
- Pods whose cause another policy reports: a label that exists only on nodes that run (`pods/late-node-label`), a
  missing toleration of GPU nodes (`pods/missing-gpu-toleration`), and limits of a NodePool that are below the size of
  all its nodes (`nodepools/unreachable-limit`).
- Pods with ResourceClaims in files, because files do not contain nodes.

Where gpugate does not know whether a NodePool can launch a node, it can: if its provider is not EC2 and the policy file
does not list all instance types (`platform.catalogue`), if it names an instance type that is newer than gpugate, if it
has a fixed number of nodes (`replicas`), and if a NodeOverlay adds the resource.

## Sources
Karpenter v1.14.1 `pkg/controllers/provisioning/scheduling/scheduler.go` and `nodeclaim.go` (CanAdd),
`pkg/operator/options/options.go` (`--ignore-dra-requests`, default true), `pkg/apis/v1alpha1/nodeoverlay.go`; instance
types: Karpenter AWS provider v1.14.1. A test compares the result with Karpenter's own scheduler on random pools and
Pods.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.pods._node_groups import is_bound
from gpugate.policies.pods._placement import LATE_LABELS, given_labels, has_accelerators, is_of_daemon_set
from gpugate.policies.sdk.facts import Known, Need, derived, object_contexts
from gpugate.policies.sdk.findings import Stance, Violation
from gpugate.policies.sdk.gpu_demand import CLAIM_NEEDS, MAY_DEMAND, gpu_demand
from gpugate.policies.sdk.launch_failures import results
from gpugate.policies.sdk.node_pools import (
    INSTANCE_TYPES,
    NODE_POOL_LABEL,
    accelerator_taint_keys,
    is_for_accelerators,
)
from gpugate.policies.sdk.objects import NODE, NODE_POOL, POD
from gpugate.policies.sdk.platform import Taint
from gpugate.policies.sdk.pod_requests import demand, read_amounts
from gpugate.policies.sdk.policy import Context, validates
from gpugate.policies.sdk.policy import Params as PolicyParams
from gpugate.policies.sdk.provisioning import PROVISIONING_NEEDS, launch_pools, launchable
from gpugate.policies.sdk.queues import QUEUE_NEEDS, admission
from gpugate.policies.sdk.scheduling import HARD_EFFECTS, REQUIRED, alternatives
from gpugate.policies.sdk.structs import Struct
from gpugate.policies.sdk.volumes import VOLUME_NEEDS
from gpugate.policies.sdk.workload_class import ceiling_of_templates, owner_kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field, Path
    from gpugate.policies.sdk.launch_failures import Failure, Result
    from gpugate.policies.sdk.pod_requests import Demand
    from gpugate.policies.sdk.policy import AnyContext
    from gpugate.policies.sdk.quantity import Amount

_WHY: Final = "Karpenter launches no node for the Pod: unless another node has room, it stays Pending."
# API groups of workloads whose Pods have only the tolerations of their templates; other controllers may add some.
_OWN_GROUPS: Final = frozenset({"", "apps", "batch"})
# Taints for the state of a node, such as not ready, which end (kubernetes v1.36 `pkg/controller/nodelifecycle`, Karpenter
# v1.14.1 `pkg/apis/v1/taints.go`).
_TRANSIENT: Final = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/", "karpenter.sh/")
_NAMED: Final = 2
_MIG_POLICIES: Final = ("pods/unknown-mig-profile", "pods/mig-without-claim", "pods/invalid-gpu-quantity")


class Params(PolicyParams, frozen=True, kw_only=True):
    """How Karpenter is configured.

    Attributes:
        ignore_dra_requests: whether Karpenter ignores Pods with ResourceClaims, as it does by default.
    """

    ignore_dra_requests: bool = True


@validates(
    POD,
    params=Params,
    mode=Stance.WARN,
    needs=(
        *PROVISIONING_NEEDS,
        *QUEUE_NEEDS,
        *CLAIM_NEEDS,
        Need(NODE, ("metadata.labels", "spec.taints", "status.capacity")),
    ),
    tables=(INSTANCE_TYPES,),
    concerns=MAY_DEMAND,
)
def check(pod: Field, ctx: Context[Params]) -> Iterator[Violation]:
    """Report a GPU Pod or template, if all NodePools are known and none can launch a node for it."""
    if (ctx.wrapper is None and owner_kind(pod, ctx)) or is_of_daemon_set(pod, ctx) or pod["spec", "nodeName"].text:
        return
    pools = ctx.facts.list(NODE_POOL)
    if not (isinstance(pools, Known) and pools.complete and pools.items and ctx.derived(gpu_demand)):
        return
    ignored = ctx.params.ignore_dra_requests
    queue = admission(ctx)
    wanted = [(demand(placement.pod, placement.ctx), placement.ctx) for placement in queue.placements]
    if queue.doubt or any(launchable(requested, around, ignores_claims=ignored) for requested, around in wanted):
        return
    # Without a pool for GPUs, GPU nodes are not started by Karpenter.
    if not derived(pools, _for_gpus, ctx) or is_bound(pod, ctx) or _is_late(pools, ctx):
        return
    if _may_run_on_a_node(wanted[0][0], ctx):
        return
    outcomes = results(wanted[0][0], wanted[0][1], ignores_claims=ignored)
    too_small = derived(pools, _with_limits_below_one_node, ctx)
    if not any(_is_for_another(outcome, pod, too_small, ctx) for outcome in outcomes):
        reason = _reason(outcomes, pools, ctx)
        yield Violation(
            _path(reason.closest, wanted[0][0].pod),
            f"no NodePool can launch a node for it: {reason.text}",
            ceiling_of_templates(ctx),
            reason.hint,
            why=_WHY,
            same_as=_MIG_POLICIES,
        )


class Reason(Struct, frozen=True):
    """Why no NodePool can launch a node for a Pod.

    Attributes:
        text: the NodePools that come closest, each with the first term that fails.
        hint: the smallest change, as an imperative.
        closest: the failure of the NodePool that comes closest.
        results: the result of each NodePool, sorted by name.
    """

    text: str
    hint: str
    closest: Failure
    results: tuple[Result, ...]


# The needs of `why_pending` in addition to those of the policy.
PENDING_NEEDS: Final = (Need(NODE_POOL, ("status.resources",)), *VOLUME_NEEDS)


def why_pending(wanted: Demand, ctx: AnyContext, *, ignores_claims: bool) -> Reason | None:
    """Return why no NodePool can launch a node for a Pod that is not scheduled; None if one can, or may.

    Unlike the policy, it counts resources in use towards limits, and compares the zones of volumes. It does not compare
    nodes of NodePools, because they have no room for the Pod now. If the policy does not evaluate the Pod, or another
    policy reports the cause, the result is None too.
    """
    pools = ctx.facts.list(NODE_POOL)
    if not (isinstance(pools, Known) and pools.complete and derived(pools, _for_gpus, ctx)):
        return None
    if is_of_daemon_set(wanted.pod, ctx) or is_bound(wanted.pod, ctx) or _is_late(pools, ctx):
        return None
    nodes = _known_nodes(ctx)
    if any(node.has_accelerators and (wanted.claims or not node.of_pool) for node in nodes):
        return None
    if wanted.claims and not nodes:
        return None
    outcomes = results(wanted, ctx, ignores_claims=ignores_claims, used=True)
    too_small = derived(pools, _with_limits_below_one_node, ctx)
    if any(outcome.failure is None or _is_for_another(outcome, wanted.pod, too_small, ctx) for outcome in outcomes):
        return None
    return _reason(outcomes, pools, ctx)


def _is_late(pools: Known, ctx: AnyContext) -> bool:
    """Tell whether each alternative requires a label that exists only on running nodes and that no pool sets."""
    provided = derived(pools, given_labels, ctx)
    return all(
        any(
            key.startswith(LATE_LABELS) and key not in provided and r.operator in {"In", "Exists"}
            for key, r in required.items()
        )
        for required in ctx.derived(alternatives)
    )


def _with_limits_below_one_node(pools: Known, ctx: AnyContext) -> frozenset[str]:
    """Return the NodePools whose limits exclude all their accelerator types; nodepools/unreachable-limit reports them."""
    return frozenset(
        pool.name
        for pool in launch_pools(ctx)
        if pool.offer
        and pool.offer.types.accelerated
        and not pool.offer.types.accelerated & pool.offer.within
        and all(limit > 0 for limit in pool.remaining.values())
        and pool.name in derived(pools, _for_gpus, ctx)
    )


def _is_for_another(result: Result, pod: Field, too_small: frozenset[str], ctx: AnyContext) -> bool:
    """Tell whether another policy reports the cause, or the Pod may have a toleration that its template lacks.

    A RuntimeClass and the controllers of custom workloads may add tolerations.
    """
    failure = result.failure
    if failure is None or failure.term != "taints":
        return failure is not None and failure.term == "limits" and result.pool in too_small
    added = ctx.wrapper is not None and ctx.wrapper.kind.group not in _OWN_GROUPS
    return added or bool(pod["spec", "runtimeClassName"]) or failure.key in accelerator_taint_keys(ctx)


class _Node(Struct, frozen=True):
    """A node: whether Karpenter launched it for a pool, its labels, taints and capacity."""

    of_pool: bool
    has_accelerators: bool
    labels: dict[str, str]
    taints: tuple[tuple[Taint, str], ...]
    capacity: dict[str, Amount]


def _may_run_on_a_node(wanted: Demand, ctx: AnyContext) -> bool:
    """Tell whether a known node, or a new node of its group, may take the Pod.

    Without known nodes, one may have the devices of a claim. Cluster autoscalers start nodes like the running ones.
    Free resources are not compared, because ending Pods release them.
    """
    nodes = _known_nodes(ctx)
    if wanted.claims:
        return not nodes or any(node.has_accelerators for node in nodes)
    return any((not node.of_pool and node.has_accelerators) or _fits(wanted, node) for node in nodes)


def _known_nodes(ctx: AnyContext) -> tuple[_Node, ...]:
    fact = ctx.facts.list(NODE)
    return derived(fact, _nodes, ctx) if isinstance(fact, Known) else ()


def _nodes(known: Known, ctx: AnyContext) -> tuple[_Node, ...]:
    return tuple(
        _Node(
            NODE_POOL_LABEL in node["metadata", "labels"].mapping,
            has_accelerators(node, ctx),
            node["metadata", "labels"].labels,
            tuple(
                (Taint(key=taint["key"].text, value=taint["value"].text), taint["effect"].text)
                for taint in node["spec", "taints"]
                if taint["effect"].text in HARD_EFFECTS and not taint["key"].text.startswith(_TRANSIENT)
            ),
            dict(read_amounts(node["status", "capacity"])),
        )
        for node in known.items
    )


def _fits(wanted: Demand, node: _Node) -> bool:
    return (
        all(node.capacity.get(name, 0) >= amount for name, amount in wanted.requests.items() if "/" in name)
        and all(map(wanted.tolerates, node.taints))
        and any(
            all(
                r.allows(node.labels[key]) if key in node.labels else r.operator not in {"In", "Exists"}
                for key, r in required.items()
            )
            for required in wanted.alternatives
        )
    )


def _reason(outcomes: tuple[Result, ...], pools: Known, ctx: AnyContext) -> Reason:
    for_gpus = derived(pools, _for_gpus, ctx)
    failed = [(outcome.pool, outcome.failure) for outcome in outcomes if outcome.failure]
    # Sorted by how close they come.
    failed.sort(key=lambda pair: (pair[0] not in for_gpus, -pair[1].rank, pair[0]))
    pool, closest = failed[0]
    if closest.term == "claims":
        text = closest.text
    else:
        listed = "; ".join(f"NodePool {name}: {failure.text}" for name, failure in failed[:_NAMED])
        text = listed + (f"; and {len(failed) - _NAMED} more" if len(failed) > _NAMED else "")
    hint = closest.change if closest.of_pod else f"in NodePool {pool}, {closest.change}"
    if not closest.change:
        hint = "run `gpugate why` to compare the Pod with each NodePool"
    return Reason(text, hint, closest, outcomes)


def _for_gpus(pools: Known, ctx: AnyContext) -> frozenset[str]:
    return frozenset(
        pool.subject["metadata", "name"].text
        for pool in object_contexts(pools, ctx)
        if pool.derived(is_for_accelerators)
    )


def _path(failure: Failure, pod: Field) -> Path:
    """Return the path of the Pod's field that a pool cannot meet."""
    spec = pod["spec"]
    if failure.term == "claims":
        return spec["resourceClaims"].path
    if failure.term == "taints":
        return spec["tolerations"].path
    if failure.key in spec["nodeSelector"].mapping:
        return spec["nodeSelector", failure.key].path
    if failure.term in {"labels", "types"}:
        keys = [entry["key"] for term in pod[REQUIRED] for entry in term["matchExpressions"]]
        return next((key for key in keys if key.text == failure.key), spec).path
    for container in (*spec["containers"], *spec["initContainers"]):
        for block in ("limits", "requests"):
            amounts: Field = container["resources", block]
            if failure.key and failure.key in amounts.mapping:
                return amounts[failure.key].path
    return spec["containers"].path
