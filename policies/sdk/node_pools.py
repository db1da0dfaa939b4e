"""Properties of a NodePool, or of a NodeClaim made by hand: instance types, workload class and capacity.

Sources: Karpenter v1.14.1 (`pkg/apis/v1/nodepool.go`, `labels.go`) and its AWS provider v1.14.1 (`pkg/apis/v1/labels.go`);
EKS user guide "Create a node pool for EKS Auto Mode" for the labels under `eks.amazonaws.com`, as of 2026-11-21.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import TYPE_CHECKING, Final, Protocol, cast

from gpugate.policies.data import accelerators
from gpugate.policies.data.instance_types import INSTANCE_TYPE, InstanceTypes, load_instance_types
from gpugate.policies.sdk import formats, quantity, scheduling
from gpugate.policies.sdk.facts import Known, Need, derived
from gpugate.policies.sdk.field import Field
from gpugate.policies.sdk.findings import Skip
from gpugate.policies.sdk.node_types import NODE_TYPE_NEEDS, own_types
from gpugate.policies.sdk.objects import NODE_POOL, Operation
from gpugate.policies.sdk.policy import Table
from gpugate.policies.sdk.structs import Struct
from gpugate.policies.sdk.workload_class import CLASS_LABEL, CLASSES

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from gpugate.policies.sdk.platform import WorkloadClass
    from gpugate.policies.sdk.policy import AnyContext
    from gpugate.policies.sdk.scheduling import Requirement, Requirements

# A policy that reads the types of pools also reads those of the cluster's nodes, if `catalogue.from_nodes` is set.
INSTANCE_TYPES: Final = Table(
    "instance-types", load_instance_types, NODE_TYPE_NEEDS, lambda platform: platform.catalogue.from_nodes
)

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

# The label that Karpenter sets on its nodes to the name of their NodePool.
NODE_POOL_LABEL: Final = "karpenter.sh/nodepool"
CAPACITY_TYPE: Final = "karpenter.sh/capacity-type"
CAPACITY_TYPES: Final = ("on-demand", "reserved", "spot")

_AUTO_MODE_KEYS = ("eks.amazonaws.com/instance-", "eks.amazonaws.com/capacity-reservation-")
_FAMILY, _CATEGORY = f"{AWS}/instance-family", f"{AWS}/instance-category"
_LETTERS = re.compile("[a-z]+")
_ACCELERATOR_KEYS = ("karpenter.k8s.aws/instance-gpu-", "karpenter.k8s.aws/instance-accelerator-")
# The factors from Kubernetes's units to those of the catalogue; other resources have the same unit.
_UNITS = {"memory": Fraction(1, 2**20)}
_CPU: Final = f"{AWS}/instance-cpu"


class Entry(Struct, frozen=True):
    """A requirement and its field: an element of `requirements`, or a label of the template."""

    field: Field
    key: str
    requirement: Requirement


class MatchingTypes(Struct, frozen=True):
    """The instance types that a pool may launch, regardless of its limits.

    Attributes:
        entries: every requirement as it is written, in order.
        requirements: the intersection of all requirements of each label.
        known: types of the catalogue, as a set of its positions.
        unknown: types that the pool names and the catalogue does not contain.
        catalogue: the catalogue of instance types.
    """

    entries: tuple[Entry, ...]
    requirements: Requirements
    known: int
    unknown: tuple[str, ...]
    catalogue: InstanceTypes

    @property
    def accelerated(self) -> int:
        """The known types with an accelerator."""
        return self.known & self.catalogue.accelerated

    @property
    def others(self) -> int:
        """The known types without an accelerator."""
        return self.known & ~self.catalogue.accelerated


def node_template(pool: Field, ctx: AnyContext) -> Field:
    """Return the description of a node: a NodePool's template, or a NodeClaim itself."""
    return pool if ctx.request.kind.kind == "NodeClaim" else pool["spec", "template"]


def provider(pool: Field, ctx: AnyContext) -> str:
    """Return the group of the node class. If it is missing, the group of its kind, or else that of AWS."""
    reference = node_template(pool, ctx)["spec", "nodeClassRef"]
    kind = reference["kind"].text
    by_kind = next((group for group, known in NODE_CLASS_KINDS.items() if known == kind), AWS)
    return reference["group"].text or by_kind


