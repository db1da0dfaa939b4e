"""Shows how far a long run is, to a person who watches it."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpugate.policies.sdk.objects import Kind

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


@contextmanager
def listing(*, quiet: bool) -> Iterator[Callable[[Kind, int, int | None], None]]:
    """Give a function that is told of every page: its kind, its objects, and how many are to come if that is known."""
    if quiet or sys.stderr is None or not sys.stderr.isatty():
        yield lambda _kind, _count, _left: None
        return
    from rich.console import Console  # noqa: PLC0415 -- 45 ms, for a terminal only
    from rich.progress import Progress  # noqa: PLC0415

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("Reading", total=None)
        last: list[Kind] = []

        def told(kind: Kind, count: int, left: int | None) -> None:
            if last != [kind]:
                last[:] = [kind]
                bar.reset(task, description=f"Reading {kind.plural}", total=None)
            bar.advance(task, count)
            bar.update(task, total=None if left is None else bar.tasks[task].completed + left)

        yield told
