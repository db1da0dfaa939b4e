"""Splits a text into documents and reads each by itself, so that a bad one never stops the others."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gpugate.webhook.manifests import json_reader, yaml_reader
from gpugate.webhook.manifests.excerpt import excerpt
from gpugate.webhook.manifests.limits import MAX_BYTES
from gpugate.webhook.manifests.problems import Problem, ReadError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Json

# A marker ends the document before it wherever it stands at the beginning of a line (YAML 1.1, 9.1).
_MARKER = re.compile(r"^---(?=[ \t\r\n]|\Z)", re.MULTILINE)
_MOST_NOTES: Final = 100  # on one document; each is shown with its lines
_JSON_SUFFIXES = (".json", ".jsonl", ".ndjson")
_TEMPLATE: Final = "this looks like a template: render it first, as in `helm template CHART | gpugate check -`"


@dataclass(frozen=True, slots=True)
class Document:
    """One document of a file: its text, the line (from 1) and the offset at which that begins, and its value."""

    source: str
    text: str
    first_line: int
    value: Json
    start: int = 0


def read_bytes(source: str, data: bytes) -> Iterator[Document | Problem]:
    """Read the documents of a file; `source` is its name for people.

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
        yield Problem(source, line, column, f"not UTF-8 text at byte {error.start}", "save it as UTF-8")
        return
    yield from read_text(source, text)


def encoding(data: bytes) -> str:
    """Name the codec that reads a file, and writes it with the byte order mark that it has."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    return "utf-8-sig" if data.startswith(codecs.BOM_UTF8) else "utf-8"


def read_text(source: str, text: str) -> Iterator[Document | Problem]:
    """Read the documents of a text."""
    if text.lstrip()[:1] in {"{", "["}:
        found = list(_json(source, text))
        # kubectl, too, takes what begins with a brace for JSON first, and for YAML when it is none.
        if source.endswith(_JSON_SUFFIXES) or isinstance(found[0], Document):
            yield from found
            return
    line, start = 1, 0
    for chunk in _chunks(text):
        yield from _yaml(source, chunk, line, start)
        line += len(chunk.splitlines())
        start += len(chunk)


def _chunks(text: str) -> Iterator[str]:
    start = 0
    for marker in _MARKER.finditer(text):
        if marker.start() > start:
            yield text[start : marker.start()]
        start = marker.start()
    yield text[start:]


def _yaml(source: str, text: str, first_line: int, start: int) -> Iterator[Document | Problem]:
    try:
        parsed = yaml_reader.read(text)
    except ReadError as error:
        yield _problem(source, text, first_line, error)
        return
    for note in parsed.notes[:_MOST_NOTES]:
        yield _problem(source, text, first_line, note, warning=True)
    if len(parsed.notes) > _MOST_NOTES:
        message = f"{len(parsed.notes) - _MOST_NOTES:,} more of the same kind in this document"
        yield Problem(source, first_line, 1, message, "mend those above first", warning=True)
    if parsed.value is not None:
        yield Document(source, text, first_line, parsed.value, start)


def _json(source: str, text: str) -> Iterator[Document | Problem]:
    line = 1
    for part in json_reader.read(text):
        if isinstance(part.value, ReadError):
            yield _problem(source, part.text, line + part.line, part.value)
            continue
        for key in part.repeated:
            message = f"the key {key} occurs twice in an object"
            yield Problem(source, line + part.line, 1, message, "kubectl keeps the last one only", warning=True)
        yield Document(source, part.text, line + part.line, part.value, part.start)


def _problem(
    source: str,
    text: str,
    first_line: int,
    found: ReadError | yaml_reader.Note,
    *,
    warning: bool = False,
) -> Problem:
    line, lines = first_line + found.line - 1, text.splitlines()
    # A template's braces are often reported on the line after them.
    template = not warning and any("{{" in near for near in lines[max(0, found.line - 2) : found.line])
    remedy = _TEMPLATE if template else found.remedy
    return Problem(source, line, found.column, found.message, remedy, warning, excerpt(lines, line, first_line))
