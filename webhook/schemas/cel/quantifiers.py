"""`all`, `exists`, `exists_one`, `filter` and `map`: an expression for each element of a list or key of an object."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from gpugate.webhook.schemas.cel.functions import no_overload
from gpugate.webhook.schemas.cel.logic import decide

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gpugate.webhook.schemas.cel.scope import Scope

    Function = Callable[[Scope], Any]


def _each(scope: Scope, elements: Any, variable: str) -> Iterator[Any]:
    """Bind the variable to one element after the other; whoever asks sets it back."""
    if not isinstance(elements, list | dict):
        raise no_overload("a quantifier")
    for element in elements:
        scope.charge(1)
        scope.variables[variable] = element
        yield element


def _decided(scope: Scope, of: Any, variable: str, test: Function, *, deciding: bool) -> bool:
    return decide((test for _ in _each(scope, of, variable)), scope, deciding=deciding)


def _all(scope: Scope, of: Any, variable: str, tests: Sequence[Function]) -> bool:
    return _decided(scope, of, variable, tests[0], deciding=False)


def _exists(scope: Scope, of: Any, variable: str, tests: Sequence[Function]) -> bool:
    return _decided(scope, of, variable, tests[0], deciding=True)


def _chosen(scope: Scope, of: Any, variable: str, test: Function) -> list[Any]:
    chosen = []
    for element in _each(scope, of, variable):
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
    *conditions, made = tests
    return [made(scope) for _ in _each(scope, of, variable) if all(test(scope) is True for test in conditions)]


QUANTIFIERS: Final[dict[str, Callable[[Scope, Any, str, Sequence[Function]], Any]]] = {
    "all": _all,
    "exists": _exists,
    "exists_one": _exists_one,
    "filter": _filter,
    "map": _map,
}
