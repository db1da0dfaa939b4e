"""Expand the paths of a command line into the files to read."""

from __future__ import annotations

import errno
import os
import stat
import sys
from enum import Enum
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gpugate.policies.sdk import formats
from gpugate.policies.sdk.structs import Struct
from gpugate.webhook.manifests.bounded_file import MAX_BYTES, MAX_DIRECTORIES, read_regular
from gpugate.webhook.manifests.problems import Passing, Problem
from gpugate.webhook.manifests.within import is_within, link_out, tree_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


class Selection(Struct, frozen=True):
    """Which files are wanted, of those that paths stand for.

    Attributes:
        exclude: patterns of files and directories to leave out. One without a slash is for a name at any depth, one
            with a slash for a path from the working directory on, in which `**` stands for any number of directories.
        force_exclude: a program named the files one by one, as pre-commit does: leave out those too, and pass over what is no
            manifest.
        ignored: real paths of files and directories to leave out, because git ignores them.
        changed: real paths; only these files are wanted where it is given.
    """

    exclude: tuple[str, ...] = ()
    force_exclude: bool = False
    ignored: frozenset[str] = frozenset()
    changed: frozenset[str] | None = None

    def excludes(self, path: str) -> bool:
        """Tell whether a pattern is for a path, or for a directory above it."""
        if not self.exclude:
            return False
        return any(_fits(pattern, path) for pattern in self.exclude)

    def is_unchanged(self, path: str) -> bool:
        """Tell whether only changed files are wanted, and this is none."""
        return self.changed is not None and os.path.realpath(path) not in self.changed


def _fits(pattern: str, path: str) -> bool:
    written = os.path.abspath(path) if pattern.startswith("/") else os.path.relpath(path)  # noqa: PTH100 -- `..` is to go
    parts, wanted = _parts(written), _parts(pattern)
    if "/" not in pattern.rstrip("/"):
        return any(formats.matches(wanted[0], part) for part in parts) if wanted else False
    return any(_matches(wanted, parts[:length]) for length in range(1, len(parts) + 1))


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in {"", os.curdir}]


def _matches(wanted: Sequence[str], parts: Sequence[str]) -> bool:
    """Match directory by directory, in a time that no pattern can blow up: `reached` are the places in the pattern."""
    reached = _past_any(wanted, {0})
    for part in parts:
        fitting = {i for i in reached if i < len(wanted) and formats.matches(wanted[i], part)}
        reached = _past_any(wanted, {i if wanted[i] == "**" else i + 1 for i in fitting})
    return len(wanted) in reached


def _past_any(wanted: Sequence[str], reached: set[int]) -> set[int]:
    """Add the places behind each `**`, which may stand for no directory at all."""
    positions, waiting = set(reached), list(reached)
    while waiting:
        position = waiting.pop()
        if position < len(wanted) and wanted[position] == "**" and position + 1 not in positions:
            positions.add(position + 1)
            waiting.append(position + 1)
    return positions


CHART_FILE: Final = "Chart.yaml"
# The names that kustomize looks for, in this order (sigs.k8s.io/kustomize/api v0.20 konfig.RecognizedKustomizationFileNames).
KUSTOMIZATION_FILES: Final = ("kustomization.yaml", "kustomization.yml", "Kustomization")
_CHART_DIRECTORIES: Final = ("templates", "charts")


class Chart(Struct, frozen=True):
    """The directory of a Helm chart."""

    name: str


class Kustomization(Struct, frozen=True):
    """A directory with a kustomization, and the name of the file in it."""

    name: str
    file: str


def source_of(path: str) -> Chart | Kustomization | None:
    """Return the chart or the kustomization that a file belongs to, when the file alone says nothing."""
    parent, name = os.path.split(path)
    if name in KUSTOMIZATION_FILES:
        return Kustomization(parent or os.curdir, name)
    parts = Path(path).parts
    # From the top on, because a subchart is rendered with the chart that it is part of.
    for depth in range(len(parts)):
        above = str(Path(*parts[:depth])) if depth else os.curdir
        inside = parts[depth] in _CHART_DIRECTORIES and depth < len(parts) - 1
        of_chart = depth == len(parts) - 1 and is_of_chart(name)
        if (inside or of_chart) and Path(above, CHART_FILE).is_file():
            return Chart(above)
    return None


def is_of_chart(name: str) -> bool:
    """Tell what a chart is made of from files that are beside it."""
    values = name.startswith("values") and name.endswith((".yaml", ".yml", ".json"))
    return values or name in {CHART_FILE, "Chart.lock", *_CHART_DIRECTORIES}


