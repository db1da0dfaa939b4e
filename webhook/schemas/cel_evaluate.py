"""Compile a translated CEL expression into a function of its variables.

Sources: cel-spec v0.24 `doc/langdef.md`; apiextensions-apiserver v0.36 `pkg/apiserver/schema/cel`.
"""

from __future__ import annotations

import math
import operator
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

from gpugate.policies.cel.patterns import LONGEST, compiled
from gpugate.webhook.schemas.cel_functions import CALLS, CHARGING, MEMBERS, equal, is_number, no_overload, small, whole
from gpugate.webhook.schemas.cel_parse import CelCostError, CelEvaluationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from gpugate.webhook.schemas.cel_functions import Scope
    from gpugate.webhook.schemas.table import Expression


def decide(sides: Iterable[Callable[[Scope], Any]], scope: Scope, *, deciding: bool) -> bool:
    """Join the values of expressions: true decides for `||` and `exists`, false for `&&` and `all`.

    Raises:
        CelEvaluationError: none decides, and one has no value.
    """
    error: CelEvaluationError | None = None
    for side in sides:
        try:
            value = side(scope)
        except CelEvaluationError as raised:
            error = error or raised
            continue
        if isinstance(value, bool) and value is deciding:
            return deciding
        if not isinstance(value, bool):
            error = error or no_overload("&& and ||")
    if error:
        raise error
    return not deciding


Value = Any  # Any: the JSON edge


def _in(left: Value, right: Value, scope: Scope) -> bool:
    if isinstance(right, dict):
        return isinstance(left, str) and left in right
    if isinstance(right, list):
        return any(equal(left, element, scope) for element in right)
    raise no_overload("in")


def _order(sign: str, compare: Callable[[Value, Value], bool]) -> Operator:
    def ordered(left: Value, right: Value, scope: Scope) -> bool:
        if isinstance(left, str) and isinstance(right, str):
            scope.charge_text(min(len(left), len(right)))
            return compare(left, right)
        if _is_amount(left) and _is_amount(right):
            return compare(left, right)
        if isinstance(left, bool) and isinstance(right, bool):
            return compare(left, right)
        raise no_overload(sign)

    return ordered


def _is_amount(value: Value) -> bool:
    return is_number(value) or isinstance(value, Fraction)


def _add(left: Value, right: Value, scope: Scope) -> Value:
    if isinstance(left, str) and isinstance(right, str):
        scope.charge_text(small(len(left) + len(right)))
        return left + right
    if isinstance(left, list) and isinstance(right, list):
        scope.charge(small(len(left) + len(right)))
        return left + right
    return _SUM(left, right, scope)


def _divided(left: Value, right: Value) -> Value:
    if isinstance(left, float):
        return left / right if right else math.nan if not left else math.copysign(math.inf, left)
    if not right:
        raise CelEvaluationError("division by zero")
    return abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)


def _modulo(left: Value, right: Value) -> Value:
    if not isinstance(left, int) or not right:
        raise CelEvaluationError("modulus by zero, or of a number that is not an integer")
    remainder = abs(left) % abs(right)
    return -remainder if left < 0 else remainder


def _arithmetic(sign: str, compute: Callable[[Value, Value], Value]) -> Operator:
    def computed(left: Value, right: Value, _: Scope) -> Value:
        if not (is_number(left) and is_number(right)) or isinstance(left, float) is not isinstance(right, float):
            raise no_overload(sign)
        value = compute(left, right)
        return whole(value) if isinstance(value, int) else value

    return computed


_SUM: Final = _arithmetic("+", operator.add)
OPERATORS: Final[dict[str, Operator]] = {
    "==": equal,
    "!=": lambda left, right, scope: not equal(left, right, scope),
    "in": _in,
    "<": _order("<", operator.lt),
    "<=": _order("<=", operator.le),
    ">": _order(">", operator.gt),
    ">=": _order(">=", operator.ge),
    "+": _add,
    "-": _arithmetic("-", operator.sub),
    "*": _arithmetic("*", operator.mul),
    "/": _arithmetic("/", _divided),
    "%": _arithmetic("%", _modulo),
}


def _bind_elements(scope: Scope, elements: Any, variable: str) -> Iterator[Any]:
    """Bind the variable to one element after the other; the caller restores it."""
    if not isinstance(elements, list | dict):
        raise no_overload("a quantifier")
    for element in elements:
        scope.charge(1)
        scope.variables[variable] = element
        yield element


