"""Says what the parser's complaint means to the person who wrote the file."""

from __future__ import annotations

import re
from typing import Final

import yaml

from gpugate.webhook.manifests.problems import ReadError

# What the parser says, and what to do about it; the first that fits.
_REMEDIES: Final = (
    ("mapping values are not allowed", "indent this line under its parent, or put a value that holds `: ` in quotes"),
    ("did not find expected key", "begin all keys of one object in the same column"),
    ("could not find expected ':'", "end the key with a colon, or put the text before it in quotes"),
    ("block sequence entries are not allowed", "begin the list on its own line, under its key"),
    ("did not find expected '-' indicator", "begin all items of one list with `-` in the same column"),
    ("did not find expected ',' or", "close the bracket, or put a comma between the members"),
    ("found unexpected end of stream", "close the quote or bracket that is open here"),
    ("found undefined tag handle", "remove the tag"),
    ("did not find expected alphabetic or numeric character", "put a value that begins with * or & in quotes"),
    ("did not find expected <document start>", "indent this line, or begin the document with ---"),
)
_TAB = "indent with spaces, not with tabs"
_QUOTE = "put a value that begins with this character in quotes"
_UNREADABLE = re.compile("[^\t\n\r -~\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def explain(error: yaml.YAMLError, text: str) -> ReadError:
    """Turn an exception of PyYAML into a ReadError with place and remedy."""
    if isinstance(error, yaml.MarkedYAMLError):
        problem = error.problem or error.context or "cannot be read"
        # What is never closed began where the context says; the end of the file helps nobody.
        unclosed = "end of stream" in problem and error.context_mark
        mark = unclosed or error.problem_mark or error.context_mark
        line, column = (mark.line, mark.column) if mark else (0, 0)
        return ReadError(f"not YAML: {problem}", line + 1, column + 1, _remedy(problem, text, line))
    found = _UNREADABLE.search(text)
    before = text[: found.start()] if found else ""
    character = f"the control character U+{ord(found[0]):04X}" if found else "a character that YAML does not allow"
    line = before.count("\n") + 1
    return ReadError(f"not YAML: {character}", line, len(before) - before.rfind("\n"), "remove it, or write an escape")


def _remedy(problem: str, text: str, line: int) -> str:
    lines = text.splitlines()
    shown = lines[line] if line < len(lines) else ""
    if "cannot start any token" in problem:
        return _TAB if "\t" in shown[: len(shown) - len(shown.lstrip())] else _QUOTE
    fitting = (remedy for part, remedy in _REMEDIES if part in problem)
    return next(fitting, "check quotes, brackets and indentation around this line")
