"""Parse expectation comments in manifests: `# expect: ID[, ID]` and `# expect: nothing`.

At the end of a line, `# expect: ID[, ID]` lists the policies that report a finding on that line, and `# expect: nothing`
says that none does. Anything else after `# expect:` is an error: ignoring it would make a test pass that tests nothing.

Every document is evaluated, with all others as cluster data. The comment `# context` at the beginning of a document makes
it another object that exists, `# old` the object before an UPDATE, and `# complete context` says that no other object of
its kind exists. A `PolicyConfig` among the documents is the configuration. Only policies are evaluated, not schemas.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from codecs import BOM_UTF8
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from gpugate.policies.engine.config import KIND, ConfigError, parse_config
from gpugate.policies.sdk.objects import Operation
from gpugate.webhook.manifests.documents import Document, encoding, read_text
from gpugate.webhook.manifests.edit_tree import EditError, parse, texts, walk
from gpugate.webhook.manifests.objects import Manifest, objects
from gpugate.webhook.manifests.problems import Problem, excerpt, lines_of_template
from gpugate.webhook.report.located import DocumentLocations, Location
from gpugate.webhook.testing.cases import CaseFileError, unreadable

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from gpugate.policies.engine.config import PolicyConfig
    from gpugate.policies.sdk.objects import Request

NOTHING: Final = "nothing"
# Nothing here can match in two ways, so that the time grows with the length of the line only.
_BEGINNING: Final = re.compile(r"(?<!\S)#[ \t]*expect:")
_MARK: Final = re.compile(_BEGINNING.pattern.encode())
_ID: Final = re.compile(r"[\w/-]+")


@dataclass(frozen=True, slots=True)
class ExpectComment:
    """A comment: its line (from 1, in the file), its beginning and end in the line (from 0), and the expected policies."""

    line: int
    start: int
    end: int
    expected: str
    alone: bool

    def policies(self, source: str, lines: Sequence[str]) -> tuple[str, ...]:
        """Return the policies with a finding on the line; none for `nothing`.

        Args:
            source: the file, for people.
            lines: all lines of the file.

        Raises:
            CaseFileError: it is not a list of ids, or is on a line on which no policy can have a finding.
        """
        ids = [part.strip() for part in self.expected.split(",")]
        if ids == [NOTHING]:
            return ()
        if NOTHING in ids or not all(map(_ID.fullmatch, ids)):
            raise CaseFileError(
                self._locate(source, lines),
                "`# expect:` takes ids of policies, separated by commas, or `nothing`, and nothing behind them: "
                "write a reason on a line of its own",
            )
        if self.alone:
            raise CaseFileError(
                self._locate(source, lines),
                "stands alone on its line, where no policy finds anything: write it at the end of the line on which "
                "something is found",
            )
        return tuple(ids)

    def _locate(self, source: str, lines: Sequence[str]) -> Location:
        around = excerpt(lines_of_template(lines), self.line, 1)
        return Location(source, self.line, self.start + 1, self.end + 1, around.lines, around.first_line)


def is_marked(data: bytes) -> bool:
    """Tell whether a file may contain such comments; text in strings counts too."""
    codec = encoding(data)
    if codec == "utf-16":
        return _BEGINNING.search(data.decode(codec, "ignore")) is not None
    return _MARK.search(data.removeprefix(BOM_UTF8)) is not None


def expectations(document: Document) -> Iterator[ExpectComment]:
    """Yield the expectation comments of a document."""
    text = document.text
    if "expect:" not in text:
        return
    spans = _texts(text)
    start = 0
    for number, line in enumerate(text.splitlines(keepends=True), document.first_line):
        for match in _BEGINNING.finditer(line):
            if not _is_inside(spans, start + match.start()):
                yield _comment(number, line, match)
                break
        start += len(line)


def outside(lines: Sequence[str], documents: Collection[Document]) -> Iterator[ExpectComment]:
    """Yield the comments that are in no document, such as those above the first `---`."""
    within: set[int] = set()
    for document in documents:
        within.update(range(document.first_line, document.first_line + len(document.text.splitlines())))
    for number, line in enumerate(lines, 1):
        match = _BEGINNING.search(line) if number not in within else None
        if match:
            yield _comment(number, line, match)


def _comment(number: int, line: str, match: re.Match[str]) -> ExpectComment:
    written = line.rstrip()
    alone = not line[: match.start()].strip()
    return ExpectComment(number, match.start(), len(written), written[match.end() :].strip(), alone)


def _texts(text: str) -> list[tuple[int, int]]:
    """Return the spans of the values in a document, in which a `#` begins no comment; none if it has no object."""
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


_ROLE: Final = re.compile(r"#\s*(?P<role>complete context|context|old)\s*$")


@dataclass(frozen=True, slots=True)
class Expected:
    """A policy that has a finding on a line (from 1) of the file."""

    line: int
    policy: str


@dataclass(frozen=True, slots=True)
class Annotated:
    """A file of manifests with expectations.

    Attributes:
        title: the comment on the first line.
        manifests: the objects to evaluate, in order.
        old: objects before an UPDATE.
        context: other objects that exist.
        complete: whether no others exist.
        config: the configuration; None if the file has none.
        expected: the expected findings.
    """

    title: str
    manifests: tuple[Manifest, ...]
    old: tuple[Manifest, ...]
    context: tuple[Manifest, ...]
    complete: bool
    config: PolicyConfig | None
    expected: frozenset[Expected]

    def request(self, manifest: Manifest) -> Request:
        """Return the request to evaluate: a CREATE, or an UPDATE if the object before it is in the file."""
        fitting = [old for old in self.old if _name(old) == _name(manifest)]
        if not fitting:
            return manifest.request
        return replace(manifest.request, operation=Operation.UPDATE, old_object=fitting[-1].request.object)


def read_annotated(source: str, text: str) -> Annotated:
    """Read a file of manifests with expectations.

    Raises:
        CaseFileError: it has no object to evaluate, a document that cannot be read, an invalid configuration, an
            invalid expectation, or an object before an UPDATE of no object to evaluate.
    """
    config: PolicyConfig | None = None
    by_role: dict[str, list[Manifest]] = {"": [], "context": [], "complete context": [], "old": []}
    documents: list[Document] = []
    for document in read_text(source, text):
        if isinstance(document, Problem):
            if document.warning:
                continue
            raise unreadable(document)
        documents.append(document)
        if isinstance(document.value, dict) and document.value.get("kind") == KIND:
            config = _config(document)
            continue
        for part in objects(document):
            if isinstance(part, Problem):
                raise unreadable(part)
            if not isinstance(part, Manifest):
                raise CaseFileError(Location(source, part.line, 1), "not an object for the API server: remove it")
            by_role[role_of(document)].append(part)
    if not by_role[""]:
        raise CaseFileError(
            Location(source), "no object to evaluate: the last document is evaluated, and needs no comment"
        )
    _refuse_other_objects(by_role["old"], by_role[""])
    return Annotated(
        title=text.partition("\n")[0].lstrip("# ").strip() if text.startswith("#") else "",
        manifests=tuple(by_role[""]),
        old=tuple(by_role["old"]),
        context=(*by_role["context"], *by_role["complete context"]),
        complete=bool(by_role["complete context"]),
        config=config,
        expected=frozenset(_expected(source, text, documents)),
    )


def role_of(document: Document) -> str:
    """Return the role that a comment above the first key gives a document; empty if there is none."""
    for line in document.text.splitlines():
        if line.strip() and not line.startswith(("---", "#")):
            break
        role = _ROLE.match(line)
        if role:
            return role["role"]
    return ""


def _refuse_other_objects(before: Sequence[Manifest], evaluated: Sequence[Manifest]) -> None:
    names = {_name(manifest) for manifest in evaluated}
    for old in before:
        if _name(old) not in names:
            message = f"{old.request.kind.kind} {old.request.shown_name} is before an UPDATE of no object in this file"
            location = DocumentLocations(old.document).find(old.prefix)
            raise CaseFileError(location, f"{message}: an UPDATE changes neither kind nor namespace nor name")


def _name(manifest: Manifest) -> tuple[str, str, str]:
    request = manifest.request
    return request.kind.kind, request.namespace, request.name


def _config(document: Document) -> PolicyConfig:
    try:
        return parse_config(document.value)
    except ConfigError as error:
        raise CaseFileError(DocumentLocations(document).find(error.path), str(error)) from None


def _expected(source: str, text: str, documents: Sequence[Document]) -> Iterator[Expected]:
    if "expect:" not in text:
        return
    lines = text.splitlines()
    every = [comment for document in documents for comment in expectations(document)]
    for comment in (*every, *outside(lines, documents)):
        for policy in comment.policies(source, lines):
            yield Expected(comment.line, policy)
