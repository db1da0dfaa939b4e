"""EC2NodeClass that lets Pods read the credentials of their node.

## Why is this bad?
The instance metadata service hands out the credentials of the node's role to whoever asks. A hop limit above 1 lets Pods
reach it through their own network, so every container on a GPU node can do to your AWS account what the node can.
`httpTokens: optional` turns version 1 of the service on, which answers a plain GET: any proxy or image loader that fetches
a URL for a user can be made to fetch the credentials.

## Instead
Leave `metadataOptions` out: Karpenter's defaults are a hop limit of 1 and required tokens. Give Pods their own AWS roles
by EKS Pod Identity or IRSA. Where an agent without host network needs the service, raise `max_hop_limit`.

A class that only pools without GPUs refer to is not evaluated. While no known NodePool refers to a class, its findings are
warnings at most.

## Sources
aws/karpenter-provider-aws v1.14.1 `pkg/apis/crds/karpenter.k8s.aws_ec2nodeclasses.yaml` (metadataOptions, defaults);
Amazon EKS best practices "Restrict access to the instance profile assigned to the worker node".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import msgspec

from gpugate.policies.nodeclasses._gpu_classes import POOL_NEEDS, of_gpu_classes
from gpugate.policies.sdk.findings import Patch, Patches, Stance, Violation
from gpugate.policies.sdk.node_pools import INSTANCE_TYPES
from gpugate.policies.sdk.objects import EC2_NODE_CLASS
from gpugate.policies.sdk.policy import Context, validates
from gpugate.policies.sdk.policy import Params as PolicyParams

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field


_PLAIN_GET: Final = (
    "Version 1 answers a plain GET, so a proxy or image loader that fetches a URL for a user can be made to fetch the "
    "credentials of the node."
)
_FROM_PODS: Final = "A container with the credentials of the node's role can do in the AWS account what the node can."


class Params(PolicyParams, frozen=True, kw_only=True):
    """How far the metadata service may reach.

    Attributes:
        max_hop_limit: the highest hop limit; 1 ends at the node and Pods with its network, 2 reaches all Pods.
    """

    max_hop_limit: Annotated[int, msgspec.Meta(ge=1, le=64)] = 1


@validates(EC2_NODE_CLASS, params=Params, needs=POOL_NEEDS, tables=(INSTANCE_TYPES,))
@of_gpu_classes
def check(node_class: Field, ctx: Context[Params]) -> Iterator[Violation]:
    """Report version 1 of the service, and a hop limit that reaches Pods as a warning."""
    options = node_class["spec", "metadataOptions"]
    if options["httpEndpoint"].text == "disabled":
        return
    tokens, hops = options["httpTokens"], options["httpPutResponseHopLimit"]
    if tokens.text == "optional":
        fix = _set(tokens, "required", "turns version 1 of the metadata service off")
        message = "httpTokens optional turns version 1 of the metadata service on, which needs no token"
        yield Violation(tokens.path, message, hint="write required, or leave the field out", fix=fix, why=_PLAIN_GET)
    most = ctx.params.max_hop_limit
    if (hops.integer or 0) > most:
        fix = _set(hops, most, "keeps Pods from the credentials of their node")
        message = f"hop limit {hops.integer} lets Pods read the IAM credentials of their node (maximum: {most})"
        yield Violation(hops.path, message, Stance.WARN, f"write {most}, or leave the field out", fix, why=_FROM_PODS)


def _set(field: Field, value: str | int, reason: str) -> Patches:
    return Patches((Patch("set", field.path, value, reason),))
