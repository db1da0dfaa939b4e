"""NodeOverlay that tells Karpenter of GPUs, slices or prices that instance types do not have.

## Why is this bad?
Karpenter believes a NodeOverlay: it launches a type for the capacity that the overlay adds, and prefers the type that the
overlay makes the cheapest. If the node does not offer the capacity, the Pod does not run there, and Karpenter waits for
the capacity instead of removing the node.

## Instead
Select the instance types that have the capacity:

```yaml
requirements:
  - key: karpenter.k8s.aws/instance-family
    operator: In
    values: [p4d]
capacity:
  nvidia.com/mig-1g.5gb: "56"  # 8 GPUs with 7 slices each
```

The policy reports:

- `nvidia.com/gpu` for types without an NVIDIA GPU. More of it than a type has GPUs is right where GPUs are shared.
- More slices of a MIG profile than the GPUs of a type can be divided into.
- Resources that the AWS provider defines itself, such as `aws.amazon.com/neuron`: Karpenter ignores the whole overlay.
- One `price` for accelerated types whose prices differ by more than `max_price_ratio`. Karpenter then takes them for equal.

Where NodePools are known, only the types that they can launch count. An overlay is not evaluated for capacity and price if
its requirements name other labels than those of EC2 instance types, such as the name of a NodePool.

## Sources
Karpenter v1.14.1 `pkg/apis/v1alpha1/nodeoverlay.go`, `nodeoverlay_validation.go` (validateCapacity),
`pkg/controllers/nodeoverlay/controller.go`, `pkg/cloudprovider/types.go` (AdjustedPrice, ApplyCapacityOverlay); its AWS
provider v1.14.1 `pkg/apis/v1/labels.go` (the resources that are added to WellKnownResources); NVIDIA MIG user guide; EC2
types and prices as of 2026-07-20.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import msgspec

from gpugate.policies.data import mig_profiles
from gpugate.policies.sdk import quantity, scheduling
from gpugate.policies.sdk.facts import Known, Need, derived, object_contexts
from gpugate.policies.sdk.findings import Patch, Patches, Stance, Violation
from gpugate.policies.sdk.node_pools import AWS, INSTANCE_TYPES, matching_types
from gpugate.policies.sdk.objects import NODE_OVERLAY, NODE_POOL
from gpugate.policies.sdk.policy import Context, validates
from gpugate.policies.sdk.policy import Params as PolicyParams

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.data.instance_types import InstanceTypes
    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.policy import AnyContext

_REFUSED: Final = frozenset(
    {
        "aws.amazon.com/neuron",
        "aws.amazon.com/neuroncore",
        "habana.ai/gaudi",
        "vpc.amazonaws.com/efa",
        "vpc.amazonaws.com/pod-eni",
    }
)
_GPU: Final = "nvidia.com/gpu"
_FAMILY: Final = f"{AWS}/instance-family"
_MANUFACTURER: Final = f"{AWS}/instance-gpu-manufacturer"
_COUNT: Final = f"{AWS}/instance-gpu-count"
# Labels of offerings, which do not depend on the instance type.
_OF_OFFERINGS: Final = frozenset(
    {*scheduling.ZONES, "topology.kubernetes.io/region", "karpenter.sh/capacity-type", "kubernetes.io/os"}
)
_SHOWN: Final = 3
_IGNORED: Final = (
    "Karpenter refuses the capacity when it reads the overlay, so nothing of the overlay applies, prices included."
)
_ABSENT: Final = "Karpenter launches these types for Pods that request the capacity, the nodes do not offer it, and the Pods stay Pending."
_EQUAL: Final = (
    "Karpenter takes the types for equally expensive, and may launch a node that costs several times as much."
)


class Params(PolicyParams, frozen=True, kw_only=True):
    """How different the prices of instance types may be.

    Attributes:
        max_price_ratio: how many times as much the most expensive of the accelerated types may cost for which an overlay
            sets one price.
    """

    max_price_ratio: Annotated[float, msgspec.Meta(ge=1)] = 4


_NEEDS: Final = (Need(NODE_POOL, ("spec.template",)),)


@validates(NODE_OVERLAY, params=Params, mode=Stance.WARN, needs=_NEEDS, tables=(INSTANCE_TYPES,))
def check(overlay: Field, ctx: Context[Params]) -> Iterator[Violation]:
    """Report capacity that types do not have, capacity that Karpenter rejects, and one price for different types."""
    types = _types(overlay, ctx)
    for resource, field in overlay["spec", "capacity"].items():
        if resource in _REFUSED:
            message = f"Karpenter does not allow {resource} in the capacity of an overlay"
            fix = Patch("remove", field.path, None, "removes a resource for which Karpenter ignores the overlay")
            yield Violation(field.path, message, hint=f"remove {resource}", fix=Patches((fix,)), why=_IGNORED)
        elif types:
            yield from _capacity(resource, field, types, ctx.table(INSTANCE_TYPES))
    price = overlay["spec", "price"]
    if types and price.text:
        yield from _price(price, types & ctx.table(INSTANCE_TYPES).accelerated, ctx)


def _types(overlay: Field, ctx: AnyContext) -> int:
    """Return the EC2 types to which an overlay applies; none if they are unknown."""
    catalogue = ctx.table(INSTANCE_TYPES)
    read = [pair for entry in overlay["spec", "requirements"] if (pair := scheduling.read_requirement(entry))]
    keys = {key for key, _ in read}
    if not keys or len(read) < len(list(overlay["spec", "requirements"])) or not keys & catalogue.labelled.keys():
        return 0
    if any(key not in catalogue and key not in _OF_OFFERINGS for key in keys):
        return 0
    types = scheduling.matching(scheduling.combine(read), catalogue)
    pools = ctx.facts.list(NODE_POOL)
    return types & derived(pools, _launchable, ctx) if isinstance(pools, Known) and pools.items else types


def _launchable(pools: Known, ctx: AnyContext) -> int:
    """Return the types that a known NodePool can launch."""
    launchable = 0
    for around in object_contexts(pools, ctx):
        types = around.derived(matching_types)
        launchable |= types.known if types else 0
    return launchable


def _capacity(resource: str, field: Field, types: int, catalogue: InstanceTypes) -> Iterator[Violation]:
    amount = quantity.parse_or_none(field.value)
    if amount is None:
        return
    profile = mig_profiles.profile_of(resource)
    if resource == _GPU:
        without = types & ~catalogue.of(_MANUFACTURER, "nvidia")
        missing = "an NVIDIA GPU"
    elif profile is not None and mig_profiles.gpus_with(profile):
        without = types & ~_with_slices(profile, amount, catalogue)
        missing = f"{field.value} such slices"
    else:
        return
    if not without or amount <= 0:
        return
    count = without.bit_count()
    message = f"adds {resource} to {count} instance type{'s' if count > 1 else ''} without {missing} ({_some(without, catalogue)})"
    hint = "require only types that have it, such as with karpenter.k8s.aws/instance-family or instance-gpu-name"
    yield Violation(field.path, message, hint=hint, why=_ABSENT)


def _with_slices(profile: str, amount: quantity.Amount, catalogue: InstanceTypes) -> int:
    """Return the types whose GPUs can be divided into this number of slices."""
    types = 0
    for gpu in mig_profiles.gpus_with(profile):
        needed = -(-amount // gpu.profiles[profile])
        for family in gpu.families:
            types |= catalogue.of(_FAMILY, family) & catalogue.scales[_COUNT].at_least(int(needed))
    return types


def _price(price: Field, types: int, ctx: Context[Params]) -> Iterator[Violation]:
    catalogue = ctx.table(INSTANCE_TYPES)
    priced = sorted(
        (cost, position) for position in catalogue.positions_in(types) if (cost := catalogue.prices[position])
    )
    if not priced or priced[-1][0] <= ctx.params.max_price_ratio * priced[0][0]:
        return
    (least, cheapest), (most, dearest) = priced[0], priced[-1]
    message = (
        f"sets one price for {len(priced)} instance types that cost {least:.2f} to {most:.2f} USD an hour "
        f"({catalogue.names[cheapest]} to {catalogue.names[dearest]})"
    )
    hint = "use priceAdjustment with a percentage, or an overlay for each instance type"
    yield Violation(price.path, message, hint=hint, why=_EQUAL)


def _some(types: int, catalogue: InstanceTypes) -> str:
    names = list(catalogue.decode(types))
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
