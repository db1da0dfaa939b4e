"""Whether two values are equal.

Numbers of different types compare by value; other values of different types are unequal (cel-spec v0.24
`doc/langdef.md`, section Equality).
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any, Final

from gpugate.webhook.schemas.cel.errors import CelCostError

if TYPE_CHECKING:
    from collections.abc import Iterator

Value = Any  # Any: the JSON edge

# Pairs of values that one comparison looks at. No file holds more; but what an expression makes may have the same part
# in many places.
MOST_PAIRS: Final = 2_000_000


def equal(one: Value, other: Value) -> bool:
    """Tell whether two values are equal; 1 is 1.0, but not true.

    Raises:
        CelCostError: they hold more than MOST_PAIRS values.
    """
    if type(one) is str:
        return bool(one == other)
    return _alike(one, other, count())


def _alike(one: Value, other: Value, looked: Iterator[int]) -> bool:
    if next(looked) > MOST_PAIRS:
        raise CelCostError
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_alike(value, other[key], looked) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(_alike(*pair, looked) for pair in zip(one, other, strict=True))
    return bool(one == other)
