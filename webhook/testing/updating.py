"""Rewrite the expectations of failing tests; nothing is written to disk here."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from gpugate.policies.sdk.field import render
from gpugate.webhook.manifests.case_format import Expect, Where
from gpugate.webhook.manifests.documents import Document, encoding, read_text
from gpugate.webhook.manifests.edit import edited, same
from gpugate.webhook.manifests.edit_tree import EditError
from gpugate.webhook.manifests.inputs import Input
from gpugate.webhook.manifests.problems import Problem
from gpugate.webhook.testing.cases import CaseFileError, ExampleCase, InlineCase
from gpugate.webhook.testing.comparing import EFFECTS, ObservedLocations, fits, listed, observed
from gpugate.webhook.testing.expect_comments import NOTHING, Expected, expectations, outside, read_annotated

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from gpugate.policies.sdk.field import Json
    from gpugate.webhook.testing.cases import Case
    from gpugate.webhook.testing.comparing import CaseResult, Evaluated, Observed


def recommented(source: str, text: str, result: CaseResult) -> str:
    """Return the text with the comments that fit the verdicts.

    The new text is parsed again: its objects are the same, and its expectations are the findings.

    Raises:
        EditError: a line with a finding cannot have a comment.
    """
    expected_comments = {
        Expected(finding.location.line, finding.policy)
        for evaluated in result.evaluated
        for finding in observed(evaluated.verdict, ObservedLocations(evaluated.ready.manifest))
    }
    documents = [part for part in read_text(source, text) if isinstance(part, Document)]
    lines = text.splitlines(keepends=True)
    comments = [comment for document in documents for comment in expectations(document)]
    for comment in (*comments, *outside(lines, documents)):
        line = lines[comment.line - 1]
        lines[comment.line - 1] = line[: comment.start].rstrip() + _ending(line)
    for number in {expected.line for expected in expected_comments}:
        _append(lines, number, [p.id for p in result.ruleset.catalog if Expected(number, p.id) in expected_comments])
    if not expected_comments:
        # Without a comment it would be no test any more.
        _append(lines, result.evaluated[0].ready.manifest.document.first_line + _first(result), [NOTHING])
    updated = "".join(lines)
    _refuse_another_meaning(source, documents, updated, expected_comments)
    return updated


def _append(lines: list[str], number: int, ids: Sequence[str]) -> None:
    line = lines[number - 1]
    lines[number - 1] = f"{line.rstrip()}  # expect: {', '.join(ids)}{_ending(line)}"


def _ending(line: str) -> str:
    return line[len(line.rstrip("\r\n")) :]


def _first(result: CaseResult) -> int:
    """Return the number of lines in the first object's document before its first key."""
    lines = result.evaluated[0].ready.manifest.document.text.splitlines()
    return next((index for index, line in enumerate(lines) if line.strip() and not line.startswith(("---", "#"))), 0)


def _refuse_another_meaning(
    source: str, before: Sequence[Document], updated: str, wanted: Collection[Expected]
) -> None:
    values: list[Json] = [part.value for part in read_text(source, updated) if isinstance(part, Document)]
    try:
        alike = same(values, [part.value for part in before]) and read_annotated(source, updated).expected == wanted
    except CaseFileError:
        alike = False
    if not alike:
        raise EditError("a line on which something is found has no room for a comment, as in a text of several lines")


_Json = dict[str, Any]  # Any: the JSON edge


def rewritten(written: _Json, expect: Expect, evaluated: Evaluated) -> _Json:
    """Return the `expect` section that fits a verdict.

    Args:
        written: the section as it is.
        expect: the same, read.
        evaluated: the object and the verdict on it.
    """
    verdict = evaluated.verdict
    observations = list(observed(verdict, ObservedLocations(evaluated.ready.manifest)))
    updated = dict(written)
    if "allow" in updated:
        updated["allow"] = verdict.allowed
    for effect in EFFECTS:
        by_patch = effect == "mutate" and ("patch" in updated or "fixed" in updated) and effect not in updated
        if not by_patch:
            _put(updated, effect, _policies(getattr(expect, effect), effect, observations, others=expect.also is None))
    _put(updated, "malformed", [render(wrong.path) for wrong in verdict.malformed])
    if "skip" in updated:
        updated["skip"] = [outcome.policy for outcome in verdict.outcomes if outcome.skipped]
    if "patch" in updated:
        updated["patch"] = [dict(operation) for operation in verdict.operations]
    if isinstance(updated.get("fixed"), dict) and "apiVersion" in updated["fixed"]:
        updated["fixed"] = verdict.object or {}
    policies = {finding.policy for finding in observations}
    if "at" in updated:
        _put(
            updated,
            "at",
            {p: _places(updated["at"][p], expect, p, observations) for p in updated["at"] if p in policies},
        )
    if "message" in updated:
        _put(
            updated,
            "message",
            {p: _messages(updated["message"][p], p, observations) for p in updated["message"] if p in policies},
        )
    # `also: any` alone would accept every verdict.
    return updated if updated.keys() - {"also"} else {**updated, "allow": verdict.allowed}


