"""Read PromQL: what a query selects, calls and computes.

The parser reads any text in linear time and extracts what it can from an invalid query. Strings and comments hide their
content. Source: Prometheus v3.5 `promql/parser/lex.go`, `generated_parser.y`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from gpugate.policies.sdk.structs import Struct

LONGEST: Final = 10_000  # characters; a longer query is not read
# Possessive throughout: each character is read once.
_TOKEN: Final = re.compile(
    r"""(?P<blank>\s++|\#[^\n]*+)
      | (?P<string>"(?:[^"\\]|\\.)*+"? | '(?:[^'\\]|\\.)*+'? | `[^`]*+`?)
      | (?P<name>[A-Za-z_:][A-Za-z0-9_:]*+)
      | (?P<number>\.?[0-9][0-9A-Za-z_.]*+)
      | (?P<sign>=~|!~|!=|==|<=|>=|.)""",
    re.VERBOSE | re.DOTALL,
)
_GROUPINGS: Final = frozenset({"by", "without", "on", "ignoring", "group_left", "group_right"})
_WORD_OPERATORS: Final = frozenset({"and", "or", "unless", "atan2"})
_WORDS: Final = frozenset({"bool", "offset", "inf", "nan", "@"})
_SIGNS: Final = frozenset({"+", "-", "*", "/", "%", "^", "==", "!=", "<", ">", "<=", ">="})


class Token(Struct, frozen=True):
    """A token: its kind, its text, and its start."""

    kind: str
    text: str
    start: int


class Matcher(Struct, frozen=True):
    """A condition on a label, with the value as it is written, including escapes."""

    label: str
    operator: str
    value: str


@dataclass(frozen=True, slots=True)
class Call:
    """A function or aggregation in lower case; `number` is its argument if that is a single number.

    `outer` is the call around it.
    """

    name: str
    start: int
    number: str = ""
    outer: Call | None = field(default=None, repr=False, compare=False)


class Selector(Struct, frozen=True):
    """A selector of series by metric name (may be empty) and labels; `call` is the innermost call around it."""

    metric: str
    start: int
    matchers: tuple[Matcher, ...]
    call: Call | None


@dataclass(slots=True)
class Query:
    """The selectors, calls and operators of a query.

    Attributes:
        selectors: in the order of the text.
        calls: every function and aggregation, in the order of the text.
        operators: every operator between two expressions, with the tokens before and after it.
    """

    selectors: list[Selector] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    operators: list[tuple[str, Token, Token]] = field(default_factory=list)


def read(text: str) -> Query:
    """Parse a query; return an empty one if the text is longer than `LONGEST`."""
    matches = _TOKEN.finditer(text) if len(text) <= LONGEST else ()
    tokens = [Token(m.lastgroup or "", m.group(), m.start()) for m in matches if m.lastgroup != "blank"]
    query, index = Query(), 0
    around: list[Call | None] = []
    while index < len(tokens):
        index = _step(tokens, index, query, around)
    return query


_END: Final = Token("end", "", 0)


def _at(tokens: list[Token], index: int) -> Token:
    return tokens[index] if 0 <= index < len(tokens) else _END


def _step(tokens: list[Token], index: int, query: Query, around: list[Call | None]) -> int:
    """Parse the token at an index; return the index of the next one."""
    token = tokens[index]
    word = token.text.lower()
    if word in _GROUPINGS:
        return _past(tokens, index + 1, ")") if _at(tokens, index + 1).text == "(" else index + 1
    if word in _WORDS:
        return _past_word(tokens, index)
    if token.text == "[":
        return _past(tokens, index, "]")
    if token.text == "(":
        around.append(around[-1] if around else None)
    elif token.text == ")" and around:
        around.pop()
    elif token.text in _SIGNS or word in _WORD_OPERATORS:
        query.operators.append((word, _at(tokens, index - 1), _at(tokens, index + 1)))
    elif token.kind == "name" or token.text == "{":
        return _named(tokens, index, query, around)
    return index + 1


def _past(tokens: list[Token], index: int, closing: str) -> int:
    while index < len(tokens) and tokens[index].text != closing:
        index += 1
    return index + 1


def _past_word(tokens: list[Token], index: int) -> int:
    """Skip a modifier and the time after it: `offset -5m`, `@ end()`, `@ 1609746000`."""
    if tokens[index].text.lower() not in {"offset", "@"}:
        return index + 1
    index += 2 if _at(tokens, index + 1).text == "-" else 1
    return index + (3 if _at(tokens, index + 1).text == "(" else 1)


def _named(tokens: list[Token], index: int, query: Query, around: list[Call | None]) -> int:
    token = tokens[index]
    after = index + 1
    if _at(tokens, after).text.lower() in _GROUPINGS and _at(tokens, after + 1).text == "(":
        after = _past(tokens, after + 1, ")")
    if token.kind == "name" and _at(tokens, after).text == "(":
        argument = _at(tokens, after + 1)
        alone = argument.kind == "number" and _at(tokens, after + 2).text == ")"
        outer = around[-1] if around else None
        call = Call(token.text.lower(), token.start, argument.text if alone else "", outer)
        query.calls.append(call)
        around.append(call)
        return after + 1
    metric = token.text if token.kind == "name" else ""
    braces = index + 1 if metric else index
    matchers: list[Matcher] = []
    if _at(tokens, braces).text == "{":
        after = _past(tokens, braces, "}")
        metric = _matchers(tokens[braces + 1 : after - 1], matchers) or metric
    query.selectors.append(Selector(metric, token.start, tuple(matchers), around[-1] if around else None))
    return after


def _matchers(tokens: list[Token], matchers: list[Matcher]) -> str:
    """Parse the matchers in braces; return the metric's name if it is one of them."""
    metric = ""
    for index, token in enumerate(tokens):
        if token.kind != "string":
            continue
        operator, label = _at(tokens, index - 1).text, _at(tokens, index - 2)
        if operator not in {"=", "!=", "=~", "!~"}:
            metric = _content(token) if _at(tokens, index + 1).text in {"", ","} else metric
        elif label.text == "__name__" and operator == "=":
            metric = _content(token)
        else:
            matchers.append(Matcher(_content(label), operator, _content(token)))
    return metric


def _content(token: Token) -> str:
    if token.kind != "string":
        return token.text
    return token.text[1:-1] if len(token.text) > 1 and token.text[-1] == token.text[0] else token.text[1:]
