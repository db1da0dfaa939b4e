"""The functions that CEL expressions call, with their signatures, and the equality of values.

Sources: cel-spec v0.24 `doc/langdef.md` (standard definitions), cel-go v0.27 `ext/strings.go`, apiserver v0.36
`pkg/cel/library/{regex,lists,quantity}.go`.

Numbers of different types compare by value; other values of different types are unequal (cel-spec v0.24
`doc/langdef.md`, section Equality).
"""

from __future__ import annotations

import re
import string
from typing import TYPE_CHECKING, Any, Final

from gpugate.policies.sdk import quantity
from gpugate.webhook.schemas.cel_parse import CelCostError, CelEvaluationError

if TYPE_CHECKING:
    from collections.abc import Callable

STEPS: Final = 2_000_000  # operations that all rules together may take on one object
_CHARACTERS: Final = 16  # of a text that take about as long as an operation


class Budget:
    """How many steps may still be taken."""

    __slots__ = ("left",)

    def __init__(self, steps: int | None = None) -> None:
        self.left = STEPS if steps is None else steps

    def charge(self, steps: int) -> None:
        """Count steps.

        Raises:
            CelCostError: there were too many.
        """
        self.left -= steps
        if self.left < 0:
            raise CelCostError


class Scope:
    """The variables, and the budget, which the rules of an object share."""

    __slots__ = ("charge", "variables")

    def __init__(self, variables: dict[str, Any], budget: Budget | None = None) -> None:
        self.variables = variables
        self.charge = (budget or Budget()).charge

    def charge_text(self, size: int) -> None:
        """Count what is done with a text of a size.

        Raises:
            CelCostError: it was too much.
        """
        self.charge(size // _CHARACTERS)


Value = Any  # Any: the JSON edge


def equal(left: Value, right: Value, scope: Scope) -> bool:
    """Tell whether two values are equal; 1 is 1.0, but not true.

    Raises:
        CelCostError: they hold too many values to tell.
    """
    scope.charge(1)
    if isinstance(left, str) and isinstance(right, str):
        scope.charge_text(min(len(left), len(right)))
        return left == right
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        scope.charge(min(len(left), len(right)))
        return left.keys() == right.keys() and all(equal(value, right[key], scope) for key, value in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(equal(*pair, scope) for pair in zip(left, right, strict=True))
    return bool(left == right)


_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_LEAST, _MOST = -(2**63), 2**63 - 1
_MOST_DIGITS: Final = 20
_EXPONENT_FROM: Final = 1_000_000  # Go writes greater ones, of which a double is one, with an exponent
_LOWER: Final = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
_UPPER: Final = str.maketrans(string.ascii_lowercase, string.ascii_uppercase)
LARGEST: Final = 2_000_000  # characters or elements of what an expression makes; an object has fewer


def whole(value: int) -> int:
    """Return a whole number that fits 64 bits.

    Raises:
        CelEvaluationError: it does not.
    """
    if not _LEAST <= value <= _MOST:
        raise CelEvaluationError("integer overflow")
    return value


def is_number(value: Value) -> bool:
    """Tell whether a value is a number; true and false are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _size(value: Value) -> int:
    if isinstance(value, str | list | dict):
        return len(value)
    raise no_overload("size")


def _int(value: Value) -> int:
    if isinstance(value, str):
        if len(value) > _MOST_DIGITS or not _INTEGER.fullmatch(value):
            raise CelEvaluationError(f'"{value[:40]}" is no whole number')
        return whole(int(value))
    if is_number(value) and value == value:  # noqa: PLR0124 -- not a number is unequal to itself
        return whole(int(value))
    raise no_overload("int")


def _double(value: Value) -> float:
    try:
        return float(value) if isinstance(value, str) or is_number(value) else _fail("double")
    except ValueError:
        raise CelEvaluationError(f'"{str(value)[:40]}" is no number') from None


def _string(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXPONENT_FROM:
        return str(int(value))
    return value if isinstance(value, str) else str(value) if is_number(value) else _fail("string")


def _index_of(scope: Scope, value: Value, part: Value, start: int = 0) -> int:
    if isinstance(value, list) and not start:
        return next((index for index, element in enumerate(value) if equal(element, part, scope)), -1)
    return value.find(part, start) if isinstance(value, str) and isinstance(part, str) else _fail("indexOf")


def _replace(text: str, old: str, new: str) -> str:
    small(len(text) + text.count(old) * len(new))
    return text.replace(old, new)


def small(size: int) -> int:
    """Return the size of something that an expression makes.

    Raises:
        CelCostError: it is too large.
    """
    if size > LARGEST:
        raise CelCostError
    return size


def _lower(text: str) -> str:
    return text.translate(_LOWER)


def _upper(text: str) -> str:
    return text.translate(_UPPER)


def _substring(text: str, start: int, end: int | None = None) -> str:
    end = len(text) if end is None else end
    if not 0 <= start <= end <= len(text):
        raise CelEvaluationError(f"index out of range: {start} to {end}")
    return text[start:end]


def _split(text: str, separator: Value, limit: int = -1) -> list[str]:
    if not isinstance(separator, str):
        raise no_overload("split")
    if limit in {0, 1}:
        return [text] if limit else []
    if separator:
        return text.split(separator, limit - 1 if limit > 0 else -1)
    return [*text[: limit - 1], text[limit - 1 :]] if 0 < limit < len(text) else list(text)


def _join(scope: Scope, parts: Value, separator: str = "") -> str:
    if not isinstance(parts, list):
        raise no_overload("join")
    scope.charge(len(parts))
    if not all(isinstance(part, str) for part in parts):
        raise no_overload("join")
    small(sum(len(part) + len(separator) for part in parts))
    return separator.join(parts)


def _quantity(value: Value) -> quantity.Amount:
    try:
        return quantity.parse(value) if isinstance(value, str) else _fail("quantity")
    except quantity.QuantityError as error:
        raise CelEvaluationError(str(error)) from None


def _is_quantity(value: Value) -> bool:
    try:
        quantity.parse(value)
    except quantity.QuantityError:
        return False
    return isinstance(value, str)


def _fail(name: str) -> Any:
    raise no_overload(name)


def no_overload(name: str) -> CelEvaluationError:
    """Say that a function or operator cannot take what it is given, as it depends on the object."""
    return CelEvaluationError(f"`{name}` does not accept a value of this type")


def _of_string(function: Callable[..., Value], *, argument: bool = False) -> Callable[..., Value]:
    """Let a function take a text only, with texts as further arguments where it has any."""

    def call(value: Value, *arguments: Value) -> Value:
        wrong = argument and not all(isinstance(further, str) for further in arguments)
        if not isinstance(value, str) or wrong:
            raise no_overload(function.__name__.strip("_"))
        return function(value, *arguments)

    return call


# Name -> the least and the most arguments, and the function.
CALLS: Final[dict[str, tuple[int, int, Callable[..., Value]]]] = {
    "size": (1, 1, _size),
    "int": (1, 1, _int),
    "double": (1, 1, _double),
    "string": (1, 1, _string),
    "quantity": (1, 1, _quantity),
    "isQuantity": (1, 1, _is_quantity),
}
# The same of a value's own functions; the value itself does not count as an argument.
MEMBERS: Final[dict[str, tuple[int, int, Callable[..., Value]]]] = {
    "size": (0, 0, _size),
    "startsWith": (1, 1, _of_string(str.startswith, argument=True)),
    "endsWith": (1, 1, _of_string(str.endswith, argument=True)),
    "contains": (1, 1, _of_string(str.__contains__, argument=True)),
    "lowerAscii": (0, 0, _of_string(_lower)),
    "upperAscii": (0, 0, _of_string(_upper)),
    "trim": (0, 0, _of_string(str.strip)),
    "replace": (2, 2, _of_string(_replace, argument=True)),
    "indexOf": (1, 2, _index_of),
    "substring": (1, 2, _of_string(_substring)),
    "split": (1, 2, _of_string(_split)),
    "join": (0, 1, _join),
    "isLessThan": (1, 1, lambda left, right: left < right),
    "isGreaterThan": (1, 1, lambda left, right: left > right),
    "compareTo": (1, 1, lambda left, right: (left > right) - (left < right)),
}
# Those that look at every element of a list; they take the scope before the value.
CHARGING: Final = frozenset({"indexOf", "join"})
