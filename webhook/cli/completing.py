"""`gpugate __complete WORD...` and the executable `kubectl_complete-gpugate`: what a shell asks at each press of TAB.

The answer is that of programs made with cobra, because kubectl reads it so: a line for each candidate, with a tab before
its description, and a last line `:DIRECTIVE`. Source: kubernetes/enhancements, KEP-2379 "Shell Completion Support".
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass, field
from enum import IntEnum
from importlib import import_module
from typing import TYPE_CHECKING, Final

from gpugate.webhook.cli.main import COMMANDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from types import ModuleType

_SEVERAL: Final = ("*", "+", argparse.REMAINDER)


class Directive(IntEnum):
    """What the shell adds. Source: spf13/cobra 1.10, completions.go, `ShellCompDirective`; kubectl reads the same."""

    FILES = 0
    NO_SPACE = 2
    NO_FILES = 4


@dataclass(frozen=True, slots=True)
class Candidates:
    """Words that can stand next, each with a description that may be empty, and what the shell does beside them."""

    words: Mapping[str, str] = field(default_factory=dict)
    directive: Directive = Directive.NO_FILES

    def beginning(self, prefix: str) -> Candidates:
        """Return those that begin with what is written already."""
        return Candidates({word: text for word, text in self.words.items() if word.startswith(prefix)}, self.directive)


def candidates(parser: argparse.ArgumentParser, words: Sequence[str], values: Values) -> Candidates:
    """Return what can stand in the place of the last word.

    Args:
        parser: the parser of the command.
        words: the words after the command; the last one, which may be empty, is being written.
        values: the values of an argument, where they are known beside its choices; None where they are not.
    """
    *before, current = words
    position = _position(parser, before)
    if position.subparser is not None:
        return candidates(position.subparser, words[position.used :], values)
    if position.option is not None:
        return _value_candidates(position.option, current, values)
    name, equals, value = current.partition("=")
    option = _options(parser).get(name)
    if position.options and equals and option is not None and option.nargs != 0:
        values_of_option = _value_candidates(option, value, values)
        return Candidates(
            {f"{name}={word}": text for word, text in values_of_option.words.items()}, values_of_option.directive
        )
    if position.options and current.startswith("-"):
        return _flags(parser, position.used_options).beginning(current)
    if position.positional is not None:
        return _value_candidates(position.positional, current, values)
    return Candidates()


@dataclass(slots=True)
class _Position:
    """The position of the last word: the value of an option, a positional argument, or in a subcommand."""

    positional: argparse.Action | None = None
    option: argparse.Action | None = None
    subparser: argparse.ArgumentParser | None = None
    options: bool = True
    used_options: set[str] = field(default_factory=set)
    used: int = 0


def _position(parser: argparse.ArgumentParser, before: Sequence[str]) -> _Position:
    position = _Position()
    options = _options(parser)
    positionals = [action for action in parser._actions if not action.option_strings]  # noqa: SLF001 -- no public way
    for number, word in enumerate(before, 1):
        name, equals, _ = word.partition("=")
        if position.option is not None:
            position.option = None
        elif position.options and word == "--":
            position.options = False
        elif position.options and name in options:
            position.used_options.add(options[name].dest)
            position.option = options[name] if options[name].nargs != 0 and not equals else None
        elif position.options and word.startswith("-") and word != "-":
            continue
        elif positionals:
            choices = positionals[0].choices
            if isinstance(positionals[0], argparse._SubParsersAction):  # noqa: SLF001 -- as above
                position.subparser = choices.get(word) if isinstance(choices, dict) else None
                position.used = number
                return position
            if positionals[0].nargs not in _SEVERAL:
                positionals = positionals[1:]
    position.positional = positionals[0] if positionals else None
    return position


def _options(parser: argparse.ArgumentParser) -> Mapping[str, argparse.Action]:
    return parser._option_string_actions  # noqa: SLF001 -- argparse has no public way to its options


def _flags(parser: argparse.ArgumentParser, used: set[str]) -> Candidates:
    lines: dict[str, str] = {}
    for action in parser._actions:  # noqa: SLF001 -- as above
        again = isinstance(action, (argparse._AppendAction, argparse._CountAction))  # noqa: SLF001 -- as above
        if action.help != argparse.SUPPRESS and (again or action.dest not in used):
            lines |= dict.fromkeys(action.option_strings, _line(parser, action))
    # The long form says what it does; the short one is for those who know it.
    return Candidates({word: lines[word] for word in sorted(lines, key=lambda word: (word[:2] != "--", word))})


def _line(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    return parser._get_formatter()._expand_help(action) if action.help else ""  # noqa: SLF001 -- as above


def _value_candidates(action: argparse.Action, current: str, values: Values) -> Candidates:
    if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 -- as above
        lines = {choice.dest: choice.help or "" for choice in action._choices_actions}  # noqa: SLF001 -- as above
        return Candidates({word: lines.get(word, "") for word in action.choices}).beginning(current)
    if action.choices is not None:
        return Candidates(dict.fromkeys(map(str, action.choices), "")).beginning(current)
    metavar = action.metavar if isinstance(action.metavar, str) else ""
    known = values(action)
    if known is None:
        return Candidates(directive=Directive.FILES if _is_file(metavar) else Directive.NO_FILES)
    if metavar.endswith("[=FILE]"):
        if "=" in current:
            return Candidates(directive=Directive.FILES)
        return Candidates(dict.fromkeys(known, ""), Directive.NO_FILES).beginning(current)
    return Candidates(dict.fromkeys(_listed(known, current), "")).beginning(current)


def _listed(known: Iterable[str], current: str) -> Iterator[str]:
    """Values behind the last comma, without those before it."""
    before, comma, _ = current.rpartition(",")
    taken = before.split(",")
    yield from (f"{before}{comma}{value}" for value in known if value not in taken)


def _is_file(metavar: str) -> bool:
    return any(word in metavar for word in ("FILE", "PATH", "DIR", "CHART", "."))


_FIRST = {"--help": "list the commands", "--version": "show the version"}


def run() -> int:
    """Answer kubectl, with the arguments of the process, and return the exit code."""
    return main(sys.argv[1:])


def main(words: Sequence[str]) -> int:
    """Print what can stand in the place of the last word; return the exit code."""
    completed = complete(words or [""])
    for word, text in completed.words.items():
        print(f"{word}\t{text}" if text else word)
    print(f":{completed.directive.value}")
    return 0


def complete(words: Sequence[str]) -> Candidates:
    """Return what can stand in the place of the last of the words after `gpugate`."""
    name, *others = words
    if not others:
        flags = _FIRST if name.startswith("-") else {}
        return Candidates({**{command: entry.help for command, entry in COMMANDS.items()}, **flags}).beginning(name)
    if name not in COMMANDS:
        return Candidates()
    module = import_module(f"gpugate.webhook.{COMMANDS[name].module}")
    subcommands = getattr(module, "SUBCOMMANDS", None)
    if subcommands is not None:
        name, *others = others
        if not others:
            return Candidates(subcommands).beginning(name)
        if name not in subcommands:
            return Candidates()
        module = import_module(f"{module.__package__}.{name}")
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


if TYPE_CHECKING:
    Values = Callable[[argparse.Action], Iterable[str] | None]
