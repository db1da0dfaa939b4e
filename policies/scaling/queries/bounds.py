"""How much a query can be at most."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Final

from gpugate.policies.scaling.queries.metrics import BOUNDS
from gpugate.policies.scaling.queries.numbers import number

if TYPE_CHECKING:
    from gpugate.policies.scaling.queries.promql import Call, Query

# None of them gives more than the largest value it is given.
_AVERAGES: Final = frozenset(
    {
        "avg",
        "avg_over_time",
        "last_over_time",
        "max",
        "max_over_time",
        "min",
        "min_over_time",
        "quantile",
        "quantile_over_time",
    }
)


def most(query: Query) -> Fraction | None:
    """Return the most that averages of one bounded metric can be, multiplied or divided by a number; None for others."""
    if len(query.selectors) != 1 or any(call.name not in _AVERAGES and not is_zero(call) for call in query.calls):
        return None
    bound = BOUNDS.get(query.selectors[0].metric)
    factor = _factor(query)
    return None if bound is None or factor is None else bound * factor


def is_zero(call: Call) -> bool:
    """Tell whether a call is `vector(0)`, which stands behind `or` to give 0 where there is nothing."""
    return call.name == "vector" and number(call.number) == 0


def _factor(query: Query) -> Fraction | None:
    filled = any(is_zero(call) for call in query.calls)
    operators = [each for each in query.operators if not (filled and each[0] == "or")]
    if not operators:
        return Fraction(1)
    (operator, left, right), *more = operators
    behind = number(right.text)
    if more or operator not in {"*", "/"}:
        return None
    if operator == "/":
        return 1 / behind if behind else None
    return number(left.text) if behind is None else behind
