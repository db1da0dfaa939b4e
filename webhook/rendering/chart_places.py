"""Map lines of a rendered chart to lines of its templates.

Each line of a template that writes output gets a comment with its number. If the marked rendering differs from the
unmarked one only by these comments, they prove the origin of each line.

The template language is that of Go's text/template (Go 1.26); only delimiters, strings and keywords matter here.
"""

from __future__ import annotations

import os
import re
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gpugate.webhook.manifests.bounded_file import read_regular
from gpugate.webhook.manifests.problems import excerpt, lines_of_template
from gpugate.webhook.manifests.within import is_git
from gpugate.webhook.rendering.charts import ChartJob, template_file
from gpugate.webhook.rendering.render import Text, rendering_of
from gpugate.webhook.report.located import Location

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterator

    from gpugate.webhook.rendering.options import RenderOptions
    from gpugate.webhook.report.located import Located

_KEYWORD: Final = re.compile(r"(?:\{\{-?)\s*(?P<word>[$\w/]*)(?P<assigns>[\w,\s$]*:?=(?!=))?")
_OPENING: Final = frozenset({"if", "with", "range", "define", "block"})
_SILENT: Final = frozenset({"if", "else", "end", "with", "range", "define", "block", "break", "continue", "/"})
_DEFINING: Final = frozenset({"define", "block"})


@dataclass(slots=True)
class TemplateLine:
    """A line of a template.

    Attributes:
        writes: whether text of its own is written where it stands, with or without actions among it.
        begins: that text where the line begins with it, without the space around it.
        markable: whether something may be added at its end that is written with it.
        actions: how many actions on it may write something.
        back_to: the line from which on something may be written after it, because a loop that begins there begins anew;
            0 where the line is part of a definition, which is written somewhere else. None where all goes on forward.
    """

    writes: bool = False
    begins: str = ""
    markable: bool = False
    actions: int = 0
    back_to: int | None = None


@dataclass(slots=True)
class _Reader:
    text: str
    lines: list[TemplateLine] = field(default_factory=lambda: [TemplateLine()])
    blocks: list[tuple[str, int]] = field(default_factory=list)
    acted: bool = False

    def action(self, action: str) -> None:
        line = self.lines[-1]
        self.acted = True
        keyword = _KEYWORD.match(action)
        word = "/" if action.lstrip("{- ").startswith("/*") else keyword["word"] if keyword else ""
        loops = [begin for block, begin in self.blocks if block == "range"]
        closes_loop = word == "end" and self.blocks and self.blocks[-1][0] == "range"
        if word in _DEFINING or self._defines:
            line.back_to = 0
        elif loops and (closes_loop or word in {"break", "continue"}):
            line.back_to = min(loops[-1], line.back_to or loops[-1])
        if word in _OPENING:
            self.blocks.append((word, len(self.lines)))
        elif word == "end" and self.blocks:
            self.blocks.pop()
        if word not in _SILENT and not (keyword and keyword["assigns"]):
            line.actions += 1
        line.markable &= "\n" not in action
        for _ in range(action.count("\n")):
            # An action over several lines writes where it ends.
            self.lines.append(TemplateLine(actions=line.actions, back_to=line.back_to))

    def literal(self, text: str, *, trimmed: bool) -> None:
        """Take in text between actions; `trimmed` when the action before it takes the space before this text away."""
        for number, part in enumerate(text.split("\n")):
            if number:
                self.lines.append(TemplateLine())
            if part.strip() and not self._defines:
                line = self.lines[-1]
                line.begins = part.strip() if number or not (line.writes or self.acted) else line.begins
                line.writes = True
                line.markable = not part.lstrip().startswith("---")
            elif trimmed and number == 0:
                self.lines[-1].markable = False

    @property
    def _defines(self) -> bool:
        return any(block in _DEFINING for block, _ in self.blocks)


def template_lines(text: str) -> list[TemplateLine]:
    """Return the lines of a template; only those that end outside of actions and definitions are markable."""
    reader = _Reader(text)
    trimmed = False
    for part, is_action in _parts(text):
        if is_action:
            reader.action(part)
            trimmed = part.endswith("-}}")
            reader.lines[-1].markable = reader.lines[-1].writes and not trimmed
        else:
            reader.literal(part, trimmed=trimmed)
            trimmed = False
    return reader.lines


def _parts(text: str) -> Iterator[tuple[str, bool]]:
    """Yield text and actions in turn."""
    start = 0
    while (opening := text.find("{{", start)) >= 0:
        yield text[start:opening], False
        start = _end(text, opening)
        yield text[opening:start], True
    yield text[start:], False


def _end(text: str, opening: int) -> int:
    """Return where an action ends; at the end of the text when it does not."""
    inside = text[opening + 2 : opening + 6].lstrip("- ")
    if inside.startswith("/*"):
        closing = text.find("}}", max(text.find("*/", opening), opening))
        return closing + 2 if closing >= 0 else len(text)
    position = opening + 2
    while position < len(text):
        character = text[position]
        if text.startswith("}}", position):
            return position + 2
        position = _past_string(text, position) if character in "\"'`" else position + 1
    return len(text)


