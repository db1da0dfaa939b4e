"""Whether a NodePool can launch a node for a Pod, as Karpenter decides it.

Every approximation errs towards a pool that can launch one, with Karpenter's default options. Topology spread, affinity
to Pods, host ports, `minValues`, offerings in zones, ephemeral storage and the number of Pods on a node are not
evaluated.

Sources: Karpenter v1.14.1 `pkg/controllers/provisioning/scheduling/scheduler.go` (addToNewNodeClaim,
filterByRemainingResources, buildDaemonOverheadGroups), `nodeclaim.go` (CanAdd, filterInstanceTypesByRequirements),
`nodeclaimtemplate.go`, `preferences.go`, `volumetopology.go`, `pkg/scheduling/requirements.go` (Compatible), `pkg/utils/resources/resources.go`
(Fits), `pkg/apis/v1/labels.go` (WellKnownLabels); its AWS provider v1.14.1 `pkg/apis/v1/labels.go`,
`pkg/providers/instancetype/types.go` (computeRequirements, kubeReservedResources, memory).
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from gpugate.policies.data.instance_types import INSTANCE_TYPE
from gpugate.policies.sdk import scheduling
from gpugate.policies.sdk.facts import Known, Need, derived, named, object_contexts
from gpugate.policies.sdk.node_pools import (
    AUTO_MODE,
    AWS,
    CAPACITY_TYPE,
    CAPACITY_TYPES,
    INSTANCE_TYPES,
    NODE_CLASS_KINDS,
    NODE_POOL_LABEL,
    MatchingTypes,
    label_of,
    limits,
    matching_types,
    node_template,
    pool_requirements,
    provider,
)
from gpugate.policies.sdk.objects import DAEMON_SET, EC2_NODE_CLASS, NODE_OVERLAY, NODE_POOL
from gpugate.policies.sdk.platform import Taint, at_least
from gpugate.policies.sdk.pod_requests import has_claims, in_whole_units, read_amounts, requested
from gpugate.policies.sdk.scheduling import (
    HARD_EFFECTS,
    HOSTNAME_LABEL,
    Requirement,
    alternatives,
    is_only,
    meeting,
    tolerated,
)
from gpugate.policies.sdk.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gpugate.policies.data.instance_types import InstanceTypes
    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.pod_requests import Demand
    from gpugate.policies.sdk.policy import AnyContext
    from gpugate.policies.sdk.quantity import Amount
    from gpugate.policies.sdk.scheduling import Requirements

# The needs of a policy that reads which pools can launch a node for a Pod.
PROVISIONING_NEEDS: Final = (
    Need(NODE_POOL, ("spec.limits", "spec.replicas", "spec.template")),
    Need(EC2_NODE_CLASS, ("spec.kubelet",)),
    Need(NODE_OVERLAY, ("spec.capacity",)),
    Need(
        DAEMON_SET,
        (
            "spec.template.spec.affinity.nodeAffinity",
            "spec.template.spec.nodeSelector",
            "spec.template.spec.overhead",
            "spec.template.spec.resourceClaims",
            "spec.template.spec.resources",
            "spec.template.spec.tolerations",
            "spec.template.spec.containers.resources",
            "spec.template.spec.initContainers.resources",
            "spec.template.spec.initContainers.restartPolicy",
        ),
    ),
)

_OS: Final = "kubernetes.io/os"
# For EC2 types only: in other catalogues the memory of a type is the capacity of its nodes.
MEMORY_LABEL: Final = f"{AWS}/instance-memory"
# Labels that Pods may require although the pool does not mention them, in addition to those of the catalogue.
_KNOWN_TO_CORE: Final = frozenset(
    {
        NODE_POOL_LABEL,
        CAPACITY_TYPE,
        INSTANCE_TYPE,
        _OS,
        "kubernetes.io/arch",
        "node.kubernetes.io/windows-build",
        "topology.kubernetes.io/region",
        "topology.kubernetes.io/zone",
    }
)
_KNOWN_TO_AWS: Final = _KNOWN_TO_CORE | {
    "karpenter.k8s.aws/capacity-reservation-id",
    "karpenter.k8s.aws/capacity-reservation-interruptible",
    "karpenter.k8s.aws/capacity-reservation-type",
    "karpenter.k8s.aws/instance-tenancy",
    "karpenter.k8s.aws/placement-group-id",
    "karpenter.k8s.aws/placement-group-partition",
    "topology.ebs.csi.aws.com/zone",
    "topology.k8s.aws/zone-id",
}
# Suffixes of the domains whose labels a provider may know, if its list of labels is unknown here.
PROVIDER_DOMAINS: Final = (
    *("kubernetes.io", "k8s.io", "karpenter.sh", "k8s.aws", "amazonaws.com"),
    *("azure.com", "k8s.gcp", "google.com", "kwok.sh"),
)
# The possible values of labels that the catalogue does not contain.
NODE_VALUES: Final = {CAPACITY_TYPE: frozenset(CAPACITY_TYPES), _OS: frozenset({"linux", "windows"})}
# Those of nodes whose node class does not set them.
_USUAL_VALUES: Final = {CAPACITY_TYPE: frozenset({"on-demand", "spot"}), _OS: frozenset({"linux"})}
_OF_EVERY_PLACE: Final = frozenset({"topology.kubernetes.io/region", *scheduling.ZONES})
# Resources that a type of EC2 has depending on its node class, or that the catalogue does not contain.
_NOT_COMPARED: Final = ("ephemeral-storage", "pods", "vpc.amazonaws.com/pod-eni", "habana.ai/gaudi")
# What every node has some of.
_OF_EVERY_NODE: Final = frozenset({"cpu", "memory", "nodes"})
# kubelet's reservation of memory without that for each Pod, in MiB.
_KUBE_RESERVED: Final = 255
# Memory that the kernel of Arm instances reserves, in MiB.
_ARM_RESERVED: Final = 64


ANY_VALUE: Final = Requirement(complement=True)


class TypeGroup(Struct, frozen=True):
    """Types of a pool on which the same DaemonSets run, and the sum of their requests."""

    types: int
    daemons: dict[str, int]


class Offer(Struct, frozen=True):
    """The types that a pool can launch.

    Attributes:
        types: its types by its requirements, regardless of its limits.
        within: those of them that its limits allow.
        groups: `within` by their DaemonSets.
        overlaid: resources that a NodeOverlay adds to types.
        full_cpu: whether Pods may have all CPUs, because the reservation of its node class is not known.
        reserved: memory of every type that Pods cannot request, in MiB.
        newer: labels of which the pool allows values that the catalogue does not contain, such as those of newer types.
        only_known: whether types offer only resources of the catalogue.
    """

    types: MatchingTypes
    within: int
    groups: tuple[TypeGroup, ...]
    overlaid: frozenset[str]
    full_cpu: bool
    reserved: int
    newer: frozenset[str]
    only_known: bool


class LaunchPool(Struct, frozen=True):
    """The values that are derived from a NodePool once for all Pods.

    Attributes:
        field: the NodePool.
        name: its name.
        own: its requirement for each label, with the labels that Karpenter adds.
        taints: its taints that exclude Pods, with their effects.
        soft_taints: its taints with the effect PreferNoSchedule.
        remaining: the amounts that remain below its limits, by resource.
        static: whether it keeps a fixed number of nodes, and launches none for Pods.
        closed: a resource of which nothing remains, so that it launches no node; empty if there is none.
        known: labels that a Pod may require although the pool does not mention them; None for any.
        domains: suffixes of the domains whose labels a Pod may require too.
        offer: its types; None if they are unknown.
    """

    field: Field
    name: str
    own: dict[str, Requirement]
    taints: tuple[tuple[Taint, str], ...]
    soft_taints: tuple[tuple[Taint, str], ...]
    remaining: dict[str, Amount]
    static: bool
    closed: str
    known: frozenset[str] | None
    domains: tuple[str, ...]
    offer: Offer | None

    @property
    def template(self) -> Field:
        """The description of its nodes."""
        return self.field["spec", "template"]


def launchable(wanted: Demand, ctx: AnyContext, *, ignores_claims: bool = True) -> bool:
    """Tell whether any known NodePool can launch a node for a Pod, or may."""
    if wanted.claims and ignores_claims:
        return False
    return any(can_launch(pool, wanted) for pool in launch_pools(ctx))


def launch_pools(ctx: AnyContext, *, used: bool = False) -> Sequence[LaunchPool]:
    """Return the known NodePools by name; `used` subtracts the resources in their status from their limits."""
    fact = ctx.facts.list(NODE_POOL)
    return derived(fact, _now if used else _ever, ctx) if isinstance(fact, Known) else ()


def _ever(pools: Known, ctx: AnyContext) -> tuple[LaunchPool, ...]:
    return tuple(
        sorted((around.derived(launch_pool) for around in object_contexts(pools, ctx)), key=lambda pool: pool.name)
    )


def _now(pools: Known, ctx: AnyContext) -> tuple[LaunchPool, ...]:
    return tuple(sorted((_of(around, used=True) for around in object_contexts(pools, ctx)), key=lambda pool: pool.name))


def launch_pool(_pool: Field, ctx: AnyContext) -> LaunchPool:
    """Return the values of one NodePool, with its limits as if no node existed."""
    return _of(ctx, used=False)


def _of(ctx: AnyContext, *, used: bool) -> LaunchPool:
    pool, group = ctx.subject, provider(ctx.subject, ctx)
    remaining = limits(pool)
    if used:
        for resource, amount in read_amounts(pool["status", "resources"]):
            if resource in remaining:
                remaining[resource] -= amount
    template = ctx.derived(_template)
    static = pool["spec", "replicas"].integer is not None
    closed = next((r for r, left in sorted(remaining.items()) if left < 0 or (left == 0 and r in _OF_EVERY_NODE)), "")
    domains = PROVIDER_DOMAINS if group != AWS and template.known is not None else ()
    return LaunchPool(
        pool,
        pool["metadata", "name"].text,
        template.own,
        template.taints,
        template.soft_taints,
        remaining,
        static,
        closed,
        template.known,
        domains,
        _offered(template, remaining, ctx),
    )


class _Template(Struct, frozen=True):
    """The properties of a pool's nodes as in `LaunchPool`, and the types that its requirements allow."""

    own: dict[str, Requirement]
    taints: tuple[tuple[Taint, str], ...]
    soft_taints: tuple[tuple[Taint, str], ...]
    known: frozenset[str] | None
    types: MatchingTypes | None


