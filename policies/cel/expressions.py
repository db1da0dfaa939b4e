"""Check the types of an expression, and compile it to a function of its variables.

The type `dyn` stands for every type until the expression is evaluated, as that of `object` does. A function or operator that
accepts none of the types it may be given is refused when the policy is loaded.

Sources: cel-spec v0.24 `doc/langdef.md`, sections Gradual Type Checking and Runtime Errors; cel-go v0.26
`checker/checker.go`, `interpreter/attributes.go`.
"""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from gpugate.policies.cel.functions import (
    GLOBAL,
    MEMBER,
    PATTERNS,
    Overload,
    add_durations,
    integer,
    subtract_durations,
    unsigned,
)
from gpugate.policies.cel.patterns import PatternError, pattern_of
from gpugate.policies.cel.syntax import ExpressionError, Uint, parse
from gpugate.policies.cel.values import (
    ABSENT,
    ANY,
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    LIST,
    NULL,
    STRING,
    TYPE,
    UINT,
    BoundError,
    EvaluationError,
    NotKnownError,
    Optional,
    Scope,
    Type,
    TypeName,
    compare,
    is_equal,
    known,
    list_of,
    map_of,
    no_overload,
    optional_of,
    type_of,
)
from gpugate.policies.engine.config import near_misses
from gpugate.policies.sdk.field import UnknownValueError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from gpugate.policies.cel.syntax import Node

Value = Any  # Any: a value of CEL


class Environment(NamedTuple):
    """The variables that expressions may use, with their types.

    A variable of the type `ANY` has a type that is not known here, so that what is read of it may have any type. One of the
    type `DYN` has none, and a list with a part of it beside another value is refused, as the API server does.

    Attributes:
        variables: those that are values, with their types.
        fields: those of variables that are not values of their own, by their whole path, such as `request.name`.
        named: returns the name of a field from its spelling in an expression.
    """

    variables: Mapping[str, Type]
    fields: Mapping[str, Type]
    named: Callable[[str], str] = str

    @property
    def records(self) -> frozenset[str]:
        """The variables that have fields and are not values."""
        return frozenset(path.partition(".")[0] for path in self.fields)


class Expression(NamedTuple):
    """A checked expression: its text, its parts, the type of its value, and the function that evaluates it.

    `run` raises EvaluationError where the expression has no value, NotKnownError where it depends on data that is missing,
    and UnknownValueError where it depends on the value of a placeholder.
    """

    text: str
    node: Node
    type: Type
    run: Callable[[Scope], Value]


def compile_expression(text: str, environment: Environment, *, gives: Type) -> Expression:
    """Check an expression and compile it; `gives` is the type that its value must have.

    Raises:
        ExpressionError: it is not valid CEL, or a variable, field, function or type in it does not fit.
    """
    node = parse(text)
    code = _Compiler(environment).compile(node, {})
    if gives is not DYN and joined(code.type, gives) is None:
        raise ExpressionError(node.at, f"the value is of type {code.type}; it must be {gives}")
    cost, run, is_sure = _size(node), code.run, gives in (DYN, code.type)

    def charged(scope: Scope) -> Value:
        scope.charge(cost)
        return run(scope)

    def checked(scope: Scope) -> Value:
        value = charged(scope)
        if type_of(value) != gives.name:
            raise no_overload("the result")
        return value

    return Expression(text, node, code.type, charged if is_sure else checked)


def parts(node: Node) -> Iterator[Node]:
    """Yield every part of an expression, the expression itself first."""
    pending = [node]
    while pending:
        part = pending.pop()
        yield part
        pending += part.parts


def path_of(node: Node) -> str:
    """Return the fields that lead from a variable to a value, such as `gpu.pod.gpus`; empty for any other expression."""
    path: list[str] = []
    while node.kind in {"select", "has"}:
        path.append(node.value)
        node = node.parts[0]
    return ".".join([node.value, *reversed(path)]) if node.kind == "name" else ""


def _size(node: Node) -> int:
    """Count the operations of an expression; those that a loop repeats count each time."""
    if node.kind == "loop":
        return 1 + _size(node.parts[0])
    return 1 + sum(map(_size, node.parts))


class _Code(NamedTuple):
    type: Type
    run: Callable[[Scope], Value]


