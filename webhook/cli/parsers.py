"""The parser of every command, for completion and for the reference in the documentation.

The module of a command, which `COMMANDS` names, has a function `parser` without required arguments. A command with
subcommands, such as `webhook`, has `SUBCOMMANDS` instead, and a module for each of them beside its own.
"""

from __future__ import annotations

import argparse
from importlib import import_module
from typing import TYPE_CHECKING

from gpugate.webhook.cli.main import COMMANDS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType


def parsers() -> dict[str, argparse.ArgumentParser]:
    """Return the parsers by their words after `gpugate`: `check`, `config`, `config show`, `webhook status`; in order of help."""
    return {" ".join(words): parser for name in COMMANDS for words, parser in _of_command(name)}


def help_lines() -> dict[str, str]:
    """Return one line on every command and subcommand, by the same words as `parsers`, and on each that has subcommands."""
    lines: dict[str, str] = {}
    for name, command in COMMANDS.items():
        lines[name] = command.help
        lines |= {" ".join(words): text for words, text in _subcommand_lines(name)}
    return lines


def _of_command(name: str) -> Iterator[tuple[tuple[str, ...], argparse.ArgumentParser]]:
    module = _module(name)
    subcommands = getattr(module, "SUBCOMMANDS", None)
    if subcommands is None:
        yield from _with_subparsers((name,), module.parser())
        return
    for word in subcommands:
        subcommand = import_module(f"{module.__package__}.{word}")
        yield from _with_subparsers((name, word), subcommand.parser())


def _subcommand_lines(name: str) -> Iterator[tuple[tuple[str, ...], str]]:
    module = _module(name)
    for word, text in getattr(module, "SUBCOMMANDS", {}).items():
        yield (name, word), text
    if hasattr(module, "parser"):
        for group in _subparsers(module.parser()):
            # argparse keeps the lines beside the parsers, for its own help.
            yield from (((name, choice.dest), choice.help or "") for choice in group._choices_actions)  # noqa: SLF001


def _with_subparsers(
    words: tuple[str, ...], parser: argparse.ArgumentParser
) -> Iterator[tuple[tuple[str, ...], argparse.ArgumentParser]]:
    yield words, parser
    for group in _subparsers(parser):
        for word, subparser in group.choices.items():
            yield from _with_subparsers((*words, word), subparser)


def _subparsers(parser: argparse.ArgumentParser) -> list[argparse._SubParsersAction[argparse.ArgumentParser]]:
    # argparse has no public way from a parser to its subparsers; all tools that read parsers go this one.
    return [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]  # noqa: SLF001


def _module(name: str) -> ModuleType:
    return import_module(f"gpugate.webhook.{COMMANDS[name].module}")
