"""Takes stock of nodes, and of what asks for GPUs, while objects are read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from gpugate.policies.sdk import objects
from gpugate.policies.sdk.field import Field, render
from gpugate.policies.sdk.gpu_demand import claim_spec, gpu_demand, requested_devices
from gpugate.policies.sdk.objects import Operation, Request, pod_templates
from gpugate.policies.sdk.policy import Context, Params
from gpugate.webhook.audit.allocations import Allocation, allocation_of
from gpugate.webhook.audit.inventory import Demand, Devices, GpuPod, GpuTemplate, Inventory, NodeRecord
from gpugate.webhook.audit.node_record import node_record
from gpugate.webhook.audit.room import Room

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.engine.ruleset import Ruleset
    from gpugate.policies.sdk.facts import Facts
    from gpugate.policies.sdk.policy import AnyContext
    from gpugate.webhook.audit.as_created import Object
    from gpugate.webhook.audit.sources.source import Stored
    from gpugate.webhook.report.located import ObjectName

_POD: Final = objects.GroupVersionKind("", "v1", "Pod")
_SCALERS: Final = frozenset({("keda.sh", "ScaledObject"), ("keda.sh", "ScaledJob")}) | {
    ("autoscaling", "HorizontalPodAutoscaler")
}


class Stock:
    """Collects an inventory."""

    def __init__(self, ruleset: Ruleset, facts: Facts) -> None:
        self._platform = ruleset.config.platform
        self._target = ruleset.config.target
        self._facts = facts
        self._pods: list[GpuPod] = []
        self._nodes: list[NodeRecord] = []
        self._templates: list[GpuTemplate] = []
        self._node_pools: list[Object] = []
        self._scalers: list[Object] = []
        self._allocations: list[Allocation] = []
        self._used: dict[str, Room] = {}

    def object(self, stored: Stored) -> None:
        """Take in an object that is no Pod."""
        pair = (stored.kind.group, stored.kind.kind)
        if pair == ("", "Node"):
            self._nodes.append(node_record(Field(stored.object), self._platform))
        elif pair == ("karpenter.sh", "NodePool"):
            self._node_pools.append(_bare(stored))
        elif pair in _SCALERS:
            self._scalers.append(_bare(stored))
        elif pair == ("resource.k8s.io", "ResourceClaim"):
            found = allocation_of(Field(stored.object), self._platform)
            self._allocations += [found] if found else []

    def templates(self, name: ObjectName, group: str, obj: Object) -> None:
        """Take in the Pod templates of a workload, after what claims they name was read."""
        for template in pod_templates(group, name.kind, Field(obj)):
            demand = self.demand(template, name.namespace)
            if demand:
                self._templates.append(GpuTemplate(name, render(template.path), demand))

    def pod(self, pod: GpuPod, room: Room) -> None:
        """Take in a Pod that has not finished."""
        if pod.node:
            self._used[pod.node] = self._used.get(pod.node, Room()) + room
        if pod.demand:
            self._pods.append(pod)

    def demand(self, pod: Field, namespace: str) -> Demand:
        """Return what a Pod or template asks for.

        Of a claim all devices count, whichever container uses them: the Pod is given all.
        """
        context: AnyContext = Context(
            params=Params(),
            subject=pod,
            wrapper=None,
            request=Request(_POD, Operation.CREATE, None, namespace=namespace),
            facts=self._facts,
            platform=self._platform,
            target=self._target,
            tables={},
            memo={},
        )
        return Demand(gpu_demand(pod, context).resources, tuple(self._devices(pod, context)))

    def _devices(self, pod: Field, context: AnyContext) -> Iterator[Devices]:
        for claim in pod["spec", "resourceClaims"]:
            spec = claim_spec(claim, context)
            for asked in requested_devices(spec) if spec else ():
                granted = max(asked, key=lambda name: asked[name])
                if self._platform.is_accelerator_class(granted):
                    yield Devices(granted, asked[granted], claim["resourceClaimName"].text)

    def inventory(self, *, nodes_known: bool, pods_known: bool) -> Inventory:
        """Return what was collected."""
        return Inventory(
            pods=tuple(self._pods),
            nodes=tuple(self._nodes),
            templates=tuple(self._templates),
            node_pools=tuple(self._node_pools),
            scalers=tuple(self._scalers),
            nodes_known=nodes_known,
            pods_known=pods_known,
            used=self._used,
            allocations=tuple(self._allocations),
        )


def _bare(stored: Stored) -> dict[str, Any]:
    """Return an object with its type, without its status and what the API server keeps about its fields."""
    metadata = stored.object.get("metadata")
    kept = {key: value for key, value in metadata.items() if key != "managedFields"} if metadata else {}
    typed = {"apiVersion": stored.kind.api_version, "kind": stored.kind.kind}
    return {**{k: v for k, v in stored.object.items() if k != "status"}, **typed, "metadata": kept}
