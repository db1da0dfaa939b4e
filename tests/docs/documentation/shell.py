"""Runs the commands of a page as a reader types them: one shell, one folder that is empty at first."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from documentation.console import Command

_MARK: Final = "\x1e"
# Prints where a command ends and what it returned, and leaves `$?` as it was.
_MARKING: Final = r"__mark() { local status=$?; printf '\036%d\036' $status; return $status; }"
_LONGEST: Final = 120  # seconds for a page


def run(
    commands: Sequence[Command], folder: Path, programs: Sequence[Path] = (), **environment: str
) -> list[tuple[str, int]]:
    """Run commands one after the other in a folder and return what each prints and its exit code.

    Args:
        commands: what is typed.
        folder: where; it is the home of whoever types, too.
        programs: folders whose programs are found first.
        environment: variables beside those of somebody who has just installed gpugate.

    Raises:
        AssertionError: the shell ended before the last of them.
    """
    script = "\n".join([_MARKING, *(f"{command.text}\n__mark" for command in commands)])
    done = subprocess.run(  # noqa: S603 -- the commands of our own pages, from this repository
        [shutil.which("bash") or "bash", "--norc", "-c", script],
        cwd=folder,
        env={**_environment(folder, programs), **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=_LONGEST,
        check=False,
        text=True,
    )
    parts = done.stdout.split(_MARK)
    ended = list(zip(parts[::2], map(int, parts[1::2]), strict=False))
    assert len(ended) == len(commands), f"after {len(ended)} commands the shell ended:\n{done.stdout[-2000:]}"
    return ended


def _environment(folder: Path, programs: Sequence[Path]) -> dict[str, str]:
    own = Path(sys.executable).parent
    return {
        "PATH": os.pathsep.join([*map(str, programs), str(own), "/usr/local/bin", "/usr/bin", "/bin"]),
        "HOME": str(folder),
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "COLUMNS": "120",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_AUTHOR_NAME": "Reader",
        "GIT_AUTHOR_EMAIL": "reader@example.com",
        "GIT_COMMITTER_NAME": "Reader",
        "GIT_COMMITTER_EMAIL": "reader@example.com",
        "KUBECONFIG": os.devnull,
    }


def fits(shown: str, printed: str) -> bool:
    """Say whether a command printed what its page shows; `...` on a line of its own is any lines, within one any text."""
    pattern = ""
    for line in shown.splitlines():
        if line.strip() == "...":
            pattern += r"(?:[^\n]*\n)*?"
        else:
            pattern += ".*?".join(re.escape(part) for part in line.rstrip().split("...")) + r"[ \t]*\n"
    return re.fullmatch(pattern, printed if printed.endswith("\n") else f"{printed}\n") is not None
