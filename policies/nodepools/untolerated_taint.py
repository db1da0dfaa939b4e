"""GPU pool with a taint that the DaemonSets for its GPUs do not tolerate.

## Why is this bad?
Without its device plugin a GPU node offers no GPUs: its Pods stay Pending, and the node costs money. Karpenter does
not treat such a node as initialized. Without the metrics exporter its GPUs are not measured.

The device plugin, feature discovery and the metrics exporter run as DaemonSets. They usually tolerate only the taint
of their accelerator, such as `nvidia.com/gpu`. A second taint, such as one for Spot, keeps them off the node.

## Instead
Remove the second taint. Pods can select or avoid nodes by label instead, because Karpenter sets
`karpenter.sh/capacity-type` and other labels on every node. If you need the taint, add a toleration to the
DaemonSets. The GPU operator adds the tolerations in its Helm value `daemonsets.tolerations` to its DaemonSets:

```yaml
tolerations:
  - {key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}
  - {key: karpenter.sh/capacity-type, operator: Exists, effect: NoSchedule}
```

gpugate checks each DaemonSet that tolerates the taint of the pool's accelerator and whose node selector can match the
pool's nodes. It reports every other taint of the pool that such a DaemonSet does not tolerate. It also reports a taint
if it finds no such DaemonSet and cannot know whether one exists. This is usual for `check`, which reads only the given
files. By default, the device plugins of NVIDIA, AMD and Neuron tolerate only the taint of their accelerator. With other
values of their charts they may tolerate more. List the keys that they tolerate in `tolerated`.

Without such a DaemonSet, gpugate reports a taint only for pools with an EC2NodeClass. It does not report taints for EKS
Auto Mode, GKE and AKS: nodes of EKS Auto Mode include a device plugin, GKE installs one that tolerates every taint, and
the one in the AKS documentation tolerates `sku=gpu`. EC2 nodes with Bottlerocket include NVIDIA's plugin: list the keys
of their taints in `tolerated`.

When a DaemonSet is evaluated, it is compared with the pools in the same way.

## Sources
NVIDIA gpu-operator v26.7.0 `deployments/gpu-operator/values.yaml` (`daemonsets.tolerations`); NVIDIA k8s-device-plugin
v0.17.1 `deployments/helm/nvidia-device-plugin/values.yaml` (`tolerations`); EKS user guide "Install the Kubernetes
device plugin for GPUs", as of 2026-11-22; Karpenter v1.14.1 `pkg/controllers/nodeclaim/lifecycle/initialization.go`
(RequestedResourcesRegistered); Kubernetes v1.36 `pkg/controller/daemon/daemon_controller.go` (NodeShouldRunDaemonPod);
EKS user guide "Deploy an accelerated workload", as of 2026-11-21; AKS documentation "Use GPUs for compute-intensive
workloads", GKE documentation "Run GPUs in GKE Standard node pools", as of 2026-11-22.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.nodepools._accelerators import makes
from gpugate.policies.nodepools._gpu_pools import if_gpu_pool
from gpugate.policies.sdk import scheduling
from gpugate.policies.sdk.concerns import Each, Listed, Text
from gpugate.policies.sdk.facts import Known, Need, Unavailable, object_contexts
from gpugate.policies.sdk.findings import Other, Patch, Patches, Skip, Stance, Violation
from gpugate.policies.sdk.node_pools import (
    AWS,
    INSTANCE_TYPES,
    NODE_POOL_LABEL,
    accelerator_taint_keys,
    is_for_accelerators,
    matching_types,
    pool_requirements,
    provider,
)
from gpugate.policies.sdk.objects import DAEMON_SET, NODE_POOL
from gpugate.policies.sdk.platform import Taint
from gpugate.policies.sdk.policy import Context, validates
from gpugate.policies.sdk.policy import Params as PolicyParams
from gpugate.policies.sdk.scheduling import HARD_EFFECTS, alternatives, tolerated
from gpugate.policies.sdk.structs import replace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.policy import AnyContext
    from gpugate.policies.sdk.scheduling import Requirement, Requirements

# Sources: `k8s.io/component-helpers/scheduling/corev1/nodeaffinity`, v0.36; Kubernetes v1.36
# `pkg/controller/daemon/util/daemonset_util.go` (AddOrUpdateDaemonPodTolerations: the taints under `node.kubernetes.io` are
# tolerated by all of them).
DAEMON_SET_NEED: Final = Need(
    DAEMON_SET,
    (
        "spec.template.spec.affinity.nodeAffinity",
        "spec.template.spec.nodeSelector",
        "spec.template.spec.tolerations",
    ),
)
_KEPT_OFF: Final = (
    "If the DaemonSet is a device plugin, Pods cannot use the GPUs of these nodes. If it is an exporter, these GPUs have "
    "no metrics."
)
_WITHOUT_PLUGIN: Final = (
    "Nodes without a device plugin report no GPUs: GPU Pods stay Pending, and Karpenter does not treat the nodes as "
    "initialized. Nodes with Bottlerocket include NVIDIA's plugin and are not affected."
)
_TOLERATED_BY_ALL: Final = "node.kubernetes.io/"
# Domains of labels that nodes have although the pool does not set them: those of the cluster, the cloud, and feature
# discovery.
_GIVEN_BY: Final = (
    *("kubernetes.io", "k8s.io", "karpenter.sh", "k8s.aws", "amazonaws.com", "azure.com", "google.com"),
    *("nvidia.com", "amd.com", "aws.amazon.com", "habana.ai"),
)
_WITHOUT_THE_LABEL: Final = frozenset({"NotIn", "DoesNotExist"})


def hard_taints(pool: Field) -> Iterator[Field]:
    """Yield the taints that exclude Pods from a pool's nodes, without startup taints, which are removed later."""
    for taint in pool["spec", "template", "spec", "taints"]:
        if taint["effect"].text in HARD_EFFECTS and not taint["key"].text.startswith(_TOLERATED_BY_ALL):
            yield taint


