"""Find the instance label value that was probably meant by an unknown one.

Sources: aws/karpenter-provider-aws v1.14.1 `pkg/providers/instancetype/types.go` (values are in lower case, with dashes for
blanks; memory is in MiB); `kubernetes.io/arch` has Go's names of architectures.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from gpugate.policies.data.instance_types import INSTANCE_TYPE
from gpugate.policies.sdk.node_pools import AWS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpugate.policies.data.instance_types import InstanceTypes

GPU_MEMORY: Final = f"{AWS}/instance-gpu-memory"
MEMORIES: Final = frozenset({GPU_MEMORY, f"{AWS}/instance-memory"})

# Other names of the same thing, folded.
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
# Longer than any value of a label; one that is not validated yet may have any length.
_LONGEST: Final = 253


def meant(label: str, value: str, catalogue: InstanceTypes) -> str:
    """Return the value of a label that is this one but for case, separators or the maker; empty where there is none."""
    if len(value) > _LONGEST:
        return ""
    spellings = catalogue.spellings.get(label)
    if spellings is None:
        # Made once and then looked up: a pool may name thousands of values.
        spellings = catalogue.spellings[label] = _spellings(label, catalogue)
    wanted = _folded(value)
    wanted = _SYNONYMS.get(wanted, wanted)
    bare = {wanted, *(wanted.removeprefix(maker) for maker in _MAKERS)}
    return min((spellings[each] for each in bare if each in spellings), default=(0, ""))[1]


def _spellings(label: str, catalogue: InstanceTypes) -> dict[str, tuple[int, str]]:
    """Return the place and the value for each value and for what it is without case and separators."""
    known: Iterable[str] = catalogue.names if label == INSTANCE_TYPE else catalogue.values[label]
    found: dict[str, tuple[int, str]] = {}
    for place, value in enumerate(known):
        found.setdefault(value, (place, value))
        found.setdefault(_folded(value), (place, value))
    return found


def in_mebibytes(text: str) -> int | None:
    """Return what `80Gi`, `80GB` or `512Mi` is in MiB; None where the text has no unit.

    GB counts as GiB: vendors write the memory of a GPU so.
    """
    found = _WITH_UNIT.fullmatch(text.strip())
    if not found:
        return None
    return int(found[1]) * (_MIB_PER_GIB if found[3] else 1)


def _folded(text: str) -> str:
    return "".join(character for character in text.casefold() if character.isalnum())
