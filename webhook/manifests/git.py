"""Asks git which files it ignores and which have changed."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gpugate.policies.engine.errors import GpugateError
from gpugate.webhook.manifests.work_tree import work_tree

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_SECONDS: Final = 60
_HARMLESS: Final = ("-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}")
_ENVIRONMENT: Final = {
    "LC_ALL": "C",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_TERMINAL_PROMPT": "0",
}
_IGNORED: Final = "!! "
_HISTORY: Final = "fetch the history: `git fetch --unshallow`, in GitHub Actions `fetch-depth: 0` of actions/checkout, in GitLab CI GIT_DEPTH: 0"


class GitError(GpugateError):
    """git cannot say what was asked; the text says what to do."""


def ignored(directories: Iterable[str]) -> frozenset[str]:
    """Return the real paths of files and directories that git ignores below some directories.

    A directory of which all is ignored stands for what is in it. What git tracks is not ignored, whatever patterns say.

    Raises:
        GitError: git is missing, or refuses.
    """
    found: set[str] = set()
    for directory in directories:
        top = work_tree(directory)
        if top is None:
            continue
        flags = ("--ignored=matching", "--untracked-files=all", "--ignore-submodules=all", "--no-renames")
        for entry in _git(os.path.realpath(directory), "status", "--porcelain", "-z", *flags, "--", "."):
            if entry.startswith(_IGNORED):
                # Names are those from the top on.
                found.add(os.path.normpath(os.path.join(top, entry.removeprefix(_IGNORED))))  # noqa: PTH118 -- a text
    return frozenset(found)


def changed_since(reference: str, paths: Sequence[str]) -> frozenset[str]:
    """Return the real paths of the files that differ from what HEAD and a reference have in common.

    Also those that were deleted or renamed, by their old names too, and those that git does not know yet; all files of a
    submodule, a repository within or a linked directory that differs. Looked for in the work tree of each of some paths.

    Raises:
        GitError: there is no git, no work tree, no such reference, or not enough history.
    """
    tops = dict.fromkeys(map(work_tree, paths))
    if not tops or None in tops:
        where = next((path for path in paths if work_tree(path) is None), os.curdir)
        raise GitError(
            f"--changed-since: there is no git work tree here: {where}; run it in one, or name files instead"
        )
    return frozenset(file for top in tops if top for file in _changed(reference, top))


def _changed(reference: str, top: str) -> Iterator[str]:
    if "\0" in reference or reference.startswith("-") or not _known(top, reference):
        remote = reference.partition("/")[2] or reference
        raise GitError(
            f"--changed-since {reference}: git knows no such commit; fetch it: `git fetch origin {remote}`, or {_HISTORY}"
        )
    try:
        (base, *_) = _git(top, "merge-base", "--", reference, "HEAD")
    except GitError as error:
        shallow = Path(top, ".git", "shallow").exists()
        why = "this clone is shallow" if shallow else "they have none"
        raise GitError(f"--changed-since {reference}: no commit in common with HEAD: {why}; {_HISTORY}") from error
    # Else .gitmodules could say that its submodules never differ.
    flags = ("--name-only", "-z", "--no-renames", "--no-ext-diff", "--no-textconv", "--ignore-submodules=none")
    differing = _git(top, "diff", *flags, base.strip(), "--")
    unknown = _git(top, "ls-files", "-z", "--others", "--exclude-standard")
    for name in (*differing, *unknown):
        real = os.path.realpath(os.path.join(top, name))  # noqa: PTH118 -- a text
        yield real
        for folder, _, files in os.walk(real):
            yield from (os.path.realpath(os.path.join(folder, file)) for file in files)  # noqa: PTH118 -- as above


def _known(top: str, reference: str) -> bool:
    try:
        _git(top, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{reference}^{{commit}}")
    except GitError as error:
        if error.__cause__ is None:
            return False
        raise
    return True


def _git(directory: str, *arguments: str) -> list[str]:
    """Run git; return what it wrote, parted where there are NULs.

    Raises:
        GitError: it failed; with a cause where it did not even run.
    """
    program = shutil.which("git")
    if program is None:
        raise GitError("git is not on PATH: install it") from FileNotFoundError("git")
    # Hooks run with variables that name another directory; fsmonitor and hooks are programs that a repository chooses, and
    # so is the way to a remote, from which a partial clone would fetch what it lacks.
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command = [program, *_HARMLESS, "-C", directory, *arguments]
    try:
        ran = subprocess.run(  # noqa: S603 -- git, with arguments of ours; a reference is behind `--` or looked at before
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env={**kept, **_ENVIRONMENT},
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise GitError(f"git cannot be run: {error}") from error
    if ran.returncode:
        said = ran.stderr.decode(errors="replace").strip().splitlines()
        raise GitError(f"git refuses: {said[0].removeprefix('fatal: ') if said else f'exit code {ran.returncode}'}")
    return [name for name in os.fsdecode(ran.stdout).split("\0") if name]
