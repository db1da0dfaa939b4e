"""Cuts an expression into tokens.

Source: cel-spec v0.24 `doc/langdef.md`, section Syntax.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gpugate.webhook.schemas.cel.errors import CelSyntaxError, CelUnsupportedError

if TYPE_CHECKING:
    from collections.abc import Iterator

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


@dataclass(frozen=True, slots=True)
class Token:
    """One token: its sort (`name`, `sign`, `text`, `integer`, `double`, `end`), what it is, and its character."""

    sort: str
    value: str | int | float
    at: int


def tokens(text: str) -> Iterator[Token]:
    """Yield the tokens of an expression, and one of the sort `end`.

    Raises:
        CelSyntaxError: a character belongs to no token, or the text is too long.
        CelUnsupportedError: it holds bytes or unsigned numbers.
    """
    if len(text) > LONGEST:
        raise CelSyntaxError(f"an expression of {len(text):,} characters; at most {LONGEST:,} are read")
    position = 0
    while position < len(text):
        found = _TOKEN.match(text, position)
        if found is None:
            raise CelSyntaxError(f"character {position + 1}: {text[position]!r} begins nothing that is known")
        sort = found.lastgroup or ""
        if sort in {"bytes", "unsigned"}:
            raise CelUnsupportedError(f"{'bytes' if sort == 'bytes' else 'an unsigned number'} at {position + 1}")
        if sort != "space":
            yield Token(sort, _value(sort, found[0]), position)
        position = found.end()
    yield Token("end", "", len(text))


def _value(sort: str, text: str) -> str | int | float:
    if sort == "integer":
        if len(text) > _MOST_DIGITS:
            raise CelSyntaxError("a whole number that does not fit 64 bits")
        return int(text, 0) if text.startswith("0x") else int(text)
    if sort == "double":
        return float(text)
    return _text(text) if sort == "text" else text


def _text(quoted: str) -> str:
    raw = quoted[0] in "rR"
    quoted = quoted[1:] if raw else quoted
    width = 3 if quoted[:3] in {"'''", '"""'} else 1
    body = quoted[width:-width]
    return body if raw else _ESCAPE.sub(_unescaped, body)


def _unescaped(found: re.Match[str]) -> str:
    what = found[1]
    if len(what) == 1:
        if what not in _ESCAPED:
            raise CelSyntaxError(f"\\{what} in a text stands for nothing")
        return _ESCAPED[what]
    code = int(what, 8) if what[0] in "0123" else int(what[1:], 16)
    if code > sys.maxunicode:
        raise CelSyntaxError(f"\\{what} in a text stands for nothing")
    return chr(code)
