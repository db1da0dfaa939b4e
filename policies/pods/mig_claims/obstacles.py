"""Why slices cannot be had through claims here: the cluster, the Pod's owner, the template."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, Literal

from gpugate.policies.data import mig_profiles
from gpugate.policies.pods.mig_claims.naming import template_name
from gpugate.policies.sdk.facts import Unavailable, named
from gpugate.policies.sdk.findings import Skip, Stance, Violation
from gpugate.policies.sdk.objects import RESOURCE_CLAIM_TEMPLATE
from gpugate.policies.sdk.platform import at_least
from gpugate.policies.sdk.policy import Params as PolicyParams
from gpugate.policies.sdk.workload_class import owner_kind

if TYPE_CHECKING:
    from gpugate.policies.sdk.field import Field, Path
    from gpugate.policies.sdk.gpu_demand import ContainerDemand, GpuDemand
    from gpugate.policies.sdk.policy import Context

_CLAIMS_SINCE: Final = "1.34"  # resource.k8s.io/v1


class ClaimParams(PolicyParams, frozen=True, kw_only=True):
    """What decides whether, and to which templates, claims are made.

    Attributes:
        rewrite: turn requests for `nvidia.com/mig-*` into claims; without it only Pods with the annotation
            `gpugate.dev/mig-profile` get one.
        mig_nodes: who makes the nodes with slices: "static" when they are there before the Pod (a static node pool, a
            managed node group), "karpenter" when they would come for it, which they do not.
        template_prefix: what the names of the ResourceClaimTemplates start with, before the profile.
    """

    rewrite: bool = True
    mig_nodes: Literal["static", "karpenter"] = "karpenter"
    template_prefix: str = "mig-"


def refusal(path: Path, message: str, hint: str) -> Violation:
    """Say why a Pod is left as it is."""
    return Violation(path, f"not given a claim: {message}", Stance.WARN, hint)


def of_cluster(where: Field, pod: Field, ctx: Context[ClaimParams]) -> Violation | None:
    """Return what stands against any claim for this Pod."""
    if not at_least(ctx.target.kubernetes, _CLAIMS_SINCE):
        message = f"claims need Kubernetes {_CLAIMS_SINCE}, the target is {ctx.target.kubernetes}"
        return refusal(where.path, message, "keep the extended resource until the cluster is upgraded")
    if ctx.params.mig_nodes != "static":
        message = "Karpenter makes no nodes for Pods with claims for MIG slices"
        hint = "make the nodes beforehand and set mig_nodes: static for this policy"
        return refusal(where.path, message, hint)
    if owner_kind(pod, ctx) == "DaemonSet":
        return refusal(where.path, "it is a Pod of a DaemonSet", "write the claim into the DaemonSet itself")
    return None


def of_profile(where: Field, profile: str) -> Violation | None:
    """Return that no GPU has a profile."""
    if mig_profiles.gpus_with(profile):
        return None
    near = mig_profiles.near_miss(profile)
    hint = f"write {near}" if near else "write a profile such as 1g.10gb"
    return refusal(where.path, f"no GPU has the MIG profile {profile[:40]}", hint)


def of_template(where: Field, profile: str, ctx: Context[ClaimParams]) -> Violation | Skip | None:
    """Return that the template of a profile is missing, or that nobody knows."""
    name = template_name(ctx.params.template_prefix, profile)
    fact = ctx.facts.list(RESOURCE_CLAIM_TEMPLATE, ctx.request.namespace)
    if isinstance(fact, Unavailable):
        return Skip(fact.reason)
    if named(fact, name):
        return None
    if not fact.complete:
        return Skip(f"ResourceClaimTemplate {name} is not among the objects to look at")
    message = f"the namespace has no ResourceClaimTemplate {name}"
    refused = refusal(where.path, message, "create it; a Pod that names a missing template stays Pending")
    return replace(refused, coming=True)


def of_claims(where: Field, container: ContainerDemand, demand: GpuDemand) -> Violation | None:
    """Return that a container already has a claim that is, or may be, for a GPU."""
    if not container.claims or not (demand.device_classes or demand.unresolved):
        return None
    message = f"container {container.container['name'].text} already uses a claim"
    return refusal(where.path, message, "ask for GPUs in one way per container")


def of_names(where: Field, pod: Field, names: tuple[str, ...]) -> Violation | None:
    """Return that the Pod already has a claim of one of these names."""
    there = {claim["name"].text for claim in pod["spec", "resourceClaims"]}
    taken = next((name for place, name in enumerate(names) if name in there or name in names[:place]), None)
    if taken is None:
        return None
    return refusal(where.path, f"the Pod already has a claim {taken}", "rename it, or let the container use it")
