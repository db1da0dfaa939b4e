"""What policies need to know of a NodePool, or of a NodeClaim made by hand: its types, its class, its capacity.

Sources: Karpenter v1.14.1 (`pkg/apis/v1/nodepool.go`, `labels.go`) and its AWS provider v1.14.1 (`pkg/apis/v1/labels.go`);
EKS user guide "Create a node pool for EKS Auto Mode" for the labels under `eks.amazonaws.com`, as of 2026-11-21.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final, cast

from gpugate.policies.data import accelerators
from gpugate.policies.data.instance_types import INSTANCE_TYPE, InstanceTypes, load_instance_types
from gpugate.policies.sdk import quantity, requirements
from gpugate.policies.sdk.concerns import Each, Key, Text, any_of
from gpugate.policies.sdk.policy import Table
from gpugate.policies.sdk.workload_class import CLASS_LABEL, CLASSES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.platform import WorkloadClass
    from gpugate.policies.sdk.policy import AnyContext
    from gpugate.policies.sdk.requirements import Requirement, Requirements

INSTANCE_TYPES: Final = Table("instance-types", load_instance_types)

AWS: Final = "karpenter.k8s.aws"
AUTO_MODE: Final = "eks.amazonaws.com"
# The kind of node class in each group, for the providers whose node classes are known.
NODE_CLASS_KINDS: Final = {
    AWS: "EC2NodeClass",
    AUTO_MODE: "NodeClass",
    "karpenter.azure.com": "AKSNodeClass",
    "karpenter.k8s.gcp": "GCENodeClass",
    "karpenter.kwok.sh": "KWOKNodeClass",
}

CAPACITY_TYPE: Final = "karpenter.sh/capacity-type"
CAPACITY_TYPES: Final = ("on-demand", "reserved", "spot")

_AUTO_MODE_KEYS = ("eks.amazonaws.com/instance-", "eks.amazonaws.com/capacity-reservation-")
_ACCELERATOR_KEYS = ("karpenter.k8s.aws/instance-gpu-", "karpenter.k8s.aws/instance-accelerator-")
# The unit in which the catalogue keeps an amount, as a factor; other resources are counted whole.
_UNITS = {"cpu": Fraction(1000), "memory": Fraction(1, 2**20)}


@dataclass(frozen=True, slots=True)
class Entry:
    """A requirement and the field that states it: an element of `requirements`, or a label of the template."""

    field: Field
    key: str
    requirement: Requirement


@dataclass(frozen=True, slots=True)
class MatchingTypes:
    """The instance types that a pool may launch, limits left aside.

    Attributes:
        entries: every requirement as it is written, in order.
        requirements: the same by label, each narrowed by all that is said of it.
        known: types of the catalogue, as a set of its positions.
        unknown: types asked for by name that the catalogue does not have.
        catalogue: what was looked into.
    """

    entries: tuple[Entry, ...]
    requirements: Requirements
    known: int
    unknown: tuple[str, ...]
    catalogue: InstanceTypes

    @property
    def accelerated(self) -> int:
        """The known types that have an accelerator."""
        return self.known & self.catalogue.accelerated


def node_template(pool: Field, ctx: AnyContext) -> Field:
    """Return what describes a node: a NodePool's template, or a NodeClaim itself."""
    return pool if ctx.request.kind.kind == "NodeClaim" else pool["spec", "template"]


def provider(pool: Field, ctx: AnyContext) -> str:
    """Return the group of the node class; where it is left out, the one its kind belongs to, or else AWS."""
    reference = node_template(pool, ctx)["spec", "nodeClassRef"]
    kind = reference["kind"].text
    by_kind = next((group for group, known in NODE_CLASS_KINDS.items() if known == kind), AWS)
    return reference["group"].text or by_kind


def requirement_entries(pool: Field, ctx: AnyContext) -> Iterator[Entry]:
    """Yield every requirement; labels of a NodePool's template are requirements too."""
    template = node_template(pool, ctx)
    auto_mode = _may_be_auto_mode(template)
    for field in template["spec", "requirements"]:
        found = requirements.read(field)
        if found:
            yield Entry(field, _label(found[0], auto_mode=auto_mode), found[1])
    if template is pool:
        return
    for key, field in template["metadata", "labels"].items():
        label = _label(requirements.normalized(key), auto_mode=auto_mode)
        yield Entry(field, label, requirements.is_only(field.text))


def label_of(key: str, template: Field) -> str:
    """Return the label that a key in a node template stands for: old aliases and Auto Mode's names are translated."""
    return _label(requirements.normalized(key), auto_mode=_may_be_auto_mode(template))


def _may_be_auto_mode(template: Field) -> bool:
    """Without a group the pool may be one of Auto Mode; with Karpenter's own these keys are a user's labels."""
    return template["spec", "nodeClassRef", "group"].text in {"", AUTO_MODE}


def _label(key: str, *, auto_mode: bool) -> str:
    if auto_mode and key.startswith(_AUTO_MODE_KEYS):
        return AWS + key.removeprefix(AUTO_MODE)
    return key


def pool_requirements(pool: Field, ctx: AnyContext) -> Requirements:
    """Return what is required of each label."""
    return combined(requirement_entries(pool, ctx))


