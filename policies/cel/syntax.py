"""Parse a CEL expression into nodes with their position in the text.

Every macro of Kubernetes' validations is a node of its own: `has`, `all`, `exists`, `exists_one`, `filter`, `map`, and for
optional values `optMap` and `optFlatMap`.

Sources: cel-spec v0.24 `doc/langdef.md`, section Syntax; cel-go v0.26 `parser/macro.go` and `cel/library.go` (optional
types).
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from gpugate.policies.engine.config import GpugateError

if TYPE_CHECKING:
    from collections.abc import Iterator

LONGEST: Final = 10_240  # characters, as of a DRA selector (`resource/v1` CELSelectorExpressionMaxLength, v0.36)
_DEEPEST: Final = 40  # brackets, calls and conditionals inside each other
_LARGEST: Final = 2_000  # nodes of one expression


class ExpressionError(GpugateError):
    """An expression is refused: what is wrong, and the character at which it is, counted from 0."""

    def __init__(self, at: int, message: str) -> None:
        super().__init__(f"character {at + 1}: {message}")
        self.at = at
        self.message = message


class ExpressionLimitError(ExpressionError):
    """An expression is refused because it is too long, too large or nested too deeply, and may be valid."""


class Uint(int):
    """An unsigned integer, which is another type than int in CEL."""

    __slots__ = ()


class Node(NamedTuple):
    """A part of an expression.

    Attributes:
        kind: `const`, `name`, `select`, `has`, `index`, `list`, `map`, `call`, `member`, `loop`, `optional` or an operator.
        at: the character at which the part begins, or that of its operator or name.
        value: the constant, the name of the variable, field or function, or name of the macro with its variable.
        parts: the operands.
    """

    kind: str
    at: int
    value: Any  # Any: a value of CEL, or names
    parts: tuple[Node, ...] = ()


class Token(NamedTuple):
    """A token: its sort (`name`, `sign`, `const`, `end`), its text or value, and the character at which it begins."""

    sort: str
    value: Any  # Any: a constant of CEL
    at: int


_TOKEN: Final = re.compile(
    r"""(?P<space>[ \t\n\f\r]+|//[^\n]*)
    |(?P<text>(?:[bB][rR]?|[rR][bB]?)?(?:'''(?:[^\\]|\\.)*?'''|\"\"\"(?:[^\\]|\\.)*?\"\"\"|'(?:[^'\\\n\r]|\\.)*'|"(?:[^"\\\n\r]|\\.)*"))
    |(?P<double>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)
    |(?P<unsigned>(?:0x[0-9a-fA-F]+|[0-9]+)[uU])
    |(?P<integer>0x[0-9a-fA-F]+|[0-9]+)
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<sign>==|!=|<=|>=|&&|\|\||[-+*/%!<>?:.,()\[\]{}])""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE: Final = re.compile(
    r"\\(x[0-9a-fA-F]{2}|X[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7]{2}|.)", re.DOTALL
)
_ESCAPED: Final = dict(zip("abfnrtv\\\"'`?", "\a\b\f\n\r\t\v\\\"'`?", strict=True))
_SURROGATES: Final = range(0xD800, 0xE000)
_QUOTES: Final = ("'''", '"""')
_MOST_DIGITS: Final = 20
_LEAST_INT, _MOST_INT, _MOST_UINT = -(2**63), 2**63 - 1, 2**64 - 1
_RESERVED: Final = frozenset(
    (
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
    )
)


def tokens(expression: str) -> Iterator[Token]:
    """Yield the tokens of an expression, and one of the sort `end`.

    Raises:
        ExpressionError: a character belongs to no token, or a constant is invalid.
        ExpressionLimitError: the text is too long.
    """
    if len(expression) > LONGEST:
        raise ExpressionLimitError(0, f"the expression has {len(expression):,} characters (maximum: {LONGEST:,})")
    position = 0
    while position < len(expression):
        match = _TOKEN.match(expression, position)
        if match is None:
            raise ExpressionError(position, f"unexpected character {expression[position]!r}")
        sort, text = match.lastgroup or "", match[0]
        if sort in {"name", "sign"}:
            yield Token(sort, text, position)
        elif sort != "space":
            yield Token("const", _constant(sort, text, position), position)
        position = match.end()
    yield Token("end", "the end", len(expression))


def _constant(sort: str, text: str, at: int) -> object:
    if sort == "double":
        return float(text)
    if sort == "text":
        return _unquoted(text, at)
    digits = text.rstrip("uU")
    if len(digits) > _MOST_DIGITS:
        raise ExpressionError(at, "the integer does not fit 64 bits")
    number = int(digits, 16) if digits.startswith("0x") else int(digits)
    # One more than the greatest integer is the least one when a minus stands before it.
    if number > (_MOST_UINT if sort == "unsigned" else _MOST_INT + 1):
        raise ExpressionError(at, "the integer does not fit 64 bits")
    return Uint(number) if sort == "unsigned" else number


def _unquoted(quoted: str, at: int) -> str | bytes:
    prefix = quoted[: quoted.index(quoted[-1])].lower()
    body = quoted[len(prefix) :]
    width = 3 if body[:3] in _QUOTES else 1
    body = body[width:-width]
    if "b" in prefix:
        return body.encode() if "r" in prefix else _bytes(body, at)
    return body if "r" in prefix else _ESCAPE.sub(lambda match: _character(match[1], at), body)


def _character(escape: str, at: int) -> str:
    if len(escape) == 1:
        if escape not in _ESCAPED:
            raise ExpressionError(at, f"\\{escape} is an invalid escape sequence")
        return _ESCAPED[escape]
    code = int(escape, 8) if escape[0] in "0123" else int(escape[1:], 16)
    if code > sys.maxunicode or code in _SURROGATES:
        raise ExpressionError(at, f"\\{escape} is an invalid escape sequence")
    return chr(code)


def _bytes(body: str, at: int) -> bytes:
    """Return the bytes of a literal, in which octal and hexadecimal escapes are bytes and not characters."""
    out, position = bytearray(), 0
    for match in _ESCAPE.finditer(body):
        out += body[position : match.start()].encode()
        escape = match[1]
        if escape[0] in "uU":
            raise ExpressionError(at, f"\\{escape} is an invalid escape sequence in bytes")
        out += bytes([ord(_character(escape, at))]) if len(escape) > 1 else _character(escape, at).encode()
        position = match.end()
    return bytes(out + body[position:].encode())


# Macros of a list or map with a variable: name -> the number of arguments.
_LOOPS: Final = {"all": (2,), "exists": (2,), "exists_one": (2,), "filter": (2,), "map": (2, 3)}
_OPTIONAL: Final = {"optMap": (2,), "optFlatMap": (2,)}
_RELATIONS: Final = ("==", "!=", "<", "<=", ">", ">=", "in")
_PRECEDENCE: Final = {"||": 1, "&&": 2, **dict.fromkeys(_RELATIONS, 3), "+": 4, "-": 4, "*": 5, "/": 5, "%": 5}
_LOGICAL: Final = 2
_SIGNS: Final = frozenset({"sign", "name"})
_LITERALS: Final = {"true": True, "false": False, "null": None}


def parse(expression: str) -> Node:
    """Read an expression.

    Raises:
        ExpressionError: it is not valid CEL.
        ExpressionLimitError: it is too long, too large or nested too deeply.
    """
    return _Parser(list(tokens(expression))).whole()


class _Parser:
    def __init__(self, token_list: list[Token]) -> None:
        self._tokens = token_list
        self._index = 0
        self._depth = 0
        self._nodes = 0

    def whole(self) -> Node:
        node = self._expression()
        if self._token.sort != "end":
            raise self._unexpected("an operator")
        return node

    @property
    def _token(self) -> Token:
        return self._tokens[self._index]

    def _node(self, kind: str, at: int, value: object, *parts: Node) -> Node:
        self._nodes += 1
        if self._nodes > _LARGEST:
            raise ExpressionLimitError(at, f"the expression has more than {_LARGEST:,} parts")
        return Node(kind, at, value, parts)

    def _unexpected(self, expected: str) -> ExpressionError:
        token = self._token
        text = "the end" if token.sort == "end" else repr(token.value)
        return ExpressionError(token.at, f"expected {expected}, but found {text}")

    def _take(self, *signs: str) -> Token | None:
        token = self._tokens[self._index]
        if token.value in signs and token.sort in _SIGNS:
            self._index += 1
            return token
        return None

    def _expect(self, sign: str) -> None:
        if not self._take(sign):
            raise self._unexpected(f"`{sign}`")

    def _deeper(self) -> None:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise ExpressionLimitError(self._token.at, f"more than {_DEEPEST} nested expressions")

    def _expression(self) -> Node:
        self._deeper()
        node = self._operation(1)
        if sign := self._take("?"):
            yes = self._operation(1)
            self._expect(":")
            node = self._node("if", sign.at, None, node, yes, self._expression())
        self._depth -= 1
        return node

    def _operation(self, least: int) -> Node:
        """Read operands with operators of a precedence or above between them; long chains of `&&` or `||` are one node."""
        node = self._unary()
        while True:
            sign = self._token
            precedence = _PRECEDENCE.get(sign.value, 0) if sign.sort in _SIGNS else 0
            if precedence < least:
                return node
            self._index += 1
            right = self._operation(precedence + 1)
            if node.kind == sign.value and precedence <= _LOGICAL:
                node = node._replace(parts=(*node.parts, right))
            else:
                node = self._node(sign.value, sign.at, None, node, right)
                self._check_chain(node)

    def _check_chain(self, node: Node) -> None:
        depth = 0
        while node.parts and depth <= _DEEPEST:
            node, depth = node.parts[0], depth + 1
        if depth > _DEEPEST:
            raise ExpressionLimitError(node.at, f"more than {_DEEPEST} operators in a row")

    def _unary(self) -> Node:
        sign = self._take("!", "-")
        if sign is None:
            return self._member()
        signs = [sign]
        while again := self._take(sign.value):
            signs.append(again)
        if len(signs) > _DEEPEST:
            raise ExpressionLimitError(sign.at, f"more than {_DEEPEST} operators in a row")
        if sign.value == "-" and self._token.sort == "const" and type(self._token.value) in {int, float}:
            token = self._tokens[self._index] = self._token._replace(value=-self._token.value)
            signs.pop()
            if type(token.value) is int and token.value < _LEAST_INT:
                raise ExpressionError(token.at, "the integer does not fit 64 bits")
        node = self._member()
        if len(signs) > 1 and sign.value == "!":
            # Two of them cancel each other out, whatever the type of the value (cel-go v0.26 `parser/parser.go`).
            signs = signs[: len(signs) % 2]
        for each_sign in reversed(signs):
            node = self._node("!" if sign.value == "!" else "neg", each_sign.at, None, node)
        return node

    def _member(self) -> Node:
        node = self._primary()
        steps = 0
        while True:
            steps += 1
            if steps > _DEEPEST:
                raise ExpressionLimitError(self._token.at, f"more than {_DEEPEST} fields and calls in a row")
            if sign := self._take("."):
                optional = bool(self._take("?"))
                token = self._token
                if token.sort != "name" or token.value == "in" or token.value in _LITERALS:
                    raise self._unexpected("the name of a field")
                self._index += 1
                if not optional and self._take("("):
                    node = self._call_of(node, token)
                else:
                    node = self._node("select?" if optional else "select", token.at, token.value, node)
            elif sign := self._take("["):
                kind = "index?" if self._take("?") else "index"
                node = self._node(kind, sign.at, None, node, self._expression())
                self._expect("]")
            else:
                return node

    def _call_of(self, target: Node, name: Token) -> Node:
        arguments = self._arguments(")")
        macro = name.value if len(arguments) in {**_LOOPS, **_OPTIONAL}.get(name.value, ()) else ""
        if macro and (macro in _OPTIONAL or target.kind != "name" or target.value not in {"sets", "lists"}):
            variable = arguments[0]
            if variable.kind != "name":
                raise ExpressionError(variable.at, f"the first argument of `{macro}` is the name of a variable")
            kind = "optional" if macro in _OPTIONAL else "loop"
            return self._node(kind, name.at, (macro, variable.value), target, *arguments[1:])
        return self._node("member", name.at, name.value, target, *arguments)

    def _primary(self) -> Node:  # noqa: PLR0911 -- one return for each form
        token = self._token
        if token.sort == "const":
            self._index += 1
            if type(token.value) is int and token.value > _MOST_INT:
                raise ExpressionError(token.at, "the integer does not fit 64 bits")
            return self._node("const", token.at, token.value)
        if self._take("("):
            node = self._expression()
            self._expect(")")
            return node
        if self._take("["):
            return self._node("list", token.at, None, *self._arguments("]"))
        if self._take("{"):
            return self._node("map", token.at, None, *self._entries())
        self._take(".")
        token = self._token
        if token.sort != "name" or token.value == "in":
            raise self._unexpected("a value")
        self._index += 1
        if token.value in _LITERALS:
            return self._node("const", token.at, _LITERALS[token.value])
        if token.value in _RESERVED:
            raise ExpressionError(token.at, f"`{token.value}` is a reserved word of CEL")
        if self._take("("):
            return self._call(token)
        return self._node("name", token.at, token.value)

    def _call(self, name: Token) -> Node:
        arguments = self._arguments(")")
        if name.value != "has":
            return self._node("call", name.at, name.value, *arguments)
        if len(arguments) != 1 or arguments[0].kind not in {"select", "select?"}:
            raise ExpressionError(name.at, "the argument of `has` is a field, such as `has(object.spec)`")
        return self._node("has", name.at, arguments[0].value, *arguments[0].parts)

    def _arguments(self, closing: str) -> list[Node]:
        arguments: list[Node] = []
        while not self._take(closing):
            arguments.append(self._expression())
            if not self._take(","):
                self._expect(closing)
                break
            if closing == ")" and self._token.value == closing:
                raise self._unexpected("an argument")
        return arguments

    def _entries(self) -> list[Node]:
        """Return keys and values in turn."""
        entries: list[Node] = []
        while not self._take("}"):
            entries.append(self._expression())
            self._expect(":")
            entries.append(self._expression())
            if not self._take(","):
                self._expect("}")
                break
        return entries
