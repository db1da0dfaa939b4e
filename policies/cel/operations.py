"""Operators, fields, calls and macros of CEL: each function here makes a function of the variables from those of its operands.

The types that are known before the evaluation were checked; the functions find the others while they evaluate. They raise
EvaluationError where the result has no value, NotKnownError where it depends on data that is missing, and UnknownValueError
where it depends on the value of a placeholder.

Sources: cel-spec v0.24 `doc/langdef.md`, sections Runtime Errors and Macros; cel-go v0.26 `interpreter/attributes.go`.
"""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any, Final

from gpugate.policies.cel.numbers import add_durations, integer, subtract_durations, unsigned
from gpugate.policies.cel.syntax import Uint
from gpugate.policies.cel.values import (
    ABSENT,
    BYTES,
    DOUBLE,
    DURATION,
    INT,
    LIST,
    STRING,
    TYPE_NAMES,
    UINT,
    BoundError,
    EvaluationError,
    NotKnownError,
    Optional,
    Overload,
    compare,
    is_equal,
    known,
    no_overload,
    type_of,
)
from gpugate.policies.sdk.field import UnknownValueError, refuse_unknown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from gpugate.policies.cel.values import Scope

    Run = Callable[[Scope], Any]

Value = Any  # Any: a value of CEL


def constant(value: Value) -> Run:
    """Return a value that is written in the expression."""
    return lambda _: value


def variable(name: str) -> Run:
    """Read a variable, or the field of one that is not a value, by its path."""

    def read(scope: Scope) -> Value:
        variables = scope.variables
        return variables[name] if name in variables else scope.read(name)

    return read


def local(slot: int) -> Run:
    """Read the variable of a loop."""
    return lambda scope: known(scope.variables[slot])


def fields(read: Run, names: tuple[str, ...]) -> Run:
    """Read a field of a field of a value, and so on."""

    def walk(scope: Scope) -> Value:
        value = read(scope)
        for name in names:
            if type(value) is dict:
                try:
                    value = value[name]
                except KeyError:
                    raise EvaluationError(f"`{name}` is missing") from None
            else:
                value = _field(known(value), name)
        return value if type(value) in TYPE_NAMES else refuse_unknown(value)

    return walk


def _field(value: Value, name: str) -> Value:
    if isinstance(value, dict):
        try:
            return value[name]
        except KeyError:
            raise EvaluationError(f"`{name}` is missing") from None
    if type(value) is Optional:
        return _optional_member(value, name)
    raise no_overload(f".{name}")


def optional_field(read: Run, name: str) -> Run:
    """Read a field as an optional value."""
    return lambda scope: _optional_member(read(scope), name)


def has_field(read: Run, name: str) -> Run:
    """Tell whether a value has a field."""

    def has(scope: Scope) -> bool:
        value = read(scope)
        if type(value) is Optional:
            value = value.value
        if isinstance(value, list):
            raise no_overload("has")
        return isinstance(value, dict) and name in value

    return has


def element(read: Run, at: Run) -> Run:
    """Read an element of a list by its index, or a member of a map by its key."""

    def index(scope: Scope) -> Value:
        value = read(scope)
        if type(value) is Optional:
            return _optional_member(value, at(scope)) if value.present else ABSENT
        return known(_member(value, at(scope)))

    return index


def optional_element(read: Run, at: Run) -> Run:
    """Read an element or a member as an optional value."""

    def index(scope: Scope) -> Value:
        value = read(scope)
        return ABSENT if value == ABSENT else _optional_member(value, at(scope))

    return index


def _member(value: Value, at: Value) -> Value:
    """Return an element of a list or a member of a map.

    Raises:
        EvaluationError: it is missing.
    """
    kind = type(at)
    if isinstance(value, dict):
        if kind in {str, int, float, Uint, bool}:
            # In Python true is 1, and a key that is 1 is not the other here.
            if at in value and (kind is str or (kind is bool) is any(type(key) is bool for key in value)):
                return value[at]
            raise EvaluationError("missing key")
    elif isinstance(value, list) and kind in {int, float, Uint}:
        if at == math.floor(at) and 0 <= at < len(value):
            return value[int(at)]
        raise EvaluationError("index out of range")
    raise no_overload("[]")


