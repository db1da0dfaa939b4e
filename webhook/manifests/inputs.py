"""Turns the paths of a command line into files to read."""

from __future__ import annotations

import os
import stat
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gpugate.webhook.manifests.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

STDIN: Final = "-"
_SUFFIXES: Final = (".yaml", ".yml", ".json")
_TEMPLATES = "Helm templates: check what `helm template {}` makes of them"


@dataclass(frozen=True, slots=True)
class Input:
    """A file to read, by its name for people; `explicit` when the user named it and not only its directory.

    `data` is the content where it was read before, because it can be read only once.
    """

    name: str
    explicit: bool
    data: bytes | None = None

    def read(self) -> bytes | Problem:
        """Return the content, or why there is none."""
        if self.data is not None:
            return self.data
        try:
            if self.name == STDIN:
                if sys.stdin is None:
                    return _problem("standard input", "is closed", "pipe something into it")
                return sys.stdin.buffer.read()
            return Path(self.name).read_bytes()
        except OSError as error:
            return _unreadable(self.name, error)

    @property
    def is_stream(self) -> bool:
        """Whether it can be read only once, and by this process."""
        return self.name == STDIN or self.name.startswith("/dev/")

    @property
    def label(self) -> str:
        """The name in messages."""
        return "<stdin>" if self.name == STDIN else self.name


@dataclass(frozen=True, slots=True)
class Passed:
    """A directory that was not looked into, and why."""

    name: str
    reason: str


def expand(paths: Iterable[str]) -> Iterator[Input | Problem | Passed]:
    """Yield the files that paths stand for: files, directories with all below them, patterns, `-`.

    In a directory, files whose names end in .yaml, .yml or .json count; hidden directories do not. A file that is
    reached twice is yielded once.
    """
    seen: set[str] = set()
    for path in paths:
        for found in _expand(path):
            if isinstance(found, Input):
                real = os.path.realpath(found.name) if found.name != STDIN else STDIN
                if real in seen:
                    continue
                seen.add(real)
            yield found


def _expand(path: str) -> Iterator[Input | Problem | Passed]:
    if path == STDIN:
        yield Input(STDIN, explicit=True)
        return
    try:
        mode = Path(path).stat().st_mode
    except FileNotFoundError as error:
        matches = _glob(path) if any(c in path for c in "*?[") else []
        for match in matches:
            yield from _expand(match)
        if not matches:
            yield _unreadable(path, error)
        return
    except OSError as error:
        yield _unreadable(path, error)
        return
    if stat.S_ISDIR(mode):
        yield from _walk(path, (os.path.realpath(path),))
    # /dev/fd is how a shell passes `<(command)`.
    elif stat.S_ISREG(mode) or (stat.S_ISFIFO(mode) and path.startswith("/dev/fd/")):
        yield Input(path, explicit=True)
    else:
        yield _problem(path, "is neither a file nor a directory", "give a file, or pipe it into `gpugate check -`")


def _glob(pattern: str) -> list[str]:
    import glob  # noqa: PLC0415 -- shells expand patterns themselves, so that this is rarely needed

    return sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207 -- Path.glob refuses absolute patterns


def _walk(directory: str, above: tuple[str, ...]) -> Iterator[Input | Problem | Passed]:
    try:
        entries = sorted(os.scandir(directory), key=lambda entry: entry.name)
    except OSError as error:
        yield _unreadable(directory, error)
        return
    chart = any(entry.name == "Chart.yaml" for entry in entries)
    for entry in entries:
        try:
            is_directory, is_file = entry.is_dir(), entry.is_file()
        except OSError as error:
            yield _unreadable(entry.path, error)
            continue
        if is_directory and not entry.name.startswith("."):
            real = os.path.realpath(entry.path)
            if chart and entry.name == "templates":
                yield Passed(entry.path, _TEMPLATES.format(directory))
            elif real in above:
                yield _problem(entry.path, "is a link to a directory above it", "remove the link, or name its contents")
            else:
                yield from _walk(entry.path, (*above, real))
        elif is_file and entry.name.endswith(_SUFFIXES):
            yield Input(entry.path, explicit=False)


def _unreadable(name: str, error: OSError) -> Problem:
    remedies = {
        FileNotFoundError: "check the spelling, and the directory you are in",
        PermissionError: "make it readable for you",
    }
    return _problem(name, (error.strerror or "cannot be read").lower(), remedies.get(type(error), "check the path"))


def _problem(name: str, message: str, remedy: str) -> Problem:
    return Problem(name, 0, 0, message, remedy)
