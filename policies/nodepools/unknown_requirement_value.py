"""GPU pool that requires a value that no instance type has.

## Why is this bad?
Karpenter compares values exactly: no type matches `H100` where the label has `h100`, and the API server does not
report it. If the other values are valid, an invalid one goes unnoticed, and the pool has fewer types than intended.
Memory is in MiB and per GPU, so `instance-gpu-memory Gt 79` matches every GPU.

## Instead
Write values as in Karpenter's labels: in lower case, with hyphens for spaces (`rtx-pro-server-6000`), memory as a
number of MiB (`81920` for 80 GiB). A value under `NotIn` may be the name of a retired type.

Add types that are newer than the data to `also_known`.

## Sources
Karpenter v1.14.1 `pkg/scheduling/requirement.go`; aws/karpenter-provider-aws v1.14.1 `pkg/providers/instancetype/types.go`
(values of labels); EC2 types as of 2026-07-20.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import msgspec

from gpugate.policies.data.instance_types import ACCELERATOR_NAME, GPU_NAME, INSTANCE_TYPE
from gpugate.policies.nodepools._instance_choice import listed_names
from gpugate.policies.sdk import formats, node_pools
from gpugate.policies.sdk.findings import Patch, Patches, Skip, Stance, Violation
from gpugate.policies.sdk.node_pools import AWS, INSTANCE_TYPES, ec2_types
from gpugate.policies.sdk.objects import NODE_POOL
from gpugate.policies.sdk.policy import Context, validates
from gpugate.policies.sdk.policy import Params as PolicyParams

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gpugate.policies.data.instance_types import InstanceTypes
    from gpugate.policies.sdk.field import Field

# Sources: aws/karpenter-provider-aws v1.14.1 `pkg/providers/instancetype/types.go` (values are in lower case, with dashes for
# blanks; memory is in MiB); `kubernetes.io/arch` has Go's names of architectures.
GPU_MEMORY: Final = f"{AWS}/instance-gpu-memory"
MEMORIES: Final = frozenset({GPU_MEMORY, f"{AWS}/instance-memory"})

# Synonyms, in folded spelling.
_SYNONYMS: Final = {
    "x8664": "amd64",
    "x64": "amd64",
    "aarch64": "arm64",
    "a10": "a10g",
    "rtxpro6000": "rtx-pro-server-6000",
}
_MAKERS: Final = ("nvidia", "tesla", "amd", "aws")
_WITH_UNIT: Final = re.compile(r"([0-9]{1,9})\s*(?:(m)|(g))(?:i?b?)", re.IGNORECASE)
_MIB_PER_GIB: Final = 1024
# The maximum length of a label value; a value that is not validated yet may be longer.
_LONGEST: Final = 253


def meant(label: str, value: str, catalogue: InstanceTypes) -> str:
    """Return the value of a label that differs only in case, separators or the maker; empty if there is none."""
    if len(value) > _LONGEST:
        return ""
    spellings = catalogue.spellings.get(label)
    if spellings is None:
        # Computed once, because a pool may name thousands of values.
        spellings = catalogue.spellings[label] = _spellings(label, catalogue)
    wanted = _folded(value)
    wanted = _SYNONYMS.get(wanted, wanted)
    bare = {wanted, *(wanted.removeprefix(maker) for maker in _MAKERS)}
    return min((spellings[spelling] for spelling in bare if spelling in spellings), default=(0, ""))[1]


def _spellings(label: str, catalogue: InstanceTypes) -> dict[str, tuple[int, str]]:
    """Return the position and value for each value and its folded spelling."""
    known: Iterable[str] = catalogue.names if label == INSTANCE_TYPE else catalogue.values[label]
    spellings: dict[str, tuple[int, str]] = {}
    for position, value in enumerate(known):
        spellings.setdefault(value, (position, value))
        spellings.setdefault(_folded(value), (position, value))
    return spellings


def in_mebibytes(text: str) -> int | None:
    """Return `80Gi`, `80GB` or `512Mi` in MiB; None if the text has no unit.

    GB counts as GiB, because vendors write the memory of GPUs in this way.
    """
    match = _WITH_UNIT.fullmatch(text.strip())
    if not match:
        return None
    return int(match[1]) * (_MIB_PER_GIB if match[3] else 1)


def _folded(text: str) -> str:
    return "".join(character for character in text.casefold() if character.isalnum())


_NAMES: Final = (
    "kubernetes.io/arch",
    INSTANCE_TYPE,
    GPU_NAME,
    ACCELERATOR_NAME,
    *(
        f"{AWS}/instance-{part}"
        for part in ("gpu-manufacturer", "accelerator-manufacturer", "category", "family", "size")
    ),
)
_NUMBERS: Final = (GPU_MEMORY, f"{AWS}/instance-gpu-count", f"{AWS}/instance-accelerator-count")
_NO_TYPE: Final = "Karpenter compares values exactly: no type matches this one, so the pool has fewer types."
_ALL_OR_NONE: Final = "Every GPU has more memory than that, so the requirement matches all types or none."
# No GPU has less memory than this in MiB, so smaller values are assumed to be in GiB.
_GIB_RATHER: Final = 1000


class Params(PolicyParams, frozen=True, kw_only=True):
    """Which other values are valid.

    Attributes:
        also_known: further valid values that are not in the data, by label; `*` matches anything.
    """

    also_known: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)


@validates(NODE_POOL, params=Params, mode=Stance.WARN, tables=(INSTANCE_TYPES,))
def check(pool: Field, ctx: Context[Params]) -> Iterator[Violation | Skip]:
    """Report each value that no type has, and the nearest valid one."""
    types = ec2_types(pool, ctx)
    if types is None:
        yield node_pools.types_doubt(pool, ctx)
        return
    if not node_pools.is_for_accelerators(pool, ctx):
        return
    for field, label, operator in _required(pool):
        if any(formats.matches(pattern, field.text) for pattern in ctx.params.also_known.get(label, ())):
            continue
        if label in types.catalogue.scales:
            yield from _number(field, label, operator, types.catalogue)
        elif label in _NAMES and not types.catalogue.of(label, field.text):
            yield from _name(field, label, operator, types.catalogue)


def _required(pool: Field) -> Iterator[tuple[Field, str, str]]:
    """Yield every required value with its label and operator, including labels of the template."""
    template = pool["spec", "template"]
    for entry in template["spec", "requirements"]:
        for value in entry["values"]:
            yield value, node_pools.label_of(entry["key"].text, template), entry["operator"].text
    for key, field in template["metadata", "labels"].items():
        yield field, node_pools.label_of(key, template), "In"


def _name(field: Field, label: str, operator: str, catalogue: InstanceTypes) -> Iterator[Violation]:
    short = label.rpartition("/")[2]
    right = meant(label, field.text, catalogue)
    if right:
        message = f"no EC2 instance type has {short} {listed_names([field.text])}"
        yield Violation(field.path, message, hint=f"write {right}", fix=_written(field, right), why=_NO_TYPE)
    elif operator == "In":
        message = f"no EC2 instance type of {catalogue.date} has {short} {listed_names([field.text])}"
        hint = "write a value of an existing type; for a newer type, add it to the parameter also_known"
        yield Violation(field.path, message, hint=hint, why=_NO_TYPE)


def _number(field: Field, label: str, operator: str, catalogue: InstanceTypes) -> Iterator[Violation]:
    text, short = field.text, label.rpartition("/")[2]
    if not (text.isascii() and text.isdigit()):
        right = in_mebibytes(text) if label in MEMORIES else None
        unit = " of MiB" if label in MEMORIES else ""
        message = f"{listed_names([text])} is not a valid {short}, which is a whole number{unit}"
        hint = f"write {right}" if right else "write only the number"
        why = "Karpenter compares whole numbers, so no instance type matches the value."
        yield Violation(field.path, message, hint=hint, fix=_written(field, str(right)) if right else None, why=why)
    elif label == GPU_MEMORY and 0 < int(text) < _GIB_RATHER:
        right = int(text) * 1024
        message = f"{text} MiB is less than any GPU has ({short} is in MiB)"
        certain = operator != "In" or catalogue.of(label, str(right))
        fix = _written(field, str(right)) if certain else None
        yield Violation(field.path, message, hint=f"write {right}", fix=fix, why=_ALL_OR_NONE)
    elif operator == "In" and label in _NUMBERS and not catalogue.of(label, text):
        some = listed_names(str(number) for number in catalogue.scales[label].numbers)
        per_gpu = ", which is per GPU" if label == GPU_MEMORY else ""
        yield Violation(
            field.path,
            f"no EC2 instance type has {short} {listed_names([text])}{per_gpu}",
            hint=f"write one of the values of existing types: {some}",
            why=_NO_TYPE,
        )


def _written(field: Field, value: str) -> Patches:
    return Patches((Patch("set", field.path, value, f"writes {value}, the value of the label"),))
