"""Commands that a page has its reader type in a checkout are run in a copy of it."""

from __future__ import annotations

import os
import shutil
import sys
from typing import TYPE_CHECKING

import pytest
from documentation.blocks import ROOT, blocks
from documentation.console import commands
from documentation.shell import fits, run

if TYPE_CHECKING:
    from pathlib import Path

_WORD = "checkout"
_COPIED = ("Makefile", "pyproject.toml", "certs", "charts", "docs", "policies", "src", "tests", "tools", "webhook")
PAGES = sorted({block.page for block in blocks() if _WORD in block.words})


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of the repository, with the environment of this one; `make` takes that for set up."""
    made = tmp_path / "gpugate"
    made.mkdir()
    for name in _COPIED:
        if (ROOT / name).is_dir():
            leave_out = shutil.ignore_patterns("__pycache__", "*.egg-info")
            shutil.copytree(ROOT / name, made / name, symlinks=True, ignore=leave_out)
        else:
            shutil.copy(ROOT / name, made / name)
    (made / "requirements").mkdir()
    for file in (made / "requirements" / "dev.txt", made / "pyproject.toml"):
        file.touch()
        os.utime(file, (0, 0))
    programs = made / ".venv" / "bin"
    programs.mkdir(parents=True)
    (made / ".venv" / ".ready").touch()
    for name, called in (("python", ""), ("gpugate", " -m gpugate.webhook.cli.main")):
        # The copy's own source goes before the one that is installed.
        (programs / name).write_text(f'#!/bin/sh\nPYTHONPATH="{made}/src" exec "{sys.executable}"{called} "$@"\n')
        (programs / name).chmod(0o755)
    return made


@pytest.mark.parametrize("page", PAGES)
def test_commands_do_in_a_checkout_what_their_page_shows(page: str, checkout: Path) -> None:
    # Blocks with a name are written where they stand, between the commands before and behind them.
    for block in (each for each in blocks() if each.page == page):
        if block.file:
            (checkout / block.file).write_text(block.text)
        if _WORD not in block.words:
            continue
        typed = commands(block.text)
        for command, (text, code) in zip(typed, run(typed, checkout, [checkout / ".venv" / "bin"]), strict=True):
            said = f"{block}: $ {command.text}\n{text}(exit code {code})"
            assert code == 0, said
            assert fits(command.output, text) if command.output else True, said
