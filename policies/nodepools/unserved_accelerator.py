"""GPU NodePool for accelerators that no device plugin or DRA driver offers to Pods.

## Why is this bad?
Nodes of this pool report no accelerators: the Pods that they are launched for stay Pending. Karpenter does not treat such
a node as initialized, so it neither consolidates nor replaces the node, which costs money until it is deleted.

## Instead
Install what offers the accelerators, before the pool launches nodes:

- NVIDIA GPUs: the device plugin, the GPU operator or the DRA driver of NVIDIA.
- Inferentia and Trainium: the device plugin or the DRA driver of AWS Neuron.

The policy reports a pool only if all DaemonSets of a cluster are known, in the cluster or in a dump of it with
`--complete-context`, and none of them is a device plugin or a DRA driver for the accelerators. It recognizes them by
their names, their images and the folder of the kubelet for device plugins. It evaluates pools whose EC2NodeClass is known
and selects Amazon Linux by an alias. It does not report:

- Pools of EKS Auto Mode, and classes with Bottlerocket, whose nodes include a device plugin.
- Classes with other images, which may include a device plugin.
- Clusters with a ClusterPolicy of NVIDIA's GPU operator, which creates the DaemonSets.
- Clusters with a node that has the resource already.
- Files without any Node, which are not a dump: charts and Applications may install more DaemonSets.

`nodepools/untolerated-taint` reports pools whose device plugin is known and does not tolerate a taint.

## Sources
Karpenter v1.14.1 `pkg/controllers/nodeclaim/lifecycle/initialization.go` (RequestedResourcesRegistered: a node is
initialized when it has the resources); aws/karpenter-provider-aws issues 1914 and 3862; Kubernetes v1.36
`staging/src/k8s.io/kubelet/pkg/apis/deviceplugin` (`/var/lib/kubelet/device-plugins`); EKS user guide "Install the
Kubernetes device plugin for GPUs" (Amazon Linux needs it, Bottlerocket includes it), as of 2026-11-22.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.nodepools._accelerators import is_minor, makes
from gpugate.policies.nodepools._gpu_pools import with_gpu_types
from gpugate.policies.sdk.facts import Known, Need, derived, named
from gpugate.policies.sdk.findings import Skip, Stance, Violation
from gpugate.policies.sdk.node_pools import AWS, INSTANCE_TYPES, provider
from gpugate.policies.sdk.objects import CLUSTER_POLICY, DAEMON_SET, EC2_NODE_CLASS, NODE, NODE_POOL
from gpugate.policies.sdk.pod_requests import read_amounts
from gpugate.policies.sdk.policy import validates

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.node_pools import MatchingTypes
    from gpugate.policies.sdk.policy import AnyContext

_NEEDS: Final = (
    Need(
        DAEMON_SET,
        (
            "spec.template.spec.containers.image",
            "spec.template.spec.containers.command",
            "spec.template.spec.volumes.hostPath",
        ),
    ),
    Need(CLUSTER_POLICY, ()),
    Need(EC2_NODE_CLASS, ("spec.amiFamily", "spec.amiSelectorTerms")),
    Need(NODE, ("status.capacity",)),
)
# Words in the name or an image of the plugins and drivers of a manufacturer; HAMi and Volcano share NVIDIA GPUs.
_WORDS: Final = {"nvidia": ("nvidia", "hami", "vgpu"), "aws": ("neuron",)}
# Words of plugins for other devices.
_OTHERS: Final = ("efa", "rdma", "sriov", "amd", "rocm", "habana", "gaudi", "intel", "vpc", "kvm", "fuse", "csi")
_IS_PLUGIN: Final = ("device-plugin", "deviceplugin", "dra-driver", "kubelet-plugin")
_FOLDER: Final = "/var/lib/kubelet/device-plugins"
_INSTALL: Final = {
    "nvidia": "install the NVIDIA device plugin, GPU operator or DRA driver",
    "aws": "install the Neuron device plugin or DRA driver",
}
_AMAZON_LINUX: Final = ("al2023@", "al2@")


@validates(NODE_POOL, mode=Stance.WARN, needs=_NEEDS, tables=(INSTANCE_TYPES,))
def check(pool: Field, ctx: AnyContext) -> Iterator[Violation | Skip]:
    """Report a pool for an accelerator, if all DaemonSets are known and none offers it."""
    yield from with_gpu_types(pool, ctx, _violations)


def _violations(pool: Field, types: MatchingTypes, ctx: AnyContext) -> Iterator[Violation]:
    agents = ctx.facts.list(DAEMON_SET)
    nodes = ctx.facts.list(NODE)
    # Files without a node are not a cluster's state: charts and Applications may install more DaemonSets.
    if not isinstance(nodes, Known) or not nodes.items or not isinstance(agents, Known) or not agents.complete:
        return
    if not _needs_plugin(pool, ctx):
        return
    served, offered = derived(agents, _served, ctx), derived(nodes, _resources, ctx)
    for make in makes(types):
        name, resource = make.manufacturer, make.resources[0]
        if name in _WORDS and make.offering and not is_minor(make, types):
            if name in served or not offered.isdisjoint(make.resources) or (name == "nvidia" and _has_operator(ctx)):
                continue
            message = f"no DaemonSet of the cluster is a device plugin or DRA driver for {resource}"
            yield Violation(pool["spec", "template", "spec", "requirements"].path, message, hint=_INSTALL[name])


def _needs_plugin(pool: Field, ctx: AnyContext) -> bool:
    """Tell whether the images of the pool's nodes certainly include no device plugin."""
    name = pool["spec", "template", "spec", "nodeClassRef", "name"].text
    node_class = named(ctx.facts.list(EC2_NODE_CLASS), name) if provider(pool, ctx) == AWS else None
    if node_class is None:
        return False
    aliases = [term["alias"].text for term in node_class["spec", "amiSelectorTerms"]]
    return bool(aliases) and all(alias.startswith(_AMAZON_LINUX) for alias in aliases)


def _has_operator(ctx: AnyContext) -> bool:
    fact = ctx.facts.list(CLUSTER_POLICY)
    return isinstance(fact, Known) and bool(fact.items)


def _resources(nodes: Known, _ctx: AnyContext) -> frozenset[str]:
    """Return the resources that nodes offer."""
    return frozenset(
        name for node in nodes.items for name, amount in read_amounts(node["status", "capacity"]) if amount > 0
    )


def _served(agents: Known, _ctx: AnyContext) -> frozenset[str]:
    """Return the manufacturers whose accelerators DaemonSets may offer."""
    return frozenset().union(*map(_served_by, agents.items))


def _served_by(agent: Field) -> frozenset[str]:
    spec = agent["spec", "template", "spec"]
    words = [agent["metadata", "name"].text]
    for container in spec["containers"]:
        words += (container["image"].text, *(word.text for word in container["command"]))
    text = " ".join(words).lower()
    in_folder = any(volume["hostPath", "path"].text.rstrip("/").startswith(_FOLDER) for volume in spec["volumes"])
    if not in_folder and not any(word in text for word in _IS_PLUGIN):
        return frozenset()
    by_word = frozenset(name for name, own in _WORDS.items() if any(word in text for word in own))
    if by_word or any(word in text for word in _OTHERS):
        return by_word
    return frozenset(_WORDS)