def _decided(scope: Scope, of: Any, variable: str, test: Function, *, deciding: bool) -> bool:
    return decide((test for _ in _bind_elements(scope, of, variable)), scope, deciding=deciding)


def _all(scope: Scope, of: Any, variable: str, tests: Sequence[Function]) -> bool:
    return _decided(scope, of, variable, tests[0], deciding=False)


def _exists(scope: Scope, of: Any, variable: str, tests: Sequence[Function]) -> bool:
    return _decided(scope, of, variable, tests[0], deciding=True)


def _chosen(scope: Scope, of: Any, variable: str, test: Function) -> list[Any]:
    chosen = []
    for element in _bind_elements(scope, of, variable):
        value = test(scope)
        if not isinstance(value, bool):
            raise no_overload("a quantifier")
        chosen += [element] if value else []
    return chosen


def _exists_one(scope: Scope, of: Any, variable: str, tests: Sequence[Function]) -> bool:
    return len(_chosen(scope, of, variable, tests[0])) == 1


def _filter(scope: Scope, of: Any, variable: str, tests: Sequence[Function]) -> list[Any]:
    return _chosen(scope, of, variable, tests[0])


def _map(scope: Scope, of: Any, variable: str, tests: Sequence[Function]) -> list[Any]:
    *conditions, transform = tests
    return [
        transform(scope) for _ in _bind_elements(scope, of, variable) if all(test(scope) is True for test in conditions)
    ]


QUANTIFIERS: Final[dict[str, Callable[[Scope, Any, str, Sequence[Function]], Any]]] = {
    "all": _all,
    "exists": _exists,
    "exists_one": _exists_one,
    "filter": _filter,
    "map": _map,
}


def function_of(tree: Expression) -> Function:
    """Make a function of a translated expression.

    It raises CelEvaluationError where the expression has no value, CelCostError where it takes too many steps.
    """
    function, cost = _function_of(tree), _operations(tree)

    def charged(scope: Scope) -> Any:
        scope.charge(cost)
        return function(scope)

    return charged


def _operations(tree: Expression) -> int:
    """Count the operations of an expression; those that a quantifier repeats are charged each time they are done."""
    parts = tree[1:2] if tree[0] in QUANTIFIERS else [] if tree[0] == "const" else tree[1:]
    if tree[0] == "object":
        parts = [part for entry in parts for part in entry]
    return 1 + sum(_operations(part) for part in parts if isinstance(part, list))


def _function_of(tree: Expression) -> Function:
    head = tree[0]
    if head in OPERATORS:
        return _operator(tree)
    if head in QUANTIFIERS:
        return _quantifier(tree)
    return _MAKERS[head](tree)


def _const(tree: Expression) -> Function:
    value = tree[1]
    return lambda _: value


def _var(tree: Expression) -> Function:
    name = tree[1]
    return lambda scope: scope.variables[name]


def _get(tree: Expression) -> Function:
    of, field = _function_of(tree[1]), tree[2]

    def get(scope: Scope) -> Any:
        value = of(scope)
        if isinstance(value, dict) and field in value:
            return value[field]
        raise CelEvaluationError(f"`{field}` is missing")

    return get


def _has(tree: Expression) -> Function:
    of, field = _function_of(tree[1]), tree[2]

    def has(scope: Scope) -> bool:
        value = of(scope)
        if isinstance(value, dict):
            return field in value
        raise no_overload("has")

    return has


def _index(tree: Expression) -> Function:
    of, key = _function_of(tree[1]), _function_of(tree[2])

    def index(scope: Scope) -> Any:
        value, at = of(scope), key(scope)
        if isinstance(value, dict) and isinstance(at, str):
            if at in value:
                return value[at]
            raise CelEvaluationError(f"`{at[:80]}` is missing")
        if isinstance(value, list) and is_number(at):
            if at == int(at) and 0 <= at < len(value):
                return value[int(at)]
            raise CelEvaluationError(f"element {at} does not exist")
        raise no_overload("[]")

    return index


def _list(tree: Expression) -> Function:
    elements = [_function_of(operand) for operand in tree[1:]]
    if all(operand[0] == "const" for operand in tree[1:]):
        values = [operand[1] for operand in tree[1:]]
        return lambda _: values
    return lambda scope: [element(scope) for element in elements]