STDIN: Final = "-"
_YAML: Final = (".yaml", ".yml")
_SUFFIXES: Final = (*_YAML, ".json")
_BEGINNING: Final = 1 << 16  # bytes; the head of a manifest is in its first lines
_TERRAFORM: Final = ".tf"
_TOO_LARGE: Final = f"larger than {MAX_BYTES >> 20} MiB"
_TEMPLATES = "Helm templates: check what `helm template {}` makes of them"
_LINK: Final = "a link out of the repository"
_NAME_TARGET: Final = "name what it leads to, if that is to be read"
_HIDDEN: Final = "a hidden directory with {} YAML {}: name it, if they are to be read"
_GIT: Final = ".git"
_MOST_HIDDEN: Final = 10_000  # entries looked at to count them, as an environment of Python may be hidden
_WANTS_ALL: Final = Selection()


class Rendering(Struct, frozen=True):
    """What a text was made of, and how: `unit` is the same for renderings that take each other's place in a cluster."""

    source: str
    unit: str


class ObjectsInValues(Struct, frozen=True):
    """Which values of a chart that is not in the tree are objects.

    Attributes:
        files: patterns of the values files, as those of `exclude`.
        path: keys with dots between them; `*` stands for each member of an object and each item of a list.
        api_version: of the objects.
        kind: of the objects.
        spec: the key below which an item has the spec, with dots; empty where the item is the spec.
    """

    files: tuple[str, ...]
    path: str
    api_version: str
    kind: str
    spec: str = ""


class Language(Enum):
    """What a file is written in where it is neither YAML nor JSON."""

    HCL = "Terraform"
    TEMPLATE = "a template of Terraform"


class Input(Struct, frozen=True):
    """A file to read, by its name for people; `explicit` when the user named it and not only its directory.

    `data` is the content where it was read before, because it can be read only once, or because no file has it, as with
    what was rendered. `display_name` is the name for people where it is another one. `unrendered` is the chart or kustomization that
    the file is part of and that was not rendered, and `altered` says that this one would change the objects of the file.
    `language` is what it is written in besides YAML and JSON, and `objects` are those that it holds as values of a chart.
    `of_chart` says that a chart of the run is rendered with these values, which shows their further manifests.
    """

    name: str
    explicit: bool
    data: bytes | None = None
    rendering: Rendering | None = None
    display_name: str = ""
    unrendered: str = ""
    altered: bool = False
    language: Language | None = None
    objects: tuple[ObjectsInValues, ...] = ()
    of_chart: bool = False

    def read(self) -> bytes | Problem:
        """Return the content, or why there is none."""
        if self.data is not None:
            return self.data
        if self.name == STDIN and sys.stdin is None:
            return _problem("standard input", "is closed", "pipe something into it")
        try:
            return self._data()
        except (OSError, ValueError) as error:
            if isinstance(error, OSError) and error.errno == errno.EFBIG:
                return Problem(self.name, 0, 0, _TOO_LARGE, "split it", passing=self._passing())
            return _unreadable(self.name, error)

    def _passing(self) -> Passing | None:
        """Say why a file that is too large is passed over; None where its beginning may be that of a manifest."""
        with Path(self.name).open("rb") as opened:
            beginning = opened.read(_BEGINNING).decode(errors="replace")
        # In JSON `kind` may stand behind thousands of items.
        return None if "apiVersion" in beginning else Passing.NON_MANIFEST

    def _data(self) -> bytes:
        """Read a regular file up to the limit; what ends later, such as a pipe, up to one byte more, for the reader to refuse."""
        if self.name == STDIN:
            return sys.stdin.buffer.read(MAX_BYTES + 1)
        if not self.is_stream:
            return read_regular(Path(self.name), MAX_BYTES)
        with Path(self.name).open("rb") as opened:
            return opened.read(MAX_BYTES + 1)

    @property
    def is_stream(self) -> bool:
        """Whether it can be read only once, and by this process."""
        return self.name == STDIN or self.name.startswith("/dev/")

    @property
    def label(self) -> str:
        """The name in messages."""
        return self.display_name or ("<stdin>" if self.name == STDIN else self.name)


class Passed(Struct, frozen=True):
    """A directory that was not looked into, and why; `hidden` counts the YAML files in one that is hidden."""

    name: str
    reason: str
    hidden: int = 0
    passing: Passing = Passing.LEFT_OUT


Found = Input | Problem | Passed


