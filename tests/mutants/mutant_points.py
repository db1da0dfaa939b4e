"""The mutants of a module, and the module compiled with all of them, each behind a switch.

A mutant is one small change: another operator, a constant changed, a condition inverted, a statement or a keyword argument
left out. Left alone are annotations, docstrings, decorators, patterns of `match`, text for people (strings of several
words, and the text inside f-strings) and `strict` of `zip`, which only guards.
"""

from __future__ import annotations

import ast
import copy
import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import CodeType

# A mutant is shown with as much of the code around it as fits.
_SHOWN: Final = 100

_COMPARISONS: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_OPERATORS: Final[dict[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
_FUNCTIONS: Final = {"min": "max", "max": "min", "any": "all", "all": "any"}
_METHODS: Final = {
    "startswith": "endswith",
    "endswith": "startswith",
    "removeprefix": "removesuffix",
    "removesuffix": "removeprefix",
    "lower": "upper",
    "upper": "lower",
    "strip": "rstrip",
    "lstrip": "rstrip",
    "rstrip": "lstrip",
    "partition": "rpartition",
    "rpartition": "partition",
}
# Their bodies are evaluated when they are called.
_LATER: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
# Calls whose text is for type checkers.
_TYPING: Final = {"cast", "TypeVar", "NewType", "ParamSpec", "namedtuple"}


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change.

    Attributes:
        number: unique among all modules; what the switch is set to.
        module: the path of the file in the repository.
        function: the qualified name of what it is in, empty at the top of the module.
        before: the code around the change.
        after: the same code, changed.
        line: where it is.
        at_import: whether it is evaluated when its module is imported, and never after that.
    """

    number: int
    module: str
    function: str
    before: str
    after: str
    line: int
    at_import: bool = False

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What identifies it when lines move."""
        return (self.module, self.function, self.before, self.after)

    @property
    def share(self) -> float:
        """A number in 0 to 100 that depends on the key only; a sample of 5 % is every mutant below 5."""
        digest = hashlib.sha256("\0".join(self.key).encode()).digest()
        return int.from_bytes(digest[:4], "big") / 2**32 * 100


def instrumented(source: str, module: str, filename: str, first: int) -> tuple[CodeType, list[Mutant]]:
    """Compile a module with all of its mutants, numbered from `first`."""
    tree = ast.parse(source)
    points = _Points(module, first)
    points.module(tree)
    changed = _Switches(points.alternatives).visit(tree)
    after_future = next(
        index
        for index, statement in enumerate([*changed.body, None])
        if not (
            _is_docstring(statement) or (isinstance(statement, ast.ImportFrom) and statement.module == "__future__")
        )
    )
    importing = ast.ImportFrom("mutant_switch", [ast.alias("active", "_mutant_")], 0)
    changed.body.insert(after_future, importing)
    ast.fix_missing_locations(changed)
    return compile(changed, filename, "exec", dont_inherit=True), points.mutants


class _Points:
    """Walks a module that is not changed yet and collects its mutants."""

    def __init__(self, module: str, first: int) -> None:
        self.alternatives: dict[int, list[tuple[int, ast.AST]]] = {}
        self.mutants: list[Mutant] = []
        self._module = module
        self._first = first
        self._names: list[str] = []
        # The way from the module to the node that is looked at: each node, and where its child is.
        self._way: list[tuple[ast.AST, str, int | None]] = []

    def module(self, tree: ast.Module) -> None:
        self._children(tree)

    def _node(self, node: ast.AST) -> None:
        if _left_alone(node):
            return
        for alternative in _alternatives(node, self._way):
            self._add(node, alternative)
        named = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        if named:
            self._names.append(node.name)  # type: ignore[attr-defined] # all three have one
        self._children(node)
        if named:
            self._names.pop()

    def _children(self, node: ast.AST) -> None:
        for name, value in ast.iter_fields(node):
            if name in _skipped_fields(node):
                continue
            values: list[tuple[int | None, Any]] = (
                list(enumerate(value)) if isinstance(value, list) else [(None, value)]
            )
            for index, child in values:
                if isinstance(child, ast.AST):
                    self._way.append((node, name, index))
                    self._node(child)
                    self._way.pop()

    def _add(self, node: ast.AST, alternative: ast.AST) -> None:
        number = self._first + len(self.mutants)
        before, after = self._shown(node, alternative)
        at_import = not any(isinstance(around, _LATER) and name == "body" for around, name, _ in self._way)
        line = getattr(node, "lineno", 0)
        mutant = Mutant(number, self._module, ".".join(self._names), before, after, line, at_import)
        self.mutants.append(mutant)
        self.alternatives.setdefault(id(node), []).append((number, copy.deepcopy(alternative)))

    def _shown(self, node: ast.AST, alternative: ast.AST) -> tuple[str, str]:
        parent, name, index = self._way[-1]
        shown = (_text(node), _text(alternative))
        for around, _, _ in [] if isinstance(node, ast.stmt) else reversed(self._way):
            if not isinstance(around, ast.expr | ast.keyword | ast.comprehension | ast.stmt):
                break
            if isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                break
            before = _text(around)
            _put(parent, name, index, alternative)
            after = _text(around)
            _put(parent, name, index, node)
            if not before or len(before) > _SHOWN:
                break
            shown = (before, after)
            if isinstance(around, ast.stmt):
                break
        return shown


class _Switches(ast.NodeTransformer):
    """Puts each mutant behind its switch."""

    def __init__(self, alternatives: dict[int, list[tuple[int, ast.AST]]]) -> None:
        self._alternatives = alternatives

    def visit(self, node: ast.AST) -> Any:
        alternatives = self._alternatives.get(id(node), [])
        result: Any = self.generic_visit(node)
        for number, alternative in alternatives:
            chosen = ast.Compare(ast.Name("_mutant_", ast.Load()), [ast.Eq()], [ast.Constant(number)])
            if isinstance(result, ast.stmt):
                result = ast.copy_location(ast.If(chosen, [alternative], [result]), node)
            else:
                result = ast.copy_location(ast.IfExp(chosen, alternative, result), node)
        return result


def _alternatives(node: ast.AST, way: list[tuple[ast.AST, str, int | None]]) -> Iterator[ast.AST]:
    parent, name, _ = way[-1]
    if isinstance(node, ast.expr) and not isinstance(parent, ast.JoinedStr):
        yield from _of_expression(node)
        condition = (isinstance(parent, ast.If | ast.While | ast.IfExp | ast.Assert) and name == "test") or (
            isinstance(parent, ast.comprehension) and name == "ifs"
        )
        if condition and not isinstance(node, ast.Compare | ast.BoolOp | ast.Constant) and not _is_not(node):
            yield ast.UnaryOp(ast.Not(), node)
        if isinstance(parent, ast.Return) and not isinstance(node, ast.Constant):
            yield ast.Constant(None)
    elif isinstance(node, ast.stmt):
        yield from _of_statement(node)


def _of_expression(node: ast.expr) -> Iterator[ast.expr]:
    match node:
        case ast.Constant():
            yield from _of_constant(node.value)
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            for index, operator in enumerate(ops):
                other = _COMPARISONS[type(operator)]()
                yield ast.Compare(left, [*ops[:index], other, *ops[index + 1 :]], comparators)
        case ast.BoolOp(op=operator, values=values):
            yield ast.BoolOp(ast.Or() if isinstance(operator, ast.And) else ast.And(), values)
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield operand
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _OPERATORS:
            yield ast.BinOp(left, _OPERATORS[type(operator)](), right)
        case ast.Call():
            yield from _of_call(node)


def _of_constant(value: Any) -> Iterator[ast.expr]:
    if isinstance(value, bool):
        yield ast.Constant(not value)
    elif isinstance(value, int | float):
        yield ast.Constant(value + 1)
    elif isinstance(value, str) and " " not in value.strip():
        yield ast.Constant(f"XX{value}XX" if value else "XX")
    elif isinstance(value, bytes):
        yield ast.Constant(b"XX" + value + b"XX" if value else b"XX")


def _of_call(node: ast.Call) -> Iterator[ast.expr]:
    match node.func:
        case ast.Name(id=name) if name in _FUNCTIONS:
            yield ast.Call(ast.Name(_FUNCTIONS[name], ast.Load()), node.args, node.keywords)
        case ast.Attribute(value=value, attr=name) if name in _METHODS:
            yield ast.Call(ast.Attribute(value, _METHODS[name], ast.Load()), node.args, node.keywords)
    for index, keyword in enumerate(node.keywords):
        if keyword.arg not in {None, "strict"}:
            yield ast.Call(node.func, node.args, [*node.keywords[:index], *node.keywords[index + 1 :]])


def _of_statement(node: ast.stmt) -> Iterator[ast.stmt]:
    match node:
        case ast.Expr(value=ast.Call() | ast.Await() | ast.Yield() | ast.YieldFrom()) | ast.Raise() | ast.Delete():
            yield ast.Pass()
        case ast.Return(value=None):
            yield ast.Pass()
        case ast.AugAssign(target=target, op=operator, value=value):
            yield ast.AugAssign(target, _OPERATORS[type(operator)](), value)
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield ast.Pass()
        case ast.Break():
            yield ast.Continue()
        case ast.Continue():
            yield ast.Break()


def _left_alone(node: ast.AST) -> bool:
    match node:
        case ast.If(test=ast.Name(id="TYPE_CHECKING")) | ast.pattern():
            return True
        case ast.Call(func=ast.Name(id=name)) if name in _TYPING:
            return True
        case ast.Subscript(value=ast.Name(id="Literal")):
            return True
        case ast.AnnAssign(annotation=ast.Name(id="TypeAlias")):
            return True
        case ast.Assign(targets=[ast.Name(id="__slots__" | "__all__")]):
            return True
    return _is_docstring(node)


def _skipped_fields(node: ast.AST) -> set[str]:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            return {"decorator_list", "returns"}
        case ast.ClassDef():
            return {"decorator_list", "bases"}
        case ast.arg() | ast.AnnAssign():
            return {"annotation"}
        case ast.FormattedValue():
            return {"format_spec"}
        case ast.keyword(arg="strict"):
            return {"value"}
    return set()


def _is_docstring(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_not(node: ast.expr) -> bool:
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)


def _put(parent: ast.AST, name: str, index: int | None, node: ast.AST) -> None:
    if index is None:
        setattr(parent, name, node)
    else:
        getattr(parent, name)[index] = node


def _text(node: ast.AST) -> str:
    """Write a node on one line, without the body of a compound statement; empty where it cannot be written."""
    if isinstance(node, ast.stmt) and hasattr(node, "body"):
        node = copy.copy(node)
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            if hasattr(node, name):
                setattr(node, name, [])
    try:
        return " ".join(ast.unparse(node).split())
    except ValueError:  # a backslash in an f-string, before Python 3.12
        return ""
