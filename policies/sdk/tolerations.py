"""Whether a toleration covers a taint, as the scheduler decides it.

Source: `k8s.io/api/core/v1/toleration.go` (`ToleratesTaint`), v0.36.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.platform import Taint


# A decimal integer as the API server reads it (`k8s.io/apimachinery/pkg/api/validate/content`, IsDecimalInteger).
_INTEGER: Final = re.compile(r"0|-?[1-9][0-9]{0,18}")


def tolerates(toleration: Field, taint: Taint, effect: str = "NoSchedule") -> bool:
    """Tell whether one toleration covers a taint of this effect."""
    key, operator = toleration["key"].text, toleration["operator"].text or "Equal"
    if toleration["effect"].text not in {"", effect}:
        return False
    if not key:
        return operator == "Exists"
    return key == taint.key and _covers(operator, toleration["value"].text, taint.value)


def _covers(operator: str, value: str, taint: str) -> bool:
    """Compare the value of a toleration with that of a taint; `Lt` and `Gt` compare numbers (alpha since v1.35)."""
    if operator in {"Lt", "Gt"}:
        if not (_INTEGER.fullmatch(value) and _INTEGER.fullmatch(taint)):
            return False
        return int(taint) < int(value) if operator == "Lt" else int(taint) > int(value)
    return operator == "Exists" or (operator == "Equal" and value == taint)


def tolerated(pod: Field, taint: Taint, effect: str = "NoSchedule") -> bool:
    """Tell whether any toleration of a Pod (or Pod template) covers a taint of this effect."""
    return any(tolerates(t, taint, effect) for t in pod["spec", "tolerations"])