PROVIDER_NEED: Final = Need(NODE_POOL, ("spec.template.spec.nodeClassRef",))


def is_on_ec2(_subject: Field, ctx: AnyContext) -> bool:
    """Tell whether the nodes are known to be EC2 instances, by the configuration or by a known NodePool."""
    if ctx.platform.ec2 is not None:
        return ctx.platform.ec2
    fact = ctx.facts.list(NODE_POOL)
    return isinstance(fact, Known) and derived(fact, _any_on_ec2, ctx)


def _any_on_ec2(pools: Known, _ctx: AnyContext) -> bool:
    references = (pool["spec", "template", "spec", "nodeClassRef"] for pool in pools.items)
    return any(
        reference["group"].text in {AWS, AUTO_MODE} or reference["kind"].text == NODE_CLASS_KINDS[AWS]
        for reference in references
    )


def requirement_entries(pool: Field, ctx: AnyContext) -> Iterator[Entry]:
    """Yield every requirement, including the labels of a NodePool's template."""
    template = node_template(pool, ctx)
    auto_mode = _may_be_auto_mode(template)
    for field in template["spec", "requirements"]:
        requirement = scheduling.read_requirement(field)
        if requirement:
            yield Entry(field, _label(requirement[0], auto_mode=auto_mode), requirement[1])
    if template is pool:
        return
    for key, field in template["metadata", "labels"].items():
        label = _label(scheduling.normalized(key), auto_mode=auto_mode)
        yield Entry(field, label, scheduling.is_only(field.text))


def label_of(key: str, template: Field) -> str:
    """Return the label that a key in a node template stands for: old aliases and Auto Mode's names are translated."""
    return _label(scheduling.normalized(key), auto_mode=_may_be_auto_mode(template))


def _may_be_auto_mode(template: Field) -> bool:
    """Tell whether the pool may belong to Auto Mode: with Karpenter's own group these keys are a user's labels."""
    return template["spec", "nodeClassRef", "group"].text in {"", AUTO_MODE}


def _label(key: str, *, auto_mode: bool) -> str:
    if auto_mode and key.startswith(_AUTO_MODE_KEYS):
        return AWS + key.removeprefix(AUTO_MODE)
    return key


def pool_requirements(pool: Field, ctx: AnyContext) -> Requirements:
    """Return the requirement of each label."""
    return combined(requirement_entries(pool, ctx))


def combined(entries: Iterator[Entry] | tuple[Entry, ...]) -> Requirements:
    """Return the intersection of the entries of each label."""
    return scheduling.combine((entry.key, entry.requirement) for entry in entries)


class ProviderTypes(Protocol):
    """A catalogue of the instance types that pools of a provider can launch.

    A provider with a table of its own is one more function in `_CATALOGUES`.
    """

    def __call__(self, group: str, ctx: AnyContext, /) -> InstanceTypes | None:
        """Return the types of a provider by the group of its node classes; None if the catalogue has none."""
        ...


def _ec2_types(group: str, ctx: AnyContext) -> InstanceTypes | None:
    return ctx.table(INSTANCE_TYPES) if group in {AWS, AUTO_MODE} else None


def _platform_types(_group: str, ctx: AnyContext) -> InstanceTypes | None:
    return own_types(ctx)


# The first catalogue that has types of a provider counts.
_CATALOGUES: Final[tuple[ProviderTypes, ...]] = (_ec2_types, _platform_types)


def catalogue_of(group: str, ctx: AnyContext) -> InstanceTypes | None:
    """Return the instance types of a provider by the group of its node classes; None if they are unknown."""
    return next((types for catalogue in _CATALOGUES if (types := catalogue(group, ctx)) is not None), None)


def catalogues(ctx: AnyContext) -> Iterator[InstanceTypes]:
    """Yield the catalogues of instance types, EC2's first; where the Pod selects types, they may be of any of these."""
    yield ctx.table(INSTANCE_TYPES)
    own = own_types(ctx)
    if own is not None:
        yield own


