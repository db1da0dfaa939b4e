"""`gpugate __complete WORD...` and the executable `kubectl_complete-gpugate`: what a shell asks at each press of TAB.

The answer is that of programs made with cobra, because kubectl reads it so: a line for each candidate, with a tab before
its description, and a last line `:DIRECTIVE`. Source: kubernetes/enhancements, KEP-2379 "Shell Completion Support".
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from gpugate.webhook.cli.candidates import Candidates, candidates
from gpugate.webhook.cli.main import COMMANDS
from gpugate.webhook.cli.parsers import imported

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Sequence
    from types import ModuleType

_FIRST = {"--help": "what commands there are", "--version": "the version"}


def run() -> int:
    """Answer kubectl, with the arguments of the process, and return the exit code."""
    return main(sys.argv[1:])


def main(words: Sequence[str]) -> int:
    """Print what can stand in the place of the last word; return the exit code."""
    found = complete(words or [""])
    for word, text in found.words.items():
        print(f"{word}\t{text}" if text else word)
    print(f":{found.directive.value}")
    return 0


def complete(words: Sequence[str]) -> Candidates:
    """Return what can stand in the place of the last of the words after `gpugate`."""
    name, *others = words
    if not others:
        flags = _FIRST if name.startswith("-") else {}
        return Candidates({**{command: found.help for command, found in COMMANDS.items()}, **flags}).beginning(name)
    command = COMMANDS.get(name)
    module = imported(f"gpugate.webhook.cli.{command.module}") if command else None
    subcommands = getattr(module, "SUBCOMMANDS", None)
    if module is not None and subcommands is not None:
        name, *others = others
        if not others:
            return Candidates(subcommands).beginning(name)
        module = imported(f"{module.__package__}.{name}") if name in subcommands else None
    if module is None:
        return Candidates()
    return candidates(module.parser(), others, lambda action: _values(module, action))


def _values(module: ModuleType, action: argparse.Action) -> Iterable[str] | None:
    """The values that the name of an argument stands for."""
    if action.metavar == "ID":
        from gpugate.policies.catalog import CATALOG  # noqa: PLC0415 -- importing it reads every policy

        return [policy.id for policy in CATALOG]
    if action.metavar == "FMT[=FILE]":
        formats: Iterable[str] | None = getattr(module, "FORMATS", None)
        return formats
    return None
