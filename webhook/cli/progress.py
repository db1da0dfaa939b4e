"""Shows on a terminal how far a long run is: one line, which is removed at the end."""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Final, TextIO

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpugate.policies.sdk.objects import Kind

# Fewer files are checked before a line could be read.
MANY_FILES: Final = 200
# In seconds, so that writing takes no measurable part of the run.
_PAUSE: Final = 0.1


class _Line:
    """A line that each text overwrites. It is written without escape sequences, which some consoles print."""

    def __init__(self, terminal: TextIO) -> None:
        self._terminal = terminal
        self._written = 0
        self._due = 0.0

    def show(self, text: str) -> None:
        """Show a text, cut to the width of the terminal; nothing shortly after another one."""
        now = monotonic()
        if now >= self._due:
            self._due = now + _PAUSE
            self._write(text[: shutil.get_terminal_size().columns - 1])

    def remove(self) -> None:
        """Leave an empty line, with the cursor at its beginning."""
        self._write("")
        self._terminal.write("\r")
        self._terminal.flush()

    def _write(self, text: str) -> None:
        self._terminal.write(f"\r{text:<{self._written}}")
        self._terminal.flush()
        self._written = len(text)


@contextmanager
def _line(*, quiet: bool) -> Iterator[Callable[[str], None] | None]:
    """Return a function that shows a text; None without a terminal that can return to the beginning of a line."""
    if quiet or sys.stderr is None or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield None
        return
    line = _Line(sys.stderr)
    try:
        yield line.show
    finally:
        line.remove()


@contextmanager
def progress(files: int, *, quiet: bool) -> Iterator[Callable[[int], None]]:
    """Give a function that takes how many files were read, and how many were evaluated, since its last call."""
    done = 0

    def advance(count: int) -> None:
        nonlocal done
        done += count
        if show:
            show(f"Checking {files:,} files: {50 * done // files}%")

    with _line(quiet=quiet or files < MANY_FILES) as show:
        yield advance


@contextmanager
def listing(*, quiet: bool) -> Iterator[Callable[[Kind, int, int | None], None]]:
    """Give a function that takes every page: its kind, its objects, and how many are to come if that is known."""
    kinds: list[Kind] = []
    count = 0

    def page(kind: Kind, objects: int, left: int | None) -> None:
        nonlocal count
        count = objects if kinds != [kind] else count + objects
        kinds[:] = [kind]
        if show:
            show(f"Reading {kind.plural}: {count:,}" + ("" if left is None else f" of {count + left:,}"))

    with _line(quiet=quiet) as show:
        yield page
