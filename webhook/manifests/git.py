"""Asks git which files it ignores and which have changed."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gpugate.policies.engine.config import GpugateError
from gpugate.webhook.manifests.within import work_tree

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

_SECONDS: Final = 60
# fsmonitor and hooks are programs that a repository chooses. A directory that looks like a bare repository can be a part of
# the clone, with settings of its own, which the author of a change chooses. Filters: `_unfiltered`.
_HARMLESS: Final = (
    *("-c", "core.fsmonitor=false"),
    *("-c", f"core.hooksPath={os.devnull}"),
    *("-c", "safe.bareRepository=explicit"),
)
_ENVIRONMENT: Final = {
    "LC_ALL": "C",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_LAZY_FETCH": "1",
    # Else the content of a commit would be that of another one, where refs below refs/replace were fetched.
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_TERMINAL_PROMPT": "0",
}
_OF_FILTERS: Final = ("clean", "process", "required")
_REGULAR: Final = "100"  # how the modes of files begin; those of links are 120000
_SUBMODULE: Final = "160000 "
_HISTORY: Final = "fetch the history: `git fetch --unshallow`, in GitHub Actions `fetch-depth: 0` of actions/checkout, in GitLab CI GIT_DEPTH: 0"


class GitError(GpugateError):
    """git cannot say what was asked; the text says what to do."""


@dataclass(frozen=True, slots=True)
class Revision:
    """The files of one commit, such as the one that a change is to be merged into; no filter of git is run on them.

    Attributes:
        name: what the user calls it.
        top: the real path of the work tree.
        commit: its id.
    """

    name: str
    top: str
    commit: str

    def holds(self, path: str) -> bool:
        """Tell whether a path is below the work tree, whatever links say: only then can the commit have it."""
        return not self._name(path).startswith(f"{os.pardir}/") and self._name(path) != os.pardir

    def file(self, path: str, limit: int) -> bytes | None:
        """Return the content of a regular file as it is in the commit; None where that has none of the name.

        Raises:
            GitError: it is a link, a directory or larger than `limit` bytes; or git cannot say.
        """
        entries = self._entries("--", self._name(path))
        if not entries:
            return None
        mode, kind, size, sha, _ = entries[0]
        if kind != "blob" or not mode.startswith(_REGULAR):
            raise GitError(f"{path}: is not a regular file in {self.name}: put a file in its place")
        if int(size) > limit:
            raise GitError(f"{path}: larger than {limit >> 20} MiB in {self.name}")
        return _output(self.top, "cat-file", "blob", sha)

    def files(self, folder: str, limit: int) -> dict[str, bytes]:
        """Return the regular files directly in a folder of the commit: name -> content.

        Raises:
            GitError: they are more than `limit` bytes together; or git cannot say.
        """
        contents: dict[str, bytes] = {}
        for mode, kind, size, sha, name in self._entries("--", f"{self._name(folder)}/"):
            if kind == "blob" and mode.startswith(_REGULAR):
                limit -= int(size)
                if limit < 0:
                    raise GitError(f"{folder}: its files are too large in {self.name}")
                contents[os.path.basename(name)] = _output(self.top, "cat-file", "blob", sha)  # noqa: PTH119 -- a text
        return contents

    def tree(self, folder: str, limit: int, most: int, wanted: Callable[[str], bool]) -> dict[str, bytes]:
        """Return the wanted regular files below a folder of the commit: path relative to the folder -> content.

        Args:
            folder: the folder.
            limit: the size of all wanted files together, in bytes.
            most: the number of entries below the folder.
            wanted: tells of a relative path whether its content is read.

        Raises:
            GitError: the files are too large or too many; or git cannot say.
        """
        top = self._name(folder)
        files: dict[str, bytes] = {}
        entries = self._entries("-r", "--", *([] if top == os.curdir else [f"{top}/"]))
        if len(entries) > most:
            raise GitError(f"{folder}: more than {most:,} files in {self.name}")
        for mode, kind, size, sha, name in entries:
            relative = os.path.relpath(name, top)
            if kind == "blob" and mode.startswith(_REGULAR) and wanted(relative):
                limit -= int(size)
                if limit < 0:
                    raise GitError(f"{folder}: its files are too large in {self.name}")
                files[relative] = _output(self.top, "cat-file", "blob", sha)
        return files

    def _name(self, path: str) -> str:
        return os.path.relpath(os.path.abspath(path), self.top)  # noqa: PTH100 -- pathlib resolves links

    def _entries(self, *arguments: str) -> list[tuple[str, str, str, str, str]]:
        """Return mode, kind, size, id and name of entries of the commit."""
        flags = ("-z", "--long", "--full-tree", self.commit)
        entries = []
        for line in _git(self.top, "--literal-pathspecs", "ls-tree", *flags, *arguments):
            about, _, name = line.partition("\t")
            mode, kind, sha, size = about.split()
            entries.append((mode, kind, size, sha, name))
        return entries


def revision(reference: str, directory: str) -> Revision:
    """Return a commit of the repository that a directory is in.

    Raises:
        GitError: there is no git, no work tree, or no such commit.
    """
    top = work_tree(directory)
    if top is None:
        raise GitError(f"--base {reference}: {directory} is not in a git work tree; run it in one")
    _require(top, reference, "--base")
    (commit, *_) = _git(top, "rev-parse", "--verify", "--end-of-options", f"{reference}^{{commit}}")
    return Revision(reference, top, commit.strip())


def ignored(directories: Iterable[str]) -> frozenset[str]:
    """Return the real paths of files and directories that git ignores below some directories.

    A directory of which all is ignored stands for what is in it. What git tracks is not ignored, whatever patterns say.

    Raises:
        GitError: git is missing, or refuses.
    """
    within: dict[str, list[str]] = {}
    for directory in directories:
        top = work_tree(directory)
        if top is not None:
            within.setdefault(top, []).append(os.path.relpath(os.path.realpath(directory), top))
    # Not `git status`, which compares files with what is committed, and has filters look at them. git fails where an
    # ignored directory is above all that is asked for, as ls-files takes it for a prefix: `.git` shares none, and is not
    # listed itself.
    flags = ("-z", "--others", "--ignored", "--exclude-standard", "--directory")
    return frozenset(
        os.path.normpath(os.path.join(top, name))  # noqa: PTH118 -- a text
        for top, names in within.items()
        for name in _git(top, "--literal-pathspecs", "ls-files", *flags, "--", *names, ".git")
    )


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
        raise GitError(f"--changed-since: {where} is not in a git work tree; run it in one, or name files instead")
    return frozenset(file for top in tops if top for file in _changed(reference, top))


def _changed(reference: str, top: str) -> Iterator[str]:
    _require(top, reference, "--changed-since")
    try:
        (base, *_) = _git(top, "merge-base", "--", reference, "HEAD")
    except GitError as error:
        shallow = Path(top, ".git", "shallow").exists()
        why = "this clone is shallow" if shallow else "they have none"
        raise GitError(f"--changed-since {reference}: no commit in common with HEAD: {why}; {_HISTORY}") from error
    for name in _differing(top, base.strip()):
        real = os.path.realpath(os.path.join(top, name))  # noqa: PTH118 -- a text
        yield real
        for folder, _, files in os.walk(real):
            yield from (os.path.realpath(os.path.join(folder, file)) for file in files)  # noqa: PTH118 -- as above


def _require(top: str, reference: str, flag: str) -> None:
    """Refuse a reference that git knows no commit of.

    Raises:
        GitError: it knows none.
    """
    if "\0" in reference or reference.startswith("-") or not _known(top, reference):
        remote = reference.partition("/")[2] or reference
        raise GitError(f"{flag} {reference}: unknown commit; fetch it: `git fetch origin {remote}`, or {_HISTORY}")


def _differing(directory: str, commit: str) -> list[str]:
    """Return the names of what differs from a commit: files, those that git does not know, submodules.

    Files are compared as they are, without filters: one that was touched, and that a filter changes, differs.
    """
    # Else .gitmodules could say that its submodules never differ. `dirty` is for other commits only: to see what was changed
    # in a submodule git starts another git, for which the settings of the submodule hold, and so its filters.
    flags = ("--name-only", "-z", "--no-renames", "--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty")
    differing = _git(directory, *_unfiltered(directory), "diff", *flags, commit, "--")
    differing += _git(directory, "ls-files", "-z", "--others", "--exclude-standard")
    known = frozenset(differing)
    for entry in _git(directory, "ls-files", "-z", "--stage"):
        name = entry.partition("\t")[2]
        if entry.startswith(_SUBMODULE) and name not in known and _is_dirty(os.path.join(directory, name)):  # noqa: PTH118 -- a text
            differing.append(name)
    return differing


def _is_dirty(submodule: str) -> bool:
    if not Path(submodule, ".git").exists():
        return False
    try:
        return bool(_differing(submodule, "HEAD"))
    except GitError as error:
        if error.__cause__ is None:
            return True  # What cannot be compared is not known to be the same.
        raise


def _unfiltered(directory: str) -> list[str]:
    """Return arguments of git that keep the filters from running that settings name.

    Raises:
        GitError: they cannot be.
    """
    arguments: list[str] = []
    for name in dict.fromkeys(_git(directory, "config", "-z", "--list", "--name-only")):
        section, _, remainder = name.partition(".")
        driver, _, key = remainder.rpartition(".")
        if section != "filter" or key not in _OF_FILTERS:
            continue
        if "=" in driver:
            raise GitError(f"a filter of git's settings has a name with `=`, and could run: {driver!r}; rename it")
        arguments += ("-c", f"{name}={'false' if key == 'required' else ''}")
    return arguments


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
    return [name for name in os.fsdecode(_output(directory, *arguments)).split("\0") if name]


def _output(directory: str, *arguments: str) -> bytes:
    """Run git; return what it wrote.

    Raises:
        GitError: as `_git`.
    """
    program = shutil.which("git")
    if program is None:
        raise GitError("git is not on PATH: install it") from FileNotFoundError("git")
    # Hooks run with variables that name another directory. The transport to a remote, from which a partial clone would
    # fetch missing objects, is a program that a repository chooses. A parent of the directory is another repository.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command = [program, *_HARMLESS, "-C", directory, *arguments]
    try:
        ran = subprocess.run(  # noqa: S603 -- git, with arguments of ours; a reference is behind `--` or looked at before
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env={**environment, **_ENVIRONMENT, "GIT_CEILING_DIRECTORIES": os.path.dirname(directory)},  # noqa: PTH120 -- a text
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise GitError(f"git cannot be run: {error}") from error
    if ran.returncode:
        lines = ran.stderr.decode(errors="replace").strip().splitlines()
        raise GitError(f"git refuses: {lines[0].removeprefix('fatal: ') if lines else f'exit code {ran.returncode}'}")
    return ran.stdout
