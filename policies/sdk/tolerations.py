"""Whether a toleration covers a taint, as the scheduler decides it.

Source: `k8s.io/api/core/v1/toleration.go` (`ToleratesTaint`), v0.36.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.platform import Taint


def tolerates(toleration: Field, taint: Taint, effect: str = "NoSchedule") -> bool:
    """Tell whether one toleration covers a taint of this effect."""
    key, operator = toleration["key"].text, toleration["operator"].text or "Equal"
    if toleration["effect"].text not in {"", effect}:
        return False
    if not key:
        return operator == "Exists"
    return key == taint.key and (
        operator == "Exists" or (operator == "Equal" and toleration["value"].text == taint.value)
    )


def tolerated(pod: Field, taint: Taint, effect: str = "NoSchedule") -> bool:
    """Tell whether any toleration of a Pod (or Pod template) covers a taint of this effect."""
    return any(tolerates(t, taint, effect) for t in pod["spec", "tolerations"])
