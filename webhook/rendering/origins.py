"""Takes from kustomize's output the annotations that say which file an object is from.

kustomize writes them where a kustomization has `buildMetadata: [originAnnotations]` (sigs.k8s.io/kustomize/api v0.20).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_DOCUMENT: Final = re.compile(r"^---\n", re.MULTILINE)
_METADATA: Final = re.compile(r"^metadata:\n(?:[ ].*\n)*", re.MULTILINE)
_ORIGIN: Final = re.compile(r"^    config\.kubernetes\.io/origin: \|\n(?P<said>(?:      .*\n)+)", re.MULTILINE)
_EMPTY: Final = re.compile(r"^  annotations:\n(?!    )", re.MULTILINE)
_FILE: Final = re.compile(r"^      (?P<key>path|configuredIn): (?P<file>.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ObjectOrigin:
    """The lines of an object, from 1, and the file it is from; `generated` when that is a kustomization itself."""

    first_line: int
    last_line: int
    file: str
    generated: bool


def without_origins(output: str) -> tuple[str, tuple[ObjectOrigin, ...]]:
    """Return what kustomize built without the annotations, and what they said, object by object."""
    texts: list[str] = []
    origins: list[ObjectOrigin] = []
    line = 1
    for number, document in enumerate(_DOCUMENT.split(output if output.endswith("\n") else f"{output}\n")):
        line += 1 if number else 0
        text, said = _parted(document)
        lines = text.count("\n")
        for found in _FILE.finditer(said):
            file = found["file"].strip("'\"")
            origins.append(ObjectOrigin(line, line + lines - 1, file, found["key"] == "configuredIn"))
            break
        texts.append(text)
        line += lines
    return "---\n".join(texts), tuple(origins)


def _parted(document: str) -> tuple[str, str]:
    """Part a document into what a cluster gets and what the annotation says."""
    metadata = _METADATA.search(document)
    origin = _ORIGIN.search(document, *metadata.span()) if metadata else None
    if metadata is None or origin is None:
        return document, ""
    kept = _EMPTY.sub("", document[metadata.start() : origin.start()] + document[origin.end() : metadata.end()])
    return document[: metadata.start()] + kept + document[metadata.end() :], origin["said"]
