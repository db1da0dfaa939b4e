"""EC2NodeClass whose image changes without a change to the manifest, or is no longer supported.

## Why is this bad?
Karpenter replaces all nodes of the class (drift) for each new image, which may contain another driver
version. The manifest does not record the previous image, so you cannot return to it. A name with a wildcard matches the images of this account and of Amazon, unless the term has an `owner`; Karpenter uses the
newest match. Amazon Linux 2 images of AWS end with EKS 1.32: for 1.33 and later Karpenter finds none and launches no
node. Your own images, selected by id, name or tags with `amiFamily: AL2`, are not reported.

## Instead
Write a version, and update it when you have tested the next one:

```yaml
amiSelectorTerms:
  - alias: al2023@v20261015
```

If a term selects images by name or tags, write values without wildcards, or add the `owner` of the images: only that
account can then publish a newer image. Windows families support only `latest` and are allowed, like the families in
`latest_allowed`.

A class is not evaluated if only pools without GPUs use it. If gpugate finds no NodePool that uses a class, its
findings are at most warnings.

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


_PUBLISHED: Final = (
    "Karpenter replaces all nodes of the class (drift) for each new image, which may contain another driver version."
)
_OTHER_OWNER: Final = (
    "Karpenter replaces all nodes of the class (drift) for each newer image that matches, also one of an unrelated "
    "build."
)
_TAGGED: Final = "Karpenter replaces all nodes of the class (drift) for each newer image that gets the tag."
_NO_IMAGES: Final = "Karpenter finds no image for this version, so it launches no node and Pods stay Pending."
_NO_UPDATES: Final = "AWS publishes no security updates for the image, and no image for Kubernetes 1.33 and later."


class Params(PolicyParams, frozen=True, kw_only=True):
    """Which images may change without a change to the manifest.

    Attributes:
        latest_allowed: families of aliases that may be `@latest`, such as `bottlerocket`; those of Windows always may.
    """

    latest_allowed: tuple[str, ...] = ()


@validates(EC2_NODE_CLASS, params=Params, mode=Stance.WARN, needs=POOL_NEEDS, tables=(INSTANCE_TYPES,))
@of_gpu_classes
def check(node_class: Field, ctx: Context[Params]) -> Iterator[Violation]:
    """Report each term whose image can change, and Amazon Linux 2."""
    # With other terms, `amiFamily: AL2` only selects the user data, and the images are the platform's own.
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
        message = f"{family}@latest selects a new image whenever AWS publishes one"
        example = _EXAMPLES.get(family, f"{family}@version")
        hint = f"write a version that you have tested, such as {example}"
        yield Violation(alias.path, message, hint=hint, why=_PUBLISHED)


def _ended(field: Field, ctx: Context[Params]) -> Violation:
    version = ctx.target.kubernetes
    ended = at_least(version, _AL2_ENDS)
    message = f"Amazon Linux 2 {f'has no images for Kubernetes {version}' if ended else 'receives no more updates'}"
    hint = "use an alias of al2023 or bottlerocket with a version"
    return Violation(field.path, message, hint=hint, why=_NO_IMAGES if ended else _NO_UPDATES)


def _wildcards(term: Field) -> Iterator[Violation]:
    name, parameter = term["name"], term["ssmParameter"]
    if any(sign in name.text for sign in "*?"):
        message = "a name with a wildcard and without an owner selects the newest match of this account or of Amazon"
        hint = "write the full name or the id of one image, or add the owner of the images"
        yield Violation(name.path, message, hint=hint, why=_OTHER_OWNER)
    for value in term["tags"].members():
        if value.text == "*":
            message = "a tag with value * and without an owner selects the newest image that has the tag"
            hint = "write the value of the tag or the id of one image, or add the owner of the images"
            yield Violation(value.path, message, hint=hint, why=_TAGGED)
    if any(part in {"latest", "recommended"} for part in parameter.text.split("/")):
        message = "the SSM parameter selects a new image whenever AWS publishes one"
        hint = "use the SSM parameter of one version, or an alias with a version"
        yield Violation(parameter.path, message, hint=hint, why=_PUBLISHED)
