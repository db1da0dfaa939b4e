"""Evaluate the rules of `x-kubernetes-validations` in the schemas of a kind.

The schema gives `self` a type. It is not read here: what the types of a rule do not allow is found when the rule is evaluated.

Sources: apiextensions-apiserver v0.36 `pkg/apiserver/schema/cel/validation.go`; apiserver v0.36 `pkg/cel/escaping.go`,
`pkg/cel/common/{values,equality}.go`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from gpugate.policies.cel.expressions import Environment, compile_expression
from gpugate.policies.cel.values import ANY, BOOL, STRING, BoundError, EvaluationError, Scope, is_equal
from gpugate.webhook.schemas.wording import Fault, SchemaProblem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gpugate.policies.cel.expressions import Expression
    from gpugate.policies.sdk.field import Path
    from gpugate.webhook.schemas.table import Node, Rule

STEPS: Final = 2_000_000  # that all rules together may take on one object
SELF, OLD_SELF = "self", "oldSelf"
_ESCAPES: Final = {"__dot__": ".", "__dash__": "-", "__slash__": "/", "__underscores__": "__"}
_RESERVED: Final = frozenset(
    {"true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import"}
    | {"let", "loop", "package", "namespace", "return", "var", "void", "while"}
)


def _unescaped(name: str) -> str:
    if "__" not in name:
        return name
    if name.startswith("__") and name.endswith("__") and name[2:-2] in _RESERVED:
        return name[2:-2]
    for escape, sign in _ESCAPES.items():
        name = name.replace(escape, sign)
    return name


_ENVIRONMENT: Final = Environment({SELF: ANY, OLD_SELF: ANY}, {}, _unescaped)


def compile_test(text: str) -> Expression:
    """Compile the expression of a rule, whose value is a boolean.

    Raises:
        ExpressionError: it is invalid, or uses what is not supported here.
    """
    return compile_expression(text, _ENVIRONMENT, gives=BOOL)


def compile_message(text: str) -> Expression:
    """Compile the `messageExpression` of a rule, whose value is a text.

    Raises:
        ExpressionError: it is invalid, or uses what is not supported here.
    """
    return compile_expression(text, _ENVIRONMENT, gives=STRING)


def leading(nodes: Sequence[Node], holds: Callable[[Node], object]) -> frozenset[int]:
    """Return the indexes of the nodes for which a predicate holds, and of those above them.

    A node comes after those that it refers to, so one pass is enough.
    """
    indexes: set[int] = set()
    for index, node in enumerate(nodes):
        below = (*node.properties.values(), *node.all_of, node.values, node.items)
        if holds(node) or any(nested in indexes for nested in below):
            indexes.add(index)
    return frozenset(indexes)


def is_same(left: Any, right: Any) -> bool:
    """Tell whether two values are equal as rules compare them: 1 is 1.0, but not true."""
    return is_equal(left, right, Scope({}, steps=STEPS))


_MOST_SATISFIED: Final = 10_000  # strings that are known to satisfy a rule
_LONGEST_SATISFIED: Final = 320  # characters; the longest key of a label has 317


class Rules:
    """Evaluates the rules of one table; their compiled expressions are kept for the next object."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._nodes = nodes
        self._ruled = leading(nodes, lambda node: node.rules)
        self._satisfied: set[tuple[int, str] | None] = set()
        self._tests: dict[str, Callable[[Scope], Any]] = {}

    def faults(self, value: Any, schema: int, old: Any = None) -> Iterator[Fault]:
        """Yield the rules that a value, or a value in it, violates; transition rules only if there is an old value.

        The rules share one bound on their work. Once it is reached, the other rules are not evaluated.
        """
        yield from self._below(Scope({}, steps=STEPS), value, schema, old, ())

    def _below(self, scope: Scope, value: Any, schema: int, old: Any, path: Path) -> Iterator[Fault]:
        if value is None or schema not in self._ruled or scope.steps < 0:
            return
        node = self._nodes[schema]
        for rule in node.rules:
            if scope.steps >= 0 and rule.test and not (rule.transition and old is None):
                yield from self._evaluate(scope, rule, value, old, path)
        for nested in node.all_of:
            yield from self._below(scope, value, nested, old, path)
        if isinstance(value, dict):
            before = old if isinstance(old, dict) else {}
            for key, member in value.items():
                child = node.properties.get(key, node.values)
                if child is not None and child in self._ruled:
                    yield from self._below(scope, member, child, before.get(key), (*path, key))
        elif isinstance(value, list) and node.items is not None and node.items in self._ruled:
            for index, element in enumerate(value):
                yield from self._below(scope, element, node.items, _same(element, node, old), (*path, index))

    def _evaluate(self, scope: Scope, rule: Rule, value: Any, old: Any, path: Path) -> Iterator[Fault]:
        # The same labels and names come again and again.
        short = isinstance(value, str) and len(value) <= _LONGEST_SATISFIED
        known = (id(rule), value) if short and not rule.transition else None
        if known in self._satisfied:
            return
        scope.variables = {SELF: value, OLD_SELF: old}
        where = (*path, *rule.path)
        try:
            if self._test(rule.test)(scope):
                if known and len(self._satisfied) < _MOST_SATISFIED:
                    self._satisfied.add(known)
                return
        except BoundError:
            return
        except EvaluationError as error:
            message = f"cannot be evaluated, and is refused for that: {error}; the rule is: {rule.message}"
            remedy = "write what the rule reads, or remove what makes it read it"
            yield Fault(SchemaProblem(where, message, remedy, whole=True), path)
            return
        message = f"violates a rule of its schema: {_message(rule, scope)}"
        problem = SchemaProblem(where, message, "change it to satisfy the rule", whole=True)
        yield Fault(problem, path, transition=rule.transition)

    def _test(self, text: str) -> Callable[[Scope], Any]:
        run = self._tests.get(text)
        if run is None:
            run = self._tests[text] = compile_test(text).run
        return run


def _message(rule: Rule, scope: Scope) -> str:
    try:
        message = compile_message(rule.says).run(scope) if rule.says else ""
    except EvaluationError:
        message = ""
    return message.strip() or rule.message


def _same(element: Any, node: Node, old: Any) -> Any:
    """Return the old value of an element; only lists of type `map` have one."""
    if node.list_type != "map" or not isinstance(old, list) or not isinstance(element, dict):
        return None
    for old_element in old:
        if isinstance(old_element, dict) and all(old_element.get(key) == element.get(key) for key in node.list_keys):
            return old_element
    return None
