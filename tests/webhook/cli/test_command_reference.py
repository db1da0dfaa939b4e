"""The page on commands: every command, each of its arguments and flags."""

from __future__ import annotations

import argparse

import pytest

from gpugate.tools.command_reference import command_reference
from gpugate.webhook.cli.parsers import parsers


@pytest.fixture(scope="module")
def page() -> str:
    return command_reference()


@pytest.mark.parametrize("name", parsers())
def test_a_command_has_a_section_with_each_of_its_flags(page: str, name: str) -> None:
    section = page.partition(f"\n## gpugate {name}\n")[2].partition("\n## ")[0]
    flags = [
        flag
        for action in parsers()[name]._actions
        if action.help != argparse.SUPPRESS and not isinstance(action, argparse._HelpAction)
        for flag in action.option_strings
    ]
    assert section
    assert [flag for flag in flags if f"`{flag}" not in section] == []


def test_it_is_the_same_whatever_the_terminal(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    assert command_reference() == page


def test_no_placeholder_of_argparse_is_left(page: str) -> None:
    assert "%(" not in page
