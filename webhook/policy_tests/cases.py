"""Reads case files, `*.gpugate-test.yaml`: one test after the other, each with the line on which it begins."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from gpugate.policies.engine.config import ConfigError, near_misses, parse
from gpugate.policies.sdk.field import render
from gpugate.webhook.manifests.case_format import CaseFileFormat, Definition, Setting
from gpugate.webhook.manifests.documents import Document, read_bytes
from gpugate.webhook.manifests.inputs import Input
from gpugate.webhook.manifests.problems import Problem
from gpugate.webhook.policy_tests.errors import CaseFileError, unreadable
from gpugate.webhook.policy_tests.parameters import combinations, named, substituted
from gpugate.webhook.policy_tests.reach import OutOfReachError, beside
from gpugate.webhook.report.located import DocumentPlaces, Place

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from gpugate.policies.sdk.field import Json
    from gpugate.policies.sdk.field import Path as FieldPath

SUFFIXES: Final = (".gpugate-test.yaml", ".gpugate-test.yml")
MOST_BYTES: Final = 4 * 2**20  # a case file is written by people
_SECTIONS: Final = tuple(CaseFileFormat.__struct_fields__)


@dataclass(frozen=True, slots=True)
class CaseFile:
    """A case file: its name for people, its tests in order, its document and the places in that."""

    file: str
    document: Document
    places: DocumentPlaces
    cases: tuple[Case, ...] = ()


@dataclass(frozen=True, slots=True)
class Case:
    """One test.

    Attributes:
        name: its name, unique in the file; with the values of its parameters.
        file: the case file.
        line: where the test begins, from 1.
        index: its place among the file's `tests`; tests that come of one with parameters share it.
        parameters: the values of its parameters.
        definition: what it says, or the mistake that keeps it from being run.
        source: where it was read.
    """

    name: str
    file: str
    line: int
    index: int
    parameters: Mapping[str, Json]
    definition: Definition | CaseFileError = field(repr=False)
    source: CaseFile = field(repr=False)

    def beside(self, at: FieldPath, path: str) -> str:
        """Return the name of a file that the test names at a field, whose path begins in the case file's folder.

        Raises:
            CaseFileError: the test may not name it.
        """
        try:
            return beside(self.file, path)
        except OutOfReachError as error:
            raise self.error(at, str(error)) from None

    def error(self, path: FieldPath, message: str) -> CaseFileError:
        """Make an error at a field of the test."""
        return CaseFileError(self.source.places.find(("tests", self.index, *path)), message)


def read_case_file(path: Path | str) -> CaseFile:
    """Read a case file.

    A test with a mistake in it becomes a case that says so when it is run, so that the others are not lost.

    Raises:
        CaseFileError: the file as a whole cannot be read; says where and what to do.
    """
    name = str(path)
    document = _document(name)
    source = CaseFile(name, document, DocumentPlaces(document))
    value = document.value
    if not isinstance(value, dict):
        raise CaseFileError(source.places.find(()), "not a case file: write `tests:` and a list of tests below it")
    for key in value:
        if key not in _SECTIONS:
            near = near_misses(key, _SECTIONS)
            meant = f"did you mean `{near[0]}`?" if near else f"it has {' and '.join(_SECTIONS)}"
            raise CaseFileError(source.places.find((key,)), f"unknown key {key}; {meant}")
    try:
        parse(value.get("defaults") or {}, Setting, ("defaults",))
    except ConfigError as error:
        raise CaseFileError(source.places.find(error.path), str(error)) from None
    tests = value.get("tests")
    if not isinstance(tests, list) or not tests:
        place = source.places.find(("tests",))
        raise CaseFileError(place, "no tests: write `tests:` and a list of them below it, each with `- name:`")
    found = [case for index, test in enumerate(tests) for case in _cases(source, index, test)]
    return CaseFile(name, document, source.places, tuple(_unique(found)))


def _document(name: str) -> Document:
    file = Input(name, explicit=True)
    data = file.read()
    if isinstance(data, Problem):
        raise unreadable(data)
    if len(data) > MOST_BYTES:
        raise CaseFileError(
            Place(file.label), f"larger than {MOST_BYTES >> 20} MiB, the most for a case file: split it"
        )
    documents: list[Document] = []
    for part in read_bytes(file.label, data):
        if isinstance(part, Problem):
            raise unreadable(part)
        documents.append(part)
    if len(documents) != 1:
        raise CaseFileError(Place(file.label), f"holds {len(documents)} documents: write one, with `tests:` in it")
    return documents[0]


def _cases(source: CaseFile, index: int, test: Json) -> Iterator[Case]:
    at: FieldPath = ("tests", index)
    line = source.places.find(at).line

    def broken(name: str, error: ConfigError) -> Case:
        # The message names the field below the test, as the line says which test it is.
        below = error.path[len(at) :]
        message = f"{render(below)}: {error.message}" if below else error.message
        return Case(name, source.file, line, index, {}, CaseFileError(source.places.find(error.path), message), source)

    if not isinstance(test, dict):
        yield broken(f"test {index + 1}", ConfigError(at, "a test is an object: write `name`, `object` and `expect`"))
        return
    written = test.get("name")
    name = written if isinstance(written, str) and written else f"test {index + 1}"
    try:
        given = combinations(test["parametrize"]) if "parametrize" in test else [{}]
    except ConfigError as error:
        yield broken(name, ConfigError((*at, "parametrize", *error.path), error.message))
        return
    whole = _with_defaults(source.document.value, {key: test[key] for key in test if key != "parametrize"})
    said: set[str] = set()
    for values in given:
        called = named(name, values)
        try:
            definition = parse(substituted(whole, values), Definition, at)
        except ConfigError as error:
            # A mistake is told once, and not for each combination of parameters.
            if str(error) not in said:
                yield broken(called, error)
            said.add(str(error))
            continue
        yield Case(called, source.file, line, index, values, definition, source)


def _with_defaults(document: Json, test: dict[str, Json]) -> dict[str, Json]:
    """Fill in what a test leaves to the file's defaults: their context comes first, what they ask is merged."""
    section = document.get("defaults") if isinstance(document, dict) else None
    defaults = section if isinstance(section, dict) else {}
    configured = {"policy_file", "config"} & test.keys()
    made = {key: value for key, value in defaults.items() if not (configured and key in {"policy_file", "config"})}
    made |= test
    for key in ("request", "target"):
        one, other = defaults.get(key), test.get(key)
        if isinstance(one, dict) and isinstance(other, dict):
            made[key] = {**one, **other}
    one, other = defaults.get("context"), test.get("context")
    if isinstance(one, list) and isinstance(other, list):
        made["context"] = [*one, *other]
    return made


def _unique(found: list[Case]) -> Iterator[Case]:
    first: dict[str, Case] = {}
    for case in found:
        other = first.setdefault(case.name, case)
        if other is case:
            yield case
            continue
        error = case.error(("name",), f"a test on line {other.line} is called {case.name!r} too: name them apart")
        name = f"{case.name} (line {case.line})"
        yield Case(name, case.file, case.line, case.index, case.parameters, error, case.source)