def _optional_member(value: Value, at: Value) -> Optional:
    """Return a member as an optional value, which is absent where the member is, or what should have it."""
    if type(value) is Optional:
        if not value.present:
            return ABSENT
        value = value.value
    if type(value) is dict and type(at) is str:
        return Optional(True, known(value[at])) if at in value else ABSENT  # noqa: FBT003 -- present
    if type(at) not in {str, int, float, Uint, bool} or (isinstance(value, list) and type(at) in {str, bool}):
        raise no_overload(".?")
    if not isinstance(value, dict | list):
        return ABSENT
    try:
        return Optional(present=True, value=known(_member(value, at)))
    except EvaluationError:
        return ABSENT


def new_list(elements: Sequence[Run]) -> Run:
    """Make a list."""
    return lambda scope: [element(scope) for element in elements]


def new_map(entries: Sequence[tuple[Run, Run]]) -> Run:
    """Make a map of keys and values."""

    def make(scope: Scope) -> dict[Value, Value]:
        result: dict[Value, Value] = {}
        for at, of in entries:
            name = at(scope)
            if type(name) not in {str, int, bool, Uint}:
                raise no_overload("a key of a map")
            result[name] = of(scope)
        return result

    return make


def negated(of: Run) -> Run:
    """Negate a truth value."""

    def run(scope: Scope) -> bool:
        value = of(scope)
        if value is True or value is False:
            return not value
        raise no_overload("!")

    return run


def chosen(test: Run, when: Run, otherwise: Run) -> Run:
    """Evaluate one of two operands."""

    def choose(scope: Scope) -> Value:
        value = test(scope)
        if value is True:
            return when(scope)
        if value is False:
            return otherwise(scope)
        raise no_overload("?")

    return choose


_NO_RESULT: Final = (EvaluationError, NotKnownError, UnknownValueError)


def _heavier(problem: Exception | None, other: Exception, scope: Scope) -> Exception:
    """Return which of two operands without a value tells more: one that is not known, or bounded, may have decided.

    Raises:
        BoundError: the evaluation has taken all of its steps.
    """
    if isinstance(other, BoundError) and scope.steps < 0:
        raise other
    return other if problem is None or _weight(other) > _weight(problem) else problem


def _weight(problem: Exception) -> int:
    if isinstance(problem, EvaluationError):
        return int(isinstance(problem, BoundError))
    return 2


def decided(sides: Sequence[Run], *, deciding: bool) -> Run:
    """Join truth values: a deciding value wins over an error, and over a value that is not known, on either side."""
    other, name = not deciding, "||" if deciding else "&&"

    def decide(scope: Scope) -> bool:
        problem: Exception | None = None
        for side in sides:
            try:
                value = side(scope)
            except _NO_RESULT as error:
                problem = _heavier(problem, error, scope)
                continue
            if value is deciding:
                return not other
            if value is not other:
                problem = problem or no_overload(name)
        if problem is not None:
            raise problem
        return other

    return decide


def quantified(macro: str, read: Run, slot: int, cost: int, test: Run) -> Run:
    """Join the truth values of a test for each element: `all` or `exists`."""
    deciding = macro == "exists"
    other, name = not deciding, "||" if deciding else "&&"

    def decide(scope: Scope) -> bool:
        elements = read(scope)
        if not isinstance(elements, list | dict):
            raise no_overload(macro)
        variables = scope.variables
        problem: Exception | None = None
        for element in elements:
            scope.charge(cost)
            variables[slot] = element
            try:
                value = test(scope)
            except _NO_RESULT as error:
                problem = _heavier(problem, error, scope)
                continue
            if value is deciding:
                return not other
            if value is not other:
                problem = problem or no_overload(name)
        if problem is not None:
            raise problem
        return other

    return decide


