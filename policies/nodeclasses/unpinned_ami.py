"""EC2NodeClass whose image changes without anybody changing it, or is not supported any more.

## Why is this bad?
With `@latest` Karpenter takes every new image on the day it is published and replaces all nodes of the class for drift,
with a driver that nobody has tried with your CUDA and container versions. What ran yesterday cannot be brought back, as the
old image is named nowhere. A name with a wildcard matches the images of this account and of Amazon, unless the term names an
`owner`, and the newest of them is taken. Amazon Linux 2 images of AWS end with EKS 1.32: from 1.33 on Karpenter gets no node
with one. Images of your own that are selected by id, name or tags with `amiFamily: AL2` are not concerned.

## Instead
Name the version, and move it on when it has been tried:

```yaml
amiSelectorTerms:
  - alias: al2023@v20261015
```

A term by name or tags selects exact values, or names the `owner` of the images, who then decides what is new. Windows
families know only `latest` and pass, as do the families in `latest_allowed`.

A class that only pools without GPUs refer to is not evaluated. While no known NodePool refers to a class, its findings are
warnings at most.

## Sources
aws/karpenter-provider-aws v1.14.1 `pkg/apis/crds/karpenter.k8s.aws_ec2nodeclasses.yaml` (alias),
`pkg/providers/amifamily/ami.go` (the owners self and amazon where a name has none; AL2 aliases on EKS 1.33); Amazon EKS user guide "EKS AL2 AMI deprecation".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.nodeclasses._gpu_classes import POOL_NEEDS, of_gpu_classes
from gpugate.policies.sdk.findings import Stance, Violation
from gpugate.policies.sdk.node_pools import INSTANCE_TYPES
from gpugate.policies.sdk.objects import EC2_NODE_CLASS
from gpugate.policies.sdk.platform import at_least
from gpugate.policies.sdk.policy import Context, validates
from gpugate.policies.sdk.policy import Params as PolicyParams

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field

_WINDOWS: Final = "windows"
_AL2_ENDS: Final = "1.33"
_EXAMPLES: Final = {"al2023": "al2023@v20261015", "bottlerocket": "bottlerocket@v1.50.0"}


class Params(PolicyParams, frozen=True, kw_only=True):
    """Which images may change by themselves.

    Attributes:
        latest_allowed: families of aliases that may be `@latest`, such as `bottlerocket`; those of Windows always may.
    """

    latest_allowed: tuple[str, ...] = ()


@validates(EC2_NODE_CLASS, params=Params, mode=Stance.WARN, needs=POOL_NEEDS, tables=(INSTANCE_TYPES,))
@of_gpu_classes
def check(node_class: Field, ctx: Context[Params]) -> Iterator[Violation]:
    """Report each term that selects another image tomorrow, and Amazon Linux 2."""
    # Beside other terms, `amiFamily: AL2` only says how nodes start: the images are the reader's own.
    for term in node_class["spec", "amiSelectorTerms"]:
        alias = term["alias"]
        if alias:
            yield from _alias(alias, ctx)
        elif not term["owner"]:
            yield from _wildcards(term)


def _alias(alias: Field, ctx: Context[Params]) -> Iterator[Violation]:
    family, _, version = alias.text.partition("@")
    if family == "al2":
        yield _ended(alias, ctx)
    elif version == "latest" and not family.startswith(_WINDOWS) and family not in ctx.params.latest_allowed:
        message = f"{family}@latest changes when AWS publishes an image, and all nodes are replaced"
        example = _EXAMPLES.get(family, f"{family}@version")
        yield Violation(alias.path, message, hint=f"name the version that you have tried, such as {example}")


def _ended(field: Field, ctx: Context[Params]) -> Violation:
    version = ctx.target.kubernetes
    gone = f"has no images for Kubernetes {version}" if at_least(version, _AL2_ENDS) else "gets no updates any more"
    return Violation(field.path, f"Amazon Linux 2 {gone}", hint="use al2023 or bottlerocket, with a version")


def _wildcards(term: Field) -> Iterator[Violation]:
    name, parameter = term["name"], term["ssmParameter"]
    if any(sign in name.text for sign in "*?"):
        message = "a name with a wildcard and no owner takes the newest image of this account or of Amazon that matches"
        yield Violation(name.path, message, hint="write the whole name, an id, or the owner of the images")
    for value in term["tags"].members():
        if value.text == "*":
            message = "a tag with any value and no owner takes the newest image that has the tag"
            yield Violation(value.path, message, hint="write the value of the tag, an id, or the owner of the images")
    if any(part in {"latest", "recommended"} for part in parameter.text.split("/")):
        message = "an SSM parameter of the latest image changes when AWS publishes one, and all nodes are replaced"
        yield Violation(parameter.path, message, hint="use the parameter of one version, or an alias with a version")
