"""How many accelerators a Pod asks for, in whatever way it asks."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpugate.policies.sdk import kinds, quantity
from gpugate.policies.sdk.facts import Known

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.policy import AnyContext


@dataclass(frozen=True, slots=True)
class ContainerDemand:
    """What one container asks for: accelerator resource -> count, each above 0."""

    container: Field
    resources: dict[str, int]
    claims: frozenset[str]


@dataclass(frozen=True, slots=True)
class GpuDemand:
    """What a Pod asks for.

    Attributes:
        resources: accelerator resource -> what the scheduler counts: app containers and sidecars together, or the
            largest init container with the sidecars started before it, whichever is more.
        containers: each container that asks for something, init containers among them.
        zero: accelerator resources named with the quantity 0.
        device_classes: accelerator classes of the DRA claims that containers use.
        unresolved: claims whose class could not be found out, by their name in the Pod.
    """

    resources: dict[str, int] = field(default_factory=dict)
    containers: tuple[ContainerDemand, ...] = ()
    zero: frozenset[str] = frozenset()
    device_classes: tuple[str, ...] = ()
    unresolved: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.resources or self.device_classes)

    @property
    def names(self) -> tuple[str, ...]:
        """Resources and device classes asked for, in a fixed order."""
        return (*sorted(self.resources), *self.device_classes)


def gpu_demand(pod: Field, ctx: AnyContext) -> GpuDemand:
    """Add up the accelerators that a Pod or Pod template asks for.

    A request without a limit, a limit without a request, any spelling of the number, init containers, sidecars (init
    containers that always restart) and DRA claims count. Ephemeral containers carry no resources (`core/v1`). A
    quantity that cannot be read counts as nothing here; it is refused elsewhere.
    """
    spec = pod["spec"]
    zero: set[str] = set()
    plain = [_container(c, ctx, zero) for c in spec["containers"]]
    init = [_container(c, ctx, zero) for c in spec["initContainers"]]
    claims = spec["resourceClaims"]
    if not any(c.resources or c.claims for c in (*init, *plain)):
        return GpuDemand(zero=frozenset(zero)) if zero else _NONE
    used = frozenset().union(*(c.claims for c in (*init, *plain)))
    classes, unresolved = _device_classes(claims, used, ctx)
    return GpuDemand(
        resources=_effective(plain, init),
        containers=tuple(c for c in (*init, *plain) if c.resources or c.claims),
        zero=frozenset(zero),
        device_classes=classes,
        unresolved=unresolved,
    )


_NONE = GpuDemand()


def _container(container: Field, ctx: AnyContext, zero: set[str]) -> ContainerDemand:
    resources: dict[str, int] = {}
    block = container["resources"].mapping
    requests, limits = block.get("requests"), block.get("limits")
    # A request that is absent defaults to the limit, so requests are read last and win.
    for amounts in (limits, requests):
        for name, value in amounts.items() if isinstance(amounts, dict) else ():
            if "/" not in name or not ctx.platform.is_accelerator(name):
                continue
            try:
                amount = math.ceil(quantity.parse(value))
            except quantity.QuantityError:
                continue
            if amount > 0:
                resources[name] = amount
            else:
                zero.add(name)
                resources.pop(name, None)
    claims = block.get("claims")
    names = (c.get("name") for c in claims if isinstance(c, dict)) if isinstance(claims, list) else ()
    return ContainerDemand(container, resources, frozenset(n for n in names if isinstance(n, str)))


def _effective(plain: list[ContainerDemand], init: list[ContainerDemand]) -> dict[str, int]:
    """Count as the scheduler does (`k8s.io/component-helpers/resource`, PodRequests, v0.36)."""
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    for step in init:
        sidecar = step.container["restartPolicy"].text == "Always"
        for name, count in step.resources.items():
            running = count + sidecars.get(name, 0)
            peak[name] = max(peak.get(name, 0), running)
            if sidecar:
                sidecars[name] = running
    total = dict(sidecars)
    for app in plain:
        for name, count in app.resources.items():
            total[name] = total.get(name, 0) + count
    return {name: max(total.get(name, 0), peak.get(name, 0)) for name in {**total, **peak}}


def _device_classes(claims: Field, used: frozenset[str], ctx: AnyContext) -> tuple[tuple[str, ...], tuple[str, ...]]:
    classes: set[str] = set()
    unresolved: list[str] = []
    for claim in claims:
        if claim["name"].text not in used:
            continue
        spec = _claim_spec(claim, ctx)
        if spec is None:
            unresolved.append(claim["name"].text)
        else:
            classes.update(c for c in requested_classes(spec) if ctx.platform.is_accelerator_class(c))
    return tuple(sorted(classes)), tuple(unresolved)


def _claim_spec(claim: Field, ctx: AnyContext) -> Field | None:
    """Find the spec of the ResourceClaim behind an entry of `spec.resourceClaims`."""
    template, name = claim["resourceClaimTemplateName"].text, claim["resourceClaimName"].text
    kind = kinds.RESOURCE_CLAIM_TEMPLATE if template else kinds.RESOURCE_CLAIM
    fact = ctx.facts.list(kind, ctx.request.namespace)
    for item in fact.items if isinstance(fact, Known) else ():
        if item["metadata", "name"].text == (template or name):
            return item["spec", "spec"] if template else item["spec"]
    return None


def requested_classes(spec: Field) -> Iterator[str]:
    """Yield the device classes that the spec of a ResourceClaim asks for, alternatives included, in any version."""
    for request in spec["devices", "requests"]:
        for ask in (request, request["exactly"], *request["firstAvailable"]):
            if ask["deviceClassName"].text:
                yield ask["deviceClassName"].text