def _put(expectation: _Json, key: str, value: list[str] | _Json) -> None:
    if value:
        expectation[key] = value
    else:
        expectation.pop(key, None)


def _policies(before: Sequence[str], effect: str, observations: Sequence[Observed], *, others: bool) -> list[str]:
    now = dict.fromkeys(finding.policy for finding in observations if finding.effect == effect)
    remaining = [policy for policy in before if policy in now]
    return [*remaining, *(policy for policy in now if policy not in remaining)] if others else remaining


def _places(
    written: Any, expect: Expect, policy: str, observations: Sequence[Observed]
) -> Any:  # Any: as it is written
    before = listed(expect.at[policy])
    findings = [finding for finding in observations if finding.policy == policy]
    if all(any(fits(where, finding) for where in before) for finding in findings) and all(
        any(fits(where, finding) for finding in findings) for where in before
    ):
        return written
    with_path = any(where.path is not None for where in before)
    with_line = any(where.line is not None for where in before)
    locations: list[Any] = []
    for finding in findings:
        where = Where(path=finding.path if with_path else None, line=finding.location.line if with_line else None)
        entry = finding.path if where.line is None else msgspec.to_builtins(where)
        if entry not in locations:
            locations.append(entry)
    return locations[0] if len(locations) == 1 else locations


def _messages(written: Any, policy: str, observations: Sequence[Observed]) -> Any:  # Any: as it is written
    present = [finding.message for finding in observations if finding.policy == policy]
    texts = [
        text if any(text in message for message in present) else present[0]
        for text in (written if isinstance(written, list) else [written])
    ]
    return texts if isinstance(written, list) else texts[0]


@dataclass(slots=True)
class UpdatedFile:
    """A file with its text before and after, and the codec that reads and writes it."""

    file: Input
    before: str
    after: str
    codec: str


@dataclass(slots=True)
class Updates:
    """The changed files, and a line with the reason for each test that the author must update."""

    files: dict[str, UpdatedFile] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)


def updates(failed: Iterable[CaseResult]) -> Updates:
    """Rewrite the expectations of tests so that they would pass."""
    changes = Updates()
    for result in failed:
        case = result.case
        if isinstance(case, ExampleCase):
            changes.left.append(
                f"{case.file}:{case.line}: {case.name} was not updated: correct the example or the policy"
            )
            continue
        try:
            file = _opened(changes, case.file)
            if isinstance(case, InlineCase):
                file.after = recommented(case.file, file.after, result)
            else:
                file.after = _rewritten(case, file.after, result)
        except EditError as error:
            changes.left.append(f"{case.file}:{case.line}: {case.name} was not updated: {error}")
    changes.files = {name: file for name, file in changes.files.items() if file.after != file.before}
    return changes


def _opened(changes: Updates, name: str) -> UpdatedFile:
    if name not in changes.files:
        file = Input(name, explicit=True)
        data = file.read()
        if isinstance(data, Problem):
            raise EditError(data.message)
        codec = encoding(data)
        text = data.decode(codec)
        changes.files[name] = UpdatedFile(file, text, text, codec)
    return changes.files[name]


def _rewritten(case: Case, text: str, result: CaseResult) -> str:
    if isinstance(case.definition, CaseFileError) or any(outcome.error for outcome in result.verdict.outcomes):
        raise EditError("a policy broke")
    if case.parameters:
        raise EditError("it has parameters, which its expectations may need")
    document = next((part for part in read_text(case.file, text) if isinstance(part, Document)), None)
    value: Any = document.value if document else None
    test = value["tests"][case.index]
    expect = rewritten(test["expect"], case.definition.expect, result.evaluated[0])
    if expect == test["expect"]:
        raise EditError("what it expects of `fixed` stands in another file")
    tests = [*value["tests"][: case.index], {**test, "expect": expect}, *value["tests"][case.index + 1 :]]
    return edited(text, {**value, "tests": tests})
