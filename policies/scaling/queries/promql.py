"""What a PromQL query selects and calls, without evaluating it.

It reads any text in linear time, and takes from one that is no query what it can. Strings and comments hide what stands
in them. Source: Prometheus v3.5 `promql/parser/lex.go`, `generated_parser.y`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

LONGEST: Final = 10_000  # characters; what a longer query says is left unread
# Possessive throughout: no character is looked at twice.
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


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of the text: what it is, and where it begins."""

    kind: str
    text: str
    start: int


@dataclass(frozen=True, slots=True)
class Matcher:
    """A condition on a label; the value as it is written, escapes included."""

    label: str
    operator: str
    value: str


@dataclass(frozen=True, slots=True)
class Call:
    """A function or aggregation, in small letters; `number` is its argument where that is one number.

    `outer` is the call around it.
    """

    name: str
    start: int
    number: str = ""
    outer: Call | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Selector:
    """Series by metric name (empty where none is given) and labels; `call` is the innermost around them."""

    metric: str
    start: int
    matchers: tuple[Matcher, ...]
    call: Call | None


@dataclass(slots=True)
class Query:
    """All that a query selects, calls and computes.

    Attributes:
        selectors: in the order of the text.
        calls: every function and aggregation, in the order of the text.
        operators: every operator between two expressions, with the tokens beside it.
    """

    selectors: list[Selector] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    operators: list[tuple[str, Token, Token]] = field(default_factory=list)


def read(text: str) -> Query:
    """Read a query; an empty one where the text is longer than `LONGEST`."""
    found = _TOKEN.finditer(text) if len(text) <= LONGEST else ()
    tokens = [Token(m.lastgroup or "", m.group(), m.start()) for m in found if m.lastgroup != "blank"]
    query, place = Query(), 0
    around: list[Call | None] = []
    while place < len(tokens):
        place = _step(tokens, place, query, around)
    return query


_END: Final = Token("end", "", 0)


def _at(tokens: list[Token], place: int) -> Token:
    return tokens[place] if 0 <= place < len(tokens) else _END


def _step(tokens: list[Token], place: int, query: Query, around: list[Call | None]) -> int:
    """Read what begins at a place; return where the next begins."""
    token = tokens[place]
    word = token.text.lower()
    if word in _GROUPINGS:
        return _past(tokens, place + 1, ")") if _at(tokens, place + 1).text == "(" else place + 1
    if word in _WORDS:
        return _past_word(tokens, place)
    if token.text == "[":
        return _past(tokens, place, "]")
    if token.text == "(":
        around.append(around[-1] if around else None)
    elif token.text == ")" and around:
        around.pop()
    elif token.text in _SIGNS or word in _WORD_OPERATORS:
        query.operators.append((word, _at(tokens, place - 1), _at(tokens, place + 1)))
    elif token.kind == "name" or token.text == "{":
        return _named(tokens, place, query, around)
    return place + 1


def _past(tokens: list[Token], place: int, closing: str) -> int:
    while place < len(tokens) and tokens[place].text != closing:
        place += 1
    return place + 1


def _past_word(tokens: list[Token], place: int) -> int:
    """Pass over a word and the time behind it: `offset -5m`, `@ end()`, `@ 1609746000`."""
    if tokens[place].text.lower() not in {"offset", "@"}:
        return place + 1
    place += 2 if _at(tokens, place + 1).text == "-" else 1
    return place + (3 if _at(tokens, place + 1).text == "(" else 1)


def _named(tokens: list[Token], place: int, query: Query, around: list[Call | None]) -> int:
    token = tokens[place]
    after = place + 1
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
    braces = place + 1 if metric else place
    matchers: list[Matcher] = []
    if _at(tokens, braces).text == "{":
        after = _past(tokens, braces, "}")
        metric = _matchers(tokens[braces + 1 : after - 1], matchers) or metric
    query.selectors.append(Selector(metric, token.start, tuple(matchers), around[-1] if around else None))
    return after


def _matchers(tokens: list[Token], matchers: list[Matcher]) -> str:
    """Read what stands in braces; return the metric's name where it stands there too."""
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
