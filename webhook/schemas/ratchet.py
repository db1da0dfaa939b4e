"""What an UPDATE may keep: faults of values that it leaves as they were.

Source: KEP-4008, on since Kubernetes v1.30; apiserver v0.36 `pkg/cel/common/equality.go`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpugate.webhook.schemas.cel.equality import equal
from gpugate.webhook.schemas.cel.scope import Scope

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpugate.policies.sdk.field import Path
    from gpugate.webhook.schemas.table import Node


def unchanged(owner: Path, new: Any, old: Any, place: int, nodes: Sequence[Node]) -> bool:
    """Tell whether the value at a path is as it was; within lists whose elements have no keys, whether the list is."""
    at: int | None = place
    for step in owner:
        node = nodes[at] if at is not None else None
        if isinstance(step, int):
            if node is None or node.list_type != "map" or not isinstance(new[step], dict):
                return equal(new, old, Scope({}))
            keys = node.list_keys
            before = [e for e in old or () if isinstance(e, dict) and all(e.get(k) == new[step].get(k) for k in keys)]
            new, old, at = new[step], before[0] if before else None, node.items
        else:
            new = new.get(step) if isinstance(new, dict) else None
            old = old.get(step) if isinstance(old, dict) else None
            at = node.properties.get(step, node.values) if node else None
    return old is not None and equal(new, old, Scope({}))
