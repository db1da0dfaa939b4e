"""The operators: equality, order, membership, arithmetic.

Numbers of different types compare by value; other values of different types are unequal (cel-spec v0.24
`doc/langdef.md`, section Equality).
"""

from __future__ import annotations

import math
import operator
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

from gpugate.webhook.schemas.cel.equality import equal
from gpugate.webhook.schemas.cel.errors import CelEvaluationError
from gpugate.webhook.schemas.cel.functions import is_number, no_overload, small, whole

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpugate.webhook.schemas.cel.scope import Scope

    Operator = Callable[["Value", "Value", Scope], "Value"]

Value = Any  # Any: the JSON edge


def _in(one: Value, other: Value, scope: Scope) -> bool:
    if isinstance(other, dict):
        return isinstance(one, str) and one in other
    if isinstance(other, list):
        return any(equal(one, each, scope) for each in other)
    raise no_overload("in")


def _order(sign: str, compare: Callable[[Value, Value], bool]) -> Operator:
    def ordered(one: Value, other: Value, scope: Scope) -> bool:
        if isinstance(one, str) and isinstance(other, str):
            scope.charge_text(min(len(one), len(other)))
            return compare(one, other)
        if _is_amount(one) and _is_amount(other):
            return compare(one, other)
        if isinstance(one, bool) and isinstance(other, bool):
            return compare(one, other)
        raise no_overload(sign)

    return ordered


def _is_amount(value: Value) -> bool:
    return is_number(value) or isinstance(value, Fraction)


def _add(one: Value, other: Value, scope: Scope) -> Value:
    if isinstance(one, str) and isinstance(other, str):
        scope.charge_text(small(len(one) + len(other)))
        return one + other
    if isinstance(one, list) and isinstance(other, list):
        scope.charge(small(len(one) + len(other)))
        return one + other
    return _SUM(one, other, scope)


def _divided(one: Value, other: Value) -> Value:
    if isinstance(one, float):
        return one / other if other else math.nan if not one else math.copysign(math.inf, one)
    if not other:
        raise CelEvaluationError("division by zero")
    return abs(one) // abs(other) * (1 if (one < 0) == (other < 0) else -1)


def _rest(one: Value, other: Value) -> Value:
    if not isinstance(one, int) or not other:
        raise CelEvaluationError("modulus by zero, or of a number that is not whole")
    rest = abs(one) % abs(other)
    return -rest if one < 0 else rest


def _arithmetic(sign: str, compute: Callable[[Value, Value], Value]) -> Operator:
    def computed(one: Value, other: Value, _: Scope) -> Value:
        if not (is_number(one) and is_number(other)) or isinstance(one, float) is not isinstance(other, float):
            raise no_overload(sign)
        value = compute(one, other)
        return whole(value) if isinstance(value, int) else value

    return computed


_SUM: Final = _arithmetic("+", operator.add)
OPERATORS: Final[dict[str, Operator]] = {
    "==": equal,
    "!=": lambda one, other, scope: not equal(one, other, scope),
    "in": _in,
    "<": _order("<", operator.lt),
    "<=": _order("<=", operator.le),
    ">": _order(">", operator.gt),
    ">=": _order(">=", operator.ge),
    "+": _add,
    "-": _arithmetic("-", operator.sub),
    "*": _arithmetic("*", operator.mul),
    "/": _arithmetic("/", _divided),
    "%": _arithmetic("%", _rest),
}
