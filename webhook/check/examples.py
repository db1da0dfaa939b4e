"""Reads an example: manifests with what policies are expected to find in them.

The last document is judged; in a `fixed-` file, which is what a bad example becomes, the others exist beside it. A
document that begins with the comment `# context` is another object that exists, one with `# old` the object before an
UPDATE; `# complete context` says that nothing else of its kind exists. A `PolicyConfig` among them is the
configuration. `# expect: ID[, ID]` at the end of a line says which policies find something on that line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from gpugate.policies.engine.config import KIND, PolicyConfig, parse_config
from gpugate.policies.engine.errors import GpugateError
from gpugate.policies.sdk.request import Operation
from gpugate.webhook.manifests.documents import Document, read_text
from gpugate.webhook.manifests.objects import Manifest, objects

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.request import Request

_EXPECT: Final = re.compile(r"\s#\s*expect:\s*(?P<ids>[\w/, -]+?)\s*$")
_ROLE: Final = re.compile(r"#\s*(?P<role>complete context|context|old)\s*$")


class ExampleError(GpugateError):
    """An example cannot be read; the text says where and why."""


@dataclass(frozen=True, slots=True)
class Expected:
    """A policy that finds something on a line (from 1) of the file."""

    line: int
    policy: str


@dataclass(frozen=True, slots=True)
class Example:
    """One example.

    Attributes:
        title: the comment on the first line: what the example shows.
        manifest: what is judged.
        request: the request to judge: a CREATE, or an UPDATE where an old object is given.
        context: other objects that exist.
        complete: whether no others exist.
        config: the configuration to judge with.
        expected: what policies find, and where.
    """

    title: str
    manifest: Manifest
    request: Request
    context: tuple[Request, ...]
    complete: bool
    config: PolicyConfig
    expected: frozenset[Expected]


def read_example(source: str, text: str) -> Example:
    """Read an example file.

    Raises:
        ExampleError: it holds no object to judge, or a document that cannot be read.
        ConfigError: its configuration is refused.
    """
    config = PolicyConfig()
    by_role: dict[str, list[Manifest]] = {"": [], "context": [], "complete context": [], "old": []}
    for document in read_text(source, text):
        if not isinstance(document, Document):
            raise ExampleError(f"{source}:{document.line}:{document.column}: {document.message}: {document.remedy}")
        if isinstance(document.value, dict) and document.value.get("kind") == KIND:
            config = parse_config(document.value)
            continue
        for found in objects(document):
            if not isinstance(found, Manifest):
                raise ExampleError(f"{source}:{found.line}: {getattr(found, 'message', 'not an object')}")
            by_role[role_of(document)].append(found)
    if not by_role[""]:
        raise ExampleError(f"{source}: no object to judge: the last document is the one, and needs no comment")
    *others, judged = by_role[""]
    if others and not source.rpartition("/")[2].startswith("fixed-"):
        raise ExampleError(f"{source}: {len(others)} documents beside the last have no role: mark them `# context`")
    request = judged.request
    if by_role["old"]:
        request = replace(request, operation=Operation.UPDATE, old_object=by_role["old"][-1].request.object)
    context = (*others, *by_role["context"], *by_role["complete context"])
    return Example(
        title=text.partition("\n")[0].lstrip("# ").strip() if text.startswith("#") else "",
        manifest=judged,
        request=request,
        context=tuple(manifest.request for manifest in context),
        complete=bool(by_role["complete context"]),
        config=config,
        expected=frozenset(_expectations(text)),
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


def _expectations(text: str) -> Iterator[Expected]:
    for number, line in enumerate(text.splitlines(), 1):
        found = _EXPECT.search(line)
        for policy in found["ids"].split(",") if found else ():
            yield Expected(number, policy.strip())
