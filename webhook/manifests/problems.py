"""Problems of a manifest that come before any policy, with an excerpt that hides secrets.

Hidden are the data of Secrets, the values of environment variables, and kubectl's annotation with the whole object. Each
hidden character becomes `*`, so columns stay the same.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

import yaml

from gpugate.policies.sdk.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_AROUND = 1
_ENVIRONMENTS: Final = frozenset({"env", "envVars", "env_vars", "environment", "runtimeEnvYAML"})
_SAID_OF_ENVIRONMENT: Final = frozenset({"name", "valueFrom"})
_SECRET_DATA: Final = frozenset({"data", "stringData"})
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
# In a text that no parser reads.
_SECRET: Final = re.compile(r"Secret\b|\bstringData\b|\blast-applied-configuration\b")
_OPENS: Final = re.compile(r"""^(?P<indent>[ \t]*)(?:-[ \t]+)*["']?(?P<key>[\w.-]+)["']?[ \t]*:""")
_ENVIRONMENT: Final = re.compile(rf"\b(?:{'|'.join(sorted({*_ENVIRONMENTS, *_SECRET_DATA, 'value'}))})\b")
_SAID: Final = re.compile(
    r"""^[ \t]*(?:-[ \t]+)?["']?(?:name|valueFrom|key|optional|fieldPath|\w+Ref)["']?[ \t]*:|^[ \t]*#"""
)


class Excerpt(Struct, frozen=True):
    """Some lines of a file; `first_line` is the number of the first of them, from 1."""

    lines: tuple[str, ...] = ()
    first_line: int = 0


NO_EXCERPT: Final = Excerpt()


def excerpt(lines: Sequence[str], line: int, first_line: int) -> Excerpt:
    """Return the line with number `line` and its neighbours, out of lines of which the first has `first_line`.

    What is hidden has to be hidden in the lines already.
    """
    index = line - first_line
    first = max(0, index - _AROUND)
    return Excerpt(tuple(lines[first : index + _AROUND + 1]), first_line + first)


def lines_of_document(text: str, root: Any) -> list[str]:
    """Return the lines of a document, with what its composed nodes say is to be hidden; `root` is None without them."""
    lines = text.splitlines()
    if root is None:
        return lines_of_broken(text)
    for node in _hidden(root):
        _hide(lines, node)
    return lines


def lines_of_broken(text: str) -> list[str]:
    """Return the lines of a text that no parser reads: nothing of one that may hold a Secret, or behind other values."""
    lines = text.splitlines()
    first = next((number for number, line in enumerate(lines) if _ENVIRONMENT.search(line)), len(lines))
    if _SECRET.search(text):
        first = 0
    return [*lines[:first], *(_stars(line, 0, len(line)) for line in lines[first:])]


def lines_of_template(lines: Sequence[str]) -> list[str]:
    """Return the lines of a template that is not YAML: the indentation shows where data and environments end."""
    is_secret = any(_SECRET.search(line) for line in lines)
    printable, inside = [], -1
    for line in lines:
        indent = len(line) - len(line.lstrip(" \t"))
        if (
            inside >= 0
            and line.strip()
            and (indent < inside or (indent == inside and not line.lstrip().startswith("-")))
        ):
            inside = -1
        opens = _OPENS.match(line)
        if inside >= 0 and not (_SAID.match(line) and not is_secret):
            printable.append(_stars(line, opens.end() if opens else 0, len(line)))
        elif inside < 0 and opens and _opens_hidden(opens["key"], is_secret=is_secret):
            inside = indent
            printable.append(_stars(line, opens.end(), len(line)))
        else:
            printable.append(line)
    return printable


def _opens_hidden(key: str, *, is_secret: bool) -> bool:
    return key in _ENVIRONMENTS or key.endswith("last-applied-configuration") or (is_secret and key in _SECRET_DATA)


def _hidden(root: Any) -> Iterator[Any]:
    """Yield the nodes whose text is to be hidden; a node that stands in the text once is looked at once."""
    left, visited = [root], set()
    while left:
        node = left.pop()
        if id(node) in visited:
            continue
        visited.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            left += node.value
        if not isinstance(node, yaml.MappingNode):
            continue
        is_secret = any(key.value == "kind" and value.value == "Secret" for key, value in node.value)
        is_variable = {"name", "value"} <= {key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)}
        for key, value in node.value:
            name = key.value if isinstance(key, yaml.ScalarNode) else ""
            if name == _LAST_APPLIED or (is_variable and name == "value"):
                yield value
            elif is_secret and name in _SECRET_DATA:
                yield from _values(value)
            elif name in _ENVIRONMENTS:
                yield from _environment(value)
            else:
                left += (key, value)


def _environment(node: Any) -> Iterator[Any]:
    """Yield the values of a list of variables, or of an object with one for each."""
    if not isinstance(node, yaml.SequenceNode):
        yield from _values(node)
        return
    for variable in node.value:
        if not isinstance(variable, yaml.MappingNode):
            yield variable
            continue
        yield from (value for key, value in variable.value if key.value not in _SAID_OF_ENVIRONMENT)


def _values(node: Any) -> Iterator[Any]:
    if isinstance(node, yaml.MappingNode):
        yield from (value for _, value in node.value)
    else:
        yield node


def _hide(lines: list[str], node: Any) -> None:
    start, end = node.start_mark, node.end_mark
    for number in range(start.line, min(end.line + 1, len(lines))):
        line = lines[number]
        lines[number] = _stars(
            line, start.column if number == start.line else 0, end.column if number == end.line else len(line)
        )


def _stars(line: str, start: int, end: int) -> str:
    """Hide a part of a line, but not what indents it."""
    hidden = "".join(character if character in " \t" else "*" for character in line[start:end])
    return line[:start] + hidden + line[end:]


class Passing(StrEnum):
    """Why a part of the input is passed over."""

    NON_MANIFEST = "non-manifest"
    """Without `apiVersion` and `kind` at its top: a file for another tool, such as values or a CI workflow."""
    TEMPLATE = "template"
    """Becomes a manifest when a tool renders it."""
    TOOL_FILE = "tool-file"
    """An object for a program on the user's side, such as a kubeconfig."""
    EMBEDDED = "embedded"
    """A manifest in a text of a ConfigMap or in the values of a chart, which nothing may ever apply."""
    HIDDEN = "hidden-directory"
    """A hidden directory with YAML files."""
    LEFT_OUT = "left-out"
    """Something else that is not read, such as a link out of the repository."""


class Problem(Struct, frozen=True):
    """Text of a file that could not be read, or that Kubernetes reads in an unexpected way.

    `line`, `column` and `end` (behind the region) count from 1; line 0 means the file as a whole. `remedy` says what to
    do. A `warning` leaves the object readable; with any other problem it is not evaluated. `excerpt` shows the line.
    `passing` is the reason to skip the text if the user did not name the file; None for a manifest. A `note` is a cause
    outside of the files, such as a program that is not installed. `blames` is a file that a program could not read: an
    error in it is the same problem. `of_rendering` says that a chart or kustomization was not rendered.
    """

    source: str
    line: int
    column: int
    message: str
    remedy: str
    warning: bool = False
    excerpt: Excerpt = NO_EXCERPT
    end: int = 0
    passing: Passing | None = None
    note: bool = False
    blames: str = ""
    of_rendering: bool = False


class ReadError(Exception):
    """A text cannot be read at `line` and `column` (from 1, in that text); `remedy` says what to do."""

    def __init__(self, message: str, line: int, column: int, remedy: str) -> None:
        super().__init__(message)
        self.message = message
        self.line = line
        self.column = column
        self.remedy = remedy
