"""Rewrites the expectations of tests that fail; nothing is written to disk here."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gpugate.webhook.manifests.documents import Document, encoding, read_text
from gpugate.webhook.manifests.edit import edited
from gpugate.webhook.manifests.edit_tree import EditError
from gpugate.webhook.manifests.inputs import Input
from gpugate.webhook.manifests.problems import Problem
from gpugate.webhook.policy_tests.errors import CaseFileError
from gpugate.webhook.policy_tests.inline import InlineCase
from gpugate.webhook.policy_tests.rewritten_comments import recommented
from gpugate.webhook.policy_tests.rewritten_expect import rewritten

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpugate.webhook.policy_tests.cases import Case
    from gpugate.webhook.policy_tests.results import CaseResult


@dataclass(slots=True)
class UpdatedFile:
    """A file with its text before and after, and the codec that reads and writes it."""

    file: Input
    before: str
    after: str
    codec: str


@dataclass(slots=True)
class Updates:
    """The files that change, and a line on each test that is left to its author, with the reason."""

    files: dict[str, UpdatedFile] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)


def updates(failed: Iterable[CaseResult]) -> Updates:
    """Rewrite what tests expect, so that they would pass."""
    made = Updates()
    for result in failed:
        case = result.case
        try:
            file = _opened(made, case.file)
            if isinstance(case, InlineCase):
                file.after = recommented(case.file, file.after, result)
            else:
                file.after = _rewritten(case, file.after, result)
        except EditError as error:
            made.left.append(f"{case.file}:{case.line}: {case.name} is left to you: {error}")
    made.files = {name: file for name, file in made.files.items() if file.after != file.before}
    return made


def _opened(made: Updates, name: str) -> UpdatedFile:
    if name not in made.files:
        file = Input(name, explicit=True)
        data = file.read()
        if isinstance(data, Problem):
            raise EditError(data.message)
        codec = encoding(data)
        text = data.decode(codec)
        made.files[name] = UpdatedFile(file, text, text, codec)
    return made.files[name]


def _rewritten(case: Case, text: str, result: CaseResult) -> str:
    if isinstance(case.definition, CaseFileError) or any(outcome.error for outcome in result.verdict.outcomes):
        raise EditError("a policy broke")
    if case.parameters:
        raise EditError("it has parameters, which its expectations may need")
    document = next((part for part in read_text(case.file, text) if isinstance(part, Document)), None)
    value: Any = document.value if document else None
    test = value["tests"][case.index]
    expect = rewritten(test["expect"], case.definition.expect, result.judged[0])
    if expect == test["expect"]:
        raise EditError("what it expects of `fixed` stands in another file")
    tests = [*value["tests"][: case.index], {**test, "expect": expect}, *value["tests"][case.index + 1 :]]
    return edited(text, {**value, "tests": tests})
