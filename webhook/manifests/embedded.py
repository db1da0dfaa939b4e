"""A text that stands as one value within a YAML document, as a file does in a ConfigMap, and where its lines are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import yaml

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpugate.policies.sdk.field import Path
    from gpugate.webhook.manifests.documents import Document

_Loader: Final = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
# How many characters an escape has after the backslash, where that is not one (YAML 1.1, 5.6).
_ESCAPES: Final = {"x": 3, "u": 5, "U": 9}


@dataclass(frozen=True, slots=True)
class Embedded:
    """A text and its place in the file around it.

    Attributes:
        text: the text, as a reader of the value gets it.
        line: the line of the file on which it begins, from 1.
        indent: how many characters stand before each of its lines.
        columns: of a text in quotes, the column of the file (from 1) of each of its characters; all are on `line`.
        exact: whether places in the text are known; if not, all that is known is where it begins.
    """

    text: str
    line: int
    indent: int = 0
    columns: Sequence[int] = ()
    exact: bool = True

    def place(self, line: int, column: int) -> tuple[int, int]:
        """Return line and column in the file of a line and column in the text; all count from 1."""
        if not self.exact:
            return self.line, self.indent + 1
        if not self.columns:
            return self.line + line - 1, self.indent + column
        begins = 0
        for _ in range(line - 1):
            begins = self.text.find("\n", begins) + 1
        offset = min(begins + column - 1, len(self.columns) - 1)
        return self.line, self.columns[offset]


def embedded(document: Document, path: Path, text: str) -> Embedded:
    """Find the text that is the value at a path of members."""
    key, node = _node(document.text, path)
    if node is None:
        return Embedded(text, document.first_line, exact=False)
    start = node.start_mark
    if node.style == "|":
        indent = _indent(document.text.splitlines()[start.line + 1 : node.end_mark.line + 1], text)
        return Embedded(text, document.first_line + start.line + 1, indent)
    line = document.first_line + start.line
    if node.style in {"'", '"'} and start.line == node.end_mark.line:
        written = document.text.splitlines()[start.line][start.column + 1 : node.end_mark.column - 1]
        columns = [start.column + 2 + offset for offset in _offsets(written, node.style)]
        return Embedded(text, line, columns=columns, exact=len(columns) > 1)
    return Embedded(text, document.first_line + key.start_mark.line, key.start_mark.column, exact=False)


def _node(text: str, path: Path) -> tuple[Any, Any]:
    """Return the key and the value at a path; the last of members with the same name, as kubectl reads it."""
    try:
        # The document was read within limits before, so that composing it is safe.
        node: Any = yaml.compose(text, _Loader)
    except yaml.YAMLError:
        return None, None  # JSON with escapes that YAML does not know
    key = None
    for part in path:
        members = node.value if isinstance(node, yaml.MappingNode) else ()
        key, node = next(((k, v) for k, v in reversed(members) if k.value == part), (None, None))
    return key, node if isinstance(node, yaml.ScalarNode) else None


def _indent(written: Sequence[str], text: str) -> int:
    """Return how far the lines of a block are indented: what stands before its first line that is not blank."""
    for line, wanted in zip(written, text.splitlines(), strict=False):
        if wanted.strip():
            return len(line) - len(wanted)
    return 0


def _offsets(written: str, style: str) -> list[int]:
    """Return for each character of a text in quotes, and for its end, where it is written, from 0."""
    found: list[int] = []
    at = 0
    while at < len(written):
        found.append(at)
        if style == '"' and written[at] == "\\":
            at += 1 + _ESCAPES.get(written[at + 1 : at + 2], 1)
        else:
            at += 2 if style == "'" and written[at] == "'" else 1
    return [*found, at]