def untolerated(pods: Field, pool: Field) -> list[Field]:
    """Return the hard taints of a pool that a Pod template does not tolerate."""
    return [
        taint
        for taint in hard_taints(pool)
        if not tolerated(pods, Taint(key=taint["key"].text, value=taint["value"].text), taint["effect"].text)
    ]


def is_meant_for(pods: Field, pool: Field, ctx: AnyContext) -> bool:
    """Tell whether a Pod template is for a GPU pool.

    It is if it tolerates the taints of the pool's accelerators, and selects no other nodes.

    `ctx` is that of the pool.
    """
    keys = ctx.derived(_accelerator_keys)
    named = any(toleration["key"].text in keys for toleration in pods["spec", "tolerations"])
    return named and any(_fits(required, pool, ctx) for required in alternatives(pods, ctx))


def _accelerator_keys(pool: Field, ctx: AnyContext) -> frozenset[str]:
    """Return the keys of the taints that nodes with a pool's accelerators have, or should have."""
    present = accelerator_taint_keys(ctx).intersection(taint["key"].text for taint in hard_taints(pool))
    types = ctx.derived(matching_types)
    resources = (name for make in (makes(types) if types else ()) for name in make.resources)
    return present.union(taint.key for name in resources for taint in ctx.platform.taints_of(name))


def _fits(required: Requirements, pool: Field, ctx: AnyContext) -> bool:
    """Tell whether nodes of a pool can have the labels."""
    own = {**ctx.derived(pool_requirements), NODE_POOL_LABEL: scheduling.is_only(pool["metadata", "name"].text)}
    if not all(_may_have(key, requirement, own.get(key)) for key, requirement in required.items()):
        return False
    types = ctx.derived(matching_types)
    return not (types and types.known) or bool(types.known & scheduling.matching(required, types.catalogue))


