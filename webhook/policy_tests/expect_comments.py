"""Reads the comments of manifests that say what policies find: `# expect: ID[, ID]` and `# expect: nothing`.

Whatever begins like one is one. A comment that cannot be read is refused and never passed over, as a test that expects
less than its author wrote would pass without testing anything.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from codecs import BOM_UTF8
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gpugate.webhook.manifests.documents import encoding
from gpugate.webhook.manifests.edit_tree import EditError, parse, texts, walk
from gpugate.webhook.manifests.problems import excerpt, lines_of_template
from gpugate.webhook.policy_tests.errors import CaseFileError
from gpugate.webhook.report.located import Place

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from gpugate.webhook.manifests.documents import Document

NOTHING: Final = "nothing"
# Nothing here can match in two ways, so that the time grows with the length of the line only.
_BEGINNING: Final = re.compile(r"(?<!\S)#[ \t]*expect:")
_MARK: Final = re.compile(_BEGINNING.pattern.encode())
_ID: Final = re.compile(r"[\w/-]+")


@dataclass(frozen=True, slots=True)
class ExpectComment:
    """A comment: its line (from 1, in the file), its beginning and end in that (from 0), and what follows `expect:`."""

    line: int
    start: int
    end: int
    rest: str
    alone: bool

    def policies(self, source: str, lines: Sequence[str]) -> tuple[str, ...]:
        """Return the policies that find something on the line; none for `nothing`.

        Args:
            source: the file, for people.
            lines: all lines of the file.

        Raises:
            CaseFileError: it is no list of ids, or stands on a line on which no policy can find anything.
        """
        ids = [part.strip() for part in self.rest.split(",")]
        if ids == [NOTHING]:
            return ()
        if NOTHING in ids or not all(map(_ID.fullmatch, ids)):
            raise CaseFileError(
                self._place(source, lines),
                "`# expect:` takes ids of policies, separated by commas, or `nothing`, and nothing behind them: "
                "write a reason on a line of its own",
            )
        if self.alone:
            raise CaseFileError(
                self._place(source, lines),
                "stands alone on its line, where no policy finds anything: write it at the end of the line on which "
                "something is found",
            )
        return tuple(ids)

    def _place(self, source: str, lines: Sequence[str]) -> Place:
        around = excerpt(lines_of_template(lines), self.line, 1)
        return Place(source, self.line, self.start + 1, self.end + 1, around.lines, around.first_line)


def is_marked(data: bytes) -> bool:
    """Tell whether a file may hold such comments; texts in which they only seem to stand count too."""
    codec = encoding(data)
    if codec == "utf-16":
        return _BEGINNING.search(data.decode(codec, "ignore")) is not None
    return _MARK.search(data.removeprefix(BOM_UTF8)) is not None


def expectations(document: Document) -> Iterator[ExpectComment]:
    """Yield the comments of a document that say what is expected."""
    text = document.text
    if "expect:" not in text:
        return
    spans = _texts(text)
    start = 0
    for number, line in enumerate(text.splitlines(keepends=True), document.first_line):
        for found in _BEGINNING.finditer(line):
            if not _is_inside(spans, start + found.start()):
                yield _comment(number, line, found)
                break
        start += len(line)


def outside(lines: Sequence[str], documents: Collection[Document]) -> Iterator[ExpectComment]:
    """Yield the comments that are in no document, as those above the first `---` are."""
    within: set[int] = set()
    for document in documents:
        within.update(range(document.first_line, document.first_line + len(document.text.splitlines())))
    for number, line in enumerate(lines, 1):
        found = _BEGINNING.search(line) if number not in within else None
        if found:
            yield _comment(number, line, found)


def _comment(number: int, line: str, found: re.Match[str]) -> ExpectComment:
    written = line.rstrip()
    alone = not line[: found.start()].strip()
    return ExpectComment(number, found.start(), len(written), written[found.end() :].strip(), alone)


def _texts(text: str) -> list[tuple[int, int]]:
    """The values in a document, in which a `#` begins no comment, in order; none where it holds no object."""
    try:
        root = parse(text)
    except EditError:
        return []
    # A comment may follow the `|` or `>` of a text of several lines.
    headers = {node.start: text.find("\n", node.start, node.end) for node in walk(root) if node.sort == "block"}
    return sorted((max(start, headers.get(start, start)), end) for start, end in texts(root))


def _is_inside(spans: list[tuple[int, int]], offset: int) -> bool:
    before = bisect_right(spans, offset, key=lambda span: span[0])
    return before > 0 and offset < spans[before - 1][1]
