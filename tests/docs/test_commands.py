"""Commands that need no cluster are run, page by page, in an empty folder, and print what the page shows."""

from __future__ import annotations

import shlex
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import groupby
from typing import TYPE_CHECKING

import pytest
from documentation.blocks import blocks
from documentation.console import Command, commands
from documentation.shell import fits, run
from documentation.ways import is_run

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from documentation.blocks import Block

PAGES = {page: list(found) for page, found in groupby(blocks(), key=lambda block: block.page)}
RUN = {page: found for page, found in PAGES.items() if any(map(is_run, found))}


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Future[list[tuple[str, int]]]]]:
    """What each command of each page prints, and its exit code; pages are run side by side."""
    new = tmp_path_factory.mktemp
    with ThreadPoolExecutor(4) as pool:
        yield {page: pool.submit(run_page, found, new("reader"), new("files")) for page, found in RUN.items()}


@pytest.mark.parametrize("page", RUN)
def test_commands_print_what_their_page_shows(page: str, printed: Mapping[str, Future[list[tuple[str, int]]]]) -> None:
    for (place, command), (text, code) in zip(shown(RUN[page]), printed[page].result(), strict=True):
        said = f"{place}: $ {command.text}\n{text}(exit code {code})"
        assert fits(command.output, text) if command.output else code == 0 and not text, said


def shown(found: list[Block]) -> list[tuple[str, Command]]:
    """Return every command that is run, with its place."""
    return [
        (f"{block.page}:{block.line + 1 + command.offset}", command)
        for block in found
        if is_run(block)
        for command in commands(block.text)
    ]


def run_page(found: list[Block], folder: Path, files: Path) -> list[tuple[str, int]]:
    """Run the commands of a page; between them its reader writes the files that it shows."""
    steps: list[Command] = []
    written: set[int] = set()
    for block in found:
        if is_run(block):
            steps += commands(block.text)
        elif block.file:
            written.add(len(steps))
            steps.append(writing(block, files))
    return [ran for index, ran in enumerate(run(steps, folder)) if index not in written]


def writing(block: Block, files: Path) -> Command:
    """Return a command that writes a block to where its page says, from a file that is kept for it."""
    kept = files / str(block.line)
    kept.write_text(block.text)
    name = shlex.quote(block.file)
    return Command(f"mkdir -p $(dirname {name}) && cp {shlex.quote(str(kept))} {name}", "", 0)
