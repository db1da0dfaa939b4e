"""Types, signatures and values of CEL, equality and order of values, and the bound on the work of one evaluation.

A value is what JSON decodes to, or `Uint`, bytes, `Duration`, `Quantity`, `Optional` or `TypeName`. A value of a template
that is not known is an `Unknown` inside of an object, and reading it ends the evaluation.

Sources: cel-spec v0.24 `doc/langdef.md`, sections Values, Equality and Runtime Errors; k8s.io/apiserver v0.36.3
`pkg/cel/quantity.go`.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from gpugate.policies.cel.syntax import Uint
from gpugate.policies.sdk.field import refuse_unknown
from gpugate.policies.sdk.findings import Skip

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gpugate.policies.sdk.quantity import Amount

Value = Any  # Any: a value of CEL


class Type(NamedTuple):
    """A type as the checker knows it: its name, and the types of its elements, keys and values."""

    name: str
    of: tuple[Type, ...] = ()

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.of))})" if self.of else self.name


DYN, BOOL, INT, UINT, DOUBLE, STRING = (Type(name) for name in ("dyn", "bool", "int", "uint", "double", "string"))
BYTES, NULL, TYPE, DURATION, QUANTITY = (Type(name) for name in ("bytes", "null", "type", "duration", "quantity"))
# In signatures: any type, the same mine wherever it occurs.
ANY: Final = Type("A")
STRINGS, LIST = Type("list", (STRING,)), Type("list", (ANY,))


def list_of(element: Type) -> Type:
    """Return the type of lists of a type."""
    return Type("list", (element,))


def map_of(key: Type, value: Type) -> Type:
    """Return the type of maps."""
    return Type("map", (key, value))


def optional_of(value: Type) -> Type:
    """Return the type of optional values of a type."""
    return Type("optional", (value,))


class Overload(NamedTuple):
    """One signature: the types taken, first that of the value before the dot, the type given, and the function.

    The function gets the scope first, in which it counts what it does beyond reading each argument once.
    """

    takes: tuple[Type, ...]
    gives: Type
    run: Callable[..., Value]


class Duration(NamedTuple):
    """A duration in nanoseconds."""

    nanoseconds: int


class Quantity(NamedTuple):
    """A quantity of Kubernetes, such as 500m or 16Gi, as an exact number."""

    amount: Amount


class Optional(NamedTuple):
    """A value that may be absent."""

    present: bool
    value: Value = None


class TypeName(NamedTuple):
    """A type as a value, as in `type(object.spec.replicas) == int`."""

    name: str


ABSENT: Final = Optional(present=False)


class EvaluationError(Exception):
    """The expression has no value for this object; says why, without content of the object."""


class BoundError(EvaluationError):
    """The evaluation ended at a bound on its work, so that the value of the expression is not known."""


class NotKnownError(Exception):
    """The value depends on data that is missing; `skip` names the data."""

    def __init__(self, skip: Skip) -> None:
        super().__init__(skip.reason)
        self.skip = skip


STEPS: Final = 100_000  # of one evaluation, of a policy's expressions together: about 50 ms
_CHARACTERS: Final = 32  # of a text that take about as long as a step
_LARGEST: Final = 1_000_000  # characters or elements of a value that an expression makes


_NO_READERS: Final[Mapping[str, Callable[[Any], Any]]] = MappingProxyType({})


class Scope:
    """The variables of an evaluation, and how many steps it may still take.

    `readers` compute, of `ctx`, the variables that are not given, when they are first read.
    """

    __slots__ = ("_ctx", "_readers", "steps", "variables")

    def __init__(
        self,
        variables: dict[Any, Value],  # Any: a name, or the key of the variable of a loop
        readers: Mapping[str, Callable[[Any], Value]] = _NO_READERS,
        ctx: Any = None,  # Any: what the readers take
        steps: int = STEPS,
    ) -> None:
        self.variables = variables
        self._readers = readers
        self._ctx = ctx
        self.steps = steps

    def read(self, name: str) -> Value:
        """Return the value of a variable.

        Raises:
            NotKnownError, UnknownValueError: it depends on data that is missing, or on a placeholder.
        """
        if name in self.variables:
            return self.variables[name]
        value = self._readers[name](self._ctx)
        if value is None and "." in name:
            raise NotKnownError(Skip(f"nothing shows `{name}` of this object"))
        self.variables[name] = value
        return value

    def has(self, name: str) -> bool:
        """Tell whether the field of a variable has a value.

        Raises:
            NotKnownError, UnknownValueError: that depends on data that is missing, or on a placeholder.
        """
        return self._readers[name](self._ctx) is not None

    def charge(self, steps: int) -> None:
        """Count steps.

        Raises:
            BoundError: there were too many.
        """
        self.steps -= steps
        if self.steps < 0:
            raise BoundError(f"it takes more than {STEPS:,} steps")

    def charge_for(self, value: Value) -> None:
        """Count what it takes to read or to make a text or a list."""
        kind = type(value)
        if kind is str or kind is bytes:
            if len(value) >= _CHARACTERS:
                self.charge(len(value) // _CHARACTERS)
        elif kind is list:
            self.charge(len(value))

    def charge_new(self, size: int) -> None:
        """Count what it takes to make a value of a size.

        Raises:
            BoundError: it is too large.
        """
        if size > _LARGEST:
            raise BoundError("a value is too large")
        self.charge(size // _CHARACTERS)


TYPE_NAMES: Final[dict[type, str]] = {
    bool: "bool",
    int: "int",
    Uint: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    list: "list",
    dict: "map",
    type(None): "null",
    Duration: "duration",
    Quantity: "quantity",
    Optional: "optional",
    TypeName: "type",
}


def type_of(value: Value) -> str:
    """Return the name of the type of a value; every object is a map."""
    return TYPE_NAMES.get(type(value), "map")


_NUMBERS: Final = frozenset({"int", "uint", "double"})
_ORDERED: Final = frozenset({"bool", "string", "bytes", "duration"})


def no_overload(name: str) -> EvaluationError:
    """Say that a function or operator does not take the types that it is given, as they depend on the object."""
    return EvaluationError(f"`{name}` does not accept a value of this type")


def known(value: Value) -> Value:
    """Return a value that was read from an object.

    Raises:
        UnknownValueError: it is that of a placeholder.
    """
    return value if type(value) in TYPE_NAMES else refuse_unknown(value)


def as_double(value: Value) -> float:
    """Return a number or a text as a double.

    Raises:
        BoundError: it is an integer beyond every double, which no API server reads.
    """
    try:
        return float(value)
    except OverflowError:
        raise BoundError("an integer does not fit 64 bits") from None


def _as_number(value: Value, beside: str) -> Value:
    """Return a number as it is compared with another mine: an integer becomes a double beside a double."""
    return as_double(value) if beside == "double" else value


def is_equal(left: Value, right: Value, scope: Scope) -> bool:
    """Tell whether two values are equal: numbers by their value, others if they are of the same type.

    Raises:
        BoundError: they hold too many values to tell.
        UnknownValueError: one of them, or one in them, is not known.
    """
    scope.charge(1)
    mine, other = type_of(left), type_of(right)
    if mine != other:
        return mine in _NUMBERS and other in _NUMBERS and bool(_as_number(left, other) == _as_number(right, mine))
    if mine == "string":
        scope.charge_for(left)
    elif mine == "list":
        return len(left) == len(right) and all(
            is_equal(known(first), known(second), scope) for first, second in zip(left, right, strict=True)
        )
    elif mine == "map":
        refuse_unknown(left), refuse_unknown(right)
        return len(left) == len(right) and all(
            key in right and is_equal(known(dict.get(left, key)), known(dict.get(right, key)), scope) for key in left
        )
    elif mine == "optional":
        return left.present == right.present and is_equal(left.value, right.value, scope)
    return bool(left == right)


def compare(left: Value, right: Value, scope: Scope, name: str) -> int:
    """Return -1, 0 or 1 as a value is less, equal or greater.

    Raises:
        EvaluationError: values of their types have no order, or one is not a number.
    """
    mine, other = type_of(left), type_of(right)
    if mine in _NUMBERS and other in _NUMBERS:
        if left != left or right != right:  # noqa: PLR0124 -- not a number is unequal to itself
            raise EvaluationError("NaN has no order")
        left, right = _as_number(left, other), _as_number(right, mine)
    elif mine != other or mine not in _ORDERED:
        raise no_overload(name)
    scope.charge_for(left)
    return int(left > right) - int(left < right)