def matching_types(pool: Field, ctx: AnyContext) -> MatchingTypes | None:
    """Return the types that a pool may launch; None if they are unknown.

    EKS Auto Mode offers a part of EC2's types, so for it the result is an upper bound. If a catalogue is not complete,
    the types are known only if the pool names all of its types.
    """
    catalogue = catalogue_of(provider(pool, ctx), ctx)
    if catalogue is None:
        return None
    entries = tuple(requirement_entries(pool, ctx))
    required = combined(entries)
    unknown = _names_without_type(required, catalogue)
    known = meeting(required, catalogue)
    return None if known is None else MatchingTypes(entries, required, known, unknown, catalogue)


def meeting(required: Requirements, catalogue: InstanceTypes) -> int | None:
    """Return the types that meet requirements; None where types that are not in the catalogue may meet them too."""
    of_name = required.get(INSTANCE_TYPE)
    is_named = of_name is not None and not of_name.complement and bool(of_name.values)
    if not catalogue.complete and (not is_named or _names_without_type(required, catalogue)):
        return None
    return scheduling.matching(required, catalogue)


def _names_without_type(required: Requirements, catalogue: InstanceTypes) -> tuple[str, ...]:
    """Return the names of types that are required and that the catalogue does not have."""
    of_name = required.get(INSTANCE_TYPE)
    names = of_name.values if of_name and not of_name.complement else frozenset()
    return tuple(sorted(name for name in names if not catalogue.of(INSTANCE_TYPE, name)))


def ec2_types(pool: Field, ctx: AnyContext) -> MatchingTypes | None:
    """Return the types of a pool whose nodes are EC2 instances; None for other pools."""
    return ctx.derived(matching_types) if provider(pool, ctx) in {AWS, AUTO_MODE} else None


def types_doubt(pool: Field, ctx: AnyContext) -> Skip:
    """Return why `matching_types` or `ec2_types` returns None."""
    return Skip(f"the instance types of {provider(pool, ctx)} are unknown")


def is_gpu_pool(pool: Field, ctx: AnyContext) -> bool | None:
    """Tell whether a pool is for accelerators; None if its types are unknown.

    A pool is for accelerators if a type that it may launch has one, and one of these holds:

    - two thirds of its types or more have an accelerator;
    - a value that it requires belongs only to such types: `p5.48xlarge`, the family `g5`, the category `p`;
    - a requirement, a limit or a taint refers to accelerators.

    It is also for accelerators if it names types or families that the catalogue does not contain, in a category of
    which all known types have an accelerator, such as `p9.48xlarge`: they are newer than the catalogue, or retired.

    So a pool is for accelerators even if it allows other types too: Pods that request GPUs, or that fit nothing
    smaller, get the GPU type of `[p5.48xlarge, t3.nano]`. A pool that allows GPU types only because it names no types
    is for other Pods: 6 % of all EC2 types have an accelerator, and at most a third where a minimum of generation, CPU,
    memory or network is required (EC2 types as of 2026-07-20). Karpenter launches these only if no other type fits
    (aws/karpenter-provider-aws v1.14.1 `pkg/providers/instance/filter/filter.go`, ExoticInstanceTypeFilter).
    """
    types = ctx.derived(matching_types)
    if types is None:
        return None
    if not types.accelerated:
        return bool(unknown_accelerated(types))
    most = types.accelerated.bit_count() >= 2 * types.others.bit_count()
    return most or names_one_of(types, types.catalogue.accelerated) or declares_accelerators(pool, ctx)


def names_one_of(types: MatchingTypes, some: int) -> bool:
    """Tell whether a pool requires a value that only `some` types have, one of which it may launch.

    A `NotIn` that excludes most values of a label requires the remaining ones.
    """
    catalogue = types.catalogue
    for key, requirement in types.requirements.items():
        for value in _required_values(key, requirement, catalogue):
            having = catalogue.of(key, value)
            if having & types.known and not having & ~some:
                return True
    return False


