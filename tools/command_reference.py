"""The page on every command: what it is for, its arguments and flags, read from the parsers.

It is not argparse's own help, whose layout differs between versions of Python and widths of terminals.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from gpugate.tools.reference_pages import cell, code, table
from gpugate.webhook.cli.parsers import help_lines, parsers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_HEAD: Final = """<!-- Written by `make generate` from the parsers of the commands. -->

# Commands

All commands, with their arguments and flags. `gpugate COMMAND --help` prints the same. [Exit codes](../exit-codes.md) and
[output formats](../formats.md) have pages of their own.
"""


def command_reference() -> str:
    """Return the page."""
    lines = help_lines()
    all_parsers = parsers()
    listed = table(
        ("command", "does"), ((f"[`gpugate {name}`](#{_anchor(name)})", cell(lines[name])) for name in all_parsers)
    )
    sections = "".join(_command(name, lines[name], parser) for name, parser in all_parsers.items())
    return f"{_HEAD}\n{listed}{sections}"


def _anchor(name: str) -> str:
    return f"gpugate-{name.replace(' ', '-')}"


def _command(name: str, line: str, parser: argparse.ArgumentParser) -> str:
    text = f"\n## gpugate {name}\n\n{_sentence(parser.description or line)}\n"
    for group in parser._action_groups:  # noqa: SLF001 -- argparse has no public way to the actions of a parser
        rows = list(_rows(group._group_actions, parser.prog))  # noqa: SLF001 -- as above
        if rows:
            title = {"positional arguments": "arguments", "options": "flags"}.get(group.title or "", group.title)
            about = f"{_sentence(group.description)}\n\n" if group.description else ""
            text += f"\n{about}{table((title or '', 'meaning'), rows)}"
    if parser.epilog:
        text += f"\n```text\n{parser.epilog % {'prog': parser.prog}}\n```\n"
    return text


def _sentence(text: str) -> str:
    text = cell(text)
    return text if text.endswith((".", ":", "`")) else f"{text}."


def _rows(actions: Iterable[argparse.Action], program: str) -> Iterator[tuple[str, str]]:
    for action in actions:
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 -- it has no public name
            yield code("|".join(action.choices)).replace("|", "\\|"), "subcommand"
        elif action.help != argparse.SUPPRESS and not isinstance(action, argparse._HelpAction):  # noqa: SLF001 -- as above
            yield _written(action), cell(_help(action, program))


def _written(action: argparse.Action) -> str:
    value = _value(action)
    if not action.option_strings:
        return code(value).replace("|", "\\|")
    return ", ".join(code(f"{flag} {value}".rstrip()).replace("|", "\\|") for flag in action.option_strings)


def _value(action: argparse.Action) -> str:
    if action.nargs == 0:
        return ""
    plain = action.metavar if isinstance(action.metavar, str) else None
    placeholder = plain or ("|".join(map(str, action.choices)) if action.choices else action.dest.upper())
    return {"*": f"[{placeholder} ...]", "+": f"{placeholder} ...", "?": f"[{placeholder}]"}.get(
        str(action.nargs), placeholder
    )


def _help(action: argparse.Action, program: str) -> str:
    return (action.help or "") % {**vars(action), "prog": program}
