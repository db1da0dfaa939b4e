"""Reads everything that a command line names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpugate.webhook.manifests.documents import Document, read_bytes
from gpugate.webhook.manifests.inputs import Input, Passed, expand
from gpugate.webhook.manifests.objects import Manifest, NotAManifest, objects
from gpugate.webhook.manifests.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


@dataclass(frozen=True, slots=True)
class Loaded:
    """What was found: the manifests in order, what could not be read, what was passed over, and the files' names."""

    manifests: tuple[Manifest, ...]
    problems: tuple[Problem, ...]
    passed_over: tuple[NotAManifest | Passed, ...]
    files: tuple[str, ...]


def load(paths: Iterable[str], *, namespace: str = "default") -> Loaded:
    """Read files, directories, patterns and `-`.

    Args:
        paths: what the user named.
        namespace: the namespace of objects that name none.
    """
    return load_files(expand(paths), namespace=namespace)


def load_files(files: Iterable[Input | Problem | Passed], *, namespace: str = "default") -> Loaded:
    """Read files that paths were expanded to; the namespace is that of objects that name none."""
    manifests: list[Manifest] = []
    problems: list[Problem] = []
    passed_over: list[NotAManifest | Passed] = []
    names: list[str] = []
    for found in files:
        if isinstance(found, Input):
            names.append(found.label)
        for part in parts(found, namespace) if isinstance(found, Input) else (found,):
            if isinstance(part, Document):
                continue
            if isinstance(part, Manifest):
                manifests.append(part)
            elif isinstance(part, Problem):
                problems.append(part)
            else:
                passed_over.append(part)
    return Loaded(tuple(manifests), tuple(problems), tuple(passed_over), tuple(names))


def parts(file: Input, namespace: str) -> Iterator[Document | Manifest | Problem | NotAManifest]:
    """Yield what a file holds: each document that can be read, followed by the objects in it."""
    data = file.read()
    if isinstance(data, Problem):
        yield data
        return
    for document in read_bytes(file.label, data):
        yield document
        if isinstance(document, Document):
            yield from objects(document, namespace=namespace, lenient=not file.explicit)
