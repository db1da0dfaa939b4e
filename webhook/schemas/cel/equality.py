"""Whether two values are equal.

Numbers of different types compare by value; other values of different types are unequal (cel-spec v0.24
`doc/langdef.md`, section Equality).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpugate.webhook.schemas.cel.scope import Scope

Value = Any  # Any: the JSON edge


def equal(one: Value, other: Value, scope: Scope) -> bool:
    """Tell whether two values are equal; 1 is 1.0, but not true.

    Raises:
        CelCostError: they hold too many values to tell.
    """
    scope.charge(1)
    if isinstance(one, str) and isinstance(other, str):
        scope.charge_text(min(len(one), len(other)))
        return one == other
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        scope.charge(min(len(one), len(other)))
        return one.keys() == other.keys() and all(equal(value, other[key], scope) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(equal(*pair, scope) for pair in zip(one, other, strict=True))
    return bool(one == other)
