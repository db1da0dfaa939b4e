"""Turns an expression into the few operations that `judge` knows, or says what it cannot turn.

Of a parsed tree the macros become operations with a variable (`["all", range, variable, test]`), functions are looked up
and their arguments counted, patterns are checked, and escaped names of fields get their own form back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.webhook.schemas.cel.errors import CelUnsupportedError
from gpugate.webhook.schemas.cel.functions import CALLS, MEMBERS
from gpugate.webhook.schemas.cel.parse import Tree, parse
from gpugate.webhook.schemas.patterns import PatternError, translated

if TYPE_CHECKING:
    from collections.abc import Mapping

_PLAIN: Final = frozenset(
    {"if", "and", "or", "not", "neg", "==", "!=", "<", "<=", ">", ">=", "in", "+", "-", "*", "/", "%", "list", "index"}
)
_QUANTIFIERS: Final = frozenset({"all", "exists", "exists_one", "filter", "map"})
_REGULAR: Final = frozenset({"matches", "find"})
# apiserver v0.36 `pkg/cel/escaping.go`.
_RESERVED: Final = frozenset(
    {
        "true",
        "false",
        "null",
        "in",
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
    }
    | {"loop", "package", "namespace", "return", "var", "void", "while"}
)
_ESCAPES: Final = {"__dot__": ".", "__dash__": "-", "__slash__": "/", "__underscores__": "__"}


def translate(text: str, *, trusted: bool = False) -> Tree:
    """Translate a rule's expression.

    Args:
        text: the expression; `self` and `oldSelf` are what it may read.
        trusted: its patterns are known to take no long time.

    Raises:
        CelSyntaxError: it is no expression.
        CelUnsupportedError: it uses what is not known here.
    """
    return _Translation(trusted=trusted).of(parse(text), frozenset({"self", "oldSelf"}))


def reads(tree: Tree, name: str) -> bool:
    """Tell whether an expression reads a variable."""
    if tree[:1] == ["var"]:
        return bool(tree[1] == name)
    return any(reads(part, name) for part in tree if isinstance(part, list))


class _Translation:
    def __init__(self, *, trusted: bool) -> None:
        self._trusted = trusted

    def of(self, tree: Tree, known: frozenset[str]) -> Tree:
        head = tree[0]
        if head == "const":
            return tree
        if head == "var":
            if tree[1] not in known:
                raise CelUnsupportedError(f"the variable or type `{tree[1]}`")
            return tree
        if head == "get":
            return ["get", self.of(tree[1], known), _unescaped(tree[2])]
        if head == "map":
            return ["object", *([self.of(key, known), self.of(value, known)] for key, value in tree[1:])]
        if head in _PLAIN:
            return [head, *(self.of(part, known) for part in tree[1:])]
        return self._call(tree, known) if head == "call" else self._member(tree, known)

    def _call(self, tree: Tree, known: frozenset[str]) -> Tree:
        _, name, *arguments = tree
        if name == "has":
            if len(arguments) != 1 or arguments[0][0] != "get":
                raise CelUnsupportedError("`has` of anything but a field")
            _, of, field = arguments[0]
            return ["has", self.of(of, known), _unescaped(field)]
        _counted(name, len(arguments), CALLS)
        return ["call", name, *(self.of(each, known) for each in arguments)]

    def _member(self, tree: Tree, known: frozenset[str]) -> Tree:
        _, name, of, *arguments = tree
        target = self.of(of, known)
        if name in _QUANTIFIERS and arguments and arguments[0][0] == "var":
            return self._quantified(name, target, arguments, known)
        if name in _REGULAR:
            return self._pattern(name, target, arguments)
        _counted(name, len(arguments), MEMBERS)
        return ["member", name, target, *(self.of(each, known) for each in arguments)]

    def _quantified(self, name: str, target: Tree, arguments: list[Tree], known: frozenset[str]) -> Tree:
        variable = str(arguments[0][1])
        tests = [self.of(each, known | {variable}) for each in arguments[1:]]
        if len(tests) != 1 and not (name == "map" and len(tests) == 2):
            raise CelUnsupportedError(f"`{name}` with {len(arguments)} arguments")
        return [name, target, variable, *tests]

    def _pattern(self, name: str, target: Tree, arguments: list[Tree]) -> Tree:
        if len(arguments) != 1 or arguments[0][0] != "const" or not isinstance(arguments[0][1], str):
            raise CelUnsupportedError(f"`{name}` of a pattern that is not written out")
        pattern = arguments[0][1]
        try:
            translated(pattern, trusted=self._trusted)
        except PatternError as error:
            raise CelUnsupportedError(f"the pattern {pattern!r}: {error}") from None
        return [name, target, pattern]


def _counted(name: str, count: int, known: Mapping[str, tuple[int, int, object]]) -> None:
    if name not in known:
        raise CelUnsupportedError(f"the function `{name}`")
    least, most, _ = known[name]
    if not least <= count <= most:
        raise CelUnsupportedError(f"`{name}` with {count} arguments")


def _unescaped(name: str) -> str:
    if name.startswith("__") and name.endswith("__") and name[2:-2] in _RESERVED:
        return name[2:-2]
    for escape, sign in _ESCAPES.items():
        name = name.replace(escape, sign)
    return name