def _template(pool: Field, ctx: AnyContext) -> _Template:
    template = node_template(pool, ctx)
    name, group = pool["metadata", "name"].text, provider(pool, ctx)
    taints = [
        (Taint(key=taint["key"].text, value=taint["value"].text), taint["effect"].text)
        for taint in template["spec", "taints"]
    ]
    own = dict(ctx.derived(pool_requirements))
    reference = template["spec", "nodeClassRef"]
    kind = reference["kind"].text or NODE_CLASS_KINDS.get(group, "")
    added = {
        NODE_POOL_LABEL: name,
        HOSTNAME_LABEL: "\0",
        f"{group}/{kind.lower()}": reference["name"].text,
        "karpenter.sh/registered": "true",
        "karpenter.sh/initialized": "true",
    }
    for key, value in added.items():
        scheduling.add_requirement(own, key, is_only(value))
    return _Template(
        own,
        tuple(taint for taint in taints if taint[1] in HARD_EFFECTS),
        tuple(taint for taint in taints if taint[1] == "PreferNoSchedule"),
        _known_labels(group, ctx),
        ctx.derived(matching_types),
    )


def _known_labels(group: str, ctx: AnyContext) -> frozenset[str] | None:
    """Return the labels that a provider knows: for EC2 all of them, for other providers those of Karpenter itself."""
    if group == AWS:
        # A later version may know more.
        later = at_least(ctx.target.karpenter, "1.15")
        return None if later else _KNOWN_TO_AWS.union(ctx.table(INSTANCE_TYPES).labelled)
    return _KNOWN_TO_CORE if group in NODE_CLASS_KINDS else None


