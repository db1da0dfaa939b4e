"""Count the accelerators that a Pod requests, by extended resources or by DRA claims.

A device request of v1alpha3 or v1beta1 has its members at the top, one of v1beta2 or v1 under `exactly`. It may list
alternatives under `firstAvailable` instead, which have their members at the top in every version.

Sources: `kubernetes/api` v0.36 `resource/v1`, `resource/v1beta2`, `resource/v1beta1`; v0.33 `resource/v1alpha3`.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Final

import msgspec

from gpugate.policies.data import accelerators
from gpugate.policies.sdk import formats, objects, quantity
from gpugate.policies.sdk.concerns import EVERY_OBJECT, Each, Key, Listed
from gpugate.policies.sdk.facts import Known, Need, derived, may_come, named
from gpugate.policies.sdk.field import refuse_unknown
from gpugate.policies.sdk.findings import Skip
from gpugate.policies.sdk.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.objects import Kind
    from gpugate.policies.sdk.policy import AnyContext

# The members of a device request. Only a request that is not an alternative has `adminAccess`.
MEMBERS: Final = (
    "deviceClassName",
    "selectors",
    "allocationMode",
    "count",
    "adminAccess",
    "tolerations",
    "capacity",
)
# Versions in which a request contains its members directly.
INLINE_VERSIONS: Final = frozenset({"v1alpha3", "v1beta1"})

_MEMBERS: Final = frozenset(MEMBERS)
# The API server rejects a longer CEL expression (`resource/v1` types.go CELSelectorExpressionMaxLength, v0.36).
_LONGEST_CEL: Final = 10 * 1024


def claim_spec_of(obj: Field, kind: str) -> Field:
    """Return the spec of a ResourceClaim, or of the claims that a ResourceClaimTemplate makes."""
    return obj["spec", "spec"] if kind == "ResourceClaimTemplate" else obj["spec"]


def device_requests(spec: Field) -> Iterator[Field]:
    """Yield the requests in the spec of a claim."""
    yield from spec["devices", "requests"]


def alternatives(request: Field) -> tuple[Field, ...]:
    """Return the objects with the members of a request, in the order in which the scheduler tries them.

    All of them are returned, even if the API server accepts only one form in this version.
    """
    nested = tuple(ask for ask in (request["exactly"], *request["firstAvailable"]) if ask)
    return (request, *nested) if own_members(request) else nested


def readable_cel(expression: Field) -> str:
    """Return a selector's CEL expression; empty where it is longer than the API server accepts."""
    text = expression.text
    return text if len(text) <= _LONGEST_CEL else ""


def own_members(request: Field) -> tuple[str, ...]:
    """Return those of `MEMBERS` that a request contains directly.

    The API server adds `deviceClassName: ""`, which the manifest does not have, to a v1beta1 request with alternatives
    (`kubernetes/api` v0.36 `resource/v1beta1/types.go`: no omitempty).
    """
    if _MEMBERS.isdisjoint(request.mapping):
        return ()
    added = "deviceClassName" if request["firstAvailable"].value and not request["deviceClassName"].text else ""
    return tuple(name for name in MEMBERS if request[name] and name != added)


# The needs of a policy that reads the demand of a Pod.
CLAIM_NEEDS: Final = (
    Need(objects.RESOURCE_CLAIM, ("spec.devices.requests",)),
    Need(objects.RESOURCE_CLAIM_TEMPLATE, ("spec.spec.devices.requests",)),
    Need(objects.DEVICE_CLASS, ("spec.extendedResourceName", "spec.selectors")),
)

_NAMED: Final = Key("resources.limits", Listed.ACCELERATOR_RESOURCES) | Key(
    "resources.requests", Listed.ACCELERATOR_RESOURCES
)
# Holds for Pods that name an accelerator among their resources, with any quantity.
NAMES_ACCELERATOR: Final = Each("spec.containers", _NAMED) | Each("spec.initContainers", _NAMED)
# Holds for Pods with a ResourceClaim.
HAS_CLAIM: Final = Each("spec.resourceClaims", EVERY_OBJECT)
# Holds for Pods that can have a demand, known or unknown.
MAY_DEMAND: Final = NAMES_ACCELERATOR | HAS_CLAIM


class ContainerDemand(Struct, frozen=True):
    """The demand of one container: accelerator resource -> count, each above 0; and the names of its claims."""

    container: Field
    resources: dict[str, int]
    claims: frozenset[str]

    @property
    def is_sidecar(self) -> bool:
        """Whether the container, an init container, runs beside the others until they end."""
        return self.container["restartPolicy"].text == "Always"