def _may_have(key: str, required: Requirement, own: Requirement | None) -> bool:
    if own is None:
        return required.operator in _WITHOUT_THE_LABEL or key.partition("/")[0].endswith(_GIVEN_BY)
    if own.intersect(required).operator != "DoesNotExist":
        return True
    return own.operator in _WITHOUT_THE_LABEL and required.operator in _WITHOUT_THE_LABEL


def named(agent: Field) -> str:
    """Return the name of a DaemonSet for messages."""
    namespace, name = agent["metadata", "namespace"].text, agent["metadata", "name"].text
    return f"{namespace}/{name}" if namespace else name


def taint_text(taint: Field) -> str:
    """Return a taint as kubectl writes it: `key=value:effect`."""
    value = f"={taint['value'].text}" if taint["value"].text else ""
    return f"{taint['key'].text}{value}:{taint['effect'].text}"


_POOL_NEED: Final = Need(NODE_POOL, ("spec.limits", "spec.template"))
_TOLERATES_ACCELERATORS: Final = Each("spec.template.spec.tolerations", Text("key", Listed.GPU_TAINTS))
_LABELS_OF_NODES: Final = ("karpenter.sh/", "karpenter.k8s.aws/", "node.kubernetes.io/", "topology.kubernetes.io/")
# Keys of these domains that are only taints (Karpenter v1.14.1 `pkg/apis/v1/taints.go`, v0.37 for `disruption`).
_NO_LABELS: Final = frozenset({"karpenter.sh/disrupted", "karpenter.sh/disruption", "karpenter.sh/unregistered"})


class Params(PolicyParams, frozen=True, kw_only=True):
    """What is assumed about unknown DaemonSets.

    Attributes:
        tolerated: keys of taints that the DaemonSets for GPUs tolerate, in addition to those of accelerators.
    """

    tolerated: tuple[str, ...] = ()


@validates(NODE_POOL, params=Params, mode=Stance.WARN, needs=(DAEMON_SET_NEED,), tables=(INSTANCE_TYPES,))
def check_pool(pool: Field, ctx: Context[Params]) -> Iterator[Violation | Skip]:
    """Report each taint that excludes a DaemonSet for GPUs from the nodes."""
    yield from if_gpu_pool(pool, ctx, _kept_off(pool, ctx))


def _kept_off(pool: Field, ctx: Context[Params]) -> Iterator[Violation]:
    fact = ctx.facts.list(DAEMON_SET)
    known = fact.items if isinstance(fact, Known) else ()
    agents = [agent for agent in known if is_meant_for(agent["spec", "template"], pool, ctx)]
    if agents:
        yield from _by_known(pool, agents, ctx)
    elif not (isinstance(fact, Known) and fact.complete) and provider(pool, ctx) == AWS:
        expected = {*accelerator_taint_keys(ctx), *ctx.params.tolerated}
        for taint in hard_taints(pool):
            if taint["key"].text not in expected:
                yield _assumed(taint)


def _assumed(taint: Field) -> Violation:
    """Report a taint that DaemonSets do not tolerate by default, if those of the cluster are unknown."""
    key, effect = taint["key"].text, taint["effect"].text
    message = f"no DaemonSet for GPUs was found that tolerates the taint {taint_text(taint)}, and device plugins do not by default"
    tolerate = f"add a toleration of {key} with the effect {effect} to the DaemonSets for GPUs"
    if not key.startswith(_LABELS_OF_NODES):
        hint = f"{tolerate}, and list {key} under `tolerated` of this policy"
        return Violation(taint.path, message, hint=hint, why=_WITHOUT_PLUGIN)
    hint = f"remove the taint (nodes have the label {key} anyway), or {tolerate}"
    return Violation(taint.path, message, hint=hint, fix=_removal(taint), why=_WITHOUT_PLUGIN)


def _removal(taint: Field) -> Patches:
    key = taint["key"].text
    return Patches(
        (Patch("remove", taint.path, None, f"removes the taint {key}, which DaemonSets for GPUs do not tolerate"),)
    )


