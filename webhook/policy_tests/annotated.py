"""Reads manifests with what policies are expected to find in them.

Every document is judged, and all of them exist together. A document that begins with the comment `# context` is another
object that exists, one with `# old` the object before an UPDATE; `# complete context` says that nothing else of its kind
exists. A `PolicyConfig` among them is the configuration.
`# expect: ID[, ID]` at the end of a line says which policies find something on that line, `# expect: nothing` that
none does.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from gpugate.policies.engine.config import KIND, parse_config
from gpugate.policies.engine.errors import ConfigError
from gpugate.policies.sdk.request import Operation
from gpugate.webhook.manifests.documents import Document, read_text
from gpugate.webhook.manifests.editing.errors import EditError
from gpugate.webhook.manifests.editing.tree import parse, texts
from gpugate.webhook.manifests.objects import Manifest, objects
from gpugate.webhook.manifests.problems import Problem
from gpugate.webhook.policy_tests.errors import CaseFileError, unreadable
from gpugate.webhook.policy_tests.places import DocumentPlaces
from gpugate.webhook.report.located import Place

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.engine.config import PolicyConfig
    from gpugate.policies.sdk.request import Request

_EXPECT: Final = re.compile(r"\s#[ \t]*expect:[ \t]*(?P<ids>[\w/, -]+)$")  # in a line without spaces at its end
NOTHING: Final = "nothing"
_ROLE: Final = re.compile(r"#\s*(?P<role>complete context|context|old)\s*$")


@dataclass(frozen=True, slots=True)
class Expected:
    """A policy that finds something on a line (from 1) of the file."""

    line: int
    policy: str


@dataclass(frozen=True, slots=True)
class Annotated:
    """A file of manifests with expectations.

    Attributes:
        title: the comment on the first line: what the file shows.
        manifests: what is judged, one after the other.
        old: objects before an UPDATE.
        context: other objects that exist.
        complete: whether no others exist.
        config: the configuration to judge with; None where the file holds none.
        expected: what policies find, and where.
    """

    title: str
    manifests: tuple[Manifest, ...]
    old: tuple[Manifest, ...]
    context: tuple[Manifest, ...]
    complete: bool
    config: PolicyConfig | None
    expected: frozenset[Expected]

    def request(self, manifest: Manifest) -> Request:
        """Return the request to judge: a CREATE, or an UPDATE where the object before it is in the file."""
        fitting = [old for old in self.old if len(self.manifests) == 1 or _name(old) == _name(manifest)]
        if not fitting:
            return manifest.request
        return replace(manifest.request, operation=Operation.UPDATE, old_object=fitting[-1].request.object)


def read_annotated(source: str, text: str) -> Annotated:
    """Read a file of manifests with expectations.

    Raises:
        CaseFileError: it holds no object to judge, a document that cannot be read, or a configuration that is refused.
    """
    config: PolicyConfig | None = None
    by_role: dict[str, list[Manifest]] = {"": [], "context": [], "complete context": [], "old": []}
    expected: set[Expected] = set()
    for document in read_text(source, text):
        if isinstance(document, Problem):
            if document.warning:
                continue
            raise unreadable(document)
        expected.update(_expected(document))
        if isinstance(document.value, dict) and document.value.get("kind") == KIND:
            config = _config(document)
            continue
        for found in objects(document):
            if isinstance(found, Problem):
                raise unreadable(found)
            if not isinstance(found, Manifest):
                raise CaseFileError(Place(source, found.line, 1), "not an object for the API server: remove it")
            by_role[role_of(document)].append(found)
    if not by_role[""]:
        raise CaseFileError(Place(source), "no object to judge: the last document is the one, and needs no comment")
    return Annotated(
        title=text.partition("\n")[0].lstrip("# ").strip() if text.startswith("#") else "",
        manifests=tuple(by_role[""]),
        old=tuple(by_role["old"]),
        context=(*by_role["context"], *by_role["complete context"]),
        complete=bool(by_role["complete context"]),
        config=config,
        expected=frozenset(expected),
    )


def role_of(document: Document) -> str:
    """Return the role that a comment above the first key gives a document; empty when none does."""
    for line in document.text.splitlines():
        if line.strip() and not line.startswith(("---", "#")):
            break
        role = _ROLE.match(line)
        if role:
            return role["role"]
    return ""


def _name(manifest: Manifest) -> tuple[str, str, str]:
    request = manifest.request
    return request.kind.kind, request.namespace, request.name


def _config(document: Document) -> PolicyConfig:
    try:
        return parse_config(document.value)
    except ConfigError as error:
        raise CaseFileError(DocumentPlaces(document).find(error.path), str(error)) from None


def expectations(document: Document) -> Iterator[tuple[int, re.Match[str]]]:
    """Yield the comments of a document that say what is expected: the line (from 1, in the file), and the match in it."""
    text = document.text
    if "expect:" not in text:
        return
    spans = _texts(text)
    start = 0
    for number, line in enumerate(text.splitlines(keepends=True), document.first_line):
        found = _EXPECT.search(line.rstrip())
        if found and not _is_inside(spans, start + found.start() + 1):
            yield number, found
        start += len(line)


def _expected(document: Document) -> Iterator[Expected]:
    for line, found in expectations(document):
        for policy in found["ids"].split(","):
            if policy.strip() not in {NOTHING, ""}:
                yield Expected(line, policy.strip())


def _texts(text: str) -> list[tuple[int, int]]:
    """The values in a document, in which a `#` begins no comment, in order; none where it holds no object."""
    try:
        return sorted(texts(parse(text)))
    except EditError:
        return []


def _is_inside(spans: list[tuple[int, int]], offset: int) -> bool:
    before = bisect_right(spans, offset, key=lambda span: span[0])
    return before > 0 and offset < spans[before - 1][1]