def _is_known(key: str, pool: LaunchPool) -> bool:
    return (
        pool.known is None
        or key in pool.known
        or (key.partition("/")[0].endswith(pool.domains) if pool.domains else False)
    )


def _offered(template: _Template, remaining: Mapping[str, Amount], ctx: AnyContext) -> Offer | None:
    pool, own, types = ctx.subject, template.own, template.types
    if types is None or not types.known:
        return None
    catalogue, within = types.catalogue, types.known
    for resource, amount in remaining.items():
        within &= ~types_beyond(resource, amount, catalogue)
    class_name = node_template(pool, ctx)["spec", "nodeClassRef", "name"].text
    node_class = named(ctx.facts.list(EC2_NODE_CLASS), class_name) if provider(pool, ctx) == AWS else None
    reserved = node_class["spec", "kubelet", "kubeReserved"] if node_class is not None else None
    overlays = ctx.facts.list(NODE_OVERLAY)
    overlaid = frozenset(
        resource
        for overlay in (overlays.items if isinstance(overlays, Known) else ())
        for resource in overlay["spec", "capacity"].mapping
    )
    return Offer(
        types,
        within,
        _grouped(within, template, catalogue, ctx),
        overlaid,
        full_cpu=reserved is None or bool(reserved["cpu"]),
        reserved=0 if reserved is None or reserved["memory"] else _KUBE_RESERVED,
        newer=frozenset(key for key in catalogue.labelled if key in own and _is_newer(key, own[key], catalogue)),
        only_known=provider(pool, ctx) == AWS or (catalogue.complete and not catalogue.version),
    )


