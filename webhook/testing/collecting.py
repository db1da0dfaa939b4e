"""Finds the tests below paths: case files, manifests with expectations, and examples laid out in pairs."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gpugate.policies.engine.config import API_VERSION
from gpugate.webhook.manifests.bounded_file import read_regular
from gpugate.webhook.manifests.documents import encoding
from gpugate.webhook.manifests.inputs import Input, Passed
from gpugate.webhook.manifests.problems import Problem
from gpugate.webhook.report.located import DocumentLocations, Location
from gpugate.webhook.testing.cases import (
    MOST_BYTES,
    SUFFIXES,
    AnyCase,
    CaseFileError,
    ExampleCase,
    InlineCase,
    read_case_file,
    unreadable,
)
from gpugate.webhook.testing.expect_comments import is_marked
from gpugate.webhook.testing.pairs import BAD, FIXED

if TYPE_CHECKING:
    from collections.abc import Iterable

_GOOD: Final = "good-"
# A file without it contains no policy document.
_GROUP: Final = API_VERSION.partition("/")[0].encode()


@dataclass(slots=True)
class Collected:
    """The tests in the order of the paths, and the errors of unreadable files."""

    cases: list[AnyCase] = field(default_factory=list)
    broken: list[CaseFileError] = field(default_factory=list)


class Collector:
    """Collects tests.

    Examples in policy documents are tests, and manifests with a comment `# expect: ...`. If a `bad-` file has one, the
    `good-` and `fixed-` files beside it are tests too, which expect only the findings in their comments.
    """

    def __init__(self) -> None:
        self._laid_out: dict[str, bool] = {}

    def collect(self, inputs: Iterable[Input | Problem | Passed]) -> Collected:
        """Collect the tests in the files that paths expand to."""
        collected = Collected()
        for part in inputs:
            try:
                if isinstance(part, Problem):
                    raise unreadable(part)
                if isinstance(part, Input):
                    collected.cases += self._of(part)
            except CaseFileError as error:
                collected.broken.append(error)
        return collected

    def _of(self, file: Input) -> list[AnyCase]:
        if file.name.endswith(SUFFIXES):
            return list(read_case_file(file.name).cases)
        name = os.path.basename(file.name)  # noqa: PTH119 -- ten thousand of them
        if not name.endswith((".yaml", ".yml")):
            return []
        data = file.read()
        if isinstance(data, Problem):
            raise unreadable(data)
        if _GROUP in data:
            examples = _examples(file.label, data)
            if examples:
                return examples
        if not is_marked(data) and not (name.startswith((_GOOD, FIXED)) and self._is_laid_out(file.name)):
            return []
        if len(data) > MOST_BYTES:
            message = f"larger than {MOST_BYTES >> 20} MiB, the most for manifests with expectations: split it"
            raise CaseFileError(Location(file.label), message)
        try:
            return [InlineCase(file.label, name, data.decode(encoding(data)))]
        except UnicodeDecodeError as error:
            raise CaseFileError(
                Location(file.label), f"not UTF-8 text at byte {error.start}: save it as UTF-8"
            ) from None

    def _is_laid_out(self, name: str) -> bool:
        folder = os.path.dirname(name)  # noqa: PTH120 -- as above
        if folder not in self._laid_out:
            bad = (file for file in sorted(Path(folder or ".").glob(f"{BAD}*.y*ml")) if file.is_file())
            self._laid_out[folder] = any(is_marked(_bytes(file)) for file in bad)
        return self._laid_out[folder]


def _examples(source: str, data: bytes) -> list[AnyCase]:
    """Return the examples in policy documents as tests; an empty list for a file without a policy."""
    from gpugate.webhook.manifests.policy_documents import PolicyDocumentError, read_examples  # noqa: PLC0415 -- few files

    try:
        examples = read_examples(source, data)
    except PolicyDocumentError as error:
        raise CaseFileError(Location(source, error.line, error.column, error.column + 1), error.message) from None
    places: dict[int, DocumentLocations] = {}
    cases: list[AnyCase] = []
    for example in examples:
        located = places.setdefault(id(example.document), DocumentLocations(example.document))
        _, key, index = example.path
        name = f"{example.example.policy}: {key} example {int(index) + 1}"
        cases.append(ExampleCase(name, source, located.find(example.path).line, example, located))
    return cases


def _bytes(file: Path) -> bytes:
    try:
        return read_regular(file, MOST_BYTES)
    except OSError:
        return b""  # reading the file as a test reports why it cannot be read
