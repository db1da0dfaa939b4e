"""Rewrites the comments of a file of manifests so that they say what policies find."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpugate.policies.catalog import CATALOG
from gpugate.webhook.manifests.documents import Document, read_text
from gpugate.webhook.manifests.edit import same
from gpugate.webhook.manifests.edit_tree import EditError
from gpugate.webhook.policy_tests.annotated import Expected, read_annotated
from gpugate.webhook.policy_tests.errors import CaseFileError
from gpugate.webhook.policy_tests.expect_comments import NOTHING, expectations, outside
from gpugate.webhook.policy_tests.observed import ObservedPlaces, observed

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from gpugate.policies.sdk.field import Json
    from gpugate.webhook.policy_tests.results import CaseResult


def recommented(source: str, text: str, result: CaseResult) -> str:
    """Return the text with the comments that fit the verdicts.

    The result has been read again: its objects are the same, and it expects what was found.

    Raises:
        EditError: no comment can stand on a line on which something is found.
    """
    found = {
        Expected(each.place.line, each.policy)
        for judged in result.judged
        for each in observed(judged.verdict, ObservedPlaces(judged.ready.manifest))
    }
    documents = [part for part in read_text(source, text) if isinstance(part, Document)]
    lines = text.splitlines(keepends=True)
    comments = [comment for document in documents for comment in expectations(document)]
    for comment in (*comments, *outside(lines, documents)):
        line = lines[comment.line - 1]
        lines[comment.line - 1] = line[: comment.start].rstrip() + _ending(line)
    for number in {expected.line for expected in found}:
        _append(lines, number, [p.id for p in CATALOG if Expected(number, p.id) in found])
    if not found:
        # Without a comment it would be no test any more.
        _append(lines, result.judged[0].ready.manifest.document.first_line + _first(result), [NOTHING])
    made = "".join(lines)
    _refuse_another_meaning(source, documents, made, found)
    return made


def _append(lines: list[str], number: int, ids: Sequence[str]) -> None:
    line = lines[number - 1]
    lines[number - 1] = f"{line.rstrip()}  # expect: {', '.join(ids)}{_ending(line)}"


def _ending(line: str) -> str:
    return line[len(line.rstrip("\r\n")) :]


def _first(result: CaseResult) -> int:
    """How many lines stand in the first object's document before its first key."""
    lines = result.judged[0].ready.manifest.document.text.splitlines()
    return next((index for index, line in enumerate(lines) if line.strip() and not line.startswith(("---", "#"))), 0)


def _refuse_another_meaning(source: str, before: Sequence[Document], made: str, wanted: Collection[Expected]) -> None:
    values: list[Json] = [part.value for part in read_text(source, made) if isinstance(part, Document)]
    try:
        alike = same(values, [part.value for part in before]) and read_annotated(source, made).expected == wanted
    except CaseFileError:
        alike = False
    if not alike:
        raise EditError("a line on which something is found has no room for a comment, as in a text of several lines")