def types_beyond(resource: str, remaining: Amount, catalogue: InstanceTypes) -> int:
    """Return the types that certainly exceed the remaining amount of a limit.

    Karpenter compares their capacity. That of memory is the type's memory minus 7.5 % for the hypervisor
    (`--vm-memory-overhead-percent`) and minus 64 MiB for Arm types, or the observed capacity of a node, which is more.
    """
    if remaining < 0 or (remaining == 0 and resource in _OF_EVERY_NODE):
        return catalogue.everything
    if resource == "cpu":
        return catalogue.capacity["cpu"].at_least(math.floor(remaining) + 1)
    if resource == "memory":
        mebibytes, sizes = math.floor(remaining * Fraction(1, 2**20)) + 1, catalogue.capacity["memory"]
        if MEMORY_LABEL not in catalogue.scales:
            return sizes.at_least(mebibytes)
        mebibytes, arm = _size_with_capacity(mebibytes), catalogue.of("kubernetes.io/arch", "arm64")
        return sizes.at_least(mebibytes) & ~arm | sizes.at_least(mebibytes + _ARM_RESERVED) & arm
    scale = catalogue.allocatable.get(resource)
    return scale.at_least(math.floor(remaining) + 1) if scale else 0


def _size_with_capacity(mebibytes: int) -> int:
    """Return the smallest memory of a type with at least this capacity, both in MiB.

    7.5 % of the memory, rounded up, do not belong to the capacity.
    """
    return -(-mebibytes * 40 // 37)


def _grouped(within: int, template: _Template, catalogue: InstanceTypes, ctx: AnyContext) -> tuple[TypeGroup, ...]:
    """Divide types by the known DaemonSets that certainly run on their nodes."""
    fact = ctx.facts.list(DAEMON_SET)
    pools = ctx.facts.list(NODE_POOL)
    everywhere = derived(pools, _meeting_all, ctx) if isinstance(pools, Known) else frozenset()
    on_types: dict[int, dict[str, int]] = {}
    for position, daemon in enumerate(derived(fact, _daemons, ctx) if isinstance(fact, Known) else ()):
        if all(tolerated(daemon.pod, taint, effect) for taint, effect in template.taints):
            # The other terms of the affinity do not count, as `_meeting_all` says.
            last = daemon.required[-1]
            types = within if position in everywhere else _met_types(within, last, template, catalogue)
            on_types[types] = _total(on_types.get(types, {}), daemon.amounts)
    groups: list[tuple[int, dict[str, int]]] = [(within, {})]
    for types, amounts in on_types.items():
        divided = ((part & types, _total(total, amounts)) for part, total in groups)
        others = ((part & ~types, total) for part, total in groups)
        groups = [group for group in (*divided, *others) if group[0]]
    return tuple(TypeGroup(part, total) for part, total in groups)


def _meeting_all(pools: Known, ctx: AnyContext) -> frozenset[int]:
    """Return the positions of the DaemonSets with a term that all types of the pools meet.

    Karpenter compares a DaemonSet of several terms with one type after the other, in the order of EC2's response, and
    removes a term permanently if a type does not meet it. So a type certainly runs the DaemonSet if it meets the last
    term, or if no type of any pool removes one of the terms.
    """
    fact = ctx.facts.list(DAEMON_SET)
    daemons = derived(fact, _daemons, ctx) if isinstance(fact, Known) else ()
    several = [(position, daemon) for position, daemon in enumerate(daemons) if len(daemon.required) > 1]
    if not several:
        return frozenset()
    templates = [around.derived(_template) for around in object_contexts(pools, ctx)]
    return frozenset(
        position
        for position, daemon in several
        if any(all(_is_met_by_all(term, daemon, template) for template in templates) for term in daemon.required)
    )


def _is_met_by_all(term: Requirements, daemon: _Daemons, template: _Template) -> bool:
    """Tell whether all types of a pool meet a term, or the pool excludes the DaemonSet."""
    if not all(tolerated(daemon.pod, taint, effect) for taint, effect in template.taints):
        return True
    types = template.types
    if types is None or types.unknown:
        return False
    return _met_types(types.known, term, template, types.catalogue) == types.known


class _Daemons(Struct, frozen=True):
    """DaemonSets with the same tolerations and required labels: one Pod template, and the sum of their requests."""

    pod: Field
    required: tuple[Requirements, ...]
    amounts: dict[str, int]


def _daemons(known: Known, ctx: AnyContext) -> tuple[_Daemons, ...]:
    """Return the DaemonSets with requests.

    Karpenter ignores DaemonSets with ResourceClaims, like other Pods with them.
    """
    merged: dict[object, _Daemons] = {}
    for daemon_set in known.items:
        pod = daemon_set["spec", "template"]
        amounts = {} if has_claims(pod) else in_whole_units(requested(pod))
        if not amounts:
            continue
        required = alternatives(pod, ctx)
        tolerations = frozenset(
            tuple(toleration[key].text for key in ("key", "operator", "value", "effect"))
            for toleration in pod["spec", "tolerations"]
        )
        key = (tolerations, tuple(frozenset(term.items()) for term in required))
        alike = merged.get(key)
        merged[key] = _Daemons(pod, required, _total(alike.amounts if alike else {}, amounts))
    return tuple(merged.values())


def _total(some: Mapping[str, int], more: Mapping[str, int]) -> dict[str, int]:
    return {**some, **{name: some.get(name, 0) + amount for name, amount in more.items()}}


def _met_types(types: int, required: Requirements, template: _Template, catalogue: InstanceTypes) -> int:
    """Return the types on which the Pods of a DaemonSet certainly run, by one of their terms."""
    if not all(_is_certain(key, wanted, template.own, catalogue) for key, wanted in required.items()):
        return 0
    return narrowed_types(types, required, {}, catalogue)


def _is_certain(key: str, required: Requirement, own: Mapping[str, Requirement], catalogue: InstanceTypes) -> bool:
    """Tell whether nodes of a pool certainly have a label as required, apart from the catalogue's labels."""
    # Nodes do not have a label that the pool does not define, so a term that contradicts itself, which Karpenter reads as
    # DoesNotExist, is met.
    if key in own and _disjoint(own[key], required):
        return False
    if key in _USUAL_VALUES:
        return any(map(own.get(key, ANY_VALUE).intersect(required).allows, _USUAL_VALUES[key]))
    if key in own or key in catalogue.labelled:
        return True
    # Every node has these labels, with unknown values.
    always = {"Exists", "NotIn"} if key in _OF_EVERY_PLACE else {"NotIn", "DoesNotExist"}
    return required.operator in always


def _disjoint(present: Requirement, required: Requirement) -> bool:
    both = present.intersect(required)
    if both.operator != "DoesNotExist":
        return False
    return not {present.operator, required.operator} <= {"NotIn", "DoesNotExist"}


def narrowed_types(types: int, required: Requirements, own: Mapping[str, Requirement], catalogue: InstanceTypes) -> int:
    """Return the types that a Pod can get, by its requirements and those of the pool."""
    for key, requirement in required.items():
        if key in catalogue.labelled:
            present = own.get(key)
            types &= meeting(key, present.intersect(requirement) if present else requirement, catalogue)
    return types


def _may_be_newer(required: Requirements, pool: LaunchPool, offer: Offer) -> bool:
    """Tell whether a type outside of the catalogue may meet the requirements, by a value that the catalogue lacks."""
    catalogue = offer.types.catalogue
    if any(key not in required for key in offer.newer):
        return True
    for key, requirement in required.items():
        if key in catalogue.labelled:
            present = pool.own.get(key)
            if _is_newer(key, requirement.intersect(present) if present else requirement, catalogue):
                return True
    return False


def _is_newer(key: str, requirement: Requirement, catalogue: InstanceTypes) -> bool:
    if requirement.operator == "In":
        return not all(catalogue.of(key, value) for value in requirement.values)
    scale = catalogue.scales.get(key)
    return requirement.gte is not None and (scale is None or not scale.at_least(requirement.gte))


def named_by_pool(required: Requirements, pool: LaunchPool) -> Requirements:
    """Return the requirements with the label names of this pool: EKS Auto Mode has its own."""
    if not pool.domains or not any(key.startswith(AUTO_MODE) for key in required):
        return required
    return {label_of(key, pool.template): requirement for key, requirement in required.items()}


def can_launch(pool: LaunchPool, wanted: Demand) -> bool:
    """Tell whether a pool can launch a node for a Pod, or may. Faster than computing the reason."""
    if pool.closed and not pool.static:
        return False
    if not all(map(wanted.tolerates, pool.taints)):
        return False
    if len(wanted.alternatives) == 1 and not wanted.volumes:
        # Most Pods.
        return _serves_one(pool, named_by_pool(wanted.alternatives[0], pool), wanted)
    return any(_serves_one(pool, required, wanted) for required in _combinations(pool, wanted))


def _combinations(pool: LaunchPool, wanted: Demand) -> Iterator[Requirements]:
    for required in _compared_terms(pool, wanted):
        if not wanted.volumes:
            yield required
        elif not first_conflict(pool, required):
            for of_volumes in wanted.volumes:
                volumes = named_by_pool(of_volumes, pool)
                if not contradiction(required, volumes):
                    yield scheduling.combine((*required.items(), *volumes.items()))


def contradiction(required: Requirements, volumes: Requirements) -> str:
    """Return the first label for which a Pod and its volumes require different values; empty if there is none."""
    return next((key for key, of in volumes.items() if key in required and _disjoint(required[key], of)), "")


def _compared_terms(pool: LaunchPool, wanted: Demand) -> Iterator[Requirements]:
    """Yield the Pod's alternative requirements, one of which nodes of the pool have to meet.

    Karpenter drops terms of the required node affinity, up to the last, before it drops a preference. So only the last term is
    compared without the preferred node affinity, and with taints whose effect is PreferNoSchedule (`preferences.go`, Relax).
    """
    *earlier, last = wanted.alternatives
    if all(map(wanted.tolerates, pool.soft_taints)):
        for required in earlier:
            both = scheduling.combine((*required.items(), *wanted.preferred.items())) if wanted.preferred else required
            yield named_by_pool(both, pool)
    yield named_by_pool(last, pool)


def _serves_one(pool: LaunchPool, required: Requirements, wanted: Demand) -> bool:
    if first_conflict(pool, required):
        return False
    offer = pool.offer
    if offer is None or pool.static:
        return True
    catalogue = offer.types.catalogue
    if fitting_types(offer, narrowed_types(offer.within, required, pool.own, catalogue), wanted):
        return True
    return _may_be_newer(required, pool, offer)


def first_conflict(pool: LaunchPool, required: Requirements) -> str:
    """Return the first label that nodes of the pool cannot have as required; empty if there is none."""
    later = ""
    for key, requirement in required.items():
        present = pool.own.get(key)
        if present is None:
            # A running node may have labels that Karpenter does not know.
            if requirement.operator in {"In", "Exists"} and not pool.static and not _is_known(key, pool):
                return key
            present = ANY_VALUE
        elif _disjoint(present, requirement):
            later = later or key
            continue
        # Every node has these labels, with one of the values.
        if key in NODE_VALUES and not any(map(present.intersect(requirement).allows, NODE_VALUES[key])):
            later = later or key
    return later


def fitting_types(offer: Offer, types: int, wanted: Demand) -> int:
    """Return the types with room for a Pod's requests in addition to those of their DaemonSets."""
    fitting = 0
    for group in offer.groups:
        left = types & group.types
        if left:
            for resource, amount in wanted.whole.items():
                left &= types_with(offer, resource, amount + group.daemons.get(resource, 0))
                if not left:
                    break
            # Resources that only DaemonSets request have to fit too.
            for resource, amount in group.daemons.items() if left else ():
                if resource not in wanted.whole:
                    left &= types_with(offer, resource, amount)
            fitting |= left
    return fitting


def types_with(offer: Offer, resource: str, amount: int) -> int:
    """Return the types that have, or may have, an amount of a resource in whole units."""
    catalogue = offer.types.catalogue
    if resource in offer.overlaid or resource in _NOT_COMPARED:
        return catalogue.everything
    if resource == "cpu":
        if offer.full_cpu:
            return catalogue.capacity["cpu"].at_least(-(-amount // 1000))
        return catalogue.allocatable["cpu"].at_least(amount)
    if resource == "memory":
        return catalogue.capacity["memory"].at_least(-(-amount // 2**20) + offer.reserved)
    scale = catalogue.allocatable.get(resource)
    if scale:
        return scale.at_least(amount)
    # Catalogues of platforms do not list huge pages, which any node may have.
    is_listed = bool(catalogue.version) or "/" in resource
    return 0 if offer.only_known and is_listed else catalogue.everything


def launched_types(pool: LaunchPool, offer: Offer, wanted: Demand) -> int:
    """Return the types that a pool can launch for a Pod."""
    types = 0
    for required in _combinations(pool, wanted):
        if not first_conflict(pool, required):
            narrowed = narrowed_types(offer.within, required, pool.own, offer.types.catalogue)
            types |= fitting_types(offer, narrowed, wanted)
    return types
