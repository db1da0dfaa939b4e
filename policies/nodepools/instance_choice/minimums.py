"""Whether the types that match are as varied as `minValues` asks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpugate.policies.data.instance_types import INSTANCE_TYPE
from gpugate.policies.sdk.findings import Violation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.node_pools import MatchingTypes


def unmet_minimums(types: MatchingTypes, left: int) -> Iterator[Violation]:
    """Report each `minValues` that is more than the types have different values of the label.

    Karpenter launches nothing then (v1.14.1 `pkg/cloudprovider/types.go`, SatisfiesMinValues).
    """
    catalogue = types.catalogue
    for entry in types.entries:
        minimum = entry.requirement.min_values
        if minimum is None or entry.key not in catalogue:
            continue
        if entry.key == INSTANCE_TYPE:
            have = left.bit_count() + len(types.unknown)
        elif types.unknown:
            continue
        else:
            have = sum(1 for having in catalogue.values[entry.key].values() if having & left)
        if have < minimum:
            message = f"minValues {minimum} can never be met: the types that match have {have} of {entry.key}"
            yield Violation(entry.field["minValues"].path, message, hint=f"allow more, or lower minValues to {have}")
