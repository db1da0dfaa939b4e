"""Which files a test may name: those that its author could have written, and no others of who runs it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from gpugate.webhook.manifests.inputs import STDIN
from gpugate.webhook.manifests.within import is_within, work_tree

if TYPE_CHECKING:
    from collections.abc import Iterator


class OutOfReachError(Exception):
    """A test may not name a file; the text says why, and what to do."""


def beside(file: str, path: str) -> str:
    """Return the name of a file whose path begins in the folder of another one.

    Raises:
        OutOfReachError: it is no file's name, or leads out of what the other file belongs to: its git work tree, else
            the folder above its own and, where it is below that, the working directory.
    """
    if path == STDIN:
        raise OutOfReachError("`-` is no file: name one, from the case file's folder")
    folder = os.path.dirname(file)  # noqa: PTH120 -- for the next line
    name = os.path.normpath(os.path.join(folder, path))  # noqa: PTH118 -- pathlib keeps `..`
    try:
        reachable = any(is_within(name, top) for top in _tops(folder))
    except ValueError:
        raise OutOfReachError("is no name of a file: it holds a character that none can have") from None
    if not reachable:
        raise OutOfReachError(
            f"{path} leads out of {next(_tops(folder))}, beyond which tests read nothing: copy the file into it"
        )
    return name


def _tops(folder: str) -> Iterator[str]:
    tree = work_tree(folder)
    if tree is not None:
        yield tree
        return
    real = os.path.realpath(folder)
    yield os.path.dirname(real)  # noqa: PTH120 -- a text, as `work_tree` gives
    here = os.path.realpath(os.curdir)
    if is_within(real, here):
        yield here
