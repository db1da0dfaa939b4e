"""Each block has exactly one way of being checked; one without is a mistake of its page."""

from __future__ import annotations

import ast
import csv
import importlib
import io
import json
import tomllib
from typing import TYPE_CHECKING, Final

from documentation.command_lines import mistake
from documentation.console import commands, programs
from documentation.documents import project_mistakes, yaml_mistakes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from documentation.blocks import Block

# Commands of gpugate that look at files and nothing else.
_OFFLINE: Final = {
    *("check", "completion", "config", "explain", "new-policy", "policies", "review", "schema", "test"),
    *("--help", "--version"),
}
_LOCAL: Final = {"cat", "cd", "cp", "diff", "echo", "git", "grep", "head", "ls", "mkdir", "mv", "rm", "sed", "tail"}


def is_run(block: Block) -> bool:
    """Say whether the commands of a block are run: all look at files only, or the page says so."""
    if block.language != "console" or block.generated:
        return False
    if "run" in block.words:
        return True
    if {"checkout", "cluster", "parse"} & set(block.words):
        return False
    try:
        return all(_is_local(words) for command in commands(block.text) for words in programs(command.text))
    except ValueError:
        return False


def _is_local(words: list[str]) -> bool:
    if words[0] == "gpugate":
        return words[1:2] != [] and (words[1] in _OFFLINE or (words[1] in {"audit", "catalogue"} and "--from" in words))
    return words[0] in _LOCAL


def mistakes(block: Block) -> list[str]:
    """Return what is wrong with a block, as far as it can be told without running it."""
    if block.language not in _WAYS:
        return [f"nothing says how to check `{block.language}`: the languages are {', '.join(filter(None, _WAYS))}"]
    return list(_WAYS[block.language](block))


def _console(block: Block) -> Iterator[str]:
    try:
        shown = commands(block.text)
    except ValueError as error:
        yield str(error)
        return
    if is_run(block) or "checkout" in block.words:
        return
    for command in shown:
        for words in programs(command.text):
            wrong = mistake(words)
            if wrong:
                yield f"`{' '.join(words)}`: {wrong}"


def _text(block: Block) -> Iterator[str]:
    """A picture, or what a program prints; commands in it, as in an epilog, are held against the parsers."""
    for line in block.text.splitlines():
        if line.startswith("$ "):
            yield "commands belong into a block of `console`"
        elif line.strip().startswith("gpugate ") and block.generated:
            called = next(programs(line.strip()))
            wrong = mistake(called)
            if wrong:
                yield f"`{' '.join(called)}`: {wrong}"


def _python(block: Block) -> Iterator[str]:
    """Python that compiles, and imports of ours that are there."""
    try:
        tree = ast.parse(block.text)
    except SyntaxError as error:
        yield f"is no Python: {error}"
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("gpugate"):
            module = importlib.import_module(node.module or "")
            missing = [name.name for name in node.names if not hasattr(module, name.name)]
            yield from (f"{node.module} has no {name}" for name in missing)


def _json(block: Block) -> Iterator[str]:
    for line in [block.text] if block.text.lstrip().startswith(("{\n", "[\n")) else block.text.splitlines():
        try:
            json.loads(line)
        except ValueError as error:
            yield f"is no JSON: {error}"


def _toml(block: Block) -> Iterator[str]:
    try:
        found = tomllib.loads(block.text)
    except tomllib.TOMLDecodeError as error:
        yield f"is no TOML: {error}"
        return
    if "gpugate" in found.get("tool", {}):
        yield from project_mistakes(found["tool"]["gpugate"])


def _csv(block: Block) -> Iterator[str]:
    rows = list(csv.reader(io.StringIO(block.text)))
    if len({len(row) for row in rows}) != 1:
        yield "its rows are not of one length"


def _diff(block: Block) -> Iterator[str]:
    strange = [line for line in block.text.splitlines() if line and line[0] not in " +-@\\"]
    yield from (f"is no difference of files: {line}" for line in strange)


_WAYS: Final[dict[str, Callable[[Block], Iterator[str] | list[str]]]] = {
    "": _text,
    "console": _console,
    "csv": _csv,
    "diff": _diff,
    "json": _json,
    "python": _python,
    "text": _text,
    "toml": _toml,
    "yaml": yaml_mistakes,
}
