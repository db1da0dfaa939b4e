"""Parse a CEL expression into a tree.

A tree is a list: `["const", value]`, `["var", name]`, `["get", tree, field]`, `["index", tree, key]`, `["list", ...]`,
`["map", [key, value], ...]`, `["call", name, argument, ...]`, `["member", name, tree, argument, ...]`,
`["and" | "or" | "not" | "if" | "neg" | operator, ...]`.

Source: cel-spec v0.24 `doc/langdef.md`, section Syntax.
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any, Final

from gpugate.policies.engine.config import GpugateError
from gpugate.policies.sdk.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Iterator


class CelSyntaxError(GpugateError):
    """The text is no expression; says at which character."""


class CelUnsupportedError(GpugateError):
    """The expression uses something that is not translated here; says what."""


class CelEvaluationError(Exception):
    """The expression has no value for this object, as where it reads a member that is missing; says why."""


class CelCostError(Exception):
    """The expression takes too many steps for this object."""


LONGEST: Final = 20_000  # characters; the API server's own limit on one expression is lower
_TOKEN: Final = re.compile(
    r"""(?P<space>[ \t\n\f\r]+|//[^\n]*)
    |(?P<bytes>[bB][rR]?["']|[rR][bB]["'])
    |(?P<text>[rR]?(?:'''(?:[^\\]|\\.)*?'''|\"\"\"(?:[^\\]|\\.)*?\"\"\"|'(?:[^'\\\n\r]|\\.)*'|"(?:[^"\\\n\r]|\\.)*"))
    |(?P<double>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)
    |(?P<unsigned>(?:0x[0-9a-fA-F]+|[0-9]+)[uU])
    |(?P<integer>0x[0-9a-fA-F]+|[0-9]+)
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<sign>\[\?|\.\?|==|!=|<=|>=|&&|\|\||[-+*/%!<>?:.,()\[\]{}])""",
    re.VERBOSE | re.DOTALL,
)
_MOST_DIGITS: Final = 20
_ESCAPE: Final = re.compile(
    r"\\(x[0-9a-fA-F]{2}|X[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7]{2}|.)", re.DOTALL
)
_ESCAPED: Final = dict(zip("abfnrtv\\\"'`?", "\a\b\f\n\r\t\v\\\"'`?", strict=True))


class Token(Struct, frozen=True):
    """One token: its sort (`name`, `sign`, `text`, `integer`, `double`, `end`), what it is, and its character."""

    sort: str
    value: str | int | float
    at: int


def tokens(expression: str) -> Iterator[Token]:
    """Yield the tokens of an expression, and one of the sort `end`.

    Raises:
        CelSyntaxError: a character belongs to no token, or the text is too long.
        CelUnsupportedError: it holds bytes or unsigned numbers.
    """
    if len(expression) > LONGEST:
        raise CelSyntaxError(f"the expression has {len(expression):,} characters (maximum: {LONGEST:,})")
    position = 0
    while position < len(expression):
        match = _TOKEN.match(expression, position)
        if match is None:
            raise CelSyntaxError(f"character {position + 1}: unexpected {expression[position]!r}")
        sort = match.lastgroup or ""
        if sort in {"bytes", "unsigned"}:
            raise CelUnsupportedError(f"{'bytes' if sort == 'bytes' else 'an unsigned number'} at {position + 1}")
        if sort != "space":
            yield Token(sort, _value(sort, match[0]), position)
        position = match.end()
    yield Token("end", "", len(expression))


def _value(sort: str, token: str) -> str | int | float:
    if sort == "integer":
        if len(token) > _MOST_DIGITS:
            raise CelSyntaxError("an integer does not fit 64 bits")
        return int(token, 0) if token.startswith("0x") else int(token)
    if sort == "double":
        return float(token)
    return _unquote(token) if sort == "text" else token


def _unquote(quoted: str) -> str:
    raw = quoted[0] in "rR"
    quoted = quoted[1:] if raw else quoted
    width = 3 if quoted[:3] in {"'''", '"""'} else 1
    body = quoted[width:-width]
    return body if raw else _ESCAPE.sub(_unescaped, body)


def _unescaped(match: re.Match[str]) -> str:
    escape = match[1]
    if len(escape) == 1:
        if escape not in _ESCAPED:
            raise CelSyntaxError(f"\\{escape} is not a valid escape sequence")
        return _ESCAPED[escape]
    code = int(escape, 8) if escape[0] in "0123" else int(escape[1:], 16)
    if code > sys.maxunicode:
        raise CelSyntaxError(f"\\{escape} is not a valid escape sequence")
    return chr(code)


Tree = list[Any]

_RELATIONS: Final = frozenset({"<", "<=", ">", ">=", "==", "!=", "in"})
_LITERALS: Final = {"true": True, "false": False, "null": None}
_DEEPEST: Final = 60  # levels of brackets; the API server's own limit is 250
_DEEPEST_TREE: Final = 120


def parse(expression: str) -> Tree:
    """Read an expression.

    Raises:
        CelSyntaxError: it is none; says where.
        CelUnsupportedError: it uses optional syntax, bytes, unsigned numbers, or is nested too deeply.
    """
    parser = _Parser(list(tokens(expression)))
    tree = parser.expression()
    parser.expect("end")
    _refuse_deep(tree)
    return tree


def _refuse_deep(tree: Tree) -> None:
    """Refuse what is too deep to be walked; members and operators of one level go below each other."""
    left = [(tree, 1)]
    while left:
        part, depth = left.pop()
        if depth > _DEEPEST_TREE:
            raise CelUnsupportedError(f"more than {_DEEPEST_TREE} nested members or operators")
        left += [(operand, depth + 1) for operand in part if isinstance(operand, list)]


class _Parser:
    def __init__(self, found_tokens: list[Token]) -> None:
        self._tokens = found_tokens
        self._index = 0
        self._depth = 0

    def expression(self) -> Tree:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise CelUnsupportedError(f"more than {_DEEPEST} nested expressions")
        tree = self._either()
        if self._take("?"):
            yes = self._either()
            self._expect_sign(":")
            tree = ["if", tree, yes, self.expression()]
        self._depth -= 1
        return tree

    def expect(self, sort: str) -> Token:
        token = self._tokens[self._index]
        if token.sort != sort:
            raise CelSyntaxError(f"character {token.at + 1}: expected {sort}, but found {token.value or 'the end'!r}")
        self._index += 1
        return token

    def _is(self, *signs: str) -> bool:
        token = self._tokens[self._index]
        return token.sort in {"sign", "name"} and token.value in signs

    def _take(self, *signs: str) -> str:
        if not self._is(*signs):
            return ""
        self._index += 1
        return str(self._tokens[self._index - 1].value)

    def _expect_sign(self, sign: str) -> None:
        if not self._take(sign):
            token = self._tokens[self._index]
            raise CelSyntaxError(f"character {token.at + 1}: expected {sign}, but found {token.value or 'the end'!r}")

    def _either(self) -> Tree:
        tree = self._both()
        while self._take("||"):
            tree = ["or", tree, self._both()]
        return tree

    def _both(self) -> Tree:
        tree = self._relation()
        while self._take("&&"):
            tree = ["and", tree, self._relation()]
        return tree

    def _relation(self) -> Tree:
        tree = self._sum()
        while operator := self._take(*_RELATIONS):
            tree = [operator, tree, self._sum()]
        return tree

    def _sum(self) -> Tree:
        tree = self._product()
        while operator := self._take("+", "-"):
            tree = [operator, tree, self._product()]
        return tree

    def _product(self) -> Tree:
        tree = self._unary()
        while operator := self._take("*", "/", "%"):
            tree = [operator, tree, self._unary()]
        return tree

    def _unary(self) -> Tree:
        signs = []
        while sign := self._take("!", "-"):
            signs.append(sign)
        tree = self._member()
        for sign in reversed(signs):
            if sign == "-" and tree[0] == "const" and isinstance(tree[1], int | float):
                tree = ["const", -tree[1]]
            else:
                tree = ["not" if sign == "!" else "neg", tree]
        return tree

    def _member(self) -> Tree:
        tree = self._primary()
        while True:
            if self._is("[?", ".?"):
                raise CelUnsupportedError("optional members (`.?` or `[?`)")
            if self._take("."):
                name = str(self.expect("name").value)
                tree = ["member", name, tree, *self._arguments(")")] if self._take("(") else ["get", tree, name]
            elif self._take("["):
                tree = ["index", tree, self.expression()]
                self._expect_sign("]")
            else:
                return tree

    def _primary(self) -> Tree:
        token = self._tokens[self._index]
        if self._take("("):
            tree = self.expression()
            self._expect_sign(")")
            return tree
        if self._take("["):
            return ["list", *self._arguments("]")]
        if self._take("{"):
            return ["map", *self._entries()]
        if token.sort in {"text", "integer", "double"}:
            self._index += 1
            return ["const", token.value]
        name = str(self.expect("name").value)
        if name in _LITERALS:
            return ["const", _LITERALS[name]]
        return ["call", name, *self._arguments(")")] if self._take("(") else ["var", name]

    def _arguments(self, closing: str) -> list[Tree]:
        arguments: list[Tree] = []
        while not self._take(closing):
            arguments.append(self.expression())
            if not self._take(","):
                self._expect_sign(closing)
                break
        return arguments

    def _entries(self) -> list[list[Tree]]:
        entries: list[list[Tree]] = []
        while not self._take("}"):
            key = self.expression()
            self._expect_sign(":")
            entries.append([key, self.expression()])
            if not self._take(","):
                self._expect_sign("}")
                break
        return entries
