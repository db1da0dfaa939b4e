"""EC2NodeClass that lets Pods read the credentials of their node.

## Why is this bad?
Pods can read the credentials of the node's role from the instance metadata service. A hop limit above 1 lets Pods
reach it through their own network, so every container on a GPU node has the node's permissions in your AWS account.
`httpTokens: optional` turns on version 1 of the service, which answers a plain GET. A proxy or image loader that
fetches URLs for users can then be made to fetch the credentials.

## Instead
Omit `metadataOptions`: Karpenter's defaults are a hop limit of 1 and required tokens. Give Pods their own AWS roles
with EKS Pod Identity or IRSA. If an agent without host network needs the service, raise `max_hop_limit`.

A class is not evaluated if only pools without GPUs use it. If gpugate finds no NodePool that uses a class, its
findings are at most warnings.

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
    "Version 1 answers a plain GET: a proxy or image loader that fetches URLs for users can be made to fetch the "
    "node's credentials."
)
_FROM_PODS: Final = "A container with the credentials of the node's role has the node's permissions in the AWS account."


class Params(PolicyParams, frozen=True, kw_only=True):
    """Which Pods may reach the metadata service.

    Attributes:
        max_hop_limit: the highest allowed hop limit. With 1, only the node and Pods with its network reach the service; with
            2, all Pods do.
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
        fix = _set(tokens, "required", "turns off version 1 of the metadata service")
        message = "httpTokens optional turns on version 1 of the metadata service, which requires no token"
        yield Violation(
            tokens.path, message, hint="write httpTokens: required, or remove the field", fix=fix, why=_PLAIN_GET
        )
    most = ctx.params.max_hop_limit
    if (hops.integer or 0) > most:
        fix = _set(hops, most, "keeps Pods from reading the node's credentials")
        message = f"hop limit {hops.integer} lets Pods read the node's IAM credentials (maximum: {most})"
        yield Violation(
            hops.path,
            message,
            Stance.WARN,
            f"write httpPutResponseHopLimit: {most}, or remove the field",
            fix,
            why=_FROM_PODS,
        )


def _set(field: Field, value: str | int, reason: str) -> Patches:
    return Patches((Patch("set", field.path, value, reason),))
