"""Node class without the tags that tell who pays for its nodes.

## Why is this bad?
Karpenter puts the tags of an EC2NodeClass on every instance and volume it makes; AWS bills are split by them. A GPU node
costs 1 to 140 USD an hour, and what has no team and no cost center on it is paid by nobody in particular. A value such
as `TBD`, a template that was never filled in (`${TEAM}`), or an invisible character splits the bill just as badly. AWS
tag keys are exact: `team` is not `Team`.

## Instead
Write every required tag with a real value under `spec.tags`. One class serves one team, as Karpenter has no tags per
pool; where a class is shared, say so: `Team: shared`. Tags of a new class can be filled in from `defaults` or from its
annotations; on an existing class a new tag replaces all its nodes (drift), so there it is only reported.

A class that only pools without GPUs refer to is not evaluated. While no known NodePool refers to a class, its findings are
warnings at most.

## Sources
aws/karpenter-provider-aws v1.14.1 `pkg/apis/v1/ec2nodeclass.go` (`spec.tags`, which is part of the drift hash); EKS Auto
Mode `eks.amazonaws.com/v1` NodeClass (`spec.tags`); AWS Billing, "cost allocation tags" (keys are case-sensitive).
"""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

import msgspec

from gpugate.policies.nodeclasses._gpu_classes import POOL_NEEDS, of_gpu_classes
from gpugate.policies.sdk import formats
from gpugate.policies.sdk.findings import Patch, Patches, Violation
from gpugate.policies.sdk.node_pools import INSTANCE_TYPES
from gpugate.policies.sdk.objects import AUTO_MODE_NODE_CLASS, EC2_NODE_CLASS, Operation
from gpugate.policies.sdk.policy import PARAMETERS_KEY, Context, mutates, validates
from gpugate.policies.sdk.policy import Params as PolicyParams

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from gpugate.policies.sdk.field import Field

# What a template engine or a manual leaves where a value belongs.
_UNFILLED = ("${", "{{", "<")
# Letters and signs by their category, but drawn as nothing: Hangul fillers and the empty braille cell.
_BLANK_LETTERS = "\u115f\u1160\u3164\uffa0\u2800"


def fault(key: str, value: str, forms: Mapping[str, Sequence[str]], placeholders: Iterable[str]) -> str:
    """Say what is wrong with a value, as the end of a sentence about the tag; empty when it is good."""
    if not _visible(value).strip():
        return "has no value"
    if _visible(value) != value:
        return "has an invisible character in its value"
    if value.strip().casefold() in {placeholder.casefold() for placeholder in placeholders}:
        return f'has the placeholder "{value.strip()}" for a value'
    unfilled = next((sign for sign in _UNFILLED if sign in value), "")
    if unfilled:
        return f'has "{unfilled}" in its value: a template that was not filled in'
    allowed = forms.get(key, ())
    if allowed and not any(formats.fits(form, value) for form in allowed):
        return f"is not of the form {' or '.join(allowed)} (# is a digit, * anything)"
    return ""


def alike(key: str, present: Iterable[str]) -> str:
    """Return a key that is this one but for case, separators or invisible characters; empty when there is none."""
    wanted = _folded(key)
    return next((other for other in present if other != key and _folded(other) == wanted), "")


def _folded(key: str) -> str:
    return "".join(character for character in key.casefold() if character.isalnum())


def _visible(text: str) -> str:
    """Leave out what shows nothing, such as the zero-width space."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(c for c in text if c not in _BLANK_LETTERS and unicodedata.category(c) not in {"Cf", "Cc"})


class Params(PolicyParams, frozen=True, kw_only=True):
    """Which tags are required, and of which form.

    Attributes:
        required: tag keys, spelled as AWS Billing knows them.
        formats: tag key -> forms, of which the value has one: `#` is a digit, `*` any run of characters. Without an
            entry any value will do.
        placeholders: values that stand for none, in any case.
        defaults: tag key -> value that a new class gets where it lacks the tag; empty: none.
        from_annotations: tag key -> annotation of a new class that gives the value, such as
            `Team: gpugate.dev/team` and `CostCenter: gpugate.dev/cost-center`; it goes before `defaults`; empty: none.
    """

    required: tuple[str, ...] = ("Environment", "Team", "CostCenter")
    formats: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    placeholders: tuple[str, ...] = ("TBD", "none", "unknown", "changeme", "-", "todo", "n/a")
    defaults: dict[str, str] = msgspec.field(default_factory=dict)
    from_annotations: dict[str, str] = msgspec.field(default_factory=dict)


@mutates(
    EC2_NODE_CLASS,
    AUTO_MODE_NODE_CLASS,
    params=Params,
    operations=frozenset({Operation.CREATE}),
    convention=PARAMETERS_KEY,
)
def mutate(node_class: Field, ctx: Context[Params]) -> Iterator[Patch]:
    """Add the tags for which there is a default; a tag that is there in another spelling is left for a person."""
    params = ctx.params
    tags = node_class["spec", "tags"]
    annotations = node_class["metadata", "annotations"].labels
    for key in sorted({*params.defaults, *params.from_annotations}):
        if tags[key] or alike(key, tags.labels):
            continue
        annotation = params.from_annotations.get(key, "")
        own = annotations.get(annotation, "")
        if own and not fault(key, own, params.formats, params.placeholders):
            yield Patch("set", tags[key].path, own, f"adds the tag {key} from the annotation {annotation}")
        elif key in params.defaults:
            yield Patch("set", tags[key].path, params.defaults[key], f"adds the tag {key} from the platform's defaults")


@validates(
    EC2_NODE_CLASS,
    AUTO_MODE_NODE_CLASS,
    params=Params,
    needs=POOL_NEEDS,
    tables=(INSTANCE_TYPES,),
    convention=PARAMETERS_KEY,
)
@of_gpu_classes
def check(node_class: Field, ctx: Context[Params]) -> Iterator[Violation]:
    """Report tags that are missing, written in another way, or without a real value."""
    params = ctx.params
    tags = node_class["spec", "tags"]
    missing = []
    for key in params.required:
        tag = tags[key]
        near = alike(key, tags.labels)
        if not tag and near:
            yield _misspelled(tags, near, key)
        elif not tag:
            missing.append(key)
        else:
            wrong = fault(key, tag.text, params.formats, params.placeholders)
            if wrong:
                yield Violation(
                    tag.path,
                    f"tag {key} {wrong}",
                    hint="write the value that the bill is to be split by",
                    convention=True,
                    same_as=("nodeclasses/unexpanded-placeholder",),
                    why="AWS bills are split by the values of tags, and this one does not say who pays for the nodes.",
                )
    if missing:
        yield Violation(
            tags.path,
            f"missing tags {', '.join(missing)}: the cost of these nodes cannot be attributed",
            hint=f"add {', '.join(missing)} under spec.tags",
            convention=True,
        )


def _misspelled(tags: Field, near: str, key: str) -> Violation:
    reason = f"spells the tag {key} as AWS Billing knows it"
    return Violation(
        tags[near].path,
        f'tag "{near}" is not "{key}": AWS tag keys are exact',
        hint=f"rename it to {key}",
        why=f"AWS bills are split by exact keys, so the cost of these nodes does not appear under {key}.",
        fix=Patches(
            (Patch("remove", tags[near].path, None, reason), Patch("set", tags[key].path, tags[near].value, reason)),
        ),
        convention=True,
    )