def joined(first: Type, other: Type) -> Type | None:
    """Return the type of values that may be of either of two types; None where no value can be of both."""
    if other in (first, ANY):
        return first
    if first == ANY:
        return other
    if DYN in (first, other):
        return DYN
    if first.name != other.name or len(first.of) != len(other.of):
        return None
    inner = [joined(*pair) for pair in zip(first.of, other.of, strict=True)]
    return None if None in inner else Type(first.name, tuple(filter(None, inner)))


def _bound(takes: Type, argument: Type, free: dict[str, Type]) -> bool:
    """Tell whether a value of a type is accepted; `free` is what `ANY` stands for in a signature."""
    if takes == ANY:
        result = joined(free.get(ANY.name, ANY), argument)
        if result is not None:
            free[ANY.name] = result
        return result is not None
    if DYN in (takes, argument) or argument == ANY:
        return True
    if takes.name != argument.name:
        return joined(takes, argument) is not None
    return all(_bound(wanted, has, free) for wanted, has in zip(takes.of, argument.of, strict=True))


def _filled(gives: Type, free: Mapping[str, Type]) -> Type:
    if gives == ANY:
        return free.get(ANY.name, DYN)
    return Type(gives.name, tuple(_filled(part, free) for part in gives.of))


def _decided(sides: Iterable[Callable[[Scope], Value]], scope: Scope, *, deciding: bool) -> bool:
    """Join truth values: a deciding value wins over an error, and over a value that is not known, on either side.

    Raises:
        NotKnownError, UnknownValueError: no side decides, and one is not known.
        BoundError: no side decides, and the work of one is bounded.
        EvaluationError: no side decides, and one has no value.
    """
    problem: Exception | None = None
    for side in sides:
        try:
            value = side(scope)
        except (NotKnownError, UnknownValueError) as error:
            problem = error if problem is None or isinstance(problem, EvaluationError) else problem
            continue
        except BoundError as error:
            if scope.steps < 0:
                raise
            problem = error if problem is None or type(problem) is EvaluationError else problem
            continue
        except EvaluationError as error:
            problem = problem or error
            continue
        if value is True or value is False:
            if value is deciding:
                return deciding
        else:
            problem = problem or no_overload("||" if deciding else "&&")
    if problem is not None:
        raise problem
    return not deciding


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