def combined(entries: Iterator[Entry] | tuple[Entry, ...]) -> Requirements:
    """Narrow by label what several entries require."""
    found: dict[str, Requirement] = {}
    for entry in entries:
        requirements.add(found, entry.key, entry.requirement)
    return found


def matching_types(pool: Field, ctx: AnyContext) -> MatchingTypes | None:
    """Return the types that a pool may launch; None when its provider is not AWS, whose types are the only known ones.

    EKS Auto Mode offers fewer types than EC2 has, so for it these are the most there can be.
    """
    if provider(pool, ctx) not in {AWS, AUTO_MODE}:
        return None
    catalogue = ctx.table(INSTANCE_TYPES)
    entries = tuple(requirement_entries(pool, ctx))
    required = combined(entries)
    named = required.get(INSTANCE_TYPE)
    unknown = sorted(named.values - catalogue.positions.keys()) if named and not named.complement else ()
    return MatchingTypes(entries, required, requirements.matching(required, catalogue), tuple(unknown), catalogue)


def is_gpu_pool(pool: Field, ctx: AnyContext) -> bool | None:
    """Tell whether a pool is for accelerators; None when its types are not known.

    It is when a type that it may launch has an accelerator, and either all of them have, or it says so itself.
    """
    types = ctx.derived(matching_types)
    if types is None:
        return None
    return bool(types.accelerated) and (types.accelerated == types.known or declares_accelerators(pool, ctx))


def is_for_accelerators(pool: Field, ctx: AnyContext) -> bool:
    """Tell the same also where no type is known to match; then what the pool says of accelerators decides."""
    types = ctx.derived(matching_types)
    if types is not None and types.known:
        return bool(ctx.derived(is_gpu_pool))
    return declares_accelerators(pool, ctx)


def declares_accelerators(pool: Field, ctx: AnyContext) -> bool:
    """Tell whether a requirement, a limit or a taint of a pool speaks of accelerators."""
    keys = accelerator_taint_keys(ctx)
    template = node_template(pool, ctx)
    types = ctx.derived(matching_types)
    required = types.requirements if types else pool_requirements(pool, ctx)
    return (
        any(k.startswith(_ACCELERATOR_KEYS) and r.operator != "DoesNotExist" for k, r in required.items())
        or any(amount > 0 for name, amount in limits(pool).items() if ctx.platform.is_accelerator(name))
        or any(taint["key"].text in keys for taint in template["spec", "taints"])
    )


def accelerator_taint_keys(ctx: AnyContext) -> frozenset[str]:
    """Return the keys of the taints that keep other Pods off nodes with accelerators."""
    own = (taint.key for taints in ctx.platform.taints.values() for taint in taints)
    return frozenset((*own, *accelerators.TAINT_KEYS.values()))


def limits(pool: Field) -> dict[str, quantity.Amount]:
    """Return the limits of a NodePool by resource; a NodeClaim has none. Those that are no quantity are left out."""
    found: dict[str, quantity.Amount] = {}
    for name, field in pool["spec", "limits"].items():
        try:
            found[name] = quantity.parse(field.value)
        except quantity.QuantityError:
            continue
    return found


def above(types: InstanceTypes, resource: str, limit: quantity.Amount) -> int:
    """Return the types too large for a limit, which Karpenter never launches.

    Karpenter compares the capacity, of which the catalogue has the part that Pods can have, so these are surely too
    large. A limit of 0 is how a pool is switched off, and rules no type out.
    """
    scale = types.allocatable.get(resource)
    return scale.at_least(int(limit * _UNITS.get(resource, 1)) + 1) if scale and limit > 0 else 0


def capacity_types(required: Requirements) -> frozenset[str]:
    """Return which of on-demand, reserved and spot capacity a pool may use: all where it says nothing."""
    requirement = required.get(CAPACITY_TYPE)
    return frozenset(kind for kind in CAPACITY_TYPES if requirement is None or requirement.allows(kind))


def pool_class(pool: Field, ctx: AnyContext) -> WorkloadClass | None:
    """Tell which class of workload a pool is for: its label, or what the platform reads from the labels of its nodes."""
    labels = node_template(pool, ctx)["metadata", "labels"].labels
    own = labels.get(CLASS_LABEL, "")
    if own in CLASSES:
        return cast("WorkloadClass", own)
    rules = ctx.platform.workload_classes
    for mapping in (rules.labels, rules.node_selectors):
        for key, classes in mapping.items():
            if labels.get(key, "") in classes:
                return classes[labels[key]]
    return None


def made_by_karpenter(claim: Field) -> bool:
    """Tell whether Karpenter made a NodeClaim, or a legacy Machine, for one of its pools."""
    labels = claim["metadata", "labels"].labels
    return any(
        owner["apiVersion"].text.startswith("karpenter.sh/") and (owner["kind"].text, label) in _OWNERS
        for owner in claim["metadata", "ownerReferences"]
        for label in labels
    )


_OWNERS: Final = frozenset({("NodePool", "karpenter.sh/nodepool"), ("Provisioner", "karpenter.sh/provisioner-name")})
# The same as `made_by_karpenter`: without it nodes could not come while the webhook is down.
MADE_BY_KARPENTER: Final = any_of(
    *(
        Each("metadata.ownerReferences", Text("apiVersion", ("karpenter.sh/*",)) & Text("kind", (kind,)))
        & Key("metadata.labels", (label,))
        for kind, label in sorted(_OWNERS)
    )
)
