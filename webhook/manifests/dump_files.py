"""Reads the objects of one file of a dump, each by itself, so that a broken one costs no other and size does not matter."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import msgspec

from gpugate.policies.engine.json_text import read_json
from gpugate.policies.sdk.objects import GroupVersionKind
from gpugate.webhook.manifests.documents import Document, encoding, read_bytes, read_text
from gpugate.webhook.manifests.inputs import Input, expand
from gpugate.webhook.manifests.objects import Manifest, objects
from gpugate.webhook.manifests.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# What kubectl writes for several objects: `items` with an element at the beginning of a line, and its own type after it.
_ITEMS: Final = re.compile(r"^items:[ \t]*\n(?=- )", re.MULTILINE)
_ITEM: Final = re.compile(r"^- ", re.MULTILINE)
_END: Final = re.compile(r"^[^\s#-]", re.MULTILINE)
_TYPE: Final = re.compile(r"^(?P<key>apiVersion|kind):[ \t]*(?P<value>[\w./-]+)[ \t]*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ListKind:
    """A list that says of which kind its items are, so that an empty one tells that there are none."""

    kind: GroupVersionKind


class _List(msgspec.Struct, rename="camel"):
    api_version: str
    kind: str
    items: list[msgspec.Raw]


_LISTS: Final = msgspec.json.Decoder(_List)


def found_in(file: Input) -> Iterator[Manifest | Problem | ListKind]:
    """Yield what a file holds; what is not meant for an API server is passed over."""
    data = file.read()
    if isinstance(data, Problem):
        yield data
        return
    try:
        listed = read_json(_LISTS.decode, data)
    except msgspec.DecodeError:
        yield from _of_documents(file, data)
        return
    kind = GroupVersionKind.of(listed.api_version, listed.kind)
    yield from _typed(kind)
    for number, item in enumerate(listed.items):
        where = f"{file.label}, items[{number}]"
        try:
            value = msgspec.json.decode(item)
        except msgspec.DecodeError as error:
            yield Problem(where, 0, 0, f"is not valid JSON: {error}", "export it again")
            continue
        yield from _objects(Document(where, "", 1, _of_kind(value, kind)))


def _of_kind(value: Any, listed: GroupVersionKind) -> Any:
    """Return an item with its type; those of a PodList say it only in the list's own."""
    if not isinstance(value, dict) or listed.kind == "List":
        return value
    return {"apiVersion": listed.api_version, "kind": listed.kind.removesuffix("List"), **value}


def dumped(paths: Iterable[str]) -> Iterator[Manifest | Problem]:
    """Yield the objects of some dumps, files or directories.

    An object that is there twice is yielded once: a must-gather has Pods in the list of their namespace, and in files.
    """
    keys: set[tuple[str, str, str, str]] = set()
    for path in expand(paths):
        if isinstance(path, Problem):
            yield path
        for part in found_in(path) if isinstance(path, Input) else ():
            if isinstance(part, Problem):
                yield part
            elif isinstance(part, Manifest):
                request = part.request
                key = (request.kind.group, request.kind.kind, request.namespace, request.name)
                if not request.name or key not in keys:
                    keys.add(key)
                    yield part


def _of_documents(file: Input, data: bytes) -> Iterator[Manifest | Problem | ListKind]:
    try:
        text = data.decode(encoding(data)).replace("\r\n", "\n")
    except UnicodeDecodeError:
        text = ""
    items = _ITEMS.search(text)
    if items is None or re.search(r"^---", text[items.end() :], re.MULTILINE):
        for document in read_bytes(file.label, data):
            if isinstance(document, Problem):
                yield document
                continue
            value = document.value
            if isinstance(value, dict) and isinstance(value.get("items"), list):
                yield from _typed(GroupVersionKind.of(str(value.get("apiVersion")), str(value.get("kind"))))
            yield from _objects(document, lenient=not file.explicit)
        return
    yield from _of_list(file, text, items)


def _of_list(file: Input, text: str, items: re.Match[str]) -> Iterator[Manifest | Problem | ListKind]:
    """Read a list of YAML item by item: as one document it would be over every limit, and one broken item the end of it."""
    ending = _END.search(text, items.end())
    end = ending.start() if ending else len(text)
    head = {member["key"]: member["value"] for member in _TYPE.finditer(text[: items.start()] + text[end:])}
    kind = GroupVersionKind.of(head.get("apiVersion", "v1"), head.get("kind", "List"))
    yield from _typed(kind)
    starts = [item.start() for item in _ITEM.finditer(text, items.end(), end)]
    line = text.count("\n", 0, items.end())
    for start, stop in zip(starts, [*starts[1:], end], strict=True):
        chunk = text[start:stop]
        for document in read_text(file.label, chunk):
            if isinstance(document, Problem):
                yield replace(document, line=document.line + line)
            elif isinstance(document.value, list):
                for value in document.value:
                    yield from _objects(Document(file.label, "", line + 1, _of_kind(value, kind)))
        line += chunk.count("\n")


def _typed(kind: GroupVersionKind) -> Iterator[ListKind]:
    if kind.kind.endswith("List") and kind.kind != "List":
        yield ListKind(GroupVersionKind(kind.group, kind.version, kind.kind.removesuffix("List")))


def _objects(document: Document, *, lenient: bool = False) -> Iterator[Manifest | Problem]:
    for part in objects(document, lenient=lenient):
        if isinstance(part, Manifest | Problem):
            yield part
