"""GPU workload whose volume is in a zone where no NodePool for it launches nodes.

## Why is this bad?
The Pod stays Pending: a volume of one zone, such as an EBS volume, can be attached only to nodes of that zone, and Karpenter
launches no node with GPUs for the Pod there.

## Instead
Create the volume in a zone in which a NodePool for the Pod launches nodes. A StorageClass with `WaitForFirstConsumer` does so for
new claims: the volume is created in the zone of the Pod's first node.

```yaml
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata:
  name: models
provisioner: ebs.csi.aws.com
volumeBindingMode: WaitForFirstConsumer
```

An existing volume stays in its zone. Allow this zone in the NodePool, or copy the data to a new volume. A file system that all
zones mount, such as EFS, has no zone.

gpugate knows the zones of a volume in these cases:

- Its claim is bound to a PersistentVolume whose node affinity requires zones. The claims of a StatefulSet are looked up by their
  names.
- It does not exist yet, and its StorageClass has `allowedTopologies` with zones.

A NodePool launches nodes in the zones of its requirement `topology.kubernetes.io/zone`, and in the zones of its EC2NodeClass's
subnets. If neither is known, it launches nodes in every zone. A workload is not reported if no known NodePool fits it for
another reason, if it selects nodes of a node group, or if a known node with accelerators that Karpenter did not launch is in a
zone of the volume.

## Sources
Karpenter v1.14.1 `pkg/controllers/provisioning/scheduling/volumetopology.go` (requirements of volumes and StorageClasses); Karpenter
AWS provider v1.14.1 `pkg/apis/v1/labels.go` (NormalizedLabels: `topology.ebs.csi.aws.com/zone`), `ec2nodeclass_status.go` (subnets);
Kubernetes v1.36 "Storage Classes" (volume binding mode, allowed topologies), `pkg/controller/statefulset/stateful_set_utils.go`
(getPersistentVolumeClaimName); aws/karpenter-provider-aws issues 2971, 4192 and 8914.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from gpugate.policies.pods._node_groups import is_bound
from gpugate.policies.pods._placement import POOL_NEED, has_accelerators, pools_for
from gpugate.policies.sdk.facts import Known, Need, derived, named
from gpugate.policies.sdk.findings import Stance, Violation
from gpugate.policies.sdk.gpu_demand import MAY_DEMAND, gpu_demand
from gpugate.policies.sdk.node_pools import INSTANCE_TYPES, NODE_POOL_LABEL
from gpugate.policies.sdk.objects import EC2_NODE_CLASS, NODE, POD, STATEFUL_SET
from gpugate.policies.sdk.policy import validates
from gpugate.policies.sdk.queues import QUEUE_NEEDS, admission
from gpugate.policies.sdk.scheduling import ZONES, alternatives
from gpugate.policies.sdk.volumes import VOLUME_NEEDS, claimed_volume, created_volume, zones_of
from gpugate.policies.sdk.workload_class import ceiling_of_templates, owner_kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.policy import AnyContext
    from gpugate.policies.sdk.scheduling import Requirement

_ZONE: Final = ZONES[0]
# The most replicas of a StatefulSet whose claims are looked up.
_MOST_REPLICAS: Final = 32
_MOST_SHOWN: Final = 3

_NOT_SELECTED: Final = "The Pod stays Pending: its volume can be attached only to nodes that it does not select."
_NO_COMMON_ZONE: Final = "The Pod stays Pending: no node can mount both volumes."

_Zones: TypeAlias = "frozenset[str]"
_NOWHERE: Final[_Zones] = frozenset()


class _Volume(NamedTuple):
    """A volume in some zones: the field that names it, its subject in a message, and these zones."""

    field: Field
    subject: str
    zones: _Zones


class _Reach(NamedTuple):
    """The zones in which a Pod can get a node, with the texts for messages, and the zones of other nodes."""

    zones: _Zones
    subject: str
    hint: str
    why: str = ""
    others: _Zones = _NOWHERE


@validates(
    POD,
    mode=Stance.WARN,
    needs=(
        *QUEUE_NEEDS,
        POOL_NEED,
        Need(EC2_NODE_CLASS, ("status.subnets",)),
        Need(NODE, ("metadata.labels", "status.capacity")),
        *VOLUME_NEEDS,
    ),
    tables=(INSTANCE_TYPES,),
    concerns=MAY_DEMAND,
)
def check(pod: Field, ctx: AnyContext) -> Iterator[Violation]:
    """Report the first volume that excludes a Pod from every node that it can get."""
    if (ctx.wrapper is None and owner_kind(pod, ctx)) or not ctx.derived(gpu_demand):
        return
    replicas = list(_volumes_of_replicas(pod, ctx))
    if not any(replicas) or is_bound(pod, ctx):
        return
    reaches = list(_reaches(ctx))
    for volumes in replicas:
        for finding in (*_apart(volumes), *_elsewhere(volumes, reaches)):
            yield replace(finding, at_most=ceiling_of_templates(ctx))
            return


def _apart(volumes: list[_Volume]) -> Iterator[Violation]:
    """Yield the volumes that share no zone with the first one."""
    for volume in volumes[1:]:
        if not volume.zones & volumes[0].zones:
            first = f"{volumes[0].subject} {_in(volumes[0].zones)}"
            message = f"{first}, and {volume.subject} {_in(volume.zones)}"
            yield Violation(volume.field.path, message, hint="use volumes in one zone", why=_NO_COMMON_ZONE)


def _elsewhere(volumes: list[_Volume], reaches: list[_Reach]) -> Iterator[Violation]:
    """Yield the volumes that share no zone with the nodes that the Pod can get."""
    for volume in volumes:
        for reach in reaches:
            if not volume.zones & (reach.zones | reach.others):
                message = f"{volume.subject} {_in(volume.zones)}, but {reach.subject} {_in(reach.zones)}"
                hint = f"{reach.hint} {_in(volume.zones)}, or use a volume {_in(reach.zones)}"
                yield Violation(volume.field.path, message, hint=hint, why=reach.why)


def _volumes_of_replicas(pod: Field, ctx: AnyContext) -> Iterator[list[_Volume]]:
    """Yield the volumes with known zones: those of the Pod or template, and those of each replica of a StatefulSet."""
    own = list(_volumes(pod, ctx))
    yield own
    wrapper = ctx.wrapper
    if wrapper is None or wrapper.kind.kind != STATEFUL_SET.name:
        return
    spec, name = wrapper.root["spec"], wrapper.root["metadata", "name"].text
    start, replicas = spec["ordinals", "start"].integer or 0, spec["replicas"].integer
    for ordinal in range(start, start + min(1 if replicas is None else replicas, _MOST_REPLICAS)):
        yield [
            *own,
            *(
                volume
                for template in spec["volumeClaimTemplates"]
                for volume in _of_claim(
                    template["metadata", "name"],
                    f"{template['metadata', 'name'].text}-{name}-{ordinal}",
                    template["spec", "storageClassName"].text,
                    ctx,
                )
            ),
        ]


def _volumes(pod: Field, ctx: AnyContext) -> Iterator[_Volume]:
    for volume in pod["spec", "volumes"]:
        claim = volume["persistentVolumeClaim", "claimName"]
        if claim.text:
            yield from _of_claim(claim, claim.text, "", ctx)
        storage_class = volume["ephemeral", "volumeClaimTemplate", "spec", "storageClassName"]
        if storage_class.text:
            yield from _of_class(storage_class, storage_class.text, ctx)


def _of_claim(field: Field, name: str, storage_class: str, ctx: AnyContext) -> Iterator[_Volume]:
    """Yield the volume of a claim; `storage_class` is that of a claim that does not exist yet."""
    claimed = claimed_volume(name, ctx, storage_class)
    if claimed.storage_class:
        yield from _of_class(field, claimed.storage_class, ctx)
    elif zones := zones_of(claimed.terms):
        yield _Volume(field, f"claim {name} is bound to a volume", zones)


def _of_class(field: Field, name: str, ctx: AnyContext) -> Iterator[_Volume]:
    zones = zones_of(created_volume(name, ctx).terms)
    if zones:
        yield _Volume(field, f"StorageClass {name} creates the volume", zones)


def _reaches(ctx: AnyContext) -> Iterator[_Reach]:
    """Yield the zones that a Pod selects, then those in which NodePools launch nodes for it, unless that is any zone."""
    selected = _together(_listed_zones(required.get(_ZONE)) for required in ctx.derived(alternatives))
    if selected:
        yield _Reach(selected, "the Pod selects nodes", "select nodes", _NOT_SELECTED)
    admitted = admission(ctx)
    if admitted.doubt:
        return
    demand = ctx.derived(gpu_demand)
    pools = [
        (pool["metadata", "name"].text, _zones_of_pool(pool, match.requirements.get(_ZONE), ctx))
        for placement in admitted.placements
        for match in pools_for(placement.pod, demand, placement.ctx)
        for pool in match.pools
    ]
    launched = _together(zones for _, zones in pools)
    if launched:
        names = dict.fromkeys(name for name, _ in pools)
        subject = f"NodePool{'s' if len(names) > 1 else ''} {_listed(names)}"
        verb = "launch" if len(names) > 1 else "launches"
        yield _Reach(
            launched,
            f"{subject} {verb} nodes for it only",
            f"let {subject} launch nodes",
            others=_of_other_nodes(ctx),
        )


def _together(zones: Iterable[_Zones | None]) -> _Zones:
    """Return the union of the zones of alternatives; none if one of them allows every zone."""
    zones_of_all = list(zones)
    return _NOWHERE if None in zones_of_all else _NOWHERE.union(*(some for some in zones_of_all if some))


def _listed_zones(requirement: Requirement | None) -> _Zones | None:
    return requirement.values if requirement is not None and not requirement.complement else None


def _zones_of_pool(pool: Field, required: Requirement | None, ctx: AnyContext) -> _Zones | None:
    """Return the zones in which a NodePool launches nodes; None if that may be any zone."""
    reference = pool["spec", "template", "spec", "nodeClassRef"]
    node_class = (
        named(ctx.facts.list(EC2_NODE_CLASS), reference["name"].text)
        if reference["kind"].text == EC2_NODE_CLASS.name
        else None
    )
    subnets = _NOWHERE.union(subnet["zone"].text for subnet in node_class["status", "subnets"]) if node_class else None
    if not subnets or "" in subnets:
        return _listed_zones(required)
    return frozenset(zone for zone in subnets if required is None or required.allows(zone))


def _of_other_nodes(ctx: AnyContext) -> _Zones:
    """Return the zones of known nodes with accelerators that Karpenter did not launch."""
    nodes = ctx.facts.list(NODE)
    return derived(nodes, _zones_of_others, ctx) if isinstance(nodes, Known) else _NOWHERE


def _zones_of_others(nodes: Known, ctx: AnyContext) -> _Zones:
    return frozenset(
        labels.get(_ZONE, "")
        for node in nodes.items
        if NODE_POOL_LABEL not in (labels := node["metadata", "labels"].labels) and has_accelerators(node, ctx)
    )


def _in(zones: _Zones) -> str:
    return f"in zone{'s' if len(zones) > 1 else ''} {_listed(sorted(zones))}"


def _listed(names: Iterable[str]) -> str:
    every = list(dict.fromkeys(names))
    more = f" and {len(every) - _MOST_SHOWN} more" if len(every) > _MOST_SHOWN else ""
    return f"{', '.join(every[:_MOST_SHOWN])}{more}"