class GpuDemand(Struct, frozen=True):
    """The accelerators that a Pod requests; true if there are any.

    Attributes:
        resources: accelerator resource -> the number that the scheduler counts: the sum of app containers and sidecars,
            or the largest init container with the sidecars started before it, whichever is more.
        containers: each container that requests accelerators or uses claims, init containers first.
        zero: accelerator resources named with the quantity 0.
        device_classes: accelerator class of the Pod's DRA claims -> requested devices. Of alternatives the largest
            counts; a request for all devices of a node counts as one.
        unresolved: claims whose class is unknown, by their name in the Pod.
        absent: those of `unresolved` whose object does not exist, perhaps not yet.
    """

    resources: dict[str, int] = msgspec.field(default_factory=dict)
    containers: tuple[ContainerDemand, ...] = ()
    zero: frozenset[str] = frozenset()
    device_classes: dict[str, int] = msgspec.field(default_factory=dict)
    unresolved: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.resources or self.device_classes)

    @property
    def unknown(self) -> tuple[str, ...]:
        """The unresolved claims that may request accelerators. A claim that does not exist requests nothing."""
        absent = frozenset(self.absent)
        return tuple(name for name in self.unresolved if name not in absent)

    @property
    def names(self) -> tuple[str, ...]:
        """The requested resources and device classes, in a fixed order."""
        return (*sorted(self.resources), *sorted(self.device_classes))

    @property
    def is_share(self) -> bool:
        """Whether only shares of GPUs are requested; false if nothing is."""
        plain = [name.removeprefix(accelerators.IMPLICIT_CLASS_PREFIX) for name in self.names]
        return bool(plain) and all(any(formats.matches(p, name) for p in accelerators.SHARES) for name in plain)

    @property
    def doubt(self) -> Skip | None:
        """Why the demand may be incomplete; None if it is complete."""
        if not self.unresolved:
            return None
        return Skip(f"the devices of claim {self.unresolved[0]} are unknown", coming=bool(self.absent))


def gpu_demand(pod: Field, ctx: AnyContext) -> GpuDemand:
    """Add up the accelerators that a Pod or Pod template requests.

    A request without a limit, a limit without a request, any spelling of the number, init containers, sidecars (init
    containers that always restart) and DRA claims count. A claim counts even if no container uses it, because the
    scheduler allocates every claim of a Pod (Kubernetes v1.36, `pkg/scheduler/framework/plugins/dynamicresources`).
    Ephemeral containers have no resources (`core/v1`). An invalid quantity does not count here; another policy reports
    it.
    """
    spec = pod["spec"]
    zero: set[str] = set()
    plain = [_container(c, ctx, zero) for c in spec["containers"]]
    init = [_container(c, ctx, zero) for c in spec["initContainers"]]
    asking = tuple(c for c in (*init, *plain) if c.resources or c.claims)
    if not asking and not spec["resourceClaims"]:
        return GpuDemand(zero=frozenset(zero)) if zero else _NONE
    return GpuDemand(_effective(plain, init), asking, frozenset(zero), *_claimed(pod, ctx))


_NONE: Final = GpuDemand()
_NO_CLAIMS: Final[frozenset[str]] = frozenset()


def _container(container: Field, ctx: AnyContext, zero: set[str]) -> ContainerDemand:
    block = container["resources"].mapping
    limits, requests, claims = block.get("limits"), block.get("requests"), block.get("claims")
    resources: dict[str, int] = {}
    # A missing request defaults to the limit.
    amounts = {**(limits if isinstance(limits, dict) else {}), **(requests if isinstance(requests, dict) else {})}
    for name, value in amounts.items():
        if "/" not in name or not (ctx.platform.is_accelerator(name) or name in ctx.derived(_of_classes)):
            continue
        amount = quantity.parse_or_none(value)
        if amount is None:
            continue
        if amount > 0:
            resources[name] = math.ceil(amount)
        else:
            zero.add(name)
    if not isinstance(claims, list):
        return ContainerDemand(container, resources, _NO_CLAIMS)
    names = (refuse_unknown(claim.get("name")) for claim in claims if isinstance(claim, dict))
    return ContainerDemand(container, resources, frozenset(name for name in names if isinstance(name, str)))


def _of_classes(_subject: Field, ctx: AnyContext) -> frozenset[str]:
    """Return the extended resources that known DeviceClasses of accelerators provide.

    The scheduler makes the claim of such a Pod (`resource/v1` types.go ExtendedResourceName, v0.36; DRAExtendedResource).
    """
    fact = ctx.facts.list(objects.DEVICE_CLASS)
    return derived(fact, _extended_resources, ctx) if isinstance(fact, Known) else frozenset()


