from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

import pytest

from gpugate.webhook.cli.completing import Directive, candidates

if TYPE_CHECKING:
    from collections.abc import Iterable

FILES, NO_FILES = Directive.FILES, Directive.NO_FILES


@pytest.fixture
def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="gpugate toy")
    made.add_argument("--select", action="append", metavar="ID", help="only these (default: %(default)s)")
    made.add_argument("-o", "--output", metavar="FMT[=FILE]", help="format")
    made.add_argument("--mode", choices=("warn", "enforce"))
    made.add_argument("--fix", action="store_true")
    made.add_argument("--values", type=str, metavar="FILE")
    made.add_argument("--name", metavar="NAME")
    made.add_argument("--secret", help=argparse.SUPPRESS)
    made.add_argument("path", nargs="*", metavar="PATH")
    return made


def values(action: argparse.Action) -> Iterable[str] | None:
    known = {"ID": ["pods/a", "pods/b", "nodepools/c"], "FMT[=FILE]": ["text", "sarif"]}
    return known.get(str(action.metavar))


LINES = {
    "a file": ("x", [], FILES),
    "flags": ("--f", ["--fix"], NO_FILES),
    "a flag that was given is not offered again": ("--fix --f", [], NO_FILES),
    "but one that may be repeated is": ("--select pods/a --se", ["--select"], NO_FILES),
    "a hidden flag never": ("--sec", [], NO_FILES),
    "the value of a flag": ("--mode ", ["warn", "enforce"], NO_FILES),
    "a value that was begun": ("--mode e", ["enforce"], NO_FILES),
    "behind an equals sign": ("--mode=e", ["--mode=enforce"], NO_FILES),
    "ids": ("--select pods/", ["pods/a", "pods/b"], NO_FILES),
    "ids behind a comma": ("--select pods/a,pods/", ["pods/a,pods/b"], NO_FILES),
    "formats": ("-o s", ["sarif"], NO_FILES),
    "the file of a format": ("-o sarif=", [], FILES),
    "the file of a flag": ("--values ", [], FILES),
    "what nobody knows": ("--name ", [], NO_FILES),
    "after a value, a file again": ("--mode warn ", [], FILES),
    "a flag that does not exist is passed over": ("--what ", [], FILES),
    "no flags behind two dashes": ("-- --f", [], FILES),
}


@pytest.mark.parametrize(("line", "words", "directive"), LINES.values(), ids=LINES)
def test_what_can_stand_next(
    line: str, words: list[str], directive: Directive, parser: argparse.ArgumentParser
) -> None:
    found = candidates(parser, line.split(" "), values)

    assert (list(found.words), found.directive) == (words, directive)


def test_the_long_form_of_a_flag_comes_first(parser: argparse.ArgumentParser) -> None:
    found = list(candidates(parser, ["-"], values).words)

    assert found == ["--fix", "--help", "--mode", "--name", "--output", "--select", "--values", "-h", "-o"]


def test_a_flag_says_what_it_does_with_its_default(parser: argparse.ArgumentParser) -> None:
    assert candidates(parser, ["--select"], values).words == {"--select": "only these (default: None)"}


@pytest.fixture
def nested() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser()
    made.add_argument("--verbose", action="store_true")
    commands = made.add_subparsers()
    commands.add_parser("list", help="what there is")
    add = commands.add_parser("add", help="one more")
    add.add_argument("kind", choices=("crd", "openapi"))
    add.add_argument("file", metavar="FILE")
    return made


SUBCOMMANDS = {
    "their names": ("", {"list": "what there is", "add": "one more"}, NO_FILES),
    "after a flag": ("--verbose a", {"add": "one more"}, NO_FILES),
    "the first argument of one": ("add c", {"crd": ""}, NO_FILES),
    "the second": ("add crd ", {}, FILES),
    "there is no third": ("add crd x ", {}, NO_FILES),
    "one that does not exist": ("ad crd ", {}, NO_FILES),
}


@pytest.mark.parametrize(("line", "words", "directive"), SUBCOMMANDS.values(), ids=SUBCOMMANDS)
def test_subcommands(line: str, words: dict[str, str], directive: Directive, nested: argparse.ArgumentParser) -> None:
    found = candidates(nested, line.split(" "), values)

    assert (found.words, found.directive) == (words, directive)
