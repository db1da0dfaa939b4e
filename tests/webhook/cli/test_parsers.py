from __future__ import annotations

import pytest

from gpugate.webhook.cli.main import COMMANDS
from gpugate.webhook.cli.options import Parser
from gpugate.webhook.cli.parsers import help_lines, parsers

PARSERS = parsers()


@pytest.mark.parametrize("words", PARSERS)
def test_the_words_are_those_of_the_usage(words: str) -> None:
    assert PARSERS[words].prog == f"gpugate {words}"


@pytest.mark.parametrize("words", PARSERS)
def test_a_parser_calls_the_program_as_its_user_does(words: str) -> None:
    assert isinstance(PARSERS[words], Parser)


def test_every_command_has_one_or_leads_on_to_some() -> None:
    assert {words.partition(" ")[0] for words in PARSERS} == set(COMMANDS)


SUBCOMMANDS = {"config": "show", "webhook": "status"}


@pytest.mark.parametrize(("command", "subcommand"), SUBCOMMANDS.items(), ids=SUBCOMMANDS)
def test_subcommands_are_listed(command: str, subcommand: str) -> None:
    assert f"{command} {subcommand}" in PARSERS


@pytest.mark.parametrize("words", PARSERS)
def test_each_has_a_line_of_help(words: str) -> None:
    assert help_lines()[words]
