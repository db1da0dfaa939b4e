"""Whether each NodePool can launch a node for a Pod, or else the first term that fails and the smallest change.

The terms are in the order of Karpenter: DRA claims, limits, taints, labels, volumes, instance types, resources in addition to
those of DaemonSets. Sources: those of `provisioning`.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from msgspec.structs import replace

from gpugate.policies.sdk import scheduling
from gpugate.policies.sdk.node_pools import NODE_POOL_LABEL, limits
from gpugate.policies.sdk.pod_requests import COUNTED
from gpugate.policies.sdk.provisioning import (
    ANY_VALUE,
    NODE_VALUES,
    PROVIDER_DOMAINS,
    TypeGroup,
    can_launch,
    contradiction,
    first_conflict,
    fitting_types,
    launch_pools,
    launched_types,
    named_by_pool,
    narrowed_types,
    types_beyond,
    types_with,
)
from gpugate.policies.sdk.scheduling import HOSTNAME_LABEL, tolerated
from gpugate.policies.sdk.structs import Struct

if TYPE_CHECKING:
    from gpugate.policies.data.instance_types import InstanceTypes
    from gpugate.policies.sdk.platform import Taint
    from gpugate.policies.sdk.pod_requests import Demand
    from gpugate.policies.sdk.policy import AnyContext
    from gpugate.policies.sdk.provisioning import LaunchPool, Offer
    from gpugate.policies.sdk.quantity import Amount
    from gpugate.policies.sdk.scheduling import Requirement, Requirements

Term: TypeAlias = Literal["claims", "limits", "taints", "labels", "volumes", "types", "resources"]
# In the order in which Karpenter compares them.
TERMS: Final[tuple[Term, ...]] = ("claims", "limits", "taints", "labels", "volumes", "types", "resources")
_ARCHITECTURE: Final = "kubernetes.io/arch"
_FAMILY: Final = "karpenter.k8s.aws/instance-family"


class Failure(Struct, frozen=True):
    """Why a pool cannot launch a node for a Pod.

    Attributes:
        term: the first term that fails.
        text: the compared values, in one clause without the name of the pool.
        key: the label, taint key or resource of the failure; empty if there are several.
        change: the smallest change that removes this failure, as an imperative; empty where none is known.
        of_pod: whether the change is one of the Pod and not of the pool.
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
    """Whether one pool can launch a node for a Pod.

    Attributes:
        pool: its name.
        failure: why it cannot launch a node; None if it can, or may.
        doubt: why it is unknown whether it can; empty if it is known.
        types: the number of instance types of the catalogue that it can launch for the Pod; 0 if they are unknown.
    """

    pool: str
    failure: Failure | None = None
    doubt: str = ""
    types: int = 0


