"""The help of every command: its width, its first word and its examples."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Any, Final

import pytest

from gpugate.webhook.cli.main import COMMANDS
from gpugate.webhook.cli.parsers import help_lines, parsers

if TYPE_CHECKING:
    from collections.abc import Callable

    Run = Callable[..., Any]

PARSERS: Final = parsers()
# All help texts: those of the parsers, and those of the two programs that only list commands.
HELP: Final = (*(words.split() for words in PARSERS), ["webhook"], [])
_EXAMPLE: Final = re.compile(r"^ .*?\bgpugate ([^|>&)\n]+)", re.MULTILINE)
_IMPERATIVES: Final = frozenset(
    {
        *("Add", "Answer", "Check", "Create", "Delete", "Diagnose", "Explain", "List", "Look", "Measure", "Operate"),
        *("Print", "Pull", "Push", "Report", "Run", "Say", "Serve", "Show", "Turn", "Undo", "Use", "Wait", "Write"),
    }
)


@pytest.mark.parametrize("words", HELP, ids=" ".join)
@pytest.mark.parametrize("columns", ["80", "200"])
def test_a_line_has_at_most_80_columns(
    columns: str, words: list[str], gpugate: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)

    text = gpugate(*words, "--help").out

    assert [line for line in text.splitlines() if len(line) > 80] == []


@pytest.mark.parametrize("words", PARSERS)
def test_an_example_parses(words: str) -> None:
    own = [example for example in _EXAMPLE.findall(PARSERS[words].epilog or "") if f"{example} ".startswith(words)]

    assert own
    for example in own:
        PARSERS[words].parse_args(shlex.split(example.removeprefix(words)))


@pytest.mark.parametrize("words", [["webhook"], []], ids=["webhook", "gpugate"])
def test_an_example_of_the_lists_parses(words: list[str], gpugate: Run) -> None:
    text = gpugate(*words, "--help").out

    examples = [shlex.split(example) for example in _EXAMPLE.findall(text.partition("\nexamples:\n")[2])]
    assert examples
    for example in examples:
        name = next(" ".join(example[:n]) for n in (2, 1) if " ".join(example[:n]) in PARSERS)
        PARSERS[name].parse_args(example[len(name.split()) :])


@pytest.mark.parametrize("words", PARSERS)
def test_the_description_starts_with_an_imperative(words: str) -> None:
    assert (PARSERS[words].description or "").partition(" ")[0] in _IMPERATIVES


@pytest.mark.parametrize("words", help_lines())
def test_the_line_in_a_list_starts_with_an_imperative(words: str) -> None:
    assert help_lines()[words].partition(" ")[0].capitalize() in _IMPERATIVES


@pytest.mark.parametrize("words", PARSERS)
def test_flags_cannot_be_abbreviated(words: str) -> None:
    assert not PARSERS[words].allow_abbrev


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command_is_the_help_flag_of_it(command: str, gpugate: Run) -> None:
    assert gpugate("help", command) == gpugate(command, "--help")