def expand(paths: Iterable[str], selection: Selection = _WANTS_ALL) -> Iterator[Found]:
    """Yield the files that paths stand for: files, directories with all below them, patterns, `-`.

    In a directory, files whose names end in .yaml, .yml or .json count; those in hidden directories do not, and are
    counted. A file that is reached twice is yielded once. What is made for Helm is passed over.
    """
    for part in _Walk(selection, renders=False).all(paths):
        if not isinstance(part, Chart | Kustomization):
            yield part


def sources(paths: Iterable[str], selection: Selection = _WANTS_ALL) -> Iterator[Found | Chart | Kustomization]:
    """Yield the files that paths stand for, and the charts and kustomizations, which are to be rendered.

    What a chart is made of is not yielded, but files beside it are; those that a kustomization uses are. A file of a
    chart or a kustomization that is named by itself stands for all of it.
    """
    yield from _Walk(selection, renders=True).all(paths)


class _Walk:
    """Goes through directories; `renders` tells charts and kustomizations apart from plain files."""

    def __init__(self, selection: Selection, *, renders: bool) -> None:
        self._selection = selection
        self._renders = renders
        self._reached: set[tuple[type, str]] = set()
        self._entered: set[str] = set()
        self._top: str | None = None

    def all(self, paths: Iterable[str]) -> Iterator[Found | Chart | Kustomization]:
        for path in paths:
            for part in self._expand(path):
                if isinstance(part, Input | Chart | Kustomization):
                    real = os.path.realpath(part.name) if part.name != STDIN else STDIN
                    if (type(part), real) in self._reached:
                        continue
                    self._reached.add((type(part), real))
                yield part

    def _expand(self, path: str) -> Iterator[Found | Chart | Kustomization]:
        if path == STDIN:
            yield Input(STDIN, explicit=True)
            return
        out = link_out(path)
        if out is not None:
            yield _problem(path, _LINK if out == os.path.relpath(path) else f"is below {out}, {_LINK}", _NAME_TARGET)
            return
        try:
            mode = Path(path).stat().st_mode
        except (OSError, ValueError) as error:
            matches = _expand_pattern(path) if isinstance(error, FileNotFoundError) else []
            for match in matches:
                yield from self._expand(match)
            if not matches:
                yield _unreadable(path, error)
            return
        if self._selection.force_exclude and self._selection.excludes(path):
            return
        if stat.S_ISDIR(mode):
            self._top = tree_of(path)
            yield from self._directory(path, (os.path.realpath(path),), linked=False)
        # /dev/fd is how a shell passes `<(command)`.
        elif stat.S_ISREG(mode) or (stat.S_ISFIFO(mode) and path.startswith("/dev/fd/")):
            whole = source_of(path) if self._renders else None
            if whole or stat.S_ISFIFO(mode) or not self._selection.is_unchanged(path):
                # A hook names all changed files, which need not be manifests.
                yield whole or Input(path, explicit=not self._selection.force_exclude, language=self._language(path))
        else:
            yield _problem(path, "is neither a file nor a directory", "give a file, or pipe it into `gpugate check -`")

    def _directory(
        self, directory: str, above: tuple[str, ...], *, linked: bool
    ) -> Iterator[Found | Chart | Kustomization]:
        if len(above) > MAX_DIRECTORIES:
            yield _problem(directory, f"is more than {MAX_DIRECTORIES} directories deep", "give it by its own name")
            return
        self._entered.add(above[-1])
        try:
            entries = sorted(os.scandir(directory), key=lambda entry: entry.name)
        except OSError as error:
            yield _unreadable(directory, error)
            return
        chart = any(entry.name == CHART_FILE for entry in entries)
        if self._renders:
            names = {entry.name for entry in entries}
            if chart:
                yield Chart(directory)
            yield from [Kustomization(directory, name) for name in KUSTOMIZATION_FILES if name in names][:1]
        for entry in entries:
            if not self._is_left_out(entry, above[-1]):
                yield from self._entry(entry, above, in_chart=chart, linked=linked)

    def _entry(
        self, entry: os.DirEntry[str], above: tuple[str, ...], *, in_chart: bool, linked: bool
    ) -> Iterator[Found | Chart | Kustomization]:
        try:
            is_directory, is_file = entry.is_dir(), entry.is_file()
        except OSError as error:
            yield _unreadable(entry.path, error)
            return
        of_chart = in_chart and self._renders and is_of_chart(entry.name)
        is_wanted = entry.name.endswith(_SUFFIXES) or self._language(entry.name) is not None
        if (is_directory or is_wanted) and not of_chart and self._leads_out(entry):
            yield Passed(entry.path, f"{_LINK}: {_NAME_TARGET}")
            return
        if is_directory and not entry.name.startswith("."):
            real = os.path.realpath(entry.path)
            if in_chart and entry.name == "templates" and not self._renders:
                reason = _TEMPLATES.format(os.path.dirname(entry.path))  # noqa: PTH120 -- a text
                yield Passed(entry.path, reason, passing=Passing.TEMPLATE)
            elif real in above:
                yield _problem(entry.path, "is a link to a directory above it", "remove the link, or name its contents")
            elif not of_chart:
                linked = linked or entry.is_symlink()
                # Links to links to links would lead to the same files in more ways than there is time for.
                if not (linked and real in self._entered):
                    yield from self._directory(entry.path, (*above, real), linked=linked)
        elif is_directory and not of_chart and entry.name != _GIT:
            yield from self._hidden(entry, above[-1])
        elif is_file and is_wanted and not (of_chart or self._selection.is_unchanged(entry.path)):
            yield Input(entry.path, explicit=False, language=self._language(entry.name))

    def _language(self, name: str) -> Language | None:
        return Language.HCL if self._renders and name.endswith(_TERRAFORM) else None

    def _hidden(self, hidden: os.DirEntry[str], above: str) -> Iterator[Passed]:
        """Count the YAML files of a hidden directory, which `kubectl apply --recursive` would read."""
        count = looked = 0
        left = [(hidden.path, f"{above}{os.sep}{hidden.name}")]
        while left and looked < _MOST_HIDDEN:
            directory, real = left.pop()
            try:
                entries = list(islice(os.scandir(directory), _MOST_HIDDEN))
            except OSError:
                continue
            looked += len(entries)
            for entry in entries:
                if self._is_left_out(entry, real):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    left.append((entry.path, f"{real}{os.sep}{entry.name}"))
                elif entry.name.endswith(_YAML) and not self._selection.is_unchanged(entry.path):
                    count += 1
        if count:
            reason = _HIDDEN.format(f"{count:,}", "file" if count == 1 else "files")
            yield Passed(hidden.path, reason, count, Passing.HIDDEN)

    def _leads_out(self, entry: os.DirEntry[str]) -> bool:
        """Tell whether an entry is a link out of the repository, or to git's own files."""
        if self._top is None or not entry.is_symlink():
            return False
        return not is_within(entry.path, self._top)

    def _is_left_out(self, entry: os.DirEntry[str], real: str) -> bool:
        ignored = self._selection.ignored
        return bool(ignored and f"{real}{os.sep}{entry.name}" in ignored) or self._selection.excludes(entry.path)