def _by_known(pool: Field, agents: list[Field], ctx: Context[Params]) -> Iterator[Violation]:
    missing = [(agent, {taint.path for taint in untolerated(agent["spec", "template"], pool)}) for agent in agents]
    for taint in hard_taints(pool):
        off = sorted((agent for agent, taints in missing if taint.path in taints), key=named)
        if off:
            first, more = named(off[0]), f" and {len(off) - 1} more do" if len(off) > 1 else " does"
            whose = "their" if len(off) > 1 else "its"
            message = f"DaemonSet {first}{more} not tolerate the taint {taint_text(taint)}: {whose} Pods cannot run on nodes of this pool"
            kept_off = tuple(Other("DaemonSet", agent["metadata", "namespace"].text, _name(agent)) for agent in off)
            yield replace(_unwanted(taint, message, ctx), others=kept_off, why=_KEPT_OFF)


def _unwanted(taint: Field, message: str, ctx: AnyContext) -> Violation:
    key, effect = taint["key"].text, taint["effect"].text
    tolerate = f"add a toleration for {key}:{effect} to the DaemonSets"
    if key in accelerator_taint_keys(ctx):
        hint = f"change the taint to one that the DaemonSets tolerate, or {tolerate}"
        return Violation(taint.path, message, hint=hint)
    anyway = (
        f" (nodes have the label {key} anyway)" if key.startswith(_LABELS_OF_NODES) and key not in _NO_LABELS else ""
    )
    return Violation(taint.path, message, hint=f"remove the taint{anyway}, or {tolerate}", fix=_removal(taint))


@validates(
    DAEMON_SET,
    params=Params,
    mode=Stance.WARN,
    needs=(_POOL_NEED,),
    tables=(INSTANCE_TYPES,),
    concerns=_TOLERATES_ACCELERATORS,
)
def check_daemon_set(agent: Field, ctx: Context[Params]) -> Iterator[Violation | Skip]:
    """Report each taint of a known GPU pool that excludes a DaemonSet for GPUs from its nodes."""
    pods = agent["spec", "template"]
    tolerations = pods["spec", "tolerations"]
    accelerators = accelerator_taint_keys(ctx)
    if not any(toleration["key"].text in accelerators for toleration in tolerations):
        return
    fact = ctx.facts.list(NODE_POOL)
    if isinstance(fact, Unavailable):
        yield Skip(fact.reason)
        return
    off: dict[tuple[str, str], list[tuple[str, Field]]] = {}
    for around in sorted(object_contexts(fact, ctx), key=lambda around: _name(around.subject)):
        pool = around.subject
        if around.derived(is_for_accelerators) and is_meant_for(pods, pool, around):
            for taint in untolerated(pods, pool):
                off.setdefault((taint["key"].text, taint["effect"].text), []).append((_name(pool), taint))
    for where in off.values():
        yield _untolerated(tolerations, where)


def _untolerated(tolerations: Field, where: list[tuple[str, Field]]) -> Violation:
    """Return the violation for a taint of some pools, each with its name, that is not tolerated."""
    (pool, taint), others = where[0], len(where) - 1
    key, effect = taint["key"].text, taint["effect"].text
    more = f" and {others} more" if others else ""
    message = (
        f"missing toleration for {taint_text(taint)} of NodePool {pool}{more}: its nodes run no Pod of this DaemonSet"
    )
    reason = f"tolerates {key}, so that nodes of NodePool {pool} get a Pod"
    added = Patch("append", tolerations.path, {"key": key, "operator": "Exists", "effect": effect}, reason)
    hint = f"add a toleration for {key}:{effect}, or remove the taint from the pool"
    pools = tuple(Other("NodePool", "", name) for name, _ in where)
    return Violation(
        tolerations.path, message, hint=hint, fix=Patches((added,)), others=pools, follows=True, why=_KEPT_OFF
    )


def _name(obj: Field) -> str:
    return obj["metadata", "name"].text
