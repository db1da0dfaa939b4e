"""EC2NodeClass tag that AWS or Karpenter refuses.

## Why is this bad?
One tag that AWS refuses keeps every NodePool of this class from launching nodes. The tags are on the request for the
instance, its volumes and the launch template, and on the instance profile that Karpenter creates for `role`. The CRD
checks only a few names, so the API server stores the object and Pods stay Pending.

## Instead
Write at most 42 tags: AWS allows 50 on a resource, and Karpenter adds its own. Keys have 1 to 128 characters and
values up to 256: letters, digits, spaces and `_ . : / = + - @`. Do not use keys that start with `aws:`, keys that
Karpenter sets, or two keys that differ only in case, which IAM treats as one.

With `instanceProfile` instead of `role`, Karpenter tags no IAM resource. Other characters and keys that differ only
in case are then warnings, because AWS Billing and other services may not support them.

A class is not evaluated if only pools without GPUs use it. If gpugate finds no NodePool that uses a class, its
findings are at most warnings.

## Sources
aws/karpenter-provider-aws v1.14.1 `pkg/apis/crds/karpenter.k8s.aws_ec2nodeclasses.yaml`, `pkg/apis/v1/labels.go`
(RestrictedTagPatterns), `pkg/utils/utils.go` (GetTags), `pkg/apis/v1/ec2nodeclass.go` (InstanceProfileTags); Amazon EC2
user guide "Tag restrictions"; IAM API reference, Tag, and IAM user guide "Tags for IAM resources".
"""

from __future__ import annotations

import unicodedata
from dataclasses import replace
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

_RESERVED: Final = frozenset(
    {"eks:eks-cluster-name", "karpenter.k8s.aws/ec2nodeclass", "karpenter.sh/nodeclaim", "karpenter.sh/nodepool"}
)
_RESERVED_START: Final = "kubernetes.io/cluster"
_LONGEST_KEY, _LONGEST_VALUE = 128, 256
_SIGNS: Final = frozenset("_.:/=+-@")
# Policies that report a tag with a placeholder, which AWS may also reject for its characters.
_UNFILLED: Final = ("nodeclasses/unexpanded-placeholder", "nodeclasses/missing-cost-tags")


_OWN_PROFILE: Final = (
    "With `instanceProfile` Karpenter tags no IAM resource, but AWS Billing may not split costs by this tag."
)


class Params(PolicyParams, frozen=True, kw_only=True):
    """How many tags a class may have.

    Attributes:
        max_tags: the most tags of a class; AWS allows 50 on a resource, and Karpenter adds some.
    """

    max_tags: Annotated[int, msgspec.Meta(ge=1, le=50)] = 42


@validates(EC2_NODE_CLASS, params=Params, needs=POOL_NEEDS, tables=(INSTANCE_TYPES,))
@of_gpu_classes
def check(node_class: Field, ctx: Context[Params]) -> Iterator[Violation]:
    """Report every tag that AWS rejects, and too many tags."""
    tags = node_class["spec", "tags"]
    if len(tags.mapping) > ctx.params.max_tags:
        message = f"{len(tags.mapping)} tags (maximum: {ctx.params.max_tags}, because Karpenter adds its own)"
        why = "AWS refuses more than 50 tags on a resource, and Karpenter adds its own, so it launches no node."
        yield Violation(tags.path, message, hint="remove tags that no cost report uses", why=why)
    # IAM's rules apply only to the tags of an instance profile, which Karpenter creates for a role.
    strict = Stance.WARN if node_class["spec", "instanceProfile"].text else Stance.ENFORCE
    first_spellings: dict[str, str] = {}
    for key, tag in tags.items():
        for violation in (*_refused(key, tag), *_unusual(key, tag, strict)):
            yield replace(violation, same_as=_UNFILLED)
        first = first_spellings.setdefault(key.casefold(), key)
        if first != key:
            message = f'tag keys "{_short(first)}" and "{_short(key)}" differ only in case'
            why = "" if strict is Stance.ENFORCE else _OWN_PROFILE
            yield Violation(
                tag.path, message, strict, "remove the one that is not a cost allocation tag in AWS Billing", why=why
            )


def _refused(key: str, tag: Field) -> Iterator[Violation]:
    if key in _RESERVED or key.startswith(_RESERVED_START):
        patch = Patch("remove", tag.path, None, "removes the tag, which Karpenter sets itself")
        message = f'tag key "{_short(key)}" is reserved: Karpenter sets it itself'
        why = "The API server refuses the node class, by a rule of its CRD."
        yield Violation(tag.path, message, hint="remove the tag", fix=Patches((patch,), safe=True), why=why)
    elif key.casefold().startswith("aws:"):
        yield Violation(tag.path, f'tag key "{_short(key)}" starts with aws:, a prefix that AWS reserves', hint=_RENAME)
    if not 0 < len(key) <= _LONGEST_KEY:
        message = f"a tag key has {len(key)} characters (AWS allows 1 to {_LONGEST_KEY})"
        yield Violation(tag.path[:-1], message, hint=_RENAME)  # without the key, which is too long for a message
    if len(tag.text) > _LONGEST_VALUE:
        message = f"the value of tag {_short(key)} has {len(tag.text)} characters (AWS allows {_LONGEST_VALUE})"
        yield Violation(tag.path, message, hint="write a shorter value")


def _unusual(key: str, tag: Field, at_most: Stance) -> Iterator[Violation]:
    for part, text in (("key", key), ("value", tag.text)):
        # A longer text is already reported for its length.
        odd = next((character for character in text[:_LONGEST_VALUE] if not _is_allowed(character)), "")
        if odd:
            name = f"U+{ord(odd):04X}" if odd.isspace() or not odd.isprintable() else f'"{odd}"'
            message = f"the {part} of tag {_short(key)} has the character {name}, which IAM refuses"
            why = "" if at_most is Stance.ENFORCE else _OWN_PROFILE
            yield Violation(tag.path, message, at_most, "use letters, digits, spaces and _ . : / = + - @", why=why)


def _is_allowed(character: str) -> bool:
    return character.isalnum() or character in _SIGNS or unicodedata.category(character)[0] in "LZN"


def _short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:37]}..."


_RENAME: Final = "rename the tag"
