"""Check the types of an expression, and compile it to a function of its variables.

The type `dyn` stands for every type until the expression is evaluated, as that of `object` does. A function or operator that
accepts none of the types it may be given is refused when the policy is loaded.

Sources: cel-spec v0.24 `doc/langdef.md`, sections Gradual Type Checking and Runtime Errors; cel-go v0.26
`checker/checker.go`, `interpreter/attributes.go`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from gpugate.policies.cel import operations
from gpugate.policies.cel.functions import GLOBAL, MEMBER, PATTERNS
from gpugate.policies.cel.patterns import PatternError, pattern_of
from gpugate.policies.cel.syntax import ExpressionError, Uint, parse
from gpugate.policies.cel.values import (
    ANY,
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    NULL,
    STRING,
    TYPE,
    UINT,
    Scope,
    Type,
    TypeName,
    list_of,
    map_of,
    no_overload,
    optional_of,
    type_of,
)
from gpugate.policies.engine.config import near_misses

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from gpugate.policies.cel.syntax import Node
    from gpugate.policies.cel.values import Overload

Value = Any  # Any: a value of CEL


class Environment(NamedTuple):
    """The variables that expressions may use, with their types.

    A variable of the type `ANY` has a type that is not known here, so that what is read of it may have any type: beside a value
    of another type it counts as one of that type, and the value of the expression is compared with its type when it is known. A
    variable of the type `DYN` has none, and a list with a part of it beside another value is refused, as the API server does.

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
    # A value beside one of an unknown type has the known type here, whatever it turns out to be.
    is_sure = gives is DYN or (gives == code.type and ANY not in environment.variables.values())
    cost, run = _size(node), code.run

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
    """The type of a part and its function; `walk` is that of the value whose fields it reads, and their names."""

    type: Type
    run: Callable[[Scope], Value]
    walk: tuple[Callable[[Scope], Value], tuple[str, ...]] | None = None


class _Local(NamedTuple):
    """The variable of a loop: its type, and the key of its value among the variables."""

    type: Type
    slot: int


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


_NUMBERS: Final = (INT, UINT, DOUBLE)
_ORDERED: Final = (BOOL, STRING, BYTES, DURATION)
_KEYS: Final = (BOOL, INT, UINT, STRING, DYN, ANY)
_TYPE_NAMES: Final = ("bool", "int", "uint", "double", "string", "bytes", "list", "map", "type", "null_type")
_CONSTANTS: Final = {bool: BOOL, int: INT, Uint: UINT, float: DOUBLE, str: STRING, bytes: BYTES, type(None): NULL}
_Locals = dict[str, _Local]