def loop(macro: str, read: Run, slot: int, cost: int, steps: Sequence[Run]) -> Run:
    """Collect or count elements: `filter`, `map` with or without a condition before its result, `exists_one`."""
    *tests, make = steps

    def run(scope: Scope) -> Value:
        elements = read(scope)
        if not isinstance(elements, list | dict):
            raise no_overload(macro)
        bound = _bound(scope, elements, slot, cost)
        if macro == "map":
            return [make(scope) for _ in bound if all(_passes(test, scope) for test in tests)]
        passing = [element for element in bound if _passes(make, scope)]
        return passing if macro == "filter" else len(passing) == 1

    return run


def _bound(scope: Scope, elements: list[Value] | dict[Value, Value], slot: int, cost: int) -> Iterator[Value]:
    """Yield the elements of a list, or the keys of a map, each while it is the value of a variable."""
    for element in elements:
        scope.charge(cost)
        scope.variables[slot] = element
        yield element


def _passes(test: Run, scope: Scope) -> bool:
    value = test(scope)
    if value is True or value is False:
        return value
    raise no_overload("a condition")


def mapped_optional(macro: str, read: Run, slot: int, make: Run) -> Run:
    """Make a value of an optional one: `optMap`, or `optFlatMap`, whose result is optional itself."""

    def run(scope: Scope) -> Value:
        optional = read(scope)
        if type(optional) is not Optional:
            raise no_overload(macro)
        if not optional.present:
            return ABSENT
        scope.charge(1)
        scope.variables[slot] = optional.value
        value = make(scope)
        return value if macro == "optFlatMap" else Optional(present=True, value=value)

    return run


def equal(first: Run, other: Run, *, wanted: bool) -> Run:
    """Tell whether two values are equal, or not."""
    return lambda scope: is_equal(first(scope), other(scope), scope) is wanted


def equal_to(first: Run, written: Value, *, wanted: bool) -> Run:
    """Tell whether a value is equal to one that is written in the expression, or not."""
    kind = type(written)
    if kind in {str, bool}:
        return lambda scope: (type(value := first(scope)) is kind and value == written) is wanted

    def equals(scope: Scope) -> bool:
        value = first(scope)
        if type(value) is kind:
            return (value == written) is wanted
        return is_equal(value, written, scope) is wanted

    return equals


_ORDER: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def ordered(sign: str, first: Run, other: Run) -> Run:
    """Compare two values by their order."""
    test = _ORDER[sign]

    def compared(scope: Scope) -> bool:
        value, bound = first(scope), other(scope)
        if type(value) is int and type(bound) is int:
            return test(value, bound)
        return test(compare(value, bound, scope, sign), 0)

    return compared


def among(first: Run, others: Run) -> Run:
    """Tell whether a value is an element of a list or a key of a map."""
    return lambda scope: _is_in(first(scope), others(scope), scope)


def among_texts(first: Run, texts: frozenset[str]) -> Run:
    """Tell whether a value is one of the texts that are written in the expression."""
    return lambda scope: type(value := first(scope)) is str and value in texts


def _is_in(value: Value, others: Value, scope: Scope) -> bool:
    if isinstance(others, dict):
        if type(value) not in {str, int, Uint, float, bool}:
            return False
        return value in others and (type(value) is str or (type(value) is bool) is any(type(k) is bool for k in others))
    if isinstance(others, list):
        return any(is_equal(value, known(element), scope) for element in others)
    raise no_overload("in")


def call(run: Callable[..., Value], arguments: Sequence[Run]) -> Run:
    """Call a function whose arguments have the types that it takes."""
    return lambda scope: run(scope, *_charged(arguments, scope))


# What must be found of the arguments while a call is evaluated: positions with the names of types; and the function.
Choice = tuple[tuple[tuple[int, str], ...], "Callable[..., Value]"]
_PAIR: Final = 2


