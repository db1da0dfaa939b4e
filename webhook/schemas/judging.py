"""Judges the rules of a schema on an object.

Source: apiextensions-apiserver v0.36 `pkg/apiserver/schema/cel/validation.go`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from gpugate.webhook.schemas.cel.errors import CelCostError, CelEvaluationError
from gpugate.webhook.schemas.cel.judge import function_of
from gpugate.webhook.schemas.cel.scope import Budget, Scope
from gpugate.webhook.schemas.problem import Fault, SchemaProblem
from gpugate.webhook.schemas.reach import leading

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gpugate.policies.sdk.field import Path
    from gpugate.webhook.schemas.table import Expression, Node, Rule

_MOST_HELD: Final = 10_000  # texts that rules are known to hold of
_LONGEST_HELD: Final = 320  # characters; the longest key of a label has 317
# What rules lead to that no API server would have taken, because they do with a value what its type does not allow.
_UNTYPED: Final = (TypeError, ValueError, ArithmeticError, RecursionError)


class Judge:
    """Judges the rules of one table; the functions made of them are kept for the next object."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._nodes = nodes
        self._ruled = leading(nodes, lambda node: node.rules)
        self._held: set[tuple[int, str] | None] = set()
        self._functions: dict[int, Callable[[Scope], Any]] = {}

    def faults(self, value: Any, place: int, old: Any = None, path: Path = ()) -> Iterator[Fault]:
        """Yield the rules that a value, and what is in it, breaks; those on a change only where there is an old value.

        Together they have one budget; what comes after it is spent is not judged.
        """
        yield from self._below(Budget(), value, place, old, path)

    def _below(self, budget: Budget, value: Any, place: int, old: Any, path: Path) -> Iterator[Fault]:
        if value is None or place not in self._ruled or budget.left < 0:
            return
        node = self._nodes[place]
        for rule in node.rules:
            if budget.left >= 0 and rule.test and not (rule.transition and old is None):
                yield from self._judged(budget, rule, value, old, path)
        for nested in node.all_of:
            yield from self._below(budget, value, nested, old, path)
        if isinstance(value, dict):
            before = old if isinstance(old, dict) else {}
            for key, member in value.items():
                child = node.properties.get(key, node.values)
                if child is not None and child in self._ruled:
                    yield from self._below(budget, member, child, before.get(key), (*path, key))
        elif isinstance(value, list) and node.items is not None and node.items in self._ruled:
            for index, element in enumerate(value):
                yield from self._below(budget, element, node.items, _same(element, node, old), (*path, index))

    def _judged(self, budget: Budget, rule: Rule, value: Any, old: Any, path: Path) -> Iterator[Fault]:
        # The same labels and names come again and again.
        short = isinstance(value, str) and len(value) <= _LONGEST_HELD
        known = (id(rule), value) if short and not rule.transition else None
        if known in self._held:
            return
        scope = Scope({"self": value, "oldSelf": old}, budget)
        where = (*path, *rule.path)
        try:
            if self._function(rule.test)(scope) is True:
                if known and len(self._held) < _MOST_HELD:
                    self._held.add(known)
                return
            message = f"a rule of this kind does not hold: {self._message(rule, scope)}"
            problem = SchemaProblem(where, message, "change it so that the rule holds", whole=True)
        except (CelCostError, *_UNTYPED):
            return
        except CelEvaluationError as error:
            message = f"cannot be judged, and is refused for that: {error}; the rule is: {rule.message}"
            remedy = "write what the rule reads, or remove what makes it read it"
            yield Fault(SchemaProblem(where, message, remedy, whole=True), path)
            return
        yield Fault(problem, path, transition=rule.transition)

    def _message(self, rule: Rule, scope: Scope) -> str:
        try:
            said = self._function(rule.says)(scope) if rule.says else ""
        except (CelCostError, CelEvaluationError, *_UNTYPED):
            said = ""
        return said.strip() if isinstance(said, str) and said.strip() else rule.message

    def _function(self, tree: Expression) -> Callable[[Scope], Any]:
        made = self._functions.get(id(tree))
        if made is None:
            made = self._functions[id(tree)] = function_of(tree)
        return made


def _same(element: Any, node: Node, old: Any) -> Any:
    """Return the old value of an element; only lists of type `map` have one."""
    if node.list_type != "map" or not isinstance(old, list) or not isinstance(element, dict):
        return None
    for each in old:
        if isinstance(each, dict) and all(each.get(key) == element.get(key) for key in node.list_keys):
            return each
    return None
