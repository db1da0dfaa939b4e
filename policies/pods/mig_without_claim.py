"""MIG slice requested as an extended resource, or by annotation, without a ResourceClaim.

## Why is this bad?
A Pod that requests `nvidia.com/mig-1g.10gb` stays Pending on nodes where the NVIDIA DRA driver allocates GPUs,
because no device plugin offers that resource. On these nodes a Pod gets a slice only through a ResourceClaim, which
it must name in `resourceClaims` and in the `resources.claims` of each container.

This policy is off by default. To use it, enable it for the namespaces whose Pods run on such nodes, and set
`mig_nodes: static`. With the default, `karpenter`, it adds no claims and only warns. From Kubernetes 1.36 on, prefer
a DeviceClass with `extendedResourceName: nvidia.com/mig-1g.10gb`: the scheduler then creates the claim, and the Pods
need no change.

## Instead
The policy replaces a request for `nvidia.com/mig-1g.10gb` with claims for the same slices. The claims are created
from the ResourceClaimTemplate `mig-1g-10gb` (the profile, with hyphens instead of dots), which must exist in the
Pod's namespace. A Pod keeps its claims until it ends, so init containers use the claims of the app containers. A Pod
can also request a slice by annotation:

```yaml
metadata:
  annotations:
    gpugate.dev/mig-profile: 1g.10gb
    gpugate.dev/mig-container: vllm # the first container, when absent
```

In these cases the Pod is not changed, and a warning gives the reason:

- The target is older than Kubernetes 1.34.
- Karpenter would have to launch the node. It launches none for such claims.
- The template is missing.
- A container requests two kinds of GPUs.
- The Pod belongs to a DaemonSet.

Side effects: a ResourceQuota counts the claims instead of `requests.nvidia.com/mig-*`. Queues such as Kueue read the
workload's Pod template, which is not changed, so they still count the extended resource.

## Sources
- Claims: `kubernetes/api` v0.36 `core/v1/types.go`, `resource/v1/types.go`; GA in Kubernetes 1.34.
- Device classes and profiles: kubernetes-sigs/dra-driver-nvidia-gpu v0.4.1 `deployments/helm`.
- Karpenter: `ignoreDRARequests` in core v1.14.1; aws/karpenter-provider-aws#9519.
- Extended resources through device classes: KEP-5004, on by default since Kubernetes 1.36.
"""

from __future__ import annotations

from dataclasses import replace
from heapq import nsmallest
from typing import TYPE_CHECKING, Final, Literal

from gpugate.policies.data import mig_profiles
from gpugate.policies.sdk.concerns import Key
from gpugate.policies.sdk.facts import named, object_doubt
from gpugate.policies.sdk.findings import Patch, Skip, Stance, Violation
from gpugate.policies.sdk.gpu_demand import CLAIM_NEEDS, NAMES_ACCELERATOR, GpuDemand, gpu_demand
from gpugate.policies.sdk.objects import POD, RESOURCE_CLAIM_TEMPLATE
from gpugate.policies.sdk.platform import at_least
from gpugate.policies.sdk.policy import Context, mutates
from gpugate.policies.sdk.policy import Params as PolicyParams
from gpugate.policies.sdk.structs import Struct
from gpugate.policies.sdk.workload_class import owner_kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field, Path
    from gpugate.policies.sdk.gpu_demand import ContainerDemand

_DNS_LABEL: Final = 63
_KEPT: Final = 50


def template_name(prefix: str, profile: str) -> str:
    """Name the ResourceClaimTemplate of a profile: `mig-` and `1g.10gb+me` are `mig-1g-10gb-me`."""
    return prefix + _dashed(profile)


def claim_names(container: str, profile: str, count: int) -> tuple[str, ...]:
    """Name the claims of one container, one for each slice; each is a DNS label, as `spec.resourceClaims` needs.

    A name that is too long is cut, and ends in a prefix of its hash.
    """
    name = f"{container}-mig-{_dashed(profile)}"
    names = (name,) if count == 1 else tuple(f"{name}-{index}" for index in range(count))
    return tuple(_shortened(name) for name in names)


def _dashed(profile: str) -> str:
    return profile.replace(".", "-").replace("+", "-")


