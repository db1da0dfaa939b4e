"""Shows how far a long run is, to a person who watches it."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# Fewer files are checked before a bar could be read.
MANY_FILES: Final = 200


@contextmanager
def progress(files: int, *, quiet: bool) -> Iterator[Callable[[int], None]]:
    """Give a function that is told how many files were read, and how many judged; it leaves nothing on the screen."""
    if quiet or files < MANY_FILES or sys.stderr is None or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console  # noqa: PLC0415 -- 45 ms, for a terminal only
    from rich.progress import Progress  # noqa: PLC0415

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("Checking", total=2 * files)
        yield lambda done: bar.advance(task, done)
