"""Tells from which line of which template each line of a rendered chart is, by rendering it again with marks.

At the end of each line that a template writes where it stands, a comment with its number is added; what comes out is
compared with what the chart renders to, line by line. Where both are equal but for the mark, the mark is the proof.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gpugate.webhook.manifests.bounded_file import read_regular
from gpugate.webhook.manifests.within import is_git
from gpugate.webhook.rendering.template_lines import TemplateLine, template_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

_MARK: Final = re.compile(r" #gpugate-line=(?P<file>\d+):(?P<line>\d+)#")
_SOURCE: Final = re.compile(r"^# Source: (?P<file>\S.*)$")
_SUFFIXES: Final = (".yaml", ".yml", ".tpl", ".json", ".txt")
_MAX_FILES: Final = 10_000
_DIGITS: Final = 9  # more than any template has lines
MAX_TEMPLATE: Final = 2 << 20  # bytes; reading it takes a hundred times as much memory


@dataclass(slots=True)
class MarkedChart:
    """A copy of a chart in which templates have marks; `files` are the templates, by the number in their marks."""

    directory: str
    files: list[str] = field(default_factory=list)
    lines: list[list[TemplateLine]] = field(default_factory=list)


def marked_copy(chart: str, directory: str) -> MarkedChart:
    """Make the copy: links to the files as they are, and the templates written anew.

    Raises:
        OSError: it cannot be made.
    """
    copy = MarkedChart(directory)
    count = 0
    for folder, folders, names in os.walk(chart):
        folders[:] = [name for name in folders if not is_git(name)]
        files = [name for name in names if not is_git(name)]
        inside = os.path.relpath(folder, chart)
        target = Path(directory, inside)
        target.mkdir(exist_ok=True)
        count += len(files)
        if count > _MAX_FILES:
            raise OSError(f"more than {_MAX_FILES} files")
        is_template = "templates" in Path(inside).parts
        for name in folders:
            source = Path(folder, name)
            if source.is_symlink():
                (target / name).symlink_to(os.path.realpath(source))
        for name in files:
            source = Path(folder, name)
            data = _template(source) if is_template and name.endswith(_SUFFIXES) else None
            if data is None:
                (target / name).symlink_to(os.path.realpath(source))
            else:
                (target / name).write_bytes(_marked(data, os.path.join(folder, name), copy))  # noqa: PTH118 -- `./` stays
    return copy


def _template(source: Path) -> bytes | None:
    """Return what is in a template; None for what is none, such as a device, which Helm may pass over or refuse."""
    try:
        return read_regular(source, MAX_TEMPLATE)
    except OSError:
        return None


def _marked(data: bytes, shown: str, copy: MarkedChart) -> bytes:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return data
    lines = template_lines(text)
    number = len(copy.files)
    copy.files.append(shown)
    copy.lines.append(lines)
    out = []
    for index, (line, about) in enumerate(zip(text.split("\n"), lines, strict=True), 1):
        bare = line.rstrip("\r")
        out.append(f"{bare} #gpugate-line={number}:{index}#{line[len(bare) :]}" if about.markable else line)
    return "\n".join(out).encode()


@dataclass(frozen=True, slots=True)
class _Mark:
    """The marks on one line: the template, the line of the first, which begins it, and that of the last."""

    file: int
    line: int
    last: int


def line_origins(text: str, marked: str, copy: MarkedChart) -> list[tuple[str, int] | None]:
    """Return for each line of what a chart renders to its template and the line in it, None where that is not certain.

    Args:
        text: what the chart renders to.
        marked: what its copy with marks renders to.
        copy: that copy.
    """
    lines, others = text.split("\n"), marked.split("\n")
    if len(lines) != len(others):
        return [None] * len(lines)
    marks = [_mark(line, other, copy) for line, other in zip(lines, others, strict=True)]
    found: list[tuple[str, int] | None] = []
    for between in _between_marks(lines, marks):
        # Once for all lines between two marks: there may be as many as a chart can write.
        written = _written_by_action(between, lines, marks, copy)
        found += [written if lines[index].strip() and lines[index] == others[index] else None for index in between]
        mark = marks[between.stop] if between.stop < len(marks) else None
        if between.stop < len(marks):
            found.append((copy.files[mark.file], mark.line) if mark else None)
    return found


def _between_marks(lines: list[str], marks: list[_Mark | None]) -> Iterator[range]:
    """Yield the places between each two lines that have a mark or begin a document; these are no part of it."""
    start = 0
    for index, mark in enumerate(marks):
        if mark or lines[index].startswith("---"):
            yield range(start, index)
            start = index + 1
    yield range(start, len(lines))


def _mark(line: str, marked: str, copy: MarkedChart) -> _Mark | None:
    found = list(_MARK.finditer(marked))
    if not found or len({mark["file"] for mark in found}) > 1 or _MARK.sub("", marked).rstrip() != line.rstrip():
        return None
    # A template can read its own marks, and write others.
    file, *numbers = (int(text[:_DIGITS]) for text in (found[0]["file"], found[0]["line"], found[-1]["line"]))
    known = file < len(copy.files) and all(0 < number <= len(copy.lines[file]) for number in numbers)
    return _Mark(file, *numbers) if known else None


def _written_by_action(
    places: range, lines: list[str], marks: list[_Mark | None], copy: MarkedChart
) -> tuple[str, int] | None:
    """Return the only action that can have written the lines between two marks: the one that is between them there too.

    What lies between them in the template must be all that can have been written between them: no loop may end there that
    began before.
    """
    mark = marks[places.start - 1] if places and places.start else None
    if mark is None or lines[places.start - 1].startswith("---"):
        return None
    template = copy.lines[mark.file]
    end = len(template) + 1
    at = places.stop
    following = marks[at] if at < len(marks) and not lines[at].startswith("---") else None
    if following is not None:
        end = following.line
        begins = template[end - 1].begins if following.file == mark.file and end > mark.last else ""
        # Else the line of the mark after may have written lines before the one that has its mark.
        if not begins or not lines[at].lstrip().startswith(begins):
            return None
    between = range(mark.last + 1, end)
    inside = [template[number - 1] for number in between]
    if any(line.writes or (line.back_to is not None and line.back_to <= mark.last) for line in inside):
        return None
    acting = [number for number in between if template[number - 1].actions]
    return (copy.files[mark.file], acting[0]) if len(acting) == 1 else None


def sources(text: str) -> list[str]:
    """Return for each line the template that Helm says its document is from; empty where it says none."""
    found: list[str] = []
    current = ""
    for line in text.split("\n"):
        said = _SOURCE.match(line)
        current = said["file"] if said else "" if line.startswith("---") else current
        found.append(current)
    return found