def unknown_accelerated(types: MatchingTypes) -> tuple[str, ...]:
    """Return the types and families of a pool that the catalogue does not contain and whose category has accelerators.

    Karpenter reads the category from the first letters of the name (aws/karpenter-provider-aws v1.14.1
    `pkg/providers/instancetype/types.go`).
    """
    catalogue = types.catalogue
    families = types.requirements.get(_FAMILY)
    named = families.values if families is not None and families.operator == "In" else ()
    unknown = (*types.unknown, *sorted(name for name in named if not catalogue.of(_FAMILY, name)))
    return tuple(name for name in unknown if _is_accelerated_category(_LETTERS.match(name), catalogue))


def _is_accelerated_category(category: re.Match[str] | None, catalogue: InstanceTypes) -> bool:
    known = catalogue.of(_CATEGORY, category[0]) if category else 0
    return bool(known) and not known & ~catalogue.accelerated


def _required_values(key: str, requirement: Requirement, catalogue: InstanceTypes) -> Collection[str]:
    """Return the values of a label that a requirement names."""
    if requirement.operator == "In":
        return requirement.values
    if requirement.operator == "NotIn":
        known = catalogue.positions if key == INSTANCE_TYPE else catalogue.values.get(key, {})
        left = known.keys() - requirement.values
        return left if len(left) < len(known) / 2 else ()
    return ()


def is_for_accelerators(pool: Field, ctx: AnyContext) -> bool:
    """Tell whether a pool is for accelerators; if no type is known to match, by what it declares."""
    types = ctx.derived(matching_types)
    if types is not None and types.known:
        return bool(ctx.derived(is_gpu_pool))
    return declares_accelerators(pool, ctx)


def declares_accelerators(pool: Field, ctx: AnyContext) -> bool:
    """Tell whether a requirement, a limit or a taint of a pool declares accelerators.

    A requirement that only excludes some, such as `instance-gpu-name NotIn [t4]`, declares none.
    """
    keys = accelerator_taint_keys(ctx)
    template = node_template(pool, ctx)
    types = ctx.derived(matching_types)
    required = types.requirements if types else pool_requirements(pool, ctx)
    return (
        any(key.startswith(_ACCELERATOR_KEYS) and _asks_for(requirement) for key, requirement in required.items())
        or (types is not None and bool(unknown_accelerated(types)))
        or any(amount > 0 for name, amount in limits(pool).items() if ctx.platform.is_accelerator(name))
        or any(taint["key"].text in keys for taint in template["spec", "taints"])
    )


def _asks_for(requirement: Requirement) -> bool:
    """Tell whether the label must exist. Bounds hold only for types that have it."""
    bounded = requirement.gte is not None or requirement.lte is not None
    return bounded or requirement.operator in {"In", "Exists"}


def accelerator_taint_keys(ctx: AnyContext) -> frozenset[str]:
    """Return the keys of the taints that keep other Pods off nodes with accelerators."""
    own = (taint.key for taints in ctx.platform.taints.values() for taint in taints)
    return frozenset((*own, *accelerators.TAINT_KEYS.values()))


def limits(pool: Field) -> dict[str, quantity.Amount]:
    """Return the limits of a NodePool by resource, without invalid quantities. A NodeClaim has none."""
    amounts = {name: quantity.parse_or_none(field.value) for name, field in pool["spec", "limits"].items()}
    return {name: amount for name, amount in amounts.items() if amount is not None}


def above(types: InstanceTypes, resource: str, limit: quantity.Amount) -> int:
    """Return the types that are larger than a limit, which Karpenter never launches.

    Karpenter compares the capacity. For memory the catalogue contains the part that Pods can request, so these types
    certainly exceed the limit. A limit of 0 switches a pool off, and excludes no type.
    """
    if resource == "cpu" and limit > 0:
        return types.scales[_CPU].at_least(int(limit) + 1)
    scale = types.allocatable.get(resource)
    return scale.at_least(int(limit * _UNITS.get(resource, 1)) + 1) if scale and limit > 0 else 0


def capacity_types(required: Requirements) -> frozenset[str]:
    """Return which of on-demand, reserved and Spot capacity a pool may use; all if it has no requirement."""
    requirement = required.get(CAPACITY_TYPE)
    return frozenset(kind for kind in CAPACITY_TYPES if requirement is None or requirement.allows(kind))