def call_by_types(name: str, arguments: Sequence[Run], choices: Sequence[Choice]) -> Run:
    """Call the first of some functions that takes the types of the arguments."""
    if len(choices) == 1 and len(arguments) == _PAIR:
        return _call_of_two(name, arguments[0], arguments[1], *choices[0])

    def choose(scope: Scope) -> Value:
        values = _charged(arguments, scope)
        for wanted, run in choices:
            for position, type_ in wanted:
                if type_of(values[position]) != type_:
                    break
            else:
                return run(scope, *values)
        raise no_overload(name)

    return choose


def _call_of_two(
    name: str, first: Run, second: Run, wanted: tuple[tuple[int, str], ...], run: Callable[..., Value]
) -> Run:
    """Return the call of the one function that takes two arguments, which most calls are."""
    types = dict(wanted)
    left, right = types.get(0), types.get(1)

    def call_two(scope: Scope) -> Value:
        value, argument = first(scope), second(scope)
        if (left is not None and type_of(value) != left) or (right is not None and type_of(argument) != right):
            raise no_overload(name)
        scope.charge_for(value)
        scope.charge_for(argument)
        return run(scope, value, argument)

    return call_two


def _charged(arguments: Sequence[Run], scope: Scope) -> list[Value]:
    values = [argument(scope) for argument in arguments]
    for value in values:
        scope.charge_for(value)
    return values


def _double_divided(left: float, right: float) -> float:
    if right:
        return left / right
    if not left or left != left:  # noqa: PLR0124 -- not a number is unequal to itself
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1, right)


def _divided(left: int, right: int) -> int:
    if not right:
        raise EvaluationError("division by zero")
    return abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)


def _remainder(left: int, right: int) -> int:
    if not right:
        raise EvaluationError("modulus by zero")
    if right == -1:
        integer(-left)
    return abs(left) % abs(right) * (-1 if left < 0 else 1)


def _checked(compute: Callable[[Value, Value], Value], fit: Callable[[Value], Value]) -> Callable[..., Value]:
    return lambda _, left, right: fit(compute(int(left), int(right)))


def _floats(compute: Callable[[float, float], float]) -> Callable[..., Value]:
    def run(_: Scope, left: float, right: float) -> float:
        try:
            return compute(left, right)
        except OverflowError:  # pragma: no cover -- Python's operators on floats return infinity here
            return math.inf

    return run


def _concatenated(scope: Scope, left: Value, right: Value) -> Value:
    scope.charge_new(len(left) + len(right))
    return left + right


def _numbers(compute: Callable[[Value, Value], Value], double: Callable[[float, float], float]) -> tuple[Overload, ...]:
    return (
        Overload((INT, INT), INT, _checked(compute, integer)),
        Overload((UINT, UINT), UINT, _checked(compute, unsigned)),
        Overload((DOUBLE, DOUBLE), DOUBLE, _floats(double)),
    )


# Operator -> its signatures.
ARITHMETIC: Final[Mapping[str, tuple[Overload, ...]]] = {
    "+": (
        *_numbers(operator.add, operator.add),
        Overload((STRING, STRING), STRING, _concatenated),
        Overload((BYTES, BYTES), BYTES, _concatenated),
        Overload((LIST, LIST), LIST, _concatenated),
        Overload((DURATION, DURATION), DURATION, lambda _, left, right: add_durations(left, right)),
    ),
    "-": (
        *_numbers(operator.sub, operator.sub),
        Overload((DURATION, DURATION), DURATION, lambda _, left, right: subtract_durations(left, right)),
    ),
    "*": _numbers(operator.mul, operator.mul),
    "/": _numbers(_divided, _double_divided),
    "%": _numbers(_remainder, math.fmod)[:2],
    "neg": (
        Overload((INT,), INT, lambda _, value: integer(-value)),
        Overload((DOUBLE,), DOUBLE, lambda _, value: -value),
    ),
}