def results(wanted: Demand, ctx: AnyContext, *, ignores_claims: bool = True, used: bool = False) -> tuple[Result, ...]:
    """Return the result of each known NodePool for a Pod, sorted by name.

    Args:
        wanted: what the Pod requests.
        ctx: the context of the Pod, with the known pools.
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
        return tuple(Result(pool.name, failure) for pool in launch_pools(ctx, used=used))
    return tuple(_result(pool, wanted) for pool in launch_pools(ctx, used=used))


def _result(pool: LaunchPool, wanted: Demand) -> Result:
    offer = pool.offer
    if not can_launch(pool, wanted):
        return Result(pool.name, _failure(pool, wanted))
    if pool.static:
        return Result(pool.name, doubt="it has a fixed number of nodes, which may have room")
    types = launched_types(pool, offer, wanted) if offer else 0
    if types:
        return Result(pool.name, types=types.bit_count())
    doubt = "it allows values that the catalogue of instance types does not contain"
    return Result(pool.name, doubt=doubt if offer else "its instance types are not known")


def _failure(pool: LaunchPool, wanted: Demand) -> Failure:
    """Return the first term that fails. Of several alternatives, the one that meets the most terms counts."""
    if pool.closed and not pool.static:
        left = pool.remaining[pool.closed]
        text = f"its limit of {pool.closed} is 0" if left == 0 else f"its limit of {pool.closed} is exceeded"
        if left == 0 and limits(pool.field)[pool.closed] > 0:
            text = f"its limit of {pool.closed} is reached"
        return Failure("limits", text, pool.closed, f"raise its limit of {pool.closed}")
    for taint, effect in pool.taints:
        if not tolerated(wanted.pod, taint, effect):
            printable = _shown_taint(taint, effect)
            return Failure(
                "taints",
                f"taint {printable} is not tolerated",
                taint.key,
                f"tolerate the taint {printable}",
                of_pod=True,
            )
    hindered = _hindered(pool, wanted)
    if hindered:
        return hindered
    failures = [_failure_of(pool, named_by_pool(required, pool), wanted) for required in wanted.alternatives]
    return max(failures, key=lambda failure: failure.rank)


def _hindered(pool: LaunchPool, wanted: Demand) -> Failure | None:
    """Return why Karpenter does not compare a term of the node affinity that the pool meets; None if there is none."""
    *earlier, _ = wanted.alternatives
    if not any(can_launch(pool, replace(wanted, alternatives=(required,))) for required in earlier):
        return None
    only = "Karpenter compares only the last required term of its node affinity with this pool"
    for taint, effect in pool.soft_taints:
        if not wanted.tolerates((taint, effect)):
            text = f"taint {_shown_taint(taint, effect)} is not tolerated, and {only}"
            change = f"tolerate the taint {_shown_taint(taint, effect)}"
            return Failure("taints", text, taint.key, change, of_pod=True)
    text = f"its preferred node affinity is not met, and {only}"
    return Failure("labels", text, change="write the required term that this pool meets last", of_pod=True)


def _shown_taint(taint: Taint, effect: str) -> str:
    """Write a taint as kubectl does."""
    return f"{taint.key}{f'={taint.value}' if taint.value else ''}:{effect}"


def _failure_of(pool: LaunchPool, required: Requirements, wanted: Demand) -> Failure:
    key = first_conflict(pool, required)
    if key:
        return _label_failure(pool, key, required[key])
    offer = pool.offer
    if wanted.volumes:
        named = [named_by_pool(volumes, pool) for volumes in wanted.volumes]
        agreeing = [volumes for volumes in named if not contradiction(required, volumes)]
        if not agreeing:
            key = contradiction(required, named[0])
            zones, own = _shown_values(named[0][key]), _shown_values(required[key])
            return Failure(
                "volumes", f"its volumes require {key} {zones}, and the Pod requires {own}", key, of_pod=True
            )
        merged = [scheduling.combine((*required.items(), *volumes.items())) for volumes in agreeing]
        possible = [both for both in merged if not first_conflict(pool, both)]
        if not possible:
            return _volume_failure(pool, merged[0], agreeing[0])
        required = possible[0]
    return (
        _offer_failure(pool, offer, required, wanted) if offer else Failure("types", "its instance types are not known")
    )


def _offer_failure(pool: LaunchPool, offer: Offer, required: Requirements, wanted: Demand) -> Failure:
    catalogue = offer.types.catalogue
    types = narrowed_types(offer.within, required, pool.own, catalogue)
    without_limits = narrowed_types(offer.types.known, required, pool.own, catalogue)
    if not types and without_limits:
        return _over_limits(pool, offer, without_limits)
    if not types:
        return _type_failure(pool, offer, required, wanted)
    unlimited = _regrouped(offer)
    if offer.within != offer.types.known and (fitting := fitting_types(unlimited, without_limits, wanted)):
        return _over_limits(pool, offer, fitting)
    return _resource_failure(pool, offer, types, required, wanted)


def _regrouped(offer: Offer) -> Offer:
    """Return an offer without limits and DaemonSets."""
    return replace(offer, within=offer.types.known, groups=(TypeGroup(offer.types.known, {}),))


def _volume_failure(pool: LaunchPool, required: Requirements, volumes: Requirements) -> Failure:
    key = first_conflict(pool, required)
    zones = _shown_values(volumes.get(key, ANY_VALUE))
    text = f"its volumes require {key} {zones}, which the pool does not allow"
    return Failure("volumes", text, key, f"allow {zones} for {key}")


def _label_failure(pool: LaunchPool, key: str, required: Requirement) -> Failure:
    present = pool.own.get(key)
    wanted = _shown_values(required)
    possible = NODE_VALUES.get(key)
    if possible is not None and not any(map(required.allows, possible)):
        values = ", ".join(sorted(possible))
        text = f"{key} {wanted} is required, and its values are {values}"
        return Failure("labels", text, key, f"select one of {values}", of_pod=True)
    if present is None:
        label = f"{key}={next(iter(required.values))}" if len(required.values) == 1 else key
        text = f"label {key} is required, which it does not define"
        # Karpenter rejects pools with unknown labels of these domains.
        is_free = not key.partition("/")[0].endswith(PROVIDER_DOMAINS)
        return Failure("labels", text, key, f"add the label {label} to its template" if is_free else "")
    if key == HOSTNAME_LABEL:
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


def _type_failure(pool: LaunchPool, offer: Offer, required: Requirements, wanted: Demand) -> Failure:
    catalogue = offer.types.catalogue
    types, key = offer.types.known, ""
    for each_key in required:
        if each_key in catalogue.labelled:
            types = narrowed_types(types, {each_key: required[each_key]}, pool.own, catalogue)
            if not types:
                key = each_key
                break
    text = f"none of its instance types has {key} {_shown_values(required[key])}"
    return Failure("types", text, key, _allowing(pool, offer, required, wanted))


def _resource_failure(pool: LaunchPool, offer: Offer, types: int, required: Requirements, wanted: Demand) -> Failure:
    catalogue = offer.types.catalogue
    change = _allowing(pool, offer, required, wanted)
    alone = _regrouped(offer)
    ordered = sorted(wanted.requests, key=lambda name: (name in COUNTED, name))
    for resource in ordered:
        amount = wanted.requests[resource]
        if not types & types_with(alone, resource, wanted.whole[resource]):
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
    if not fitting_types(alone, types, wanted):
        return Failure("resources", f"no instance type of it has {several} together", "", change)
    text = f"no instance type of it has {several} in addition to what DaemonSets request there"
    return Failure("resources", text, "", change)


def _most(offer: Offer, types: int, resource: str) -> Amount:
    """Return the largest amount of a resource that any of some types has for Pods."""
    catalogue = offer.types.catalogue
    unit: Amount = 1
    reserved = 0
    if resource == "cpu":
        scale = catalogue.capacity["cpu"] if offer.full_cpu else catalogue.allocatable["cpu"]
        unit = 1 if offer.full_cpu else Fraction(1, 1000)
    elif resource == "memory":
        scale, unit, reserved = catalogue.capacity["memory"], 2**20, offer.reserved
    else:
        known = catalogue.allocatable.get(resource)
        if known is None:
            return 0
        scale = known
    most = next((number for number in reversed(scale.numbers) if scale.at_least(number) & types), reserved)
    return unit * (most - reserved)


def quantity_text(resource: str, amount: Amount) -> str:
    """Write an amount for messages: memory in GiB."""
    if resource == "memory" and amount >= 2**20:
        return _decimal(Fraction(amount) / 2**30) + "Gi"
    return _decimal(Fraction(amount))


def _decimal(amount: Fraction) -> str:
    return str(int(amount)) if amount.denominator == 1 else f"{float(amount):.2f}".rstrip("0").rstrip(".")


def _allowing(pool: LaunchPool, offer: Offer, required: Requirements, wanted: Demand) -> str:
    """Return a type that would fit the Pod if one requirement of the pool allowed it; empty if there is none.

    The type has an architecture of the pool's types, because images are built for one, and preferably their family. Of
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
            widened = replace(offer, within=types, groups=(TypeGroup(types, daemons),))
            fitting = fitting_types(widened, narrowed_types(types, required, others, catalogue), wanted) & ~known
            if fitting:
                among = catalogue.positions_in(fitting & families or fitting)
                cheapest = min(among, key=lambda at: (catalogue.prices[at] or math.inf, at))
                return f"allow a type such as {catalogue.names[cheapest]}"
    return ""


def _most_daemons(offer: Offer) -> dict[str, int]:
    """Return the largest requests of DaemonSets on any type, which they may have on another type too."""
    most: dict[str, int] = {}
    for group in offer.groups:
        for resource, amount in group.daemons.items():
            most[resource] = max(most.get(resource, 0), amount)
    return most


def _sharing(label: str, types: int, catalogue: InstanceTypes) -> int:
    """Return the types that share the value of a label with one of some types; all if no type has the label."""
    if label not in catalogue.values:
        return catalogue.everything
    sharing = 0
    for having in catalogue.values[label].values():
        if having & types:
            sharing |= having
    return sharing


def _over_limits(pool: LaunchPool, offer: Offer, types: int) -> Failure:
    """Name the limit that excludes the types."""
    catalogue = offer.types.catalogue
    for resource, remaining in sorted(pool.remaining.items()):
        if not types & ~types_beyond(resource, remaining, catalogue):
            left = f"leaves {quantity_text(resource, remaining)} {resource}"
            text = f"its limit {left}, and every instance type that fits the Pod has more"
            return Failure("limits", text, resource, f"raise its limit of {resource}")
    return Failure("limits", "its limits exclude every instance type that fits the Pod", "", "raise its limits")
