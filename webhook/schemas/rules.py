"""Translates the rules of a definition."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from gpugate.webhook.schemas.cel.errors import CelSyntaxError, CelUnsupportedError
from gpugate.webhook.schemas.cel.translate import reads, translate
from gpugate.webhook.schemas.table import Rule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

_WRITTEN: Final = ("rule", "message", "messageExpression", "fieldPath", "optionalOldSelf")
_STEP: Final = re.compile(r"\.([^.\[\]]+)|\['((?:[^'\\]|\\.)*)'\]")


def rules(
    written: Iterable[Mapping[str, Any]], unchecked: Callable[[str, str], None] | None = None
) -> tuple[Rule, ...]:
    """Translate `x-kubernetes-validations`.

    Args:
        written: the rules as the definition has them.
        unchecked: told the text of a rule that cannot be translated, and why; then it is kept without a test. Where
            nobody is told, such a rule is an error, and patterns are taken to be quick.

    Raises:
        CelSyntaxError, CelUnsupportedError: a rule cannot be translated, and nobody is to be told.
    """
    return tuple(_rule(rule, unchecked) for rule in written)


def kept(written: Iterable[Mapping[str, Any]], unchecked: Callable[[str, str], None]) -> tuple[Rule, ...]:
    """Keep rules as they are written, to be translated when they are read; `unchecked` is told as by `rules`."""
    each = [{key: str(rule[key]) for key in _WRITTEN if rule.get(key)} for rule in written]
    rules(each, unchecked)
    return tuple(Rule(written=rule) for rule in each)


def _rule(rule: Mapping[str, Any], unchecked: Callable[[str, str], None] | None) -> Rule:
    text, message = str(rule.get("rule", "")), str(rule.get("message", "")).strip()
    trusted = unchecked is None
    try:
        _refuse_optional(rule)
        tree = translate(text, trusted=trusted)
        says = translate(str(rule["messageExpression"]), trusted=trusted) if rule.get("messageExpression") else []
    except (CelSyntaxError, CelUnsupportedError) as error:
        if unchecked is None:
            raise type(error)(f"the rule `{text}`: {error}") from None
        unchecked(text, str(error))
        return Rule(message=message)
    return Rule(
        test=tree,
        message=message or f"failed rule: {text.strip()}",
        says=says,
        path=tuple(a or b for a, b in _STEP.findall(str(rule.get("fieldPath", "")))),
        transition=reads(tree, "oldSelf"),
    )


def _refuse_optional(rule: Mapping[str, Any]) -> None:
    if rule.get("optionalOldSelf"):
        raise CelUnsupportedError("`optionalOldSelf`")