def _object(tree: Expression) -> Function:
    entries = [(_function_of(key), _function_of(value)) for key, value in tree[1:]]
    return lambda scope: {key(scope): value(scope) for key, value in entries}


def _not(tree: Expression) -> Function:
    of = _function_of(tree[1])

    def negation(scope: Scope) -> bool:
        value = of(scope)
        if isinstance(value, bool):
            return not value
        raise no_overload("!")

    return negation


def _negative(tree: Expression) -> Function:
    of = _function_of(tree[1])

    def negative(scope: Scope) -> Any:
        value = of(scope)
        if is_number(value):
            return -value
        raise no_overload("-")

    return negative


def _logic(tree: Expression) -> Function:
    deciding = tree[0] == "or"
    sides = [_function_of(part) for part in tree[1:]]
    return lambda scope: decide(sides, scope, deciding=deciding)


def _if(tree: Expression) -> Function:
    test, yes, no = (_function_of(part) for part in tree[1:])

    def choose(scope: Scope) -> Any:
        value = test(scope)
        if isinstance(value, bool):
            return yes(scope) if value else no(scope)
        raise no_overload("? :")

    return choose


def _operator(tree: Expression) -> Function:
    if tree[0] == "in" and tree[2][0] == "list" and all(element[0] == "const" for element in tree[2][1:]):
        return _among(_function_of(tree[1]), [element[1] for element in tree[2][1:]])
    compute, left, right = OPERATORS[tree[0]], _function_of(tree[1]), _function_of(tree[2])
    return lambda scope: compute(left(scope), right(scope), scope)


def _among(of: Function, values: list[Any]) -> Function:
    """`in` of a list that is written out, which may be long."""
    strings = frozenset(value for value in values if isinstance(value, str))

    def among(scope: Scope) -> bool:
        value = of(scope)
        return value in strings if isinstance(value, str) else any(equal(value, element, scope) for element in values)

    return among


def _quantifier(tree: Expression) -> Function:
    quantify, of, variable = QUANTIFIERS[tree[0]], _function_of(tree[1]), tree[2]
    tests = [function_of(test) for test in tree[3:]]

    def quantified(scope: Scope) -> Any:
        elements, shadowed = of(scope), scope.variables.get(variable)
        try:
            return quantify(scope, elements, variable, tests)
        finally:
            scope.variables[variable] = shadowed

    return quantified


def _call(tree: Expression) -> Function:
    _, _, function = (CALLS if tree[0] == "call" else MEMBERS)[tree[1]]
    charging = tree[0] == "member" and tree[1] in CHARGING
    arguments = [_function_of(argument) for argument in tree[2:]]

    def call(scope: Scope) -> Any:
        values = [argument(scope) for argument in arguments]
        scope.charge_text(sum(len(value) for value in values if isinstance(value, str)))
        try:
            result = function(scope, *values) if charging else function(*values)
        except TypeError:
            raise no_overload(tree[1]) from None
        if isinstance(result, str):
            scope.charge_text(len(result))
        elif isinstance(result, list):
            scope.charge(len(result))
        return result

    return call


def _pattern(tree: Expression) -> Function:
    of, pattern, finds = _function_of(tree[1]), tree[2], tree[0] == "find"

    def search(scope: Scope) -> Any:
        value = of(scope)
        if not isinstance(value, str):
            raise no_overload(tree[0])
        if len(value) > LONGEST:
            raise CelCostError
        # What a pattern may repeat in two ways takes time by the square of the text.
        scope.charge_text(len(value) ** 2)
        match = compiled(pattern).search(value)
        return (match[0] if match else "") if finds else match is not None

    return search


_MAKERS: Final[dict[str, Callable[[Expression], Function]]] = {
    "const": _const,
    "var": _var,
    "get": _get,
    "has": _has,
    "index": _index,
    "list": _list,
    "object": _object,
    "not": _not,
    "neg": _negative,
    "and": _logic,
    "or": _logic,
    "if": _if,
    "call": _call,
    "member": _call,
    "matches": _pattern,
    "find": _pattern,
}


if TYPE_CHECKING:
    Operator = Callable[["Value", "Value", Scope], "Value"]
    Function = Callable[[Scope], Any]