_ARITHMETIC: Final[dict[str, tuple[Overload, ...]]] = {
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
_ORDER: Final[Mapping[str, Callable[[int, int], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_NUMBERS: Final = (INT, UINT, DOUBLE)
_ORDERED: Final = (BOOL, STRING, BYTES, DURATION)
_KEYS: Final = (BOOL, INT, UINT, STRING, DYN, ANY)
_TYPE_NAMES: Final = ("bool", "int", "uint", "double", "string", "bytes", "list", "map", "type", "null_type")
_CONSTANTS: Final = {bool: BOOL, int: INT, Uint: UINT, float: DOUBLE, str: STRING, bytes: BYTES, type(None): NULL}
_Locals = dict[str, Type]


class _Compiler:
    """Makes a function of each part of an expression; `names` are the variables of the loops around it."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._records = environment.records
        self._named = environment.named

    def compile(self, node: Node, names: _Locals) -> _Code:
        kind = node.kind
        if kind in _ARITHMETIC:
            return self._applied(node, kind, _ARITHMETIC[kind], [self.compile(part, names) for part in node.parts])
        if kind in _ORDER:
            return self._ordered(node, names)
        code: _Code = getattr(self, f"_{_METHODS[kind]}")(node, names)
        return code

    def _const(self, node: Node, _: _Locals) -> _Code:
        value = node.value
        return _Code(_CONSTANTS[type(value)], lambda _: value)

    def _name(self, node: Node, names: _Locals) -> _Code:
        name = node.value
        if name in names:
            return _Code(names[name], lambda scope: known(scope.variables[name]))
        if name in self._environment.variables:
            return _Code(self._environment.variables[name], lambda scope: scope.read(name))
        if name in _TYPE_NAMES:
            value = TypeName(name.removesuffix("_type"))
            return _Code(TYPE, lambda _: value)
        if name in self._records:
            fields = ", ".join(path for path in self._environment.fields if path.startswith(f"{name}."))
            raise ExpressionError(node.at, f"`{name}` is a group of fields; read one of them: {fields or 'none'}")
        names_known = (*names, *self._environment.variables, *self._records)
        raise ExpressionError(node.at, f"unknown variable `{name}`{_meant(name, names_known)}")

    def _record_path(self, node: Node, names: _Locals) -> str:
        """Return the path of a field of a variable that is not a value of its own; empty for any other field.

        Raises:
            ExpressionError: the variable has no such field.
        """
        path = path_of(node)
        record, _, _ = path.partition(".")
        if record not in self._records or record in names:
            return ""
        if path.rpartition(".")[0] in self._environment.fields:
            return ""
        if path not in self._environment.fields:
            near = near_misses(path, self._environment.fields)
            whole = [known for known in self._environment.fields if known.startswith(f"{path}.")]
            if whole:
                raise ExpressionError(node.at, f"`{path}` is a group of fields; read one of them: {', '.join(whole)}")
            meant = f"; did you mean `{near[0]}`?" if near else ""
            raise ExpressionError(node.at, f"unknown field `{path}`{meant}")
        return path

    def _field(self, of: Type, node: Node) -> Type:
        """Return the type of a field of a value.

        Raises:
            ExpressionError: the type has no such field.
        """
        if of in (DYN, ANY):
            return of
        if of.name == "map" and of.of[0] in (STRING, DYN, ANY):
            return of.of[1]
        if of.name == "optional" and of.of[0].name != "optional":
            return self._field(of.of[0], node)
        raise ExpressionError(node.at, f"a value of type {of} has no field `{node.value}`")

    def _select(self, node: Node, names: _Locals) -> _Code:
        path = self._record_path(node, names)
        if path:
            return _Code(self._environment.fields[path], lambda scope: scope.read(path))
        of, name = self.compile(node.parts[0], names), self._named(node.value)
        gives, read = self._field(of.type, node), of.run

        def select(scope: Scope) -> Value:
            value = read(scope)
            if isinstance(value, dict):
                try:
                    return known(value[name])
                except KeyError:
                    raise EvaluationError(f"`{name}` is missing") from None
            if type(value) is Optional:
                return _optional_member(value, name)
            raise no_overload(f".{name}")

        return _Code(optional_of(gives) if of.type.name == "optional" else gives, select)

    def _select_optional(self, node: Node, names: _Locals) -> _Code:
        of, name = self.compile(node.parts[0], names), self._named(node.value)
        gives, read = self._field(of.type, node), of.run
        return _Code(optional_of(gives), lambda scope: _optional_member(read(scope), name))

    def _has(self, node: Node, names: _Locals) -> _Code:
        path = self._record_path(node, names)
        if path:
            return _Code(BOOL, lambda scope: scope.has(path))
        of, name = self.compile(node.parts[0], names), self._named(node.value)
        self._field(of.type, node)
        read = of.run

        def has(scope: Scope) -> bool:
            value = read(scope)
            if type(value) is Optional:
                value = value.value
            if isinstance(value, list):
                raise no_overload("has")
            return isinstance(value, dict) and name in value

        return _Code(BOOL, has)

    def _index(self, node: Node, names: _Locals) -> _Code:
        of, key = (self.compile(part, names) for part in node.parts)
        inner = of.type.of[0] if of.type.name == "optional" else of.type
        gives = _element(inner, key.type)
        if gives is None:
            raise ExpressionError(node.at, f"a value of type {inner} has no elements by {key.type}")
        read, at = of.run, key.run
        if node.kind == "index?" or of.type.name == "optional":

            def optional_index(scope: Scope) -> Value:
                value = read(scope)
                return ABSENT if value == ABSENT else _optional_member(value, at(scope))

            return _Code(DYN if inner == DYN else optional_of(gives), optional_index)

        def index(scope: Scope) -> Value:
            value = read(scope)
            if type(value) is Optional:
                return _optional_member(value, at(scope)) if value.present else ABSENT
            return known(_member(value, at(scope)))

        return _Code(gives, index)

    def _list(self, node: Node, names: _Locals) -> _Code:
        elements = [self.compile(part, names) for part in node.parts]
        gives = self._common(node.parts, elements, "the elements of a list")
        runs = [element.run for element in elements]
        if all(part.kind == "const" for part in node.parts):
            values = [part.value for part in node.parts]
            return _Code(list_of(gives), lambda _: values)
        return _Code(list_of(gives), lambda scope: [run(scope) for run in runs])

    def _map(self, node: Node, names: _Locals) -> _Code:
        keys = [self.compile(part, names) for part in node.parts[::2]]
        values = [self.compile(part, names) for part in node.parts[1::2]]
        key = self._common(node.parts[::2], keys, "the keys of a map")
        value = self._common(node.parts[1::2], values, "the values of a map")
        if key not in _KEYS:
            raise ExpressionError(node.at, f"a map cannot have keys of type {key}")
        entries = [(code.run, of.run) for code, of in zip(keys, values, strict=True)]

        def make(scope: Scope) -> dict[Value, Value]:
            result: dict[Value, Value] = {}
            for at, of in entries:
                name = at(scope)
                if type(name) not in {str, int, bool, Uint}:
                    raise no_overload("a key of a map")
                result[name] = of(scope)
            return result

        return _Code(map_of(key, value), make)

    def _common(self, nodes: Sequence[Node], codes: Sequence[_Code], subject: str) -> Type:
        """Return the type that several parts have in common; a part of type `dyn` stands for any."""
        gives: Type = ANY
        for node, part in zip(nodes, codes, strict=True):
            result = joined(gives, part.type)
            if result is None or (gives != ANY and DYN in (gives, part.type) and gives != part.type):
                raise ExpressionError(node.at, f"{subject} have types {gives} and {part.type}; convert one of them")
            gives = result
        return gives

    def _not(self, node: Node, names: _Locals) -> _Code:
        of = self._truth(node.parts[0], names, "!")

        def negated(scope: Scope) -> bool:
            value = of(scope)
            if value is True or value is False:
                return not value
            raise no_overload("!")

        return _Code(BOOL, negated)

    def _truth(self, node: Node, names: _Locals, name: str) -> Callable[[Scope], Value]:
        code = self.compile(node, names)
        if code.type not in (BOOL, DYN, ANY):
            raise ExpressionError(node.at, f"`{name}` does not accept a value of type {code.type}")
        return code.run

    def _logic(self, node: Node, names: _Locals) -> _Code:
        deciding = node.kind == "||"
        sides = tuple(self._truth(part, names, node.kind) for part in node.parts)
        return _Code(BOOL, lambda scope: _decided(sides, scope, deciding=deciding))

    def _if(self, node: Node, names: _Locals) -> _Code:
        test = self._truth(node.parts[0], names, "?")
        yes, no = (self.compile(part, names) for part in node.parts[1:])
        gives = joined(yes.type, no.type)
        if gives is None:
            raise ExpressionError(node.at, f"the values after `?` and `:` have types {yes.type} and {no.type}")
        when, otherwise = yes.run, no.run

        def choose(scope: Scope) -> Value:
            value = test(scope)
            if value is True:
                return when(scope)
            if value is False:
                return otherwise(scope)
            raise no_overload("?")

        return _Code(gives, choose)

    def _equality(self, node: Node, names: _Locals) -> _Code:
        left, right = (self.compile(part, names) for part in node.parts)
        if joined(left.type, right.type) is None:
            advice = _as_double(node.parts, (left, right)) or "convert one of them"
            raise ExpressionError(node.at, f"`{node.kind}` cannot compare {left.type} with {right.type}; {advice}")
        first, other, wanted = left.run, right.run, node.kind == "=="
        constant = node.parts[1]
        if constant.kind == "const" and isinstance(constant.value, str):
            text = constant.value

            def equals_text(scope: Scope) -> bool:
                value = first(scope)
                return (type(value) is str and value == text) is wanted

            return _Code(BOOL, equals_text)
        return _Code(BOOL, lambda scope: is_equal(first(scope), other(scope), scope) is wanted)

    def _ordered(self, node: Node, names: _Locals) -> _Code:
        left, right = (self.compile(part, names) for part in node.parts)
        numbers = all(code.type in (*_NUMBERS, DYN, ANY) for code in (left, right))
        same = joined(left.type, right.type)
        if not numbers and same not in (*_ORDERED, DYN, ANY):
            raise ExpressionError(node.at, f"`{node.kind}` cannot compare {left.type} with {right.type}")
        if not numbers and same is DYN and any(code.type not in (*_ORDERED, DYN, ANY) for code in (left, right)):
            raise ExpressionError(node.at, f"`{node.kind}` cannot compare {left.type} with {right.type}")
        first, other, name, test = left.run, right.run, node.kind, _ORDER[node.kind]

        def ordered(scope: Scope) -> bool:
            value, bound = first(scope), other(scope)
            if type(value) is int and type(bound) is int:
                return test(value, bound)
            return test(compare(value, bound, scope, name), 0)

        return _Code(BOOL, ordered)

    def _in(self, node: Node, names: _Locals) -> _Code:
        left, right = (self.compile(part, names) for part in node.parts)
        inner = right.type.of[0] if right.type.name in {"list", "map"} else DYN
        if right.type.name not in {"list", "map", "dyn", "A"} or joined(left.type, inner) is None:
            raise ExpressionError(node.at, f"`in` cannot look for {left.type} in {right.type}")
        first, among = left.run, right.run
        constant = node.parts[1]
        if constant.kind == "list" and all(part.kind == "const" and type(part.value) is str for part in constant.parts):
            texts = frozenset(part.value for part in constant.parts)
            return _Code(BOOL, lambda scope: _is_text_in(first(scope), texts))
        return _Code(BOOL, lambda scope: _is_in(first(scope), among(scope), scope))

    def _call(self, node: Node, names: _Locals) -> _Code:
        if node.value not in GLOBAL:
            raise ExpressionError(node.at, _unknown_function(node.value, GLOBAL))
        return self._applied(node, node.value, GLOBAL[node.value], self._arguments(node, names))

    def _method(self, node: Node, names: _Locals) -> _Code:
        target = node.parts[0]
        if target.kind == "name" and target.value not in {*names, *self._environment.variables}:
            name = f"{target.value}.{node.value}"
            if name in GLOBAL:
                call = node._replace(kind="call", value=name, parts=node.parts[1:])
                return self._applied(node, name, GLOBAL[name], self._arguments(call, names))
        if node.value not in MEMBER:
            self.compile(target, names)
            raise ExpressionError(node.at, _unknown_function(node.value, MEMBER))
        return self._applied(node, node.value, MEMBER[node.value], self._arguments(node, names))

    def _arguments(self, node: Node, names: _Locals) -> list[_Code]:
        code = [self.compile(part, names) for part in node.parts]
        if node.value in PATTERNS and len(node.parts) > 1 and code[1].type == STRING:
            pattern = node.parts[1]
            if pattern.kind != "const":
                raise ExpressionError(pattern.at, f"the pattern of `{node.value}` must be a constant")
            try:
                compiled = pattern_of(pattern.value)
            except PatternError as error:
                raise ExpressionError(pattern.at, f"the pattern is not supported: {error}") from None
            code[1] = _Code(STRING, lambda _: compiled)
        elif node.value in PATTERNS and len(node.parts) > 1:
            raise ExpressionError(node.parts[1].at, f"the pattern of `{node.value}` must be a constant")
        return code

    def _applied(self, node: Node, name: str, overloads: tuple[Overload, ...], arguments: list[_Code]) -> _Code:
        """Return the call of those signatures that the types of the arguments fit; values decide among several."""
        fitting: list[Overload] = []
        gives: list[Type] = []
        for overload in overloads:
            free: dict[str, Type] = {}
            if len(overload.takes) == len(arguments) and all(
                _bound(takes, argument.type, free) for takes, argument in zip(overload.takes, arguments, strict=True)
            ):
                fitting.append(overload)
                gives.append(_filled(overload.gives, free))
        if not fitting:
            types = ", ".join(str(argument.type) for argument in arguments)
            advice = _as_double(node.parts, arguments)
            meant = f"; {advice}" if advice else ""
            raise ExpressionError(node.at, f"`{'-' if name == 'neg' else name}` does not accept ({types}){meant}")
        result = gives[0] if all(type_ == gives[0] for type_ in gives) else DYN
        runs = tuple(argument.run for argument in arguments)
        sure = len(fitting) == 1 and not any(argument.type in (DYN, ANY) for argument in arguments)
        if sure:
            run = fitting[0].run
            return _Code(result, lambda scope: run(scope, *_charged(runs, scope)))
        choices = tuple(
            (
                tuple(
                    (position, _wanted(takes))
                    for position, takes in enumerate(overload.takes)
                    if arguments[position].type in (DYN, ANY) or len(fitting) > 1
                    if _wanted(takes) is not None and not (name in PATTERNS and position == 1)
                ),
                overload.run,
            )
            for overload in fitting
        )

        if len(choices) == 1 and len(runs) == _PAIR:
            return _Code(result, _call_of_two(name, runs[0], runs[1], *choices[0]))

        def call(scope: Scope) -> Value:
            values = _charged(runs, scope)
            for wanted, run in choices:
                for position, type_ in wanted:
                    if type_of(values[position]) != type_:
                        break
                else:
                    return run(scope, *values)
            raise no_overload(name)

        return _Code(result, call)

    def _loop(self, node: Node, names: _Locals) -> _Code:
        macro, variable = node.value
        of = self.compile(node.parts[0], names)
        element = _iterated(of.type)
        if element is None:
            raise ExpressionError(node.at, f"`{macro}` does not accept a value of type {of.type}")
        inner = {**names, variable: element}
        bodies = node.parts[1:]
        if macro == "map":
            code = self.compile(bodies[-1], inner)
            tests = [self._truth(bodies[0], inner, macro)] if len(bodies) > 1 else []
            gives, steps = list_of(code.type), [*tests, code.run]
        else:
            steps = [self._truth(bodies[0], inner, macro)]
            gives = list_of(element) if macro == "filter" else BOOL
        cost, read, loop = sum(map(_size, bodies)), of.run, _LOOPS[macro]

        def run(scope: Scope) -> Value:
            elements = read(scope)
            if not isinstance(elements, list | dict):
                raise no_overload(macro)
            return loop(_Elements(scope, elements, variable, cost), steps)

        return _Code(gives, run)

    def _optional(self, node: Node, names: _Locals) -> _Code:
        macro, variable = node.value
        of = self.compile(node.parts[0], names)
        if of.type.name not in {"optional", "dyn", "A"}:
            raise ExpressionError(node.at, f"`{macro}` does not accept a value of type {of.type}")
        inner = of.type.of[0] if of.type.of else DYN
        body = self.compile(node.parts[1], {**names, variable: inner})
        flat = macro == "optFlatMap"
        if flat and body.type.name not in {"optional", "dyn", "A"}:
            raise ExpressionError(node.parts[1].at, f"the value is of type {body.type}; it must be optional")
        read, make = of.run, body.run

        def run(scope: Scope) -> Value:
            optional = read(scope)
            if type(optional) is not Optional:
                raise no_overload(macro)
            if not optional.present:
                return ABSENT
            (value,) = [make(scope) for _ in _Elements(scope, [optional.value], variable, 1)]
            return value if flat else Optional(present=True, value=value)

        return _Code(body.type if flat else optional_of(body.type), run)


_METHODS: Final = {
    "const": "const",
    "name": "name",
    "select": "select",
    "select?": "select_optional",
    "has": "has",
    "index": "index",
    "index?": "index",
    "list": "list",
    "map": "map",
    "!": "not",
    "&&": "logic",
    "||": "logic",
    "if": "if",
    "==": "equality",
    "!=": "equality",
    "in": "in",
    "call": "call",
    "member": "method",
    "loop": "loop",
    "optional": "optional",
}


_T = TypeVar("_T")
_MISSING: Final = object()


class _Elements:
    """The elements of a list, or the keys of a map, each bound to the variable of a loop."""

    __slots__ = ("cost", "elements", "scope", "variable")

    def __init__(self, scope: Scope, elements: list[Value] | dict[Value, Value], variable: str, cost: int) -> None:
        self.scope, self.elements, self.variable, self.cost = scope, elements, variable, cost

    def __iter__(self) -> Iterator[Value]:
        variables, variable = self.scope.variables, self.variable
        for _ in self.repeating(None):
            yield variables[variable]

    def repeating(self, value: _T) -> Iterator[_T]:
        """Yield a value once for each element, while the element is bound."""
        charge, cost = self.scope.charge, self.cost
        variables, variable = self.scope.variables, self.variable
        shadowed = variables.get(variable, _MISSING)
        try:
            for element in self.elements:
                charge(cost)
                variables[variable] = element
                yield value
        finally:
            if shadowed is _MISSING:
                variables.pop(variable, None)
            else:
                variables[variable] = shadowed


_Steps = list["Callable[[Scope], Value]"]


def _all(elements: _Elements, steps: _Steps) -> bool:
    return _decided(elements.repeating(steps[0]), elements.scope, deciding=False)


def _exists(elements: _Elements, steps: _Steps) -> bool:
    return _decided(elements.repeating(steps[0]), elements.scope, deciding=True)


def _passes(test: Callable[[Scope], Value], scope: Scope) -> bool:
    value = test(scope)
    if value is True or value is False:
        return value
    raise no_overload("a condition")


def _exists_one(elements: _Elements, steps: _Steps) -> bool:
    return sum(_passes(steps[0], elements.scope) for _ in elements) == 1


def _filter(elements: _Elements, steps: _Steps) -> list[Value]:
    return [element for element in elements if _passes(steps[0], elements.scope)]


def _mapped(elements: _Elements, steps: _Steps) -> list[Value]:
    *tests, make = steps
    scope = elements.scope
    return [make(scope) for _ in elements if all(_passes(test, scope) for test in tests)]


_LOOPS: Final = {"all": _all, "exists": _exists, "exists_one": _exists_one, "filter": _filter, "map": _mapped}


_PAIR: Final = 2


def _call_of_two(
    name: str,
    first: Callable[[Scope], Value],
    second: Callable[[Scope], Value],
    wanted: tuple[tuple[int, str | None], ...],
    run: Callable[..., Value],
) -> Callable[[Scope], Value]:
    """Return the call of the one signature that two arguments may fit, which most calls are."""
    types = dict(wanted)
    left, right = types.get(0), types.get(1)

    def call(scope: Scope) -> Value:
        value, argument = first(scope), second(scope)
        if (left is not None and type_of(value) != left) or (right is not None and type_of(argument) != right):
            raise no_overload(name)
        scope.charge_for(value)
        scope.charge_for(argument)
        return run(scope, value, argument)

    return call


def _as_double(nodes: Sequence[Node], codes: Sequence[_Code]) -> str:
    """Return how to write an integer beside a double; empty where that is not the mistake."""
    if not any(code.type == DOUBLE for code in codes):
        return ""
    return next((f"write {node.value}.0" for node in nodes if node.kind == "const" and type(node.value) is int), "")


def _charged(runs: tuple[Callable[[Scope], Value], ...], scope: Scope) -> list[Value]:
    values = [run(scope) for run in runs]
    for value in values:
        scope.charge_for(value)
    return values


def _wanted(takes: Type) -> str | None:
    """Return the name of the type that a value must have; None where it may have any."""
    return None if takes in (ANY, DYN) else takes.name


def _iterated(of: Type) -> Type | None:
    """Return the type of the variable of a loop over a value: the elements of a list, or the keys of a map."""
    if of in (DYN, ANY):
        return of
    return of.of[0] if of.name in {"list", "map"} else None


def _element(of: Type, key: Type) -> Type | None:
    """Return the type of an element by its index or key; None where a value of this type has no such elements."""
    if of in (DYN, ANY):
        return of
    if of.name == "list":
        return of.of[0] if joined(key, INT) else None
    if of.name == "map":
        return of.of[1] if joined(key, of.of[0]) else None
    return None


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
    if type(at) not in {str, int, float, Uint, bool} or (isinstance(value, list) and type(at) in {str, bool}):
        raise no_overload(".?")
    if not isinstance(value, dict | list):
        return ABSENT
    try:
        return Optional(present=True, value=known(_member(value, at)))
    except EvaluationError:
        return ABSENT


def _is_text_in(value: Value, texts: frozenset[str]) -> bool:
    return type(value) is str and value in texts


def _is_in(value: Value, among: Value, scope: Scope) -> bool:
    if isinstance(among, dict):
        if type(value) not in {str, int, Uint, float, bool}:
            return False
        return value in among and (type(value) is str or (type(value) is bool) is any(type(k) is bool for k in among))
    if isinstance(among, list):
        return any(is_equal(value, known(element), scope) for element in among)
    raise no_overload("in")


def _meant(name: str, known_names: Iterable[str]) -> str:
    near = near_misses(name, known_names)
    return f"; did you mean `{near[0]}`?" if near else f"; known: {', '.join(sorted(known_names))}"


def _unknown_function(name: str, functions: Iterable[str]) -> str:
    near = near_misses(name, functions)
    return f"unknown function `{name}`" + (f"; did you mean `{near[0]}`?" if near else "")
