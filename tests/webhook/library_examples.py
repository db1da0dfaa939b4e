"""Reads an example of the library, for the laws that examples keep: manifests of which the last is judged.

In a `fixed-` file, which is what a bad example becomes, the documents before it exist beside it; in any other one they
have a role, as `annotated` reads them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import msgspec

from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.config import PolicyConfig
from gpugate.policies.engine.ruleset import bind
from gpugate.webhook.report.located import Location
from gpugate.webhook.testing.cases import CaseFileError
from gpugate.webhook.testing.expect_comments import read_annotated

if TYPE_CHECKING:
    from pathlib import Path

    from gpugate.policies.engine.ruleset import Ruleset
    from gpugate.policies.sdk.objects import Request
    from gpugate.webhook.manifests.objects import Manifest
    from gpugate.webhook.testing.expect_comments import Expected


@dataclass(frozen=True, slots=True)
class Example:
    """An example of the library: one object to judge.

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
    """Read an example file of the library.

    Raises:
        CaseFileError: as `read_annotated`, and when it holds several objects to judge.
    """
    found = read_annotated(source, text)
    *others, judged = found.manifests
    if others and not source.rpartition("/")[2].startswith("fixed-"):
        message = f"{len(others)} documents beside the last have no role: mark them `# context`"
        raise CaseFileError(Location(source), message)
    return Example(
        title=found.title,
        manifest=judged,
        request=found.request(judged),
        context=tuple(manifest.request for manifest in (*others, *found.context)),
        complete=found.complete,
        config=found.config or PolicyConfig(),
        expected=found.expected,
    )


@cache
def library_example(file: Path) -> Example:
    """Read an example of the library. It is read once for a process, so that its objects must not be changed."""
    return read_example(file.name, file.read_text(encoding="utf-8"))


def ruleset_of(config: PolicyConfig) -> Ruleset:
    """Bind the catalogue to a configuration, once for each configuration."""
    return _ruleset(msgspec.json.encode(config))


@cache
def _ruleset(config: bytes) -> Ruleset:
    return bind(CATALOG, msgspec.json.decode(config, type=PolicyConfig))
