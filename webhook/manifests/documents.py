"""Split a text into documents, and parse each by itself so that an invalid one never stops the others."""

from __future__ import annotations

import codecs
import re
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import yaml

from gpugate.policies.sdk.structs import Struct, replace
from gpugate.webhook.manifests import json_reader, yaml_reader
from gpugate.webhook.manifests.bounded_file import MAX_BYTES
from gpugate.webhook.manifests.placeholders import decoded, encoded, has_control_lines, opens_template
from gpugate.webhook.manifests.problems import (
    Excerpt,
    Passing,
    Problem,
    ReadError,
    excerpt,
    lines_of_broken,
    lines_of_document,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from gpugate.policies.sdk.field import Json, Path

    _Reader = Callable[[str], yaml_reader.Parsed]

# Resolves no tags, because only texts and marks are wanted.
_Loader: Final = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


class Span(Struct, frozen=True):
    """A place on one line of a file; line and columns count from 1, `end` is behind the last character.

    `line` is that of the key or the list item. The columns are those of the value where it stands on that line, else
    of the key. `exact` is false when the path does not exist and this is its nearest ancestor.
    """

    line: int
    column: int
    end: int
    exact: bool = True


class Positions:
    """The places in one document; `root` is its composed node, None where there is none."""

    def __init__(self, document: Document) -> None:
        self._places = document.places
        self.root: Any = None
        if self._places is not None:
            return
        self._offset = document.first_line
        self._lines = document.text.splitlines()
        try:
            # The document was read within limits before, so that composing it is safe.
            self.root = yaml.compose(document.text, _Loader)
        except yaml.YAMLError:
            self.root = _composed(encoded(document.text))

    def find(self, path: Path) -> Span:
        """Return the place of a path, or of its nearest ancestor in the document."""
        if self._places is not None:
            return _known(self._places, path)
        node, mark, exact = self.root, _first(self.root), True
        for part in path:
            step = _member(node, part) if isinstance(part, str) else _element(node, part)
            if step is None:
                exact = False
                break
            mark, node = step
        return self._span(mark, node, exact=exact)

    def block(self, path: Path) -> tuple[int, int] | None:
        """Return the first line and the indentation of the text in a literal block (`|`); None for any other value."""
        node = self.root
        for part in path:
            step = _member(node, part) if isinstance(part, str) else _element(node, part)
            if step is None:
                return None
            node = step[1]
        if not isinstance(node, yaml.ScalarNode) or node.style != "|":
            return None
        first = node.start_mark.line + 1
        written = next((line for line in self._lines[first:] if line.strip()), "")
        text = next((line for line in node.value.splitlines() if line.strip()), "")
        return self._offset + first, len(written.rstrip()) - len(text.rstrip())

    def all(self) -> dict[Path, Span]:
        """Return the places of all paths."""
        spans: dict[Path, Span] = {}
        # What an anchor repeats has its place where it is written, once.
        waiting: list[tuple[Path, Any, Any]] = [((), _first(self.root), self.root)] if self.root is not None else []
        visited: set[int] = set()
        while waiting:
            at, mark, node = waiting.pop()
            spans[at] = self._span(mark, node, exact=True)
            if id(node) in visited:
                continue
            visited.add(id(node))
            if isinstance(node, yaml.MappingNode):
                keys = ((key, value) for key, value in node.value if isinstance(key, yaml.ScalarNode))
                waiting += [((*at, yaml_reader.key_text(k.value, quoted=bool(k.style))), k, value) for k, value in keys]
            elif isinstance(node, yaml.SequenceNode):
                waiting += [((*at, index), _first(item), item) for index, item in enumerate(node.value)]
        return spans

    def _span(self, mark: Any, node: Any, *, exact: bool) -> Span:
        if mark is None:
            return Span(self._offset, 1, 2, exact=False)
        marked = self._marked(mark, node if exact else None)
        start, end = marked.start_mark, marked.end_mark
        last = end.column if end.line == start.line else len(self._line(start.line).rstrip())
        return Span(self._offset + mark.start_mark.line, start.column + 1, max(last, start.column + 1) + 1, exact)

    def _marked(self, mark: Any, node: Any) -> Any:
        """The value, when it stands beside its key; else the key."""
        if node is None or not node.start_mark.line == node.end_mark.line == mark.start_mark.line:
            return mark
        on_one_line = bool(node.value) if isinstance(node, yaml.ScalarNode) else node.flow_style
        return node if on_one_line else mark

    def _line(self, index: int) -> str:
        return self._lines[index] if index < len(self._lines) else ""


def _composed(text: str | None) -> Any:
    """Compose the text of a template with its placeholders encoded; None for JSON with escapes that YAML does not know."""
    if text is None:
        return None
    try:
        return yaml.compose(text, _Loader)
    except yaml.YAMLError:
        return None


def _known(places: Mapping[Path, Span], path: Path) -> Span:
    for length in range(len(path), -1, -1):
        span = places.get(path[:length])
        if span is not None:
            return replace(span, exact=length == len(path))
    return Span(1, 1, 2, exact=False)


def _first(node: Any) -> Any:
    """What stands for a whole object: its first key."""
    return node.value[0][0] if isinstance(node, yaml.MappingNode) and node.value else node


def _member(node: Any, name: str) -> tuple[Any, Any] | None:
    """The key and the value of a member; the last one, as kubectl reads it."""
    entry = None
    for key, value in node.value if isinstance(node, yaml.MappingNode) else ():
        if not isinstance(key, yaml.ScalarNode):
            continue
        if key.value == "<<" and not key.style:
            for merged in _merged(value):
                entry = _member(merged, name) or entry
        elif yaml_reader.key_text(key.value, quoted=bool(key.style)) == name:
            entry = (key, value)
    return entry


def _merged(value: Any) -> Iterator[Any]:
    if isinstance(value, yaml.SequenceNode):
        yield from reversed(value.value)
    else:
        yield value


def _element(node: Any, index: int) -> tuple[Any, Any] | None:
    if not isinstance(node, yaml.SequenceNode) or index >= len(node.value):
        return None
    item = node.value[index]
    return _first(item), item


class SourceText:
    """A document that is composed and split into lines when the first place is asked for, and once for all of them."""

    def __init__(self, document: Document) -> None:
        self.document = document

    def find(self, path: Path) -> tuple[Span, Excerpt]:
        """Return the place of a path, or of its nearest ancestor that is there, and the lines around it."""
        span = self._positions.find(path)
        return span, self.around(span.line)

    def around(self, line: int) -> Excerpt:
        """Return a line of the file, by its number, and the lines around it."""
        return excerpt(self._lines, line, self.document.first_line)

    @cached_property
    def _positions(self) -> Positions:
        return Positions(self.document)

    @cached_property
    def _lines(self) -> list[str]:
        return lines_of_document(self.document.file_text or self.document.text, self._positions.root)


_SEPARATOR: Final = re.compile(r"^---(?P<behind>[^\n]*)\n?", re.MULTILINE)
_BLANK: Final = ("", " ", "\t", "\r")
_BEHIND: Final = "text behind a `---` at the beginning of a line, where kubectl stops reading"
_OWN_LINE: Final = "put it on the next line; if this line separates no documents, indent it"
_MIXED: Final = "a `---` after JSON objects that no `---` separates, where kubectl stops reading"
_UNMIX: Final = "put `---` between all objects, or between none"
_MOST_FAILURES: Final = 100  # values of one file that are not JSON
_TOO_MANY: Final = f"more than {_MOST_FAILURES} values that are not JSON"
_SPACE: Final = re.compile(r"[^\S\n]*\n?")
_MOST_NOTES: Final = 100  # on one document; each is shown with its lines
_JSON_SUFFIXES = (".json", ".jsonl", ".ndjson")
_TEMPLATE: Final = "this looks like a template: render it first, as in `helm template CHART | gpugate check -`"


class Document(Struct, frozen=True):
    """One document of a file: its text, the line (from 1) and the offset at which that begins, and its value.

    `places` are those of its paths where the text is not YAML, `file_text` is the text of the file where parts of it are replaced in
    `text`, and `derived` says that no edit of the text is one of the file. A document is `partial` where something else adds to
    its value before the API server sees it, so that no schema applies. `braces` says that the object which holds the text
    fills in its placeholders in braces.
    """

    source: str
    text: str
    first_line: int
    value: Json
    start: int = 0
    places: Mapping[Path, Span] | None = None
    file_text: str = ""
    derived: bool = False
    partial: bool = False
    braces: bool = False


def read_bytes(source: str, data: bytes, *, templates: bool = False) -> Iterator[Document | Problem]:
    """Read the documents of a file; `source` is its name for people.

    With `templates`, placeholders without quotes are read as the texts that they are, such as `name: {{ .Name }}`.

    YAML, JSON and JSON Lines; UTF-8 with or without a byte order mark, and UTF-16 with one. Empty documents are left
    out.
    """
    if len(data) > MAX_BYTES:
        yield Problem(source, 0, 0, f"larger than {MAX_BYTES >> 20} MiB", "split it")
        return
    try:
        text = data.decode(encoding(data))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - data.rfind(b"\n", 0, error.start)
        passing = (
            None
            if any(has_head(part) for part in texts_between(data.decode(errors="replace")))
            else Passing.NON_MANIFEST
        )
        message = f"not UTF-8 text at byte {error.start}"
        yield Problem(source, line, column, message, "save it as UTF-8", passing=passing)
        return
    yield from read_text(source, text, templates=templates)


HEAD: Final = ("apiVersion", "kind")
# Each alternative takes whatever it begins with, so that no character is read twice.
_TOKEN: Final = re.compile(
    r""""(?P<quoted>(?:[^"\\\n]|\\.)*+)"?(?P<colon>\s*+:)?|(?P<word>[\w.$-]++)(?P<after>\s*+:)?|(?P<bracket>[{}\[\]])"""
)
_FIRST_KEY: Final = re.compile(r"^(?!---)(?P<indent>[ \t]*)[^\s#%]", re.MULTILINE)
_KEY: Final = re.compile(r"""^(?P<indent>[ \t]*)["']?(?P<key>apiVersion|kind)["']?[ \t]*:(?=\s|$)""", re.MULTILINE)


def has_head(text: str) -> bool:
    """Tell whether a document has `apiVersion` and `kind` at its top, although it may be neither YAML nor JSON."""
    # kubectl reads a byte order mark at the beginning of every document.
    text = text.replace("\ufeff", "")
    if _has_composed_head(text):
        return True
    if not all(key in text for key in HEAD):
        return False
    text = _LINE_BREAKS.sub("\n", text)
    first = _FIRST_KEY.search(text)
    if first is None:
        return False
    start = first.end() - 1
    keys = _keys_in_braces(text, start) if text[start] == "{" else _keys_in_lines(text, first["indent"])
    return set(HEAD) <= keys


# Line breaks of YAML 1.1, which kubectl reads, other than line feeds.
_LINE_BREAKS: Final = re.compile("\r\n?|[\x85\u2028\u2029]")
_MOST_EVENTS: Final = 50_000
_MOST_LEVELS: Final = 100  # libyaml takes a time that grows with the square of the levels


def _has_composed_head(text: str) -> bool:
    """Tell whether YAML begins with a head in any spelling, as far as a text can be parsed; true if it is too long or deep to tell.

    kubectl reads a text up to a place at which another reader fails, and a key may be escaped, tagged, on a line of its own or
    an alias. An alias or a merge may be each part of the head.
    """
    keys: set[str] = set()
    depth, is_key = 0, True
    try:
        for number, event in enumerate(yaml.parse(text, _Loader)):
            if isinstance(event, yaml.DocumentEndEvent):
                break
            if number == _MOST_EVENTS or depth == _MOST_LEVELS:
                return True
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth == 1 and isinstance(event, yaml.NodeEvent | yaml.CollectionEndEvent):
                if is_key and isinstance(event, yaml.AliasEvent):
                    return True
                if is_key and isinstance(event, yaml.ScalarEvent):
                    keys.add(event.value)
                # The end of a collection is where its key or value ends.
                is_key = is_key if isinstance(event, yaml.CollectionStartEvent) else not is_key
            depth += isinstance(event, yaml.CollectionStartEvent)
            if number == 2 and not isinstance(event, yaml.MappingStartEvent):
                return False
    except yaml.YAMLError:
        pass  # what was read before it counts
    return set(HEAD) <= keys or "<<" in keys


def _keys_in_braces(text: str, start: int) -> set[str]:
    depth, keys = 0, set()
    for token in _TOKEN.finditer(text, start):
        if token["bracket"]:
            depth += 1 if token["bracket"] in "{[" else -1
        elif depth == 1 and (token["colon"] or token["after"]):
            keys.add(token["quoted"] or token["word"])
    return keys


def _keys_in_lines(text: str, indent: str) -> set[str]:
    return {key["key"] for key in _KEY.finditer(text) if key["indent"] == indent}


def texts_between(text: str) -> Iterator[str]:
    """Yield the texts between the separators of documents in a text."""
    begin = 0
    for separator in _SEPARATOR.finditer(text):
        yield text[begin : separator.start()]
        begin = separator.end()
    yield text[begin:]


def is_foreign(value: Json) -> bool:
    """Tell a document for another tool (values, a list of patches) from an object with at least one part of its head."""
    if not isinstance(value, dict):
        return True
    items = value.get("items")
    if isinstance(value.get("kind"), str) and isinstance(items, list) and any(map(_is_typed, items)):
        return False
    head = [value.get(key) is not None for key in HEAD]
    return not all(head) and not (any(head) and value.get("metadata") is not None)


def _is_typed(value: Json) -> bool:
    return isinstance(value, dict) and all(isinstance(value.get(key), str) for key in HEAD)


def _passing(text: str, line: int) -> Passing | None:
    """Say why a document that cannot be read is passed over; None where it is meant to be an object.

    Args:
        text: the document.
        line: where reading ended, from 1; what a template has there is often reported on the line after it.
    """
    if any(map(opens_template, text.splitlines()[max(0, line - 2) : line])) or has_control_lines(text):
        return Passing.TEMPLATE
    return None if has_head(text) else Passing.NON_MANIFEST


def encoding(data: bytes) -> str:
    """Name the codec that reads a file, and writes it with the byte order mark that it has."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    return "utf-8-sig" if data.startswith(codecs.BOM_UTF8) else "utf-8"


def read_text(source: str, text: str, *, templates: bool = False) -> Iterator[Document | Problem]:
    """Read the documents of a text as kubectl does, and go on behind what it stops at.

    kubectl reads a text that begins with a brace as a series of JSON values, until one is not JSON; if that is the first
    or the second, it reads all that is left as YAML (apimachinery v0.36 pkg/util/yaml/decoder.go: YAMLOrJSONDecoder).
    """
    reader = _read_template if templates else yaml_reader.read
    if text.lstrip()[:1] not in {"{", "["}:
        yield from _stream(source, text, 0, reader)
        return
    read = end = failures = 0
    for part in json_reader.read(text):
        if not isinstance(part.value, ReadError):
            yield from _json(source, part, part.value)
            read, end = read + 1, part.start + len(part.text)
            continue
        problem = _problem(source, part.text, part.line + 1, part.value)
        if not part.is_json:
            start = _SPACE.match(text, end).end()  # type: ignore[union-attr] # matches any text
            left = _left(source, text, start, problem, read, reader)
            if left is not None:
                yield from left
                return
        yield problem
        failures += 1
        if failures == _MOST_FAILURES:
            yield replace(problem, message=_TOO_MANY, remedy="correct those above first")
            return
        read, end = read + 1, part.start + len(part.text)


def _left(
    source: str, text: str, start: int, problem: Problem, read: int, reader: _Reader
) -> Iterable[Document | Problem] | None:
    """Read what is left of a text, whose next value is not JSON, as YAML; None when it is to be read as JSON."""
    remainder = text[start:]
    separator = _SEPARATOR.search(remainder)
    at_once = separator is not None and not remainder[: separator.start()].strip()
    if read > 1:
        mixed = replace(problem, message=_MIXED, remedy=_UNMIX)
        return [mixed, *_stream(source, text, start, reader)] if at_once else None
    if separator:
        return _stream(source, text, start, reader)
    parts = list(_stream(source, text, start, reader))
    if any(isinstance(part, Problem) and not part.warning for part in parts):
        return None if read or source.endswith(_JSON_SUFFIXES) else parts
    if source.endswith(_JSON_SUFFIXES):
        parts.insert(0, replace(problem, remedy=f"{problem.remedy}; kubectl reads it as YAML", warning=True))
    return parts


def _stream(source: str, text: str, start: int, reader: _Reader) -> Iterator[Document | Problem]:
    """Read the YAML documents of a text from an offset on.

    Documents are separated as apimachinery v0.36 does (pkg/util/yaml/decoder.go: YAMLReader): by each line that begins
    with `---`, behind which only a comment may follow, with a space before it or without. A separator with no line
    between it and the one before, or the beginning, is part of the document that follows.
    """
    text, line, counted = text[start:], 1 + text.count("\n", 0, start), 0
    begin = content = 0  # of the document, and of its first line that is no separator
    for separator in _SEPARATOR.finditer(text):
        position, behind = separator.start(), separator["behind"].strip()
        before = text[begin:position]
        if position > content:
            line, counted = line + _lines(text[counted:begin]), begin
            yield from _yaml(source, text[begin:position], line, start + begin, reader)
            content = separator.end()
            # To a parser of YAML, `---#` is not a separator but the beginning of a text.
            begin = position if separator["behind"][:1] in _BLANK else content
        else:
            begin = position
        if behind and not behind.startswith("#"):
            line, counted = line + _lines(text[counted:position]), position
            following = _SEPARATOR.search(text, separator.end())
            after = text[separator.end() : following.start() if following else len(text)]
            passing = None if has_head(before) or has_head(after) else Passing.NON_MANIFEST
            yield Problem(source, line, 4, _BEHIND, _OWN_LINE, passing=passing)
            begin = content = separator.end()
    yield from _yaml(source, text[begin:], line + _lines(text[counted:begin]), start + begin, reader)


def _lines(text: str) -> int:
    return len(text.splitlines())


def _yaml(source: str, text: str, first_line: int, start: int, reader: _Reader) -> Iterator[Document | Problem]:
    try:
        parsed = reader(text)
    except ReadError as error:
        yield _problem(source, text, first_line, error)
        return
    if parsed.notes:
        source_text = SourceText(Document(source, text, first_line, None, start))
        passing = _foreign(parsed.value)
        for note in parsed.notes[:_MOST_NOTES]:
            line = first_line + note.line - 1
            yield Problem(
                *(source, line, note.column, note.message, note.remedy),
                warning=True,
                excerpt=source_text.around(line),
                passing=passing,
            )
    if len(parsed.notes) > _MOST_NOTES:
        message = f"{len(parsed.notes) - _MOST_NOTES:,} more of the same kind in this document"
        passing = _foreign(parsed.value)
        yield Problem(source, first_line, 1, message, "correct those above first", warning=True, passing=passing)
    if parsed.value is not None:
        yield Document(source, text, first_line, parsed.value, start)


def _read_template(text: str) -> yaml_reader.Parsed:
    """Read a document that may have placeholders without quotes in the place of values; raises as `yaml_reader.read`."""
    try:
        return yaml_reader.read(text)
    except ReadError as error:
        text_of_yaml = encoded(text)
        if text_of_yaml is None:
            raise
        try:
            parsed = yaml_reader.read(text_of_yaml)
        except ReadError:
            raise error from None
    notes = tuple(replace(note, message=str(decoded(note.message))) for note in parsed.notes)
    return yaml_reader.Parsed(decoded(parsed.value), notes)


def _json(source: str, part: json_reader.Part, value: Json) -> Iterator[Document | Problem]:
    line = 1 + part.line
    for key in part.repeated:
        message = f"the key {key} occurs twice in an object"
        remedy = "kubectl keeps the last one only"
        yield Problem(source, line, 1, message, remedy, warning=True, passing=_foreign(value))
    yield Document(source, part.text, line, value, part.start)


def _foreign(value: Json) -> Passing | None:
    return Passing.NON_MANIFEST if is_foreign(value) else None


def _problem(
    source: str,
    text: str,
    first_line: int,
    error: ReadError,
) -> Problem:
    line, lines = first_line + error.line - 1, text.splitlines()
    # A template's braces are often reported on the line after them.
    template = any("{{" in near for near in lines[max(0, error.line - 2) : error.line])
    remedy = _TEMPLATE if template else error.remedy
    around = excerpt(lines_of_broken(text), line, first_line)
    passing = _passing(text, error.line)
    return Problem(source, line, error.column, error.message, remedy, excerpt=around, passing=passing)