def _shortened(name: str) -> str:
    if len(name) <= _DNS_LABEL:
        return name
    import hashlib  # noqa: PLC0415 -- long names are rare, and it costs start-up time

    return f"{name[:_KEPT]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


_CLAIMS_SINCE: Final = "1.34"  # resource.k8s.io/v1


class ClaimParams(PolicyParams, frozen=True, kw_only=True):
    """What decides whether, and to which templates, claims are made.

    Attributes:
        rewrite: turn requests for `nvidia.com/mig-*` into claims; without it only Pods with the annotation
            `gpugate.dev/mig-profile` get one.
        mig_nodes: how nodes with slices are launched: "static" if they exist before the Pod (a static node pool, a managed
            node group), "karpenter" if Karpenter would have to launch them. It cannot, so the Pod then gets no claim.
        template_prefix: what the names of the ResourceClaimTemplates start with, before the profile.
    """

    rewrite: bool = True
    mig_nodes: Literal["static", "karpenter"] = "karpenter"
    template_prefix: str = "mig-"


def refusal(path: Path, message: str, hint: str) -> Violation:
    """Return the warning that a Pod is not changed."""
    return Violation(path, f"no claim added: {message}", Stance.WARN, hint)


def of_cluster(where: Field, pod: Field, ctx: Context[ClaimParams]) -> Violation | None:
    """Return the obstacle to any claim for this Pod, or None."""
    if not at_least(ctx.target.kubernetes, _CLAIMS_SINCE):
        message = f"claims need Kubernetes {_CLAIMS_SINCE}, the target is {ctx.target.kubernetes}"
        return refusal(where.path, message, "keep the extended resource until the cluster is upgraded")
    if ctx.params.mig_nodes != "static":
        message = "Karpenter launches no nodes for Pods with claims for MIG slices"
        hint = "create the nodes beforehand and set mig_nodes: static for this policy"
        return refusal(where.path, message, hint)
    if owner_kind(pod, ctx) == "DaemonSet":
        return refusal(where.path, "it is a Pod of a DaemonSet", "write the claim into the DaemonSet itself")
    return None


def of_profile(where: Field, profile: str) -> Violation | None:
    """Return a warning if no GPU has the profile."""
    if mig_profiles.gpus_with(profile):
        return None
    near = mig_profiles.near_miss(profile)
    hint = f"write {near}" if near else "write a profile such as 1g.10gb"
    return refusal(where.path, f"no GPU has the MIG profile {profile[:40]}", hint)


def of_template(where: Field, profile: str, ctx: Context[ClaimParams]) -> Violation | Skip | None:
    """Return a warning if the template of the profile is missing, or a skip if that is unknown."""
    name = template_name(ctx.params.template_prefix, profile)
    fact = ctx.facts.list(RESOURCE_CLAIM_TEMPLATE, ctx.request.namespace)
    doubt = object_doubt(fact, RESOURCE_CLAIM_TEMPLATE, name)
    if doubt or named(fact, name):
        return doubt
    message = f"the namespace has no ResourceClaimTemplate {name}"
    refused = refusal(where.path, message, "create it; a Pod that names a missing template stays Pending")
    return replace(refused, coming=True)


def of_claims(where: Field, container: ContainerDemand, demand: GpuDemand) -> Violation | None:
    """Return a warning if the container already has a claim that is, or may be, for a GPU."""
    if not container.claims or not (demand.device_classes or demand.unresolved):
        return None
    message = f"container {container.container['name'].text} already uses a claim"
    return refusal(where.path, message, "request GPUs in only one way per container")


def of_names(where: Field, pod: Field, names: tuple[str, ...]) -> Violation | None:
    """Return a warning if the Pod already has a claim with one of these names."""
    there = {claim["name"].text for claim in pod["spec", "resourceClaims"]}
    taken = next((name for index, name in enumerate(names) if name in there or name in names[:index]), None)
    if taken is None:
        return None
    return refusal(where.path, f"the Pod already has a claim {taken}", "rename it, or let the container use it")


PROFILE: Final = "gpugate.dev/mig-profile"
CONTAINER: Final = "gpugate.dev/mig-container"


