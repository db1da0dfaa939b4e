"""Whether Karpenter can launch a node for a Pod: by each NodePool, and otherwise the first term that fails.

The order of the terms is that of Karpenter: DRA claims, limits, taints, labels, volumes, instance types, resources in addition to
those of DaemonSets. Every approximation errs towards a pool that can: topology spread, affinity to Pods, host ports,
`minValues`, offerings in zones, ephemeral storage and the number of Pods on a node are not evaluated.

Sources: Karpenter v1.14.1 `pkg/controllers/provisioning/scheduling/scheduler.go` (addToNewNodeClaim,
filterByRemainingResources, buildDaemonOverheadGroups), `nodeclaim.go` (CanAdd, filterInstanceTypesByRequirements),
`nodeclaimtemplate.go`, `volumetopology.go`, `pkg/scheduling/requirements.go` (Compatible), `pkg/utils/resources/resources.go`
(Fits), `pkg/apis/v1/labels.go` (WellKnownLabels); its AWS provider v1.14.1 `pkg/apis/v1/labels.go`,
`pkg/providers/instancetype/types.go` (computeRequirements, kubeReservedResources).
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from msgspec.structs import replace

from gpugate.policies.data.instance_types import INSTANCE_TYPE
from gpugate.policies.sdk import scheduling
from gpugate.policies.sdk.facts import Known, Need, derived, each, named
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
from gpugate.policies.sdk.pod_requests import COUNTED, has_claims, in_whole_units, read_amounts, requested
from gpugate.policies.sdk.scheduling import HARD_EFFECTS, Requirement, alternatives, is_only, meeting, tolerated
from gpugate.policies.sdk.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gpugate.policies.data.instance_types import InstanceTypes
    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.pod_requests import Demand
    from gpugate.policies.sdk.policy import AnyContext
    from gpugate.policies.sdk.quantity import Amount
    from gpugate.policies.sdk.scheduling import Requirements

# What a policy that asks which pools can launch a node for a Pod declares that it looks up.
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

Term: TypeAlias = Literal["claims", "limits", "taints", "labels", "volumes", "types", "resources"]
# In the order in which Karpenter finds them.
TERMS: Final[tuple[Term, ...]] = ("claims", "limits", "taints", "labels", "volumes", "types", "resources")

_HOSTNAME: Final = "kubernetes.io/hostname"
_OS: Final = "kubernetes.io/os"
_ARCHITECTURE, _FAMILY = "kubernetes.io/arch", "karpenter.k8s.aws/instance-family"
_MEMORY, _CPU = "karpenter.k8s.aws/instance-memory", "karpenter.k8s.aws/instance-cpu"
# Labels that Pods may require of nodes of a pool that says nothing of them, beside those of the catalogue of types.
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
# Whose labels may be known to a provider, whose list of them is not known here.
_DOMAINS: Final = (
    *("kubernetes.io", "k8s.io", "karpenter.sh", "k8s.aws", "amazonaws.com"),
    *("azure.com", "k8s.gcp", "google.com", "kwok.sh"),
)
# The values that nodes can have, for labels that the catalogue does not contain.
_VALUES: Final = {CAPACITY_TYPE: frozenset(CAPACITY_TYPES), _OS: frozenset({"linux", "windows"})}
# Resources that a type of EC2 has depending on its node class, or that the catalogue does not contain.
_NOT_COMPARED: Final = ("ephemeral-storage", "pods", "vpc.amazonaws.com/pod-eni", "habana.ai/gaudi")
# What every node has some of.
_OF_EVERY_NODE: Final = frozenset({"cpu", "memory", "nodes"})
# kubelet's reservation of memory without that for each Pod, in MiB.
_KUBE_RESERVED: Final = 255


class Failure(Struct, frozen=True):
    """Why a pool cannot launch a node for a Pod.

    Attributes:
        term: the first term that fails.
        text: what was compared, in one clause without the name of the pool.
        key: the label, the key of the taint or the resource that it is about; empty if there are several.
        change: the smallest change that removes this failure, as an imperative; empty where none is known.
        of_pod: whether the Pod is what it changes, and not the pool.
    """

    term: Term
    text: str
    key: str = ""
    change: str = ""
    of_pod: bool = False

    @property
    def rank(self) -> int:
        """The number of terms that come before it."""
        return TERMS.index(self.term)


class Result(Struct, frozen=True):
    """What one pool can do for a Pod.

    Attributes:
        pool: its name.
        failure: why it can launch no node; None where it can, or may.
        doubt: why it is not known whether it can; empty where it is known.
        types: how many instance types of the catalogue it can launch for the Pod; 0 where they are not known.
    """

    pool: str
    failure: Failure | None = None
    doubt: str = ""
    types: int = 0


class _Group(Struct, frozen=True):
    """Types of a pool on which the same DaemonSets run, and what these request together."""

    types: int
    daemons: dict[str, int]


class _Offer(Struct, frozen=True):
    """The types that a pool can launch.

    Attributes:
        types: by its requirements, limits left aside.
        within: those of them that its limits allow.
        groups: `within` by their DaemonSets.
        overlaid: resources that a NodeOverlay adds to types.
        full_cpu: whether Pods may have all CPUs, because the reservation of its node class is not known.
        reserved: memory that Pods cannot have of any type, in MiB.
        newer: labels of which the pool allows values that the catalogue does not contain, such as those of newer types.
        only_known: whether types offer only resources of the catalogue, so that no other one fits.
    """

    types: MatchingTypes
    within: int
    groups: tuple[_Group, ...]
    overlaid: frozenset[str]
    full_cpu: bool
    reserved: int
    newer: frozenset[str]
    only_known: bool


class _Pool(Struct, frozen=True):
    """What is derived of a NodePool once for all Pods.

    Attributes:
        field: the NodePool.
        name: its name.
        own: what it requires of each label, with the labels that Karpenter adds.
        taints: those that keep Pods off, with their effects.
        remaining: what its limits leave, by resource.
        static: whether it keeps a fixed number of nodes, and launches none for Pods.
        closed: the resource of which its limits leave none, so that it launches no node; empty where there is none.
        known: labels that a Pod may require though the pool says nothing of them; None for any.
        domains: suffixes of the domains whose labels may be known too.
        offer: its types; None where they are not known.
    """

    field: Field
    name: str
    own: dict[str, Requirement]
    taints: tuple[tuple[Taint, str], ...]
    remaining: dict[str, Amount]
    static: bool
    closed: str
    known: frozenset[str] | None
    domains: tuple[str, ...]
    offer: _Offer | None

    @property
    def template(self) -> Field:
        """What describes its nodes."""
        return self.field["spec", "template"]


def launchable(wanted: Demand, ctx: AnyContext, *, ignores_claims: bool = True) -> bool:
    """Tell whether any known NodePool can launch a node for a Pod, or may."""
    if wanted.claims and ignores_claims:
        return False
    return any(_serves(pool, wanted) for pool in _pools(ctx))


def results(wanted: Demand, ctx: AnyContext, *, ignores_claims: bool = True, used: bool = False) -> tuple[Result, ...]:
    """Return what each known NodePool can do for a Pod, in the order of the pools' names.

    Args:
        wanted: what the Pod asks.
        ctx: the context of the Pod, in which the pools are known.
        ignores_claims: whether Karpenter ignores Pods with ResourceClaims (`--ignore-dra-requests`).
        used: whether the resources in the status of a pool count towards its limits.
    """
    if wanted.claims and ignores_claims:
        text = "the Pod uses a ResourceClaim, and Karpenter ignores such Pods (--ignore-dra-requests)"
        failure = Failure(
            "claims",
            text,
            change="request an extended resource such as nvidia.com/gpu instead of the claim",
            of_pod=True,
        )
        return tuple(Result(pool.name, failure) for pool in _pools(ctx, used=used))
    return tuple(_result(pool, wanted) for pool in _pools(ctx, used=used))


def _pools(ctx: AnyContext, *, used: bool = False) -> Sequence[_Pool]:
    fact = ctx.facts.list(NODE_POOL)
    return derived(fact, _now if used else _ever, ctx) if isinstance(fact, Known) else ()


def _ever(pools: Known, ctx: AnyContext) -> tuple[_Pool, ...]:
    return tuple(sorted((around.derived(_read) for around in each(pools, ctx)), key=lambda pool: pool.name))


def _now(pools: Known, ctx: AnyContext) -> tuple[_Pool, ...]:
    return tuple(sorted((_of(around, used=True) for around in each(pools, ctx)), key=lambda pool: pool.name))


def _read(_pool: Field, ctx: AnyContext) -> _Pool:
    return _of(ctx, used=False)


def _of(ctx: AnyContext, *, used: bool) -> _Pool:
    pool = ctx.subject
    template = node_template(pool, ctx)
    name, group = pool["metadata", "name"].text, provider(pool, ctx)
    taints = tuple(
        (Taint(key=taint["key"].text, value=taint["value"].text), taint["effect"].text)
        for taint in template["spec", "taints"]
        if taint["effect"].text in HARD_EFFECTS
    )
    own = dict(ctx.derived(pool_requirements))
    reference = template["spec", "nodeClassRef"]
    kind = reference["kind"].text or NODE_CLASS_KINDS.get(group, "")
    added = {
        NODE_POOL_LABEL: name,
        _HOSTNAME: "\0",
        f"{group}/{kind.lower()}": reference["name"].text,
        "karpenter.sh/registered": "true",
        "karpenter.sh/initialized": "true",
    }
    for key, value in added.items():
        scheduling.add_requirement(own, key, is_only(value))
    remaining = limits(pool)
    if used:
        for resource, amount in read_amounts(pool["status", "resources"]):
            if resource in remaining:
                remaining[resource] -= amount
    types = ctx.derived(matching_types)
    known = _known_labels(group, ctx)
    offer = _offered(own, taints, remaining, types, known, ctx) if types and types.known else None
    static = pool["spec", "replicas"].integer is not None
    closed = next((r for r, left in sorted(remaining.items()) if left < 0 or (left == 0 and r in _OF_EVERY_NODE)), "")
    domains = _DOMAINS if group != AWS and known is not None else ()
    return _Pool(pool, name, own, taints, remaining, static, closed, known, domains, offer)


def _known_labels(group: str, ctx: AnyContext) -> frozenset[str] | None:
    """Return the labels that a provider knows: for EC2 all of them, for other known ones those of Karpenter itself."""
    if group == AWS:
        # A later version may know more.
        later = at_least(ctx.target.karpenter, "1.15")
        return None if later else _KNOWN_TO_AWS.union(ctx.table(INSTANCE_TYPES).labelled)
    return _KNOWN_TO_CORE if group in NODE_CLASS_KINDS else None


def _is_known(key: str, pool: _Pool) -> bool:
    return (
        pool.known is None
        or key in pool.known
        or (key.partition("/")[0].endswith(pool.domains) if pool.domains else False)
    )


def _offered(
    own: dict[str, Requirement],
    taints: tuple[tuple[Taint, str], ...],
    remaining: Mapping[str, Amount],
    types: MatchingTypes,
    known: frozenset[str] | None,
    ctx: AnyContext,
) -> _Offer:
    pool, catalogue = ctx.subject, types.catalogue
    within = types.known
    for resource, amount in remaining.items():
        within &= ~_exceeding(resource, amount, catalogue)
    class_name = node_template(pool, ctx)["spec", "nodeClassRef", "name"].text
    node_class = named(ctx.facts.list(EC2_NODE_CLASS), class_name) if provider(pool, ctx) == AWS else None
    reserved = node_class["spec", "kubelet", "kubeReserved"] if node_class is not None else None
    overlays = ctx.facts.list(NODE_OVERLAY)
    overlaid = frozenset(
        resource
        for overlay in (overlays.items if isinstance(overlays, Known) else ())
        for resource in overlay["spec", "capacity"].mapping
    )
    return _Offer(
        types,
        within,
        _grouped(within, own, taints, known, catalogue, ctx),
        overlaid,
        full_cpu=reserved is None or bool(reserved["cpu"]),
        reserved=0 if reserved is None or reserved["memory"] else _KUBE_RESERVED,
        newer=frozenset(key for key in catalogue.labelled if key in own and _is_newer(key, own[key], catalogue)),
        only_known=provider(pool, ctx) == AWS,
    )


def _exceeding(resource: str, remaining: Amount, catalogue: InstanceTypes) -> int:
    """Return the types that are surely larger than what is left of a limit.

    Karpenter compares their capacity. Of memory the catalogue has only the part that Pods can have, which is less.
    """
    if remaining < 0 or (remaining == 0 and resource in _OF_EVERY_NODE):
        return catalogue.everything
    if resource == "cpu":
        return catalogue.scales[_CPU].at_least(math.floor(remaining) + 1)
    scale = catalogue.allocatable.get(resource)
    unit = Fraction(1, 2**20) if resource == "memory" else 1
    return scale.at_least(math.floor(remaining * unit) + 1) if scale else 0


def _grouped(
    within: int,
    own: dict[str, Requirement],
    taints: tuple[tuple[Taint, str], ...],
    known: frozenset[str] | None,
    catalogue: InstanceTypes,
    ctx: AnyContext,
) -> tuple[_Group, ...]:
    """Divide types by the known DaemonSets that certainly run on their nodes."""
    fact = ctx.facts.list(DAEMON_SET)
    groups: list[tuple[int, dict[str, int]]] = [(within, {})]
    for daemon, required, amounts in derived(fact, _daemons, ctx) if isinstance(fact, Known) else ():
        if not all(tolerated(daemon, taint, effect) for taint, effect in taints):
            continue
        # Karpenter removes the other terms of the affinity while it compares the first types.
        last = required[-1]
        conflicts = any(_conflicts(key, r, own, known) for key, r in last.items())
        types = 0 if conflicts else _narrowed(within, last, {}, catalogue)
        divided = []
        for of, total in groups:
            if of & types:
                more = total | {name: total.get(name, 0) + amount for name, amount in amounts.items()}
                divided.append((of & types, more))
            if of & ~types:
                divided.append((of & ~types, total))
        groups = divided
    return tuple(_Group(of, total) for of, total in groups)


def _daemons(known: Known, ctx: AnyContext) -> tuple[tuple[Field, tuple[Requirements, ...], dict[str, int]], ...]:
    """Return the Pod templates of DaemonSets that request something, with what they require and request.

    Karpenter leaves out those with ResourceClaims, as their Pods.
    """
    templates = [each["spec", "template"] for each in known.items]
    read = ((pod, alternatives(pod, ctx), in_whole_units(requested(pod))) for pod in templates if not has_claims(pod))
    return tuple(found for found in read if found[2])


def _conflicts(key: str, required: Requirement, own: Mapping[str, Requirement], known: frozenset[str] | None) -> bool:
    """Tell whether nodes of a pool cannot have the label; of labels that it does not know, whether that is not certain."""
    present = own.get(key)
    if present is None:
        return required.operator in {"In", "Exists"} and (known is None or key not in known)
    return _disjoint(present, required)


def _disjoint(present: Requirement, required: Requirement) -> bool:
    both = present.intersect(required)
    if both.operator != "DoesNotExist":
        return False
    return not {present.operator, required.operator} <= {"NotIn", "DoesNotExist"}


def _narrowed(types: int, required: Requirements, own: Mapping[str, Requirement], catalogue: InstanceTypes) -> int:
    """Return which of some types a Pod can have, by what it and the pool together require of the labels of types."""
    for key, requirement in required.items():
        if key in catalogue.labelled:
            present = own.get(key)
            types &= meeting(key, present.intersect(requirement) if present else requirement, catalogue)
    return types


def _may_be_newer(required: Requirements, pool: _Pool, offer: _Offer) -> bool:
    """Tell whether a type that the catalogue does not contain may meet the requirements, by a value that it does not know."""
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


def _at_pool(required: Requirements, pool: _Pool) -> Requirements:
    """Return the requirements with the names that labels have in this pool: EKS Auto Mode has its own."""
    if not pool.domains or not any(key.startswith(AUTO_MODE) for key in required):
        return required
    return {label_of(key, pool.template): requirement for key, requirement in required.items()}


def _serves(pool: _Pool, wanted: Demand) -> bool:
    """Tell whether a pool can launch a node for a Pod, or may; without the reason, which takes longer."""
    if pool.closed and not pool.static:
        return False
    if not all(map(wanted.tolerates, pool.taints)):
        return False
    return any(_serves_one(pool, required, wanted) for required in _combinations(pool, wanted))


def _combinations(pool: _Pool, wanted: Demand) -> Iterator[Requirements]:
    for required in wanted.alternatives:
        here = _at_pool(required, pool)
        if not wanted.volumes:
            yield here
        for of_volumes in wanted.volumes:
            yield scheduling.combine((*here.items(), *_at_pool(of_volumes, pool).items()))


def _serves_one(pool: _Pool, required: Requirements, wanted: Demand) -> bool:
    if _first_conflict(pool, required):
        return False
    offer = pool.offer
    if offer is None or pool.static:
        return True
    catalogue = offer.types.catalogue
    if _fitting(offer, _narrowed(offer.within, required, pool.own, catalogue), wanted):
        return True
    return _may_be_newer(required, pool, offer)


def _first_conflict(pool: _Pool, required: Requirements) -> str:
    """Return the first label that nodes of the pool cannot have as required; empty where there is none."""
    later = ""
    for key, requirement in required.items():
        present = pool.own.get(key)
        if present is None:
            # A node that runs may have labels that Karpenter does not know.
            if requirement.operator in {"In", "Exists"} and not pool.static and not _is_known(key, pool):
                return key
            present = _ANY
        elif _disjoint(present, requirement):
            later = later or key
            continue
        # Every node has these labels, with one of the values.
        if key in _VALUES and not any(map(present.intersect(requirement).allows, _VALUES[key])):
            later = later or key
    return later


_ANY: Final = Requirement(complement=True)


def _fitting(offer: _Offer, types: int, wanted: Demand) -> int:
    """Return which of some types have what a Pod requests beside their DaemonSets."""
    found = 0
    for group in offer.groups:
        left = types & group.types
        if left:
            for resource, amount in wanted.whole.items():
                left &= _having(offer, resource, amount + group.daemons.get(resource, 0))
                if not left:
                    break
            # What only DaemonSets request has to fit too.
            for resource, amount in group.daemons.items() if left else ():
                if resource not in wanted.whole:
                    left &= _having(offer, resource, amount)
            found |= left
    return found


def _having(offer: _Offer, resource: str, amount: int) -> int:
    """Return the types that have an amount of a resource, in whole units, or may."""
    catalogue = offer.types.catalogue
    if resource in offer.overlaid or resource in _NOT_COMPARED:
        return catalogue.everything
    if resource == "cpu":
        if offer.full_cpu:
            return catalogue.scales[_CPU].at_least(-(-amount // 1000))
        return catalogue.allocatable["cpu"].at_least(amount)
    if resource == "memory":
        return catalogue.scales[_MEMORY].at_least(-(-amount // 2**20) + offer.reserved)
    scale = catalogue.allocatable.get(resource)
    if scale:
        return scale.at_least(amount)
    return 0 if offer.only_known else catalogue.everything


def _result(pool: _Pool, wanted: Demand) -> Result:
    offer = pool.offer
    if not _serves(pool, wanted):
        return Result(pool.name, _failure(pool, wanted))
    if pool.static:
        return Result(pool.name, doubt="it has a fixed number of nodes, which may have room")
    types = _launched(pool, offer, wanted) if offer else 0
    if types:
        return Result(pool.name, types=types.bit_count())
    doubt = "it allows values that the catalogue of instance types does not contain"
    return Result(pool.name, doubt=doubt if offer else "its instance types are not known")


def _launched(pool: _Pool, offer: _Offer, wanted: Demand) -> int:
    types = 0
    for required in _combinations(pool, wanted):
        if not _first_conflict(pool, required):
            narrowed = _narrowed(offer.within, required, pool.own, offer.types.catalogue)
            types |= _fitting(offer, narrowed, wanted)
    return types


def _failure(pool: _Pool, wanted: Demand) -> Failure:
    """Return the first term that fails; of several alternatives, that of the one that gets furthest."""
    if pool.closed and not pool.static:
        left = pool.remaining[pool.closed]
        text = f"its limit of {pool.closed} is 0" if left == 0 else f"its limit of {pool.closed} is exceeded"
        if left == 0 and limits(pool.field)[pool.closed] > 0:
            text = f"its limit of {pool.closed} is reached"
        return Failure("limits", text, pool.closed, f"raise its limit of {pool.closed}")
    for taint, effect in pool.taints:
        if not tolerated(wanted.pod, taint, effect):
            shown = f"{taint.key}{f'={taint.value}' if taint.value else ''}:{effect}"
            return Failure(
                "taints", f"taint {shown} is not tolerated", taint.key, f"tolerate the taint {shown}", of_pod=True
            )
    found: Failure | None = None
    for required in wanted.alternatives:
        failure = _failure_of(pool, _at_pool(required, pool), wanted)
        if found is None or failure.rank > found.rank:
            found = failure
    return found or Failure("labels", "no term of its node affinity can be met")


def _failure_of(pool: _Pool, required: Requirements, wanted: Demand) -> Failure:
    key = _first_conflict(pool, required)
    if key:
        return _label_failure(pool, key, required[key])
    offer = pool.offer
    if wanted.volumes:
        merged = [scheduling.combine((*required.items(), *_at_pool(v, pool).items())) for v in wanted.volumes]
        possible = [each for each in merged if not _first_conflict(pool, each)]
        if not possible:
            return _volume_failure(pool, merged[0], wanted)
        required = possible[0]
    return (
        _offer_failure(pool, offer, required, wanted) if offer else Failure("types", "its instance types are not known")
    )


def _offer_failure(pool: _Pool, offer: _Offer, required: Requirements, wanted: Demand) -> Failure:
    catalogue = offer.types.catalogue
    types = _narrowed(offer.within, required, pool.own, catalogue)
    without_limits = _narrowed(offer.types.known, required, pool.own, catalogue)
    if not types and without_limits:
        return _over_limits(pool, offer, without_limits)
    if not types:
        return _type_failure(pool, offer, required, wanted)
    unlimited = _regrouped(offer)
    if offer.within != offer.types.known and (fitting := _fitting(unlimited, without_limits, wanted)):
        return _over_limits(pool, offer, fitting)
    return _resource_failure(pool, offer, types, required, wanted)


def _regrouped(offer: _Offer) -> _Offer:
    """Return an offer as it is without limits, and without DaemonSets."""
    return replace(offer, within=offer.types.known, groups=(_Group(offer.types.known, {}),))


def _volume_failure(pool: _Pool, required: Requirements, wanted: Demand) -> Failure:
    key = _first_conflict(pool, required)
    zones = _shown_values(wanted.volumes[0].get(key, _ANY))
    text = f"its volumes require {key} {zones}, which the pool does not allow"
    return Failure("volumes", text, key, f"allow {zones} for {key}")


def _label_failure(pool: _Pool, key: str, required: Requirement) -> Failure:
    present = pool.own.get(key)
    wanted = _shown_values(required)
    possible = _VALUES.get(key)
    if possible is not None and not any(map(required.allows, possible)):
        values = ", ".join(sorted(possible))
        text = f"{key} {wanted} is required, and its values are {values}"
        return Failure("labels", text, key, f"select one of {values}", of_pod=True)
    if present is None:
        label = f"{key}={next(iter(required.values))}" if len(required.values) == 1 else key
        text = f"label {key} is required, which it does not define"
        # Karpenter rejects pools with labels of these domains that it does not know.
        is_free = not key.partition("/")[0].endswith(_DOMAINS)
        return Failure("labels", text, key, f"add the label {label} to its template" if is_free else "")
    if key == _HOSTNAME:
        return Failure("labels", "a node of one host name is required, and new nodes have other names", key)
    if key == NODE_POOL_LABEL:
        return Failure("labels", f"{key} {wanted} is required", key)
    change = f"allow {wanted} for {key}" if required.operator == "In" else ""
    return Failure("labels", f"{key} {wanted} is required, and it allows {_shown_values(present)}", key, change)


_OPERATORS: Final = {"Exists": "any value", "DoesNotExist": "no value"}


def _shown_values(requirement: Requirement) -> str:
    """Write the values that a requirement allows."""
    values = sorted(requirement.values)
    some = ", ".join(_shortened(value) for value in values[:3]) + (
        f" and {len(values) - 3} more" if len(values) > 3 else ""
    )
    bounds = [f"at least {requirement.gte}"] * (requirement.gte is not None)
    bounds += [f"at most {requirement.lte}"] * (requirement.lte is not None)
    if requirement.operator == "In":
        return some
    if requirement.operator == "NotIn":
        return " and ".join((f"not {some}", *bounds))
    return " and ".join(bounds) or _OPERATORS[requirement.operator]


def _shortened(value: str) -> str:
    return value if len(value) <= 40 else f"{value[:40]}..."


def _type_failure(pool: _Pool, offer: _Offer, required: Requirements, wanted: Demand) -> Failure:
    catalogue = offer.types.catalogue
    types, key = offer.types.known, ""
    for each_key in required:
        if each_key in catalogue.labelled:
            types = _narrowed(types, {each_key: required[each_key]}, pool.own, catalogue)
            if not types:
                key = each_key
                break
    text = f"none of its instance types has {key} {_shown_values(required[key])}"
    return Failure("types", text, key, _allowing(pool, offer, required, wanted))


def _resource_failure(pool: _Pool, offer: _Offer, types: int, required: Requirements, wanted: Demand) -> Failure:
    catalogue = offer.types.catalogue
    change = _allowing(pool, offer, required, wanted)
    alone = _regrouped(offer)
    ordered = sorted(wanted.requests, key=lambda name: (name in COUNTED, name))
    for resource in ordered:
        amount = wanted.requests[resource]
        if not types & _having(alone, resource, wanted.whole[resource]):
            most = _most(offer, types, resource)
            have = (
                f"its instance types have at most {quantity_text(resource, most)}"
                if most
                else "none of its instance types has it"
            )
            if not most and resource not in catalogue.allocatable and resource not in COUNTED:
                have = "Karpenter knows no instance type that has it"
                change = change or f"add {resource} to the capacity of a NodeOverlay"
            return Failure(
                "resources", f"{quantity_text(resource, amount)} {resource} requested, and {have}", resource, change
            )
    several = " and ".join(f"{quantity_text(name, wanted.requests[name])} {name}" for name in ordered)
    if not _fitting(alone, types, wanted):
        return Failure("resources", f"no instance type of it has {several} together", "", change)
    text = f"no instance type of it has {several} in addition to what DaemonSets request there"
    return Failure("resources", text, "", change)


def _most(offer: _Offer, types: int, resource: str) -> Amount:
    """Return the largest amount of a resource that any of some types has for Pods."""
    catalogue = offer.types.catalogue
    unit: Amount = 1
    reserved = 0
    if resource == "cpu":
        scale = catalogue.scales[_CPU] if offer.full_cpu else catalogue.allocatable["cpu"]
        unit = 1 if offer.full_cpu else Fraction(1, 1000)
    elif resource == "memory":
        scale, unit, reserved = catalogue.scales[_MEMORY], 2**20, offer.reserved
    else:
        found = catalogue.allocatable.get(resource)
        if found is None:
            return 0
        scale = found
    most = next((number for number in reversed(scale.numbers) if scale.at_least(number) & types), reserved)
    return unit * (most - reserved)


def quantity_text(resource: str, amount: Amount) -> str:
    """Write an amount as people do: memory in GiB."""
    if resource == "memory" and amount >= 2**20:
        return _decimal(Fraction(amount) / 2**30) + "Gi"
    return _decimal(Fraction(amount))


def _decimal(amount: Fraction) -> str:
    return str(int(amount)) if amount.denominator == 1 else f"{float(amount):.2f}".rstrip("0").rstrip(".")


def _allowing(pool: _Pool, offer: _Offer, required: Requirements, wanted: Demand) -> str:
    """Name a type that would serve the Pod if one requirement of the pool allowed it; empty if there is none.

    It has an architecture of the pool's types, because images are built for one, and their family if one of it fits. Of
    several types it is the cheapest.
    """
    catalogue = offer.types.catalogue
    known, daemons = offer.types.known, _most_daemons(offer)
    architectures = _sharing(_ARCHITECTURE, known, catalogue)
    families = _sharing(_FAMILY, known, catalogue)
    for key in catalogue.labelled:
        if key in pool.own:
            others = {k: r for k, r in pool.own.items() if k != key}
            types = scheduling.matching(others, catalogue) & architectures
            widened = replace(offer, within=types, groups=(_Group(types, daemons),))
            fitting = _fitting(widened, _narrowed(types, required, others, catalogue), wanted) & ~known
            if fitting:
                among = catalogue.positions_in(fitting & families or fitting)
                cheapest = min(among, key=lambda at: (catalogue.prices[at] or math.inf, at))
                return f"allow a type such as {catalogue.names[cheapest]}"
    return ""


def _most_daemons(offer: _Offer) -> dict[str, int]:
    """Return the most that DaemonSets request on any type, which they may request on another one too."""
    found: dict[str, int] = {}
    for group in offer.groups:
        for resource, amount in group.daemons.items():
            found[resource] = max(found.get(resource, 0), amount)
    return found


def _sharing(label: str, types: int, catalogue: InstanceTypes) -> int:
    """Return the types that have the value of a label that one of some types has."""
    found = 0
    for having in catalogue.values[label].values():
        if having & types:
            found |= having
    return found


def _over_limits(pool: _Pool, offer: _Offer, types: int) -> Failure:
    """Name the limit that excludes the types."""
    catalogue = offer.types.catalogue
    for resource, remaining in sorted(pool.remaining.items()):
        if not types & ~_exceeding(resource, remaining, catalogue):
            left = f"leaves {quantity_text(resource, remaining)} {resource}"
            text = f"its limit {left}, and every instance type that fits the Pod has more"
            return Failure("limits", text, resource, f"raise its limit of {resource}")
    return Failure("limits", "its limits exclude every instance type that fits the Pod", "", "raise its limits")