class _Compiler:
    """Makes a function of each part of an expression; `names` are the variables of the loops around it."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._records = environment.records
        self._named = environment.named

    def compile(self, node: Node, names: _Locals) -> _Code:
        kind = node.kind
        if kind in operations.ARITHMETIC:
            return self._applied(
                node, kind, operations.ARITHMETIC[kind], [self.compile(part, names) for part in node.parts]
            )
        code: _Code = getattr(self, f"_{_METHODS[kind]}")(node, names)
        return code

    def _const(self, node: Node, _: _Locals) -> _Code:
        return _Code(_CONSTANTS[type(node.value)], operations.constant(node.value))

    def _name(self, node: Node, names: _Locals) -> _Code:
        name = node.value
        if name in names:
            return _Code(names[name].type, operations.local(names[name].slot))
        if name in self._environment.variables:
            return _Code(self._environment.variables[name], operations.variable(name))
        if name in _TYPE_NAMES:
            return _Code(TYPE, operations.constant(TypeName(name.removesuffix("_type"))))
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
            return _Code(self._environment.fields[path], operations.variable(path))
        of = self.compile(node.parts[0], names)
        gives = self._field(of.type, node)
        read, above = of.walk or (of.run, ())
        walk = (read, (*above, self._named(node.value)))
        return _Code(optional_of(gives) if of.type.name == "optional" else gives, operations.fields(*walk), walk)

    def _select_optional(self, node: Node, names: _Locals) -> _Code:
        of = self.compile(node.parts[0], names)
        gives = self._field(of.type, node)
        return _Code(optional_of(gives), operations.optional_field(of.run, self._named(node.value)))

    def _has(self, node: Node, names: _Locals) -> _Code:
        path = self._record_path(node, names)
        if path:
            return _Code(BOOL, lambda scope: scope.has(path))
        of = self.compile(node.parts[0], names)
        self._field(of.type, node)
        return _Code(BOOL, operations.has_field(of.run, self._named(node.value)))

    def _index(self, node: Node, names: _Locals) -> _Code:
        of, key = (self.compile(part, names) for part in node.parts)
        inner = of.type.of[0] if of.type.name == "optional" else of.type
        gives = _element(inner, key.type)
        if gives is None:
            raise ExpressionError(node.at, f"a value of type {inner} has no elements by {key.type}")
        if node.kind == "index?" or of.type.name == "optional":
            return _Code(DYN if inner == DYN else optional_of(gives), operations.optional_element(of.run, key.run))
        return _Code(gives, operations.element(of.run, key.run))

    def _list(self, node: Node, names: _Locals) -> _Code:
        elements = [self.compile(part, names) for part in node.parts]
        gives = self._common(node.parts, elements, "the elements of a list")
        if all(part.kind == "const" for part in node.parts):
            return _Code(list_of(gives), operations.constant([part.value for part in node.parts]))
        return _Code(list_of(gives), operations.new_list([element.run for element in elements]))

    def _map(self, node: Node, names: _Locals) -> _Code:
        keys = [self.compile(part, names) for part in node.parts[::2]]
        values = [self.compile(part, names) for part in node.parts[1::2]]
        key = self._common(node.parts[::2], keys, "the keys of a map")
        value = self._common(node.parts[1::2], values, "the values of a map")
        if key not in _KEYS:
            raise ExpressionError(node.at, f"a map cannot have keys of type {key}")
        entries = [(code.run, of.run) for code, of in zip(keys, values, strict=True)]
        return _Code(map_of(key, value), operations.new_map(entries))

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
        return _Code(BOOL, operations.negated(self._truth(node.parts[0], names, "!")))

    def _truth(self, node: Node, names: _Locals, name: str) -> Callable[[Scope], Value]:
        code = self.compile(node, names)
        if code.type not in (BOOL, DYN, ANY):
            raise ExpressionError(node.at, f"`{name}` does not accept a value of type {code.type}")
        return code.run

    def _logic(self, node: Node, names: _Locals) -> _Code:
        sides = tuple(self._truth(part, names, node.kind) for part in node.parts)
        return _Code(BOOL, operations.decided(sides, deciding=node.kind == "||"))

    def _if(self, node: Node, names: _Locals) -> _Code:
        test = self._truth(node.parts[0], names, "?")
        yes, no = (self.compile(part, names) for part in node.parts[1:])
        gives = joined(yes.type, no.type)
        if gives is None:
            raise ExpressionError(node.at, f"the values after `?` and `:` have types {yes.type} and {no.type}")
        return _Code(gives, operations.chosen(test, yes.run, no.run))

    def _equality(self, node: Node, names: _Locals) -> _Code:
        left, right = (self.compile(part, names) for part in node.parts)
        if joined(left.type, right.type) is None:
            advice = _as_double(node.parts, (left, right)) or "convert one of them"
            raise ExpressionError(node.at, f"`{node.kind}` cannot compare {left.type} with {right.type}; {advice}")
        wanted = node.kind == "=="
        for code, other in ((left, node.parts[1]), (right, node.parts[0])):
            if other.kind == "const":
                return _Code(BOOL, operations.equal_to(code.run, other.value, wanted=wanted))
        return _Code(BOOL, operations.equal(left.run, right.run, wanted=wanted))

    def _ordered(self, node: Node, names: _Locals) -> _Code:
        left, right = (self.compile(part, names) for part in node.parts)
        numbers = all(code.type in (*_NUMBERS, DYN, ANY) for code in (left, right))
        same = joined(left.type, right.type)
        if not numbers and same not in (*_ORDERED, DYN, ANY):
            raise ExpressionError(node.at, f"`{node.kind}` cannot compare {left.type} with {right.type}")
        if not numbers and same is DYN and any(code.type not in (*_ORDERED, DYN, ANY) for code in (left, right)):
            raise ExpressionError(node.at, f"`{node.kind}` cannot compare {left.type} with {right.type}")
        return _Code(BOOL, operations.ordered(node.kind, left.run, right.run))

    def _in(self, node: Node, names: _Locals) -> _Code:
        left, right = (self.compile(part, names) for part in node.parts)
        inner = right.type.of[0] if right.type.name in {"list", "map"} else DYN
        if right.type.name not in {"list", "map", "dyn", "A"} or joined(left.type, inner) is None:
            raise ExpressionError(node.at, f"`in` cannot look for {left.type} in {right.type}")
        constant = node.parts[1]
        if constant.kind == "list" and all(part.kind == "const" and type(part.value) is str for part in constant.parts):
            return _Code(BOOL, operations.among_texts(left.run, frozenset(part.value for part in constant.parts)))
        return _Code(BOOL, operations.among(left.run, right.run))

    def _call(self, node: Node, names: _Locals) -> _Code:
        if node.value not in GLOBAL:
            raise ExpressionError(node.at, _unknown_function(node.value, GLOBAL))
        return self._applied(node, node.value, GLOBAL[node.value], self._arguments(node, names))

    def _method(self, node: Node, names: _Locals) -> _Code:
        target = node.parts[0]
        if target.kind == "name" and target.value not in {*names, *self._environment.variables}:
            name = f"{target.value}.{node.value}"
            if name in GLOBAL:
                call = node._replace(value=name, parts=node.parts[1:])
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
            code[1] = _Code(STRING, operations.constant(compiled))
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
        if len(fitting) == 1 and not any(argument.type in (DYN, ANY) for argument in arguments):
            return _Code(result, operations.call(fitting[0].run, runs))
        choices = [
            (
                tuple(
                    (position, takes.name)
                    for position, takes in enumerate(overload.takes)
                    if arguments[position].type in (DYN, ANY) or len(fitting) > 1
                    if takes not in (ANY, DYN) and not (name in PATTERNS and position == 1)
                ),
                overload.run,
            )
            for overload in fitting
        ]
        return _Code(result, operations.call_by_types(name, runs, choices))

    def _loop(self, node: Node, names: _Locals) -> _Code:
        macro, variable = node.value
        of = self.compile(node.parts[0], names)
        element = _iterated(of.type)
        if element is None:
            raise ExpressionError(node.at, f"`{macro}` does not accept a value of type {of.type}")
        slot = _next_slot(names)
        inner = {**names, variable: _Local(element, slot)}
        bodies = node.parts[1:]
        cost = sum(map(_size, bodies))
        if macro in {"all", "exists"}:
            test = self._truth(bodies[0], inner, macro)
            return _Code(BOOL, operations.quantified(macro, of.run, slot, cost, test))
        steps = [self._truth(body, inner, macro) for body in (bodies[:-1] if macro == "map" else bodies)]
        gives = list_of(element) if macro == "filter" else BOOL
        if macro == "map":
            code = self.compile(bodies[-1], inner)
            gives, steps = list_of(code.type), [*steps, code.run]
        return _Code(gives, operations.loop(macro, of.run, slot, cost, steps))

    def _optional(self, node: Node, names: _Locals) -> _Code:
        macro, variable = node.value
        of = self.compile(node.parts[0], names)
        if of.type.name not in {"optional", "dyn", "A"}:
            raise ExpressionError(node.at, f"`{macro}` does not accept a value of type {of.type}")
        inner = of.type.of[0] if of.type.of else DYN
        slot = _next_slot(names)
        body = self.compile(node.parts[1], {**names, variable: _Local(inner, slot)})
        flat = macro == "optFlatMap"
        if flat and body.type.name not in {"optional", "dyn", "A"}:
            raise ExpressionError(node.parts[1].at, f"the value is of type {body.type}; it must be optional")
        run = operations.mapped_optional(macro, of.run, slot, body.run)
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
    "<": "ordered",
    "<=": "ordered",
    ">": "ordered",
    ">=": "ordered",
    "in": "in",
    "call": "call",
    "member": "method",
    "loop": "loop",
    "optional": "optional",
}


def _as_double(nodes: Sequence[Node], codes: Sequence[_Code]) -> str:
    """Return how to write an integer beside a double; empty where that is not the mistake."""
    if not any(code.type == DOUBLE for code in codes):
        return ""
    return next((f"write {node.value}.0" for node in nodes if node.kind == "const" and type(node.value) is int), "")


def _next_slot(names: _Locals) -> int:
    """Return where the variable of another loop is kept; one with the name of another variable does not replace its value."""
    return 1 + max((local.slot for local in names.values()), default=-1)


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


def _meant(name: str, known_names: Iterable[str]) -> str:
    near = near_misses(name, known_names)
    return f"; did you mean `{near[0]}`?" if near else f"; known: {', '.join(sorted(known_names))}"


def _unknown_function(name: str, functions: Iterable[str]) -> str:
    near = near_misses(name, functions)
    return f"unknown function `{name}`" + (f"; did you mean `{near[0]}`?" if near else "")