def claim_intended(pod: Field, ctx: Context[ClaimParams]) -> Iterator[Patch | Violation | Skip]:
    """Give the container that the annotations name, or the first one, a claim for the slice that they name."""
    wanted = pod["metadata", "annotations", PROFILE]
    profile = wanted.text
    container = _container(pod)
    if container is None:
        named = pod["metadata", "annotations", CONTAINER]
        yield refusal(named.path, f"the Pod has no container {named.text[:63]}", "name one of its containers")
        return
    (name,) = claim_names(container["name"].text, profile, 1)
    template = template_name(ctx.params.template_prefix, profile)
    if _is_done(pod, container, name, template):
        return
    obstacle = (
        of_profile(wanted, profile)
        or of_cluster(wanted, pod, ctx)
        or _of_container(wanted, container, ctx.derived(gpu_demand))
        or of_names(wanted, pod, (name,))
        or of_template(wanted, profile, ctx)
    )
    if obstacle:
        yield obstacle
        return
    entry = {"name": name, "resourceClaimTemplateName": template}
    reason = f"adds the claim {name}, because the Pod requests a MIG slice {profile}"
    yield Patch("append", pod["spec", "resourceClaims"].path, {**entry}, reason)
    yield Patch("append", container["resources", "claims"].path, {"name": name}, f"lets the container use {name}")


def _container(pod: Field) -> Field | None:
    name = pod["metadata", "annotations", CONTAINER].text
    return next((c for c in pod["spec", "containers"] if not name or c["name"].text == name), None)


def _is_done(pod: Field, container: Field, name: str, template: str) -> bool:
    claimed = any(claim["name"].text == name for claim in container["resources", "claims"])
    entries = (c for c in pod["spec", "resourceClaims"] if c["name"].text == name)
    return claimed and any(entry["resourceClaimTemplateName"].text == template for entry in entries)


def _of_container(where: Field, container: Field, demand: GpuDemand) -> Violation | None:
    mine = next((d for d in demand.containers if d.container.path == container.path), None)
    if mine is None:
        return None
    if mine.resources:
        message = f"container {container['name'].text} already requests {min(mine.resources)}"
        return refusal(where.path, message, "remove that resource, or the annotation")
    return of_claims(where, mine, demand)


class Slices(Struct, frozen=True):
    """The slices of one profile that one container requests."""

    demand: ContainerDemand
    resource: str
    profile: str
    count: int

    @property
    def container(self) -> Field:
        """The container."""
        return self.demand.container

    @property
    def where(self) -> Field:
        """The field with the request."""
        blocks = (self.container["resources", block, self.resource] for block in ("limits", "requests"))
        return next(field for field in blocks if field)

    @property
    def starts_first(self) -> bool:
        """Whether the container is an init container that ends before the app containers start."""
        return self.container.path[-2] == "initContainers" and not self.demand.is_sidecar


def slices_of(demand: GpuDemand) -> tuple[Slices, ...]:
    """Return the slices that a Pod requests as extended resources, init containers first."""
    return tuple(
        Slices(container, resource, mig_profiles.profile_of(resource) or "", count)
        for container in demand.containers
        for resource, count in container.resources.items()
        if mig_profiles.profile_of(resource) is not None
    )


def rewrite(
    pod: Field,
    slices: tuple[Slices, ...],
    demand: GpuDemand,
    ctx: Context[ClaimParams],
) -> Iterator[Patch | Violation | Skip]:
    """Replace every request for a slice by a claim, or none if one of them has an obstacle."""
    against = of_cluster(slices[0].where, pod, ctx)
    # Two names are enough to show another request, and one container may request thousands.
    containers = {id(request.demand): request.demand for request in slices}
    first_names = {key: nsmallest(2, container.resources) for key, container in containers.items()}
    obstacles = (
        [against]
        if against
        else [o for request in slices if (o := _obstacle(request, first_names[id(request.demand)], demand, ctx))]
    )
    if obstacles:
        yield from obstacles
        return
    claims = assign(slices)
    taken = of_names(slices[0].where, pod, tuple(name for names in claims.own for name in names))
    if taken:
        yield taken
        return
    entries = pod["spec", "resourceClaims"].path
    for request, names in zip(slices, claims.own, strict=True):
        template = template_name(ctx.params.template_prefix, request.profile)
        for name in names:
            reason = f"adds the claim {name} in place of the resource {request.resource}"
            yield Patch("append", entries, {"name": name, "resourceClaimTemplateName": template}, reason)
    for request, names in zip(slices, claims.used, strict=True):
        yield from _removed(request)
        for name in names:
            reason = f"lets the container use the claim {name}"
            yield Patch("append", request.container["resources", "claims"].path, {"name": name}, reason)


