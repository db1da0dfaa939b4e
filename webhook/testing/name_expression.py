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


def name_expression(text: str) -> Matches:
    """Return what tells whether a name fits; a text fits a name that contains it, whatever the case of its letters.

    Words that follow each other are one text, so that a test's name can be written as it is. A text in quotes may
    hold parentheses and the words `and`, `or` and `not`.

    Raises:
        ExpressionError: the expression is empty, or not well-formed.
    """
    reader = _Reader(text)
    found = reader.either()
    reader.end()
    return found


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[tuple[str, str]] = []
        at = 0
        text = text.rstrip()
        while at < len(text):
            found = _TOKEN.match(text, at)
            if found is None:
                raise ExpressionError(f"-k {text}: a quote is not closed")
            kind = found.lastgroup or ""
            word = found[kind]
            self._tokens.append(("text" if kind == "quoted" else word, word.strip("\"'").lower()))
            at = found.end()
        if len(self._tokens) > _MOST_TOKENS:
            raise ExpressionError(f"-k: more than {_MOST_TOKENS} words")
        self._at = 0

    @property
    def _next(self) -> str:
        return self._tokens[self._at][0] if self._at < len(self._tokens) else ""

    def either(self) -> Matches:
        found = self._both()
        while self._next == "or":
            self._at += 1
            found = _either(found, self._both())
        return found

    def _both(self) -> Matches:
        found = self._one()
        while self._next == "and":
            self._at += 1
            found = _both(found, self._one())
        return found

    def _one(self) -> Matches:
        if self._next == "not":
            self._at += 1
            return _not(self._one())
        if self._next == "(":
            self._at += 1
            found = self.either()
            if self._next != ")":
                raise ExpressionError(f"-k {self._text}: a parenthesis is not closed")
            self._at += 1
            return found
        words: list[str] = []
        while self._next not in {"", "and", "or", "not", "(", ")"}:
            words.append(self._tokens[self._at][1])
            self._at += 1
        if not words:
            wrong = f"`{self._next}` stands where a text belongs" if self._next else "a text is missing at the end"
            raise ExpressionError(f"-k {self._text}: {wrong}; put a name with `and`, `or`, `not` or ( ) in quotes")
        return _contains(" ".join(words))

    def end(self) -> None:
        if self._next:
            raise ExpressionError(f"-k {self._text}: `{self._next}` is not expected; join texts by `and` or `or`")


def _contains(text: str) -> Matches:
    return lambda name: text in name.lower()


def _either(one: Matches, other: Matches) -> Matches:
    return lambda name: one(name) or other(name)


def _both(one: Matches, other: Matches) -> Matches:
    return lambda name: one(name) and other(name)


def _not(one: Matches) -> Matches:
    return lambda name: not one(name)
