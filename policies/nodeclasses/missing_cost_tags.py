"""Node class without the cost allocation tags for its nodes.

## Why is this bad?
The AWS bill is split by tags, so it shows the cost of these nodes under no team. Karpenter puts the tags of an
EC2NodeClass on every instance and volume that it creates, and a GPU node costs 1 to 140 USD an hour.

A value such as `TBD`, a template placeholder (`${TEAM}`) or an invisible character counts as missing. AWS tag keys
must match exactly: `team` is not `Team`.

## Instead
Write every required tag with a real value under `spec.tags`. Use one class for each team, because Karpenter has no tags
per pool. For a class that several teams share, write `Team: shared`. Tags of a new class can be filled in from
`defaults` or from its annotations. On an existing class a new tag replaces all its nodes (drift), so the tag is only
reported.

A class is not evaluated if only pools without GPUs use it. If gpugate finds no NodePool that uses a class, its
findings are at most warnings.

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

# Placeholders of template engines and of documentation.
_UNFILLED = ("${", "{{", "<")
# Characters of visible categories that are invisible: Hangul fillers and the empty braille cell.
_BLANK_LETTERS = "\u115f\u1160\u3164\uffa0\u2800"


def fault(key: str, value: str, forms: Mapping[str, Sequence[str]], placeholders: Iterable[str]) -> str:
    """Return the fault of a value, as the end of a sentence about the tag; empty if it is valid."""
    if not _visible(value).strip():
        return "has no value"
    if _visible(value) != value:
        return "has an invisible character in its value"
    if value.strip().casefold() in {placeholder.casefold() for placeholder in placeholders}:
        return f'has the placeholder "{value.strip()}" as its value'
    unfilled = next((sign for sign in _UNFILLED if sign in value), "")
    if unfilled:
        return f'contains the template placeholder "{unfilled}"'
    allowed = forms.get(key, ())
    if allowed and not any(formats.fits(form, value) for form in allowed):
        return f"does not match {' or '.join(allowed)} (# is a digit, * anything)"
    return ""


def alike(key: str, present: Iterable[str]) -> str:
    """Return a key that differs from this one only in case, separators or invisible characters; empty if none does."""
    wanted = _folded(key)
    return next((other for other in present if other != key and _folded(other) == wanted), "")


def _folded(key: str) -> str:
    return "".join(character for character in key.casefold() if character.isalnum())


def _visible(text: str) -> str:
    """Remove invisible characters, such as the zero-width space."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(c for c in text if c not in _BLANK_LETTERS and unicodedata.category(c) not in {"Cf", "Cc"})


class Params(PolicyParams, frozen=True, kw_only=True):
    """Which tags are required, and their forms.

    Attributes:
        required: tag keys, spelled as in AWS Billing.
        formats: the valid forms of values, by tag: `#` is a digit, `*` any characters. A tag without an entry may have
            any value.
        placeholders: values that count as missing, in any case.
        defaults: the value that a new class gets if a tag is missing, by tag; empty: none.
        from_annotations: the annotation of a new class that contains the value, by tag, such as
            `Team: gpugate.dev/team` and `CostCenter: gpugate.dev/cost-center`. It precedes `defaults`; empty: none.
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
    """Add the tags that have a default; a tag in another spelling is only reported."""
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
    """Report tags that are missing, spelled differently, or have an invalid value."""
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
                    hint="write the real value, such as the name of the team",
                    convention=True,
                    same_as=("nodeclasses/unexpanded-placeholder",),
                    why="AWS bills are split by the values of tags: the cost of these nodes appears under this value.",
                )
    if missing:
        yield Violation(
            tags.path,
            f"missing tags {', '.join(missing)}: node cost cannot be attributed",
            hint=f"add the tags {', '.join(missing)} under spec.tags",
            convention=True,
        )


def _misspelled(tags: Field, near: str, key: str) -> Violation:
    reason = f"spells the tag {key} as in AWS Billing"
    return Violation(
        tags[near].path,
        f'tag "{near}" is not "{key}": AWS tag keys must match exactly',
        hint=f"rename the tag to {key}",
        why=f"AWS bills are split by exact keys: the cost of these nodes does not appear under {key}.",
        fix=Patches(
            (Patch("remove", tags[near].path, None, reason), Patch("set", tags[key].path, tags[near].value, reason)),
        ),
        convention=True,
    )