_ANY_DEPTH: Final = "**/"


def _expand_pattern(pattern: str) -> list[str]:
    """Return the files and directories that a pattern matches, sorted; `**` is any number of directories.

    Hidden ones are excluded. `**` follows no links, which may form a cycle: `glob` of Python 3.14 would follow it until a
    path is too long, and two such links in every possible order.
    """
    if not any(character in pattern for character in "*?["):
        return []
    return sorted(_files_matching(f"{pattern}/*" if pattern == "**" or pattern.endswith("/**") else pattern))


def _files_matching(pattern: str) -> set[str]:
    import glob  # noqa: PLC0415 -- shells expand most patterns themselves

    before, any_depth, after = pattern.partition(_ANY_DEPTH)
    if not any_depth or (before and not before.endswith("/")):
        return set(glob.glob(pattern))  # noqa: PTH207 -- Path.glob refuses absolute patterns
    while after.startswith(_ANY_DEPTH):
        after = after.removeprefix(_ANY_DEPTH)
    matches: set[str] = set()
    for start in glob.glob(before) if before else [os.curdir]:  # noqa: PTH207 -- as above
        for folder, folders, _ in os.walk(start):
            folders[:] = [name for name in folders if not name.startswith(".")]
            inside = os.path.join(glob.escape(folder), after)  # noqa: PTH118 -- Path drops the slash at the end
            matches |= _files_matching(inside if before else inside.removeprefix("./"))
    return matches


def _unreadable(name: str, error: OSError | ValueError) -> Problem:
    if isinstance(error, ValueError):
        return _problem(
            name, "is not a valid file name: it contains a character that no file name can have", "correct the path"
        )
    remedies = {
        FileNotFoundError: "check the spelling, and the directory you are in",
        PermissionError: "make it readable for you",
    }
    return _problem(name, (error.strerror or "cannot be read").lower(), remedies.get(type(error), "check the path"))


def _problem(name: str, message: str, remedy: str) -> Problem:
    return Problem(name, 0, 0, message, remedy)
