"""Finds the line and column of a path; a document is composed only when somebody asks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import yaml

from gpugate.webhook.manifests import scalars

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Path
    from gpugate.webhook.manifests.documents import Document

# Resolves no tags, because only texts and marks are wanted.
_Loader: Final = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


@dataclass(frozen=True, slots=True)
class Span:
    """A place on one line of a file; line and columns count from 1, `end` is behind the last character.

    `line` is that of the key or the list item. The columns are those of the value where it stands on that line, else
    of the key. `exact` is false when the path does not exist and this is its nearest ancestor.
    """

    line: int
    column: int
    end: int
    exact: bool = True


class Positions:
    """The places in one document; `root` is its composed node, None where there is none."""

    def __init__(self, document: Document) -> None:
        self._offset = document.first_line
        self._lines = document.text.splitlines()
        try:
            # The document was read within limits before, so that composing it is safe.
            self.root: Any = yaml.compose(document.text, _Loader)
        except yaml.YAMLError:
            self.root = None  # JSON with escapes that YAML does not know

    def find(self, path: Path) -> Span:
        """Return the place of a path, or of its nearest ancestor in the document."""
        node, mark, exact = self.root, _first(self.root), True
        for part in path:
            step = _member(node, part) if isinstance(part, str) else _element(node, part)
            if step is None:
                exact = False
                break
            mark, node = step
        if mark is None:
            return Span(self._offset, 1, 2, exact=False)
        shown = self._shown(mark, node if exact else None)
        start, end = shown.start_mark, shown.end_mark
        last = end.column if end.line == start.line else len(self._line(start.line).rstrip())
        return Span(self._offset + mark.start_mark.line, start.column + 1, max(last, start.column + 1) + 1, exact)

    def _shown(self, mark: Any, node: Any) -> Any:
        """The value, when it stands beside its key; else the key."""
        if node is None or not node.start_mark.line == node.end_mark.line == mark.start_mark.line:
            return mark
        on_one_line = bool(node.value) if isinstance(node, yaml.ScalarNode) else node.flow_style
        return node if on_one_line else mark

    def _line(self, index: int) -> str:
        return self._lines[index] if index < len(self._lines) else ""


def _first(node: Any) -> Any:
    """What stands for a whole object: its first key."""
    return node.value[0][0] if isinstance(node, yaml.MappingNode) and node.value else node


def _member(node: Any, name: str) -> tuple[Any, Any] | None:
    """The key and the value of a member; the last one, as kubectl reads it."""
    found = None
    for key, value in node.value if isinstance(node, yaml.MappingNode) else ():
        if not isinstance(key, yaml.ScalarNode):
            continue
        if key.value == "<<" and not key.style:
            for merged in _merged(value):
                found = _member(merged, name) or found
        elif scalars.key_text(key.value, quoted=bool(key.style)) == name:
            found = (key, value)
    return found


def _merged(value: Any) -> Iterator[Any]:
    if isinstance(value, yaml.SequenceNode):
        yield from reversed(value.value)
    else:
        yield value


def _element(node: Any, index: int) -> tuple[Any, Any] | None:
    if not isinstance(node, yaml.SequenceNode) or index >= len(node.value):
        return None
    item = node.value[index]
    return _first(item), item
