"""A claim for a Pod that says in an annotation which slice it wants."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.pods.mig_claims import obstacles
from gpugate.policies.pods.mig_claims.naming import claim_names, template_name
from gpugate.policies.sdk.findings import Patch, Skip, Violation
from gpugate.policies.sdk.gpu_demand import GpuDemand, gpu_demand

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.pods.mig_claims.obstacles import ClaimParams
    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.policy import Context

PROFILE: Final = "gpugate.dev/mig-profile"
CONTAINER: Final = "gpugate.dev/mig-container"


def claim_intended(pod: Field, ctx: Context[ClaimParams]) -> Iterator[Patch | Violation | Skip]:
    """Give the container that the annotations name, or the first, a claim for the slice they name."""
    wanted = pod["metadata", "annotations", PROFILE]
    profile = wanted.text
    container = _container(pod)
    if container is None:
        named = pod["metadata", "annotations", CONTAINER]
        yield obstacles.refusal(named.path, f"the Pod has no container {named.text[:63]}", "name one of its containers")
        return
    (name,) = claim_names(container["name"].text, profile, 1)
    template = template_name(ctx.params.template_prefix, profile)
    if _is_done(pod, container, name, template):
        return
    obstacle = (
        obstacles.of_profile(wanted, profile)
        or obstacles.of_cluster(wanted, pod, ctx)
        or _of_container(wanted, container, ctx.derived(gpu_demand))
        or obstacles.of_names(wanted, pod, (name,))
        or obstacles.of_template(wanted, profile, ctx)
    )
    if obstacle:
        yield obstacle
        return
    entry = {"name": name, "resourceClaimTemplateName": template}
    reason = f"adds the claim {name}, because the Pod asks for a MIG slice {profile}"
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
        message = f"container {container['name'].text} already asks for {min(mine.resources)}"
        return obstacles.refusal(where.path, message, "remove that resource, or the annotation")
    return obstacles.of_claims(where, mine, demand)