class Claims(Struct, frozen=True):
    """For each `Slices` the names of its own claims and of the claims that it uses."""

    own: tuple[tuple[str, ...], ...]
    used: tuple[tuple[str, ...], ...]


def assign(slices: tuple[Slices, ...]) -> Claims:
    """Name the claims of each container.

    As extended resources, the slices of an init container are free again for later containers. A claim is allocated as
    long as the Pod exists. An init container therefore uses the claims of the app containers and those added for
    earlier init containers, and gets its own claims only for the remaining slices. A sidecar runs at the same time as
    the other containers and shares none.
    """
    shared: dict[str, list[str]] = {}
    names = {
        id(request): claim_names(request.container["name"].text, request.profile, request.count) for request in slices
    }
    for request in slices:
        if request.container.path[-2] == "containers":
            shared.setdefault(request.profile, []).extend(names[id(request)])
    own, used = [], []
    for request in slices:
        if not request.starts_first:
            own.append(names[id(request)])
            used.append(names[id(request)])
            continue
        pool = shared.setdefault(request.profile, [])
        lacking = max(0, request.count - len(pool))
        added = claim_names(request.container["name"].text, request.profile, lacking) if lacking else ()
        pool.extend(added)
        own.append(added)
        used.append(tuple(pool[: request.count]))
    return Claims(tuple(own), tuple(used))


def _obstacle(
    request: Slices, names: list[str], demand: GpuDemand, ctx: Context[ClaimParams]
) -> Violation | Skip | None:
    """Return the obstacle to a claim, or None; `names` are the first two resources that the container requests."""
    return (
        _of_request(request, names)
        or of_profile(request.where, request.profile)
        or _of_count(request)
        or of_claims(request.where, request.demand, demand)
        or of_template(request.where, request.profile, ctx)
    )


def _of_request(request: Slices, names: list[str]) -> Violation | None:
    if request.resource.endswith(mig_profiles.SHARED_SUFFIX):
        message = f"{request.resource} is a shared slice, a claim gives a whole one"
        return refusal(request.where.path, message, "request the whole slice, or exempt the Pod")
    others = [name for name in names if name != request.resource]
    if others:
        message = f"container {request.container['name'].text} requests {request.resource} and {others[0]}"
        return refusal(request.where.path, message, "request one kind of GPU per container")
    return None


def _of_count(request: Slices) -> Violation | None:
    most = mig_profiles.most_per_gpu(request.profile) * mig_profiles.MOST_GPUS_PER_NODE
    if request.count <= most:
        return None
    message = f"{request.count} slices of profile {request.profile} in one container (maximum of a node: {most})"
    return refusal(request.where.path, message, f"request at most {most}")


def _removed(request: Slices) -> Iterator[Patch]:
    for name in ("requests", "limits"):
        block = request.container["resources", name]
        if block[request.resource]:
            # A block without other members is removed too.
            field = block[request.resource] if len(block.mapping) > 1 else block
            yield Patch(
                "remove", field.path, None, f"removes {request.resource} from {name}, because a claim replaces it"
            )


@mutates(
    POD,
    params=ClaimParams,
    mode=Stance.OFF,
    needs=CLAIM_NEEDS,
    concerns=NAMES_ACCELERATOR | Key("metadata.annotations", (PROFILE,)),
)
def mutate(pod: Field, ctx: Context[ClaimParams]) -> Iterator[Patch | Violation | Skip]:
    """Give the Pod claims for the slices that it requests."""
    if pod["metadata", "annotations", PROFILE]:
        yield from claim_intended(pod, ctx)
    demand = ctx.derived(gpu_demand)
    slices = slices_of(demand) if ctx.params.rewrite else ()
    if slices:
        yield from rewrite(pod, slices, demand, ctx)
