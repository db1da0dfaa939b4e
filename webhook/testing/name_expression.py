"""Chooses tests by an expression over their names: texts with `and`, `or`, `not` and parentheses, as pytest's `-k`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from gpugate.policies.engine.config import GpugateError

if TYPE_CHECKING:
    from collections.abc import Callable

    Matches = Callable[[str], bool]

_TOKEN: Final = re.compile(r"""\s*(?:(?P<quoted>"[^"]*"|'[^']*')|(?P<sign>[()])|(?P<word>[^\s()"']+))""")
_MOST_TOKENS: Final = 200


class ExpressionError(GpugateError):
    """The expression cannot be read; the text says where."""


def name_expression(expression: str) -> Matches:
    """Return a predicate of names; a text matches a name that contains it, regardless of case.

    Consecutive words are one text, so that a test's name can be written as it is. A text in quotes may contain
    parentheses and the words `and`, `or` and `not`.

    Raises:
        ExpressionError: the expression is empty, or not well-formed.
    """
    reader = _Reader(expression)
    matches = reader.either()
    reader.end()
    return matches


class _Reader:
    def __init__(self, text: str) -> None:
        self._expression = text
        self._tokens: list[tuple[str, str]] = []
        at = 0
        text = text.rstrip()
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                raise ExpressionError(f"-k {text}: a quote is not closed")
            kind = match.lastgroup or ""
            word = match[kind]
            self._tokens.append(("text" if kind == "quoted" else word, word.strip("\"'").lower()))
            at = match.end()
        if len(self._tokens) > _MOST_TOKENS:
            raise ExpressionError(f"-k: more than {_MOST_TOKENS} words")
        self._at = 0

    @property
    def _next(self) -> str:
        return self._tokens[self._at][0] if self._at < len(self._tokens) else ""

    def either(self) -> Matches:
        matches = self._both()
        while self._next == "or":
            self._at += 1
            matches = _either(matches, self._both())
        return matches

    def _both(self) -> Matches:
        matches = self._term()
        while self._next == "and":
            self._at += 1
            matches = _both(matches, self._term())
        return matches

    def _term(self) -> Matches:
        if self._next == "not":
            self._at += 1
            return _not(self._term())
        if self._next == "(":
            self._at += 1
            matches = self.either()
            if self._next != ")":
                raise ExpressionError(f"-k {self._expression}: a parenthesis is not closed")
            self._at += 1
            return matches
        words: list[str] = []
        while self._next not in {"", "and", "or", "not", "(", ")"}:
            words.append(self._tokens[self._at][1])
            self._at += 1
        if not words:
            wrong = f"`{self._next}` stands where a text belongs" if self._next else "a text is missing at the end"
            raise ExpressionError(
                f"-k {self._expression}: {wrong}; put a name with `and`, `or`, `not` or ( ) in quotes"
            )
        return _contains(" ".join(words))

    def end(self) -> None:
        if self._next:
            raise ExpressionError(f"-k {self._expression}: `{self._next}` is not expected; join texts by `and` or `or`")


def _contains(text: str) -> Matches:
    return lambda name: text in name.lower()


def _either(left: Matches, right: Matches) -> Matches:
    return lambda name: left(name) or right(name)


def _both(left: Matches, right: Matches) -> Matches:
    return lambda name: left(name) and right(name)


def _not(operand: Matches) -> Matches:
    return lambda name: not operand(name)
