"""Claims in place of the slices that a Pod asks for as extended resources."""

from __future__ import annotations

from dataclasses import dataclass
from heapq import nsmallest
from typing import TYPE_CHECKING

from gpugate.policies.data import mig_profiles
from gpugate.policies.pods.mig_claims import obstacles
from gpugate.policies.pods.mig_claims.naming import claim_names, template_name
from gpugate.policies.sdk.findings import Patch, Skip, Violation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.pods.mig_claims.obstacles import ClaimParams
    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.gpu_demand import ContainerDemand, GpuDemand
    from gpugate.policies.sdk.policy import Context


@dataclass(frozen=True, slots=True)
class Slices:
    """The slices of one profile that one container asks for."""

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
        """The field that asks."""
        blocks = (self.container["resources", block, self.resource] for block in ("limits", "requests"))
        return next(field for field in blocks if field)

    @property
    def starts_first(self) -> bool:
        """Whether the container is an init container that ends before the Pod's others start."""
        return self.container.path[-2] == "initContainers" and not self.demand.is_sidecar


def slices_of(demand: GpuDemand) -> tuple[Slices, ...]:
    """Return the slices a Pod asks for as extended resources, init containers first."""
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
    """Turn every request for a slice into a claim, or none where something stands against one of them."""
    against = obstacles.of_cluster(slices[0].where, pod, ctx)
    # Two names show what else a container asks for; one container may ask for thousands.
    containers = {id(one.demand): one.demand for one in slices}
    first_names = {key: nsmallest(2, container.resources) for key, container in containers.items()}
    found = (
        [against]
        if against
        else [o for one in slices if (o := _obstacle(one, first_names[id(one.demand)], demand, ctx))]
    )
    if found:
        yield from found
        return
    claims = assign(slices)
    taken = obstacles.of_names(slices[0].where, pod, tuple(name for names in claims.own for name in names))
    if taken:
        yield taken
        return
    entries = pod["spec", "resourceClaims"].path
    for one, names in zip(slices, claims.own, strict=True):
        template = template_name(ctx.params.template_prefix, one.profile)
        for name in names:
            reason = f"adds the claim {name}, which gives what {one.resource} did"
            yield Patch("append", entries, {"name": name, "resourceClaimTemplateName": template}, reason)
    for one, names in zip(slices, claims.used, strict=True):
        yield from _removed(one)
        for name in names:
            reason = f"lets the container use the claim {name}"
            yield Patch("append", one.container["resources", "claims"].path, {"name": name}, reason)


@dataclass(frozen=True, slots=True)
class Claims:
    """For each `Slices` the names of the claims made for it, and of those it uses."""

    own: tuple[tuple[str, ...], ...]
    used: tuple[tuple[str, ...], ...]


def assign(slices: tuple[Slices, ...]) -> Claims:
    """Name the claims of each container.

    As extended resources, the slices of an init container are free again for the containers after it. A claim is held
    as long as the Pod lives. So an init container uses the claims of the app containers, and what init containers
    before it had to add, and gets claims of its own only for what those do not cover. A sidecar runs beside the
    others and shares with none.
    """
    shared: dict[str, list[str]] = {}
    names = {id(one): claim_names(one.container["name"].text, one.profile, one.count) for one in slices}
    for one in slices:
        if one.container.path[-2] == "containers":
            shared.setdefault(one.profile, []).extend(names[id(one)])
    own, used = [], []
    for one in slices:
        if not one.starts_first:
            own.append(names[id(one)])
            used.append(names[id(one)])
            continue
        pool = shared.setdefault(one.profile, [])
        lacking = max(0, one.count - len(pool))
        added = claim_names(one.container["name"].text, one.profile, lacking) if lacking else ()
        pool.extend(added)
        own.append(added)
        used.append(tuple(pool[: one.count]))
    return Claims(tuple(own), tuple(used))


def _obstacle(one: Slices, names: list[str], demand: GpuDemand, ctx: Context[ClaimParams]) -> Violation | Skip | None:
    """Return what stands against a claim; `names` are the first two resources that the container asks for."""
    return (
        _of_request(one, names)
        or obstacles.of_profile(one.where, one.profile)
        or _of_count(one)
        or obstacles.of_claims(one.where, one.demand, demand)
        or obstacles.of_template(one.where, one.profile, ctx)
    )


def _of_request(one: Slices, names: list[str]) -> Violation | None:
    if one.resource.endswith(mig_profiles.SHARED_SUFFIX):
        message = f"{one.resource} is a shared slice, a claim gives a whole one"
        return obstacles.refusal(one.where.path, message, "ask for the whole slice, or leave the Pod out")
    others = [name for name in names if name != one.resource]
    if others:
        message = f"container {one.container['name'].text} asks for {one.resource} and {others[0]}"
        return obstacles.refusal(one.where.path, message, "ask for one kind of GPU per container")
    return None


def _of_count(one: Slices) -> Violation | None:
    most = mig_profiles.most_per_gpu(one.profile) * mig_profiles.MOST_GPUS_PER_NODE
    if one.count <= most:
        return None
    message = f"{one.count} slices {one.profile} in one container, no node has more than {most}"
    return obstacles.refusal(one.where.path, message, f"ask for at most {most}")


def _removed(one: Slices) -> Iterator[Patch]:
    for name in ("requests", "limits"):
        block = one.container["resources", name]
        if block[one.resource]:
            # A block that holds nothing else goes too.
            field = block[one.resource] if len(block.mapping) > 1 else block
            yield Patch("remove", field.path, None, f"takes {one.resource} out of {name}, now asked for by claim")
