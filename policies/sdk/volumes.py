"""The requirements of a Pod's volumes for the labels of its node.

A bound claim has the terms of its volume, an unbound one the topologies of its StorageClass. One of the terms has to
hold. The host name of a local volume does not count, because another node has a volume of its own.

Sources: Karpenter v1.14.1 `pkg/controllers/provisioning/scheduling/volumetopology.go` (GetRequirements); Karpenter AWS provider
v1.14.1 `pkg/operator/operator.go` (NormalizedLabels); Kubernetes v1.36 "Storage Classes" (allowed topologies), `pkg/volume/util`
(GetPersistentVolumeClaim: names of claims for ephemeral volumes).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from gpugate.policies.sdk.facts import Known, Need, derived, named, object_contexts
from gpugate.policies.sdk.objects import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, STORAGE_CLASS
from gpugate.policies.sdk.scheduling import HOSTNAME_LABEL, ZONES, Requirement, combine, normalized, read_requirement

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.objects import Kind
    from gpugate.policies.sdk.policy import AnyContext
    from gpugate.policies.sdk.scheduling import Requirements

# The needs of a policy that reads the location of a Pod's volumes.
VOLUME_NEEDS: Final = (
    Need(PERSISTENT_VOLUME, ("spec.hostPath", "spec.local", "spec.nodeAffinity")),
    Need(PERSISTENT_VOLUME_CLAIM, ("spec.storageClassName", "spec.volumeName")),
    Need(STORAGE_CLASS, ("allowedTopologies",)),
)

Terms: TypeAlias = "tuple[Requirements, ...]"
"""What a volume requires of labels: one of these. Without any, it requires nothing."""

_ZONE: Final = ZONES[0]
# Labels of a node's zone that volume drivers write.
_ZONE_KEYS: Final = frozenset(
    {"topology.disk.csi.azure.com/zone", "topology.ebs.csi.aws.com/zone", "topology.gke.io/zone"}
)
# The most combinations of terms, for a Pod with several volumes in several zones each.
_MOST_COMBINATIONS: Final = 64


class Claimed(NamedTuple):
    """The location of a claim's volume, which exists or will be created.

    Attributes:
        terms: its requirements for the labels of a node, one of which must hold.
        storage_class: the StorageClass that creates the volume; empty if it exists.
    """

    terms: Terms
    storage_class: str = ""


def required_by_volumes(pod: Field, ctx: AnyContext) -> Terms:
    """Return the requirements of all volumes of a Pod in the request's namespace."""
    combinations: list[dict[str, Requirement]] = [{}]
    for claimed in _claimed(pod, ctx):
        terms = claimed.terms
        if terms and len(combinations) * len(terms) <= _MOST_COMBINATIONS:
            combinations = [combine((*known.items(), *term.items())) for known in combinations for term in terms]
    return tuple(combinations) if combinations != [{}] else ()


def _claimed(pod: Field, ctx: AnyContext) -> Iterator[Claimed]:
    for volume in pod["spec", "volumes"]:
        name = volume["persistentVolumeClaim", "claimName"].text
        template = volume["ephemeral", "volumeClaimTemplate", "spec"]
        if name:
            yield claimed_volume(name, ctx)
        elif template:
            claim_name = f"{pod['metadata', 'name'].text}-{volume['name'].text}"
            yield claimed_volume(claim_name, ctx, template["storageClassName"].text)


def claimed_volume(name: str, ctx: AnyContext, storage_class: str = "") -> Claimed:
    """Return the location of a claim's volume; `storage_class` is that of a claim that does not exist yet."""
    claim = named(ctx.facts.list(PERSISTENT_VOLUME_CLAIM, ctx.request.namespace), name)
    volume = claim["spec", "volumeName"].text if claim else ""
    if volume:
        return Claimed(_known(PERSISTENT_VOLUME, _terms_of_volume, volume, ctx))
    return created_volume(claim["spec", "storageClassName"].text if claim else storage_class, ctx)


def created_volume(storage_class: str, ctx: AnyContext) -> Claimed:
    """Return the location of volumes that a StorageClass creates."""
    return Claimed(_known(STORAGE_CLASS, _terms_of_class, storage_class, ctx), storage_class)


def zones_of(terms: Terms) -> frozenset[str]:
    """Return the zones that the terms allow; none if one of them allows every zone."""
    zones = [term[_ZONE].values if _ZONE in term and not term[_ZONE].complement else frozenset[str]() for term in terms]
    # Azure's driver writes an empty zone for disks that every node can mount.
    return frozenset[str]().union(*zones) if all(some and "" not in some for some in zones) else frozenset()


def _known(kind: Kind, terms_of: Callable[[Field, AnyContext], Terms], name: str, ctx: AnyContext) -> Terms:
    """Return the terms of the object with this name; none if it is unknown."""
    fact = ctx.facts.list(kind)
    around = derived(fact, _by_name, ctx).get(name) if isinstance(fact, Known) and name else None
    return around.derived(terms_of) if around else ()


def _by_name(known: Known, ctx: AnyContext) -> dict[str, AnyContext]:
    return {around.subject["metadata", "name"].text: around for around in object_contexts(known, ctx)}


def _terms_of_volume(volume: Field, _: AnyContext) -> Terms:
    spec = volume["spec"]
    ignored = {HOSTNAME_LABEL} if spec["local"] or spec["hostPath"] else set()
    terms = [term["matchExpressions"] for term in spec["nodeAffinity", "required", "nodeSelectorTerms"]]
    read = ([pair for pair in map(read_requirement, term) if pair and pair[0] not in ignored] for term in terms if term)
    return tuple(combine((_label(key), requirement) for key, requirement in pairs) for pairs in read)


def _terms_of_class(storage_class: Field, _: AnyContext) -> Terms:
    terms = [term["matchLabelExpressions"] for term in storage_class["allowedTopologies"]]
    return tuple(
        combine(
            (_label(entry["key"].text), Requirement(complement=False, values=frozenset(entry["values"].texts)))
            for entry in term
            if entry["key"].text
        )
        for term in terms
        if term
    )


def _label(key: str) -> str:
    """Return the label of nodes for the label of a volume driver."""
    return _ZONE if key in _ZONE_KEYS else normalized(key)