def has_names_of_classes(ctx: AnyContext) -> bool:
    """Tell whether a known DeviceClass provides a resource of accelerators that the platform does not name.

    `NAMES_ACCELERATOR` does not hold for a Pod that requests it, because the API server does not know these classes
    when it evaluates match conditions.
    """
    return any(not ctx.platform.is_accelerator(name) for name in _of_classes(ctx.subject, ctx) if name)


def _extended_resources(known: Known, ctx: AnyContext) -> frozenset[str]:
    """Return the extended resources of the DeviceClasses of accelerators, by their name or by the driver they select."""
    return frozenset(
        device_class["spec", "extendedResourceName"].text
        for device_class in known.items
        if ctx.platform.is_accelerator_class(device_class["metadata", "name"].text)
        or any(map(ctx.platform.is_accelerator_class, selected_drivers(device_class)))
    )


def selected_drivers(device_class: Field) -> frozenset[str]:
    """Return the drivers that the selectors of a DeviceClass compare `device.driver` with."""
    return frozenset(
        match["driver"]
        for selector in device_class["spec", "selectors"]
        for match in _DRIVER.finditer(readable_cel(selector["cel", "expression"]))
    )


# The driver in a selector. The class of all devices of a driver has the driver's name.
_DRIVER: Final = re.compile(r"""\bdevice\.driver\s*==\s*(?P<quote>['"])(?P<driver>[a-z0-9.-]{1,253})(?P=quote)""")


def is_amount(name: str) -> bool:
    """Tell whether a resource is an amount of a device, such as memory, and not a number of devices."""
    return any(formats.matches(pattern, name) for pattern in accelerators.AMOUNTS)


def is_virtual(name: str) -> bool:
    """Tell whether a resource is a virtual GPU, of which an unknown number share a GPU."""
    return any(formats.matches(pattern, name) for pattern in accelerators.VIRTUAL)


def _effective(plain: list[ContainerDemand], init: list[ContainerDemand]) -> dict[str, int]:
    """Count as the scheduler does (`k8s.io/component-helpers/resource`, PodRequests, v0.36)."""
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    for step in init:
        for name, count in step.resources.items():
            running = count + sidecars.get(name, 0)
            peak[name] = max(peak.get(name, 0), running)
            if step.is_sidecar:
                sidecars[name] = running
    total = dict(sidecars)
    for app in plain:
        for name, count in app.resources.items():
            total[name] = total.get(name, 0) + count
    return {name: max(total.get(name, 0), peak.get(name, 0)) for name in {**total, **peak}}


def _claimed(pod: Field, ctx: AnyContext) -> tuple[dict[str, int], tuple[str, ...], tuple[str, ...]]:
    """Return the devices that a Pod claims by accelerator class, its unresolved claims, and those that do not exist."""
    classes: dict[str, int] = {}
    unresolved: list[str] = []
    absent: list[str] = []
    for claim in pod["spec", "resourceClaims"]:
        spec = claim_spec(claim, ctx)
        if spec is None:
            unresolved.append(claim["name"].text)
            if _is_absent(claim, ctx):
                absent.append(claim["name"].text)
            continue
        for counts in requested_devices(spec):
            granted = max(counts, key=lambda name: counts[name])
            for name, count in counts.items():
                if ctx.platform.is_accelerator_class(name):
                    classes[name] = classes.get(name, 0) + (count if name == granted else 0)
    return classes, tuple(unresolved), tuple(absent)


def claim_spec(claim: Field, ctx: AnyContext) -> Field | None:
    """Return the spec of the ResourceClaim of an entry of `spec.resourceClaims`; None if it is unknown."""
    kind, name = _behind(claim)
    definition = named(ctx.facts.list(kind, ctx.request.namespace), name)
    if definition is None:
        return None
    return definition["spec", "spec"] if kind is objects.RESOURCE_CLAIM_TEMPLATE else definition["spec"]


def _behind(claim: Field) -> tuple[Kind, str]:
    template = claim["resourceClaimTemplateName"].text
    if template:
        return objects.RESOURCE_CLAIM_TEMPLATE, template
    return objects.RESOURCE_CLAIM, claim["resourceClaimName"].text


def _is_absent(claim: Field, ctx: AnyContext) -> bool:
    kind, name = _behind(claim)
    return bool(name) and may_come(ctx.facts.list(kind, ctx.request.namespace), name)


def requested_devices(spec: Field) -> Iterator[dict[str, int]]:
    """Yield, for each request in the spec of a ResourceClaim in any version of its API, device class -> count.

    Several classes are alternatives. A request without a count asks for one (`resource/v1` types, v0.36).
    """
    for request in device_requests(spec):
        classes: dict[str, int] = {}
        for ask in alternatives(request):
            name = ask["deviceClassName"].text
            if name:
                classes[name] = max(classes.get(name, 1), ask["count"].integer or 1)
        if classes:
            yield classes