def _past_string(text: str, position: int) -> int:
    quote, position = text[position], position + 1
    while position < len(text) and text[position] != quote:
        position += 2 if text[position] == "\\" and quote != "`" else 1
    return position + 1


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


def _marked(data: bytes, name: str, copy: MarkedChart) -> bytes:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return data
    lines = template_lines(text)
    number = len(copy.files)
    copy.files.append(name)
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
    origins: list[tuple[str, int] | None] = []
    for between in _between_marks(lines, marks):
        # Once for all lines between two marks: there may be as many as a chart can write.
        written = _written_by_action(between, lines, marks, copy)
        origins += [written if lines[index].strip() and lines[index] == others[index] else None for index in between]
        mark = marks[between.stop] if between.stop < len(marks) else None
        if between.stop < len(marks):
            origins.append((copy.files[mark.file], mark.line) if mark else None)
    return origins


def _between_marks(lines: list[str], marks: list[_Mark | None]) -> Iterator[range]:
    """Yield the places between each two lines that have a mark or begin a document; these are no part of it."""
    start = 0
    for index, mark in enumerate(marks):
        if mark or lines[index].startswith("---"):
            yield range(start, index)
            start = index + 1
    yield range(start, len(lines))


def _mark(line: str, marked: str, copy: MarkedChart) -> _Mark | None:
    marks = list(_MARK.finditer(marked))
    if not marks or len({mark["file"] for mark in marks}) > 1 or _MARK.sub("", marked).rstrip() != line.rstrip():
        return None
    # A template can read its own marks, and write others.
    file, *numbers = (int(text[:_DIGITS]) for text in (marks[0]["file"], marks[0]["line"], marks[-1]["line"]))
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
    sources: list[str] = []
    current = ""
    for line in text.split("\n"):
        source = _SOURCE.match(line)
        current = source["file"] if source else "" if line.startswith("---") else current
        sources.append(current)
    return sources


# Places of findings count these as the end of a line too (YAML 1.1, 5.4), and Helm does not.
_BREAK: Final = re.compile("\r(?!\n)|[\u0085\u2028\u2029]")


class ChartPlaces:
    """Where the lines of one rendering are from; makes the rendering with marks when it is made."""

    def __init__(self, text: Text, options: RenderOptions, stop: threading.Event) -> None:
        assert isinstance(text.job, ChartJob)  # noqa: S101 -- the caller checked the type
        self._job = text.job
        self._lines = text.text.split("\n")
        self._sources = sources(text.text)
        self._origins = _origins(text, options, stop)
        self._read: dict[str, list[str]] = {}
        self._template_lines: dict[str, list[str]] = {}

    def of(self, finding: Located) -> Location:
        """Return the place of a finding in a template, or what is known of it."""
        location, index = finding.location, finding.location.line - 1
        variants = (self._job.variant,) if self._job.variant else ()
        origin = self._origins[index] if index < len(self._origins) else None
        lines = self._lines_of(origin[0]) if origin else []
        if origin is None or origin[1] > len(lines):
            file = template_file(self._job.chart, self._sources[index]) if index < len(self._sources) else None
            return replace(
                location,
                file=file or _whole(self._job),
                line=1,
                column=1,
                end=2,
                rendered=location.line,
                variants=variants,
            )
        file, line = origin
        written = lines[line - 1]
        if file not in self._template_lines:
            self._template_lines[file] = lines_of_template(lines)
        around = excerpt(self._template_lines[file], line, 1)
        column, end = len(written) - len(written.lstrip()) + 1, len(written.rstrip()) + 1
        if written.rstrip() == self._lines[index].rstrip():
            column, end = location.column, location.end
        return Location(file, line, column, end, around.lines, around.first_line, variants=variants)

    def _lines_of(self, file: str) -> list[str]:
        """Return the lines of a template as they were counted; none when it is no longer what it was."""
        if file not in self._read:
            try:
                text = read_regular(Path(file), MAX_TEMPLATE).decode()
            except (OSError, UnicodeDecodeError):
                text = ""
            # Not where a form feed is too.
            self._read[file] = text.replace("\r\n", "\n").split("\n") if text else []
        return self._read[file]


def _whole(job: ChartJob) -> str:
    """The file that stands for a chart: also for what is from an archive in it."""
    return os.path.join(job.chart, "Chart.yaml") if Path(job.chart).is_dir() else job.chart  # noqa: PTH118 -- `./` stays


def _origins(text: Text, options: RenderOptions, stop: threading.Event) -> list[tuple[str, int] | None]:
    """Return the template and line of each line, None where they are not certain."""
    assert isinstance(text.job, ChartJob)  # noqa: S101 -- as above
    unknown: list[tuple[str, int] | None] = [None] * len(text.text.split("\n"))
    if not Path(text.job.chart).is_dir() or _BREAK.search(text.text):
        return unknown
    with tempfile.TemporaryDirectory(prefix="gpugate-") as folder:
        # Named like the chart's directory, for charts that ask for it.
        target = Path(folder, Path(os.path.realpath(text.job.chart)).name)
        try:
            copy = marked_copy(text.job.chart, str(target))
        except OSError:
            return unknown
        marked = rendering_of(text.job, options, stop, chart=str(target))
    return line_origins(text.text, marked.text, copy) if isinstance(marked, Text) else unknown
