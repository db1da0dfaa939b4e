"""The DaemonSets that are meant for the nodes of a GPU pool: device plugin, feature discovery, metrics of GPUs.

Sources: `k8s.io/component-helpers/scheduling/corev1/nodeaffinity`, v0.36; Kubernetes v1.36
`pkg/controller/daemon/util/daemonset_util.go` (AddOrUpdateDaemonPodTolerations: the taints under `node.kubernetes.io` are
tolerated by all of them).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.nodepools._accelerators import makes
from gpugate.policies.sdk import scheduling
from gpugate.policies.sdk.facts import Need
from gpugate.policies.sdk.node_pools import accelerator_taint_keys, matching_types, pool_requirements
from gpugate.policies.sdk.objects import DAEMON_SET
from gpugate.policies.sdk.platform import Taint
from gpugate.policies.sdk.scheduling import alternatives, tolerated

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.policy import AnyContext
    from gpugate.policies.sdk.scheduling import Requirement, Requirements

DAEMON_SET_NEED: Final = Need(
    DAEMON_SET,
    (
        "spec.template.spec.affinity.nodeAffinity",
        "spec.template.spec.nodeSelector",
        "spec.template.spec.tolerations",
    ),
)
_HARD_EFFECTS: Final = frozenset({"NoSchedule", "NoExecute"})
_TOLERATED_BY_ALL: Final = "node.kubernetes.io/"
_POOL: Final = "karpenter.sh/nodepool"
# Whose labels nodes have that the pool does not name: the cluster's, the cloud's, and those of feature discovery.
_GIVEN_BY: Final = (
    *("kubernetes.io", "k8s.io", "karpenter.sh", "k8s.aws", "amazonaws.com", "azure.com", "google.com"),
    *("nvidia.com", "amd.com", "aws.amazon.com", "habana.ai"),
)
_WITHOUT_THE_LABEL: Final = frozenset({"NotIn", "DoesNotExist"})


def hard_taints(pool: Field) -> Iterator[Field]:
    """Yield the taints of a pool's nodes that keep off what does not tolerate them; startup taints go away."""
    for taint in pool["spec", "template", "spec", "taints"]:
        if taint["effect"].text in _HARD_EFFECTS and not taint["key"].text.startswith(_TOLERATED_BY_ALL):
            yield taint


def untolerated(pods: Field, pool: Field) -> list[Field]:
    """Return the hard taints of a pool that a Pod template does not tolerate."""
    return [
        taint
        for taint in hard_taints(pool)
        if not tolerated(pods, Taint(key=taint["key"].text, value=taint["value"].text), taint["effect"].text)
    ]


def is_meant_for(pods: Field, pool: Field, ctx: AnyContext) -> bool:
    """Tell whether a Pod template is meant for a GPU pool: it tolerates its accelerators, and selects no other nodes.

    `ctx` is that of the pool.
    """
    keys = ctx.derived(_accelerator_keys)
    named = any(toleration["key"].text in keys for toleration in pods["spec", "tolerations"])
    return named and any(_fits(required, pool, ctx) for required in alternatives(pods, ctx))


def _accelerator_keys(pool: Field, ctx: AnyContext) -> frozenset[str]:
    """Return the keys of the taints that nodes with the accelerators of a pool have, or should."""
    present = accelerator_taint_keys(ctx).intersection(taint["key"].text for taint in hard_taints(pool))
    types = ctx.derived(matching_types)
    resources = (name for make in (makes(types) if types else ()) for name in make.resources)
    return present.union(taint.key for name in resources for taint in ctx.platform.taints_of(name))


def _fits(required: Requirements, pool: Field, ctx: AnyContext) -> bool:
    """Tell whether nodes of a pool can have the labels."""
    own = {**ctx.derived(pool_requirements), _POOL: scheduling.is_only(pool["metadata", "name"].text)}
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
    """Name a DaemonSet for people."""
    namespace, name = agent["metadata", "namespace"].text, agent["metadata", "name"].text
    return f"{namespace}/{name}" if namespace else name


def shown(taint: Field) -> str:
    """Write a taint as kubectl does: `key=value:effect`."""
    value = f"={taint['value'].text}" if taint["value"].text else ""
    return f"{taint['key'].text}{value}:{taint['effect'].text}"
