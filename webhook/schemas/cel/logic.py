"""`&&` and `||` over any number of values that may be errors: one that decides makes the errors count for nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpugate.webhook.schemas.cel.errors import CelEvaluationError
from gpugate.webhook.schemas.cel.functions import no_overload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gpugate.webhook.schemas.cel.scope import Scope


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