def pool_classes(pool: Field, ctx: AnyContext) -> frozenset[WorkloadClass]:
    """Return the classes of workload that a pool is for, by the labels of its nodes.

    The labels are those of the template, or else those that requirements imply: Karpenter labels each node with one of
    the values of `workload In [training, inference]` (v1.14.1 `pkg/scheduling/requirements.go`, Labels). The label
    `gpugate.dev/workload-class` takes precedence over those in the platform's configuration.
    """
    labels = node_template(pool, ctx)["metadata", "labels"].labels
    own = _classes(lambda key: {labels[key]} if key in labels else (), ctx)
    required = ctx.derived(pool_requirements)
    return own or _classes(lambda key: required[key].values if _is_listed(required.get(key)) else (), ctx)


def pool_class(pool: Field, ctx: AnyContext) -> WorkloadClass | None:
    """Return the class of workload that a pool is for; None if it is for none or for several."""
    classes = pool_classes(pool, ctx)
    return next(iter(classes)) if len(classes) == 1 else None


def class_labels(ctx: AnyContext) -> tuple[tuple[str, Mapping[str, WorkloadClass]], ...]:
    """Return the labels of nodes that name a class, with the class of each value, in order of precedence."""
    rules = ctx.platform.classes
    own = {name: cast("WorkloadClass", name) for name in CLASSES}
    return ((CLASS_LABEL, own), *rules.labels.items(), *rules.node_selectors.items())


def _is_listed(requirement: Requirement | None) -> bool:
    return requirement is not None and requirement.operator == "In"


def _classes(values: Callable[[str], Collection[str]], ctx: AnyContext) -> frozenset[WorkloadClass]:
    """Return the classes of the first label whose values name any."""
    for key, names in class_labels(ctx):
        classes = frozenset(names[value] for value in values(key) if value in names)
        if classes:
            return classes
    return frozenset()


def made_by_karpenter(claim: Field, ctx: AnyContext) -> bool:
    """Tell whether Karpenter made a NodeClaim, or a legacy Machine, for one of its pools.

    Anyone can write an owner, so on CREATE the sender decides. Objects are cluster-scoped: a Role in a namespace of its
    own never allows a ServiceAccount to create them. Without a sender (in a file or an audit) and on UPDATE, owner,
    label and name have to be as Karpenter writes them (`sigs.k8s.io/karpenter` v1.14.1
    `pkg/controllers/provisioning/scheduling/nodeclaimtemplate.go`). The same applies to ServiceAccounts that
    `platform.karpenter_users` does not name: if the NodeClaims of a Karpenter that runs with one of these were denied, the
    cluster would get no new nodes.
    """
    request = ctx.request
    if request.user and request.operation is Operation.CREATE:
        return _is_karpenter(ctx) or (is_unlisted_account(ctx) and _is_as_karpenter_writes(claim))
    return _is_as_karpenter_writes(Field(request.old_object) if request.old_object else claim)


def is_unlisted_account(ctx: AnyContext) -> bool:
    """Tell whether a ServiceAccount that `platform.karpenter_users` does not name creates the object."""
    request = ctx.request
    creates = request.operation is Operation.CREATE and request.user.startswith("system:serviceaccount:")
    return creates and not _is_karpenter(ctx)


def _is_karpenter(ctx: AnyContext) -> bool:
    return any(formats.matches(pattern, ctx.request.user) for pattern in ctx.platform.karpenter_users)


def _is_as_karpenter_writes(claim: Field) -> bool:
    """Tell whether owner, label and name are those that Karpenter writes."""
    metadata = claim["metadata"]
    labels = metadata["labels"].labels
    name = metadata["name"].text or metadata["generateName"].text
    return any(
        owner["apiVersion"].text.startswith("karpenter.sh/v")
        and labels.get(_OWNERS.get(owner["kind"].text, "")) == owner["name"].text
        and name.startswith(f"{owner['name'].text}-")
        for owner in metadata["ownerReferences"]
    )


# The owner of a node that Karpenter creates, and the label that names it.
_OWNERS: Final = {"NodePool": NODE_POOL_LABEL, "Provisioner": "karpenter.sh/provisioner-name"}
