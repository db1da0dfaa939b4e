"""Parse case files, `*.gpugate-test.yaml`: tests in order, each with its line."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Any, Final

from gpugate.policies.engine.config import ConfigError, GpugateError, near_misses, parse
from gpugate.policies.sdk.field import render
from gpugate.webhook.manifests.case_format import CaseFileFormat, Definition, Setting
from gpugate.webhook.manifests.documents import Document, read_bytes
from gpugate.webhook.manifests.inputs import STDIN, Input
from gpugate.webhook.manifests.problems import Problem
from gpugate.webhook.manifests.within import is_within, work_tree
from gpugate.webhook.report.located import DocumentLocations, Location

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from gpugate.policies.sdk.field import Json
    from gpugate.policies.sdk.field import Path as FieldPath
    from gpugate.webhook.manifests.policy_documents import PolicyExample


class CaseFileError(GpugateError):
    """A case file, or a file that it names, is invalid; the text begins with file:line:column.

    `location` shows the line; `message` is the text without it.
    """

    def __init__(self, location: Location, message: str) -> None:
        where = f"{location.file}:{location.line}:{location.column}" if location.line else location.file
        super().__init__(f"{where}: {message}")
        self.location = location
        self.message = message


def unreadable(problem: Problem) -> CaseFileError:
    """Return the error for a file or document that cannot be read."""
    around = problem.excerpt
    location = Location(problem.source, problem.line, problem.column, problem.end, around.lines, around.first_line)
    return CaseFileError(location, f"{problem.message}: {problem.remedy}")


class OutOfReachError(Exception):
    """A test may not name a file; the text says why, and what to do."""


def beside(file: str, path: str) -> str:
    """Return the name of a file whose path begins in the folder of another one.

    Raises:
        OutOfReachError: it is no file's name, or leads out of what the other file belongs to: its git work tree, else
            the folder above its own and, where it is below that, the working directory.
    """
    if path == STDIN:
        raise OutOfReachError("`-` is not a file: name one, from the case file's folder")
    folder = os.path.dirname(file)  # noqa: PTH120 -- for the next line
    name = os.path.normpath(os.path.join(folder, path))  # noqa: PTH118 -- pathlib keeps `..`
    try:
        reachable = any(is_within(name, top) for top in _tops(folder))
    except ValueError:
        raise OutOfReachError("is not a valid file name: it contains a character that no file name can have") from None
    if not reachable:
        raise OutOfReachError(
            f"{path} leads out of {next(_tops(folder))}, beyond which tests read nothing: copy the file into it"
        )
    return name


def _tops(folder: str) -> Iterator[str]:
    tree = work_tree(folder)
    if tree is not None:
        yield tree
        return
    real = os.path.realpath(folder)
    yield os.path.dirname(real)  # noqa: PTH120 -- a text, as `work_tree` gives
    here = os.path.realpath(os.curdir)
    if is_within(real, here):
        yield here


MOST_COMBINATIONS: Final = 1_000
_NAMED: Final = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")


def combinations(parametrize: Json) -> list[dict[str, Json]]:
    """Return the values that the parameters have together, one entry for each test.

    Args:
        parametrize: lists of values by name, which are combined in every way, or a list of combinations.

    Raises:
        ConfigError: it is neither, a list is empty, or there are too many; the path is within `parametrize`.
    """
    if isinstance(parametrize, dict):
        _refuse_names((), parametrize)
        lists: list[list[Json]] = []
        count = 1
        for name, values in parametrize.items():
            if not isinstance(values, list) or not values:
                raise ConfigError((name,), "must be a list of values with one at least")
            lists.append(values)
            count *= len(values)
        _refuse_many((), count)
        return [dict(zip(parametrize, values, strict=True)) for values in product(*lists)]
    if isinstance(parametrize, list) and parametrize:
        _refuse_many((), len(parametrize))
        rows = [row for row in parametrize if isinstance(row, dict)]
        if len(rows) == len(parametrize):
            for index, values in enumerate(rows):
                _refuse_names((index,), values)
            return rows
    raise ConfigError((), "must be lists of values by name, or a list of such objects as `{name: value}`")


def _refuse_names(path: tuple[str | int, ...], values: Mapping[str, Json]) -> None:
    for name in values:
        if name in {"true", "false"}:
            message = "is what YAML makes of a bare n, y, no, yes, off or on: choose another name for the parameter"
            raise ConfigError((*path, name), message)
        if not _NAMED.fullmatch(f"{{{name}}}"):
            raise ConfigError(
                (*path, name),
                "is not a valid name: write letters, digits and _ only, so that `{NAME}` can stand for it",
            )


def _refuse_many(path: tuple[str | int, ...], count: int) -> None:
    if count > MOST_COMBINATIONS:
        raise ConfigError(path, f"makes {count:,} tests of one, and the most is {MOST_COMBINATIONS:,}: split it")


def substituted(value: Json, values: Mapping[str, Json]) -> Json:
    """Return a value with each `{NAME}` in its texts and keys replaced.

    A text that is nothing else becomes the parameter's value, whatever its type. Braces that name no parameter stay.
    """
    if isinstance(value, dict):
        return {_substitute(key, values): substituted(member, values) for key, member in value.items()}
    if isinstance(value, list):
        return [substituted(element, values) for element in value]
    if not isinstance(value, str):
        return value
    whole = _NAMED.fullmatch(value)
    if whole and whole[1] in values:
        return values[whole[1]]
    return _substitute(value, values)


def _substitute(text: str, values: Mapping[str, Json]) -> str:
    return _NAMED.sub(
        lambda placeholder: format_value(values[placeholder[1]]) if placeholder[1] in values else placeholder[0], text
    )


def named(name: str, values: Mapping[str, Json]) -> str:
    """Name a parametrized test: the values replace placeholders in the name, or follow it if it has none."""
    if not values:
        return name
    text = _substitute(name, values)
    return text if text != name else f"{name} [{', '.join(map(format_value, values.values()))}]"


def format_value(value: Any) -> str:  # Any: a JSON value
    """Format a value for use in a text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(value)


SUFFIXES: Final = (".gpugate-test.yaml", ".gpugate-test.yml")
MOST_BYTES: Final = 4 * 2**20  # a case file is written by people
_SECTIONS: Final = tuple(CaseFileFormat.__struct_fields__)


@dataclass(frozen=True, slots=True)
class CaseFile:
    """A case file: its displayed name, its tests in order, its document and the locations in it."""

    file: str
    document: Document
    places: DocumentLocations
    cases: tuple[Case, ...] = ()


@dataclass(frozen=True, slots=True)
class InlineCase:
    """A file of manifests with expectations: its displayed name, its own name, and its text."""

    file: str
    name: str
    text: str = field(repr=False)
    line: int = 1


@dataclass(frozen=True, slots=True)
class ExampleCase:
    """An example in a policy document: its name, file and line, and the example."""

    name: str
    file: str
    line: int
    example: PolicyExample = field(repr=False)
    places: DocumentLocations = field(repr=False)


@dataclass(frozen=True, slots=True)
class Case:
    """One test.

    Attributes:
        name: its name, unique in the file; with the values of its parameters.
        file: the case file.
        line: where the test begins, from 1.
        index: its index in the file's `tests`, shared by the tests of one with parameters.
        parameters: the values of its parameters.
        definition: its content, or the error that prevents running it.
        source: its file.
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


AnyCase = Case | InlineCase | ExampleCase


def read_case_file(path: Path | str) -> CaseFile:
    """Read a case file.

    An invalid test becomes a case that fails with its error, so that the others can be run.

    Raises:
        CaseFileError: the file as a whole cannot be read; says where and what to do.
    """
    name = str(path)
    document = _document(name)
    source = CaseFile(name, document, DocumentLocations(document))
    value = document.value
    if not isinstance(value, dict):
        raise CaseFileError(source.places.find(()), "not a case file: write `tests:` and a list of tests below it")
    for key in value:
        if key not in _SECTIONS:
            near = near_misses(key, _SECTIONS)
            meant = f"did you mean `{near[0]}`?" if near else f"known keys: {', '.join(_SECTIONS)}"
            raise CaseFileError(source.places.find((key,)), f"unknown key {key}; {meant}")
    try:
        parse(value.get("defaults") or {}, Setting, ("defaults",))
    except ConfigError as error:
        raise CaseFileError(source.places.find(error.path), str(error)) from None
    tests = value.get("tests")
    if not isinstance(tests, list) or not tests:
        location = source.places.find(("tests",))
        raise CaseFileError(location, "no tests: write `tests:` and a list of them below it, each with `- name:`")
    cases = [case for index, test in enumerate(tests) for case in _cases(source, index, test)]
    return CaseFile(name, document, source.places, tuple(_unique(cases)))


def _document(name: str) -> Document:
    file = Input(name, explicit=True)
    data = file.read()
    if isinstance(data, Problem):
        raise unreadable(data)
    if len(data) > MOST_BYTES:
        raise CaseFileError(
            Location(file.label), f"larger than {MOST_BYTES >> 20} MiB, the most for a case file: split it"
        )
    documents: list[Document] = []
    for part in read_bytes(file.label, data):
        if isinstance(part, Problem):
            raise unreadable(part)
        documents.append(part)
    if len(documents) != 1:
        raise CaseFileError(Location(file.label), f"holds {len(documents)} documents: write one, with `tests:` in it")
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
        value_sets = combinations(test["parametrize"]) if "parametrize" in test else [{}]
    except ConfigError as error:
        yield broken(name, ConfigError((*at, "parametrize", *error.path), error.message))
        return
    whole = _with_defaults(source.document.value, {key: test[key] for key in test if key != "parametrize"})
    reported: set[str] = set()
    for values in value_sets:
        called = named(name, values)
        try:
            definition = parse(substituted(whole, values), Definition, at)
        except ConfigError as error:
            # An error is reported once, and not for each combination of parameters.
            if str(error) not in reported:
                yield broken(called, error)
            reported.add(str(error))
            continue
        yield Case(called, source.file, line, index, values, definition, source)


def _with_defaults(document: Json, test: dict[str, Json]) -> dict[str, Json]:
    """Return a test with the file's defaults: their context comes first, their request, target and cluster are merged."""
    section = document.get("defaults") if isinstance(document, dict) else None
    defaults = section if isinstance(section, dict) else {}
    configured = {"policy_file", "config"} & test.keys()
    result = {key: value for key, value in defaults.items() if not (configured and key in {"policy_file", "config"})}
    result |= test
    for key in ("request", "target", "cluster"):
        default, other = defaults.get(key), test.get(key)
        if isinstance(default, dict) and isinstance(other, dict):
            result[key] = {**default, **other}
    default, other = defaults.get("context"), test.get("context")
    if isinstance(default, list) and isinstance(other, list):
        result["context"] = [*default, *other]
    return result


def _unique(cases: list[Case]) -> Iterator[Case]:
    first: dict[str, Case] = {}
    for case in cases:
        other = first.setdefault(case.name, case)
        if other is case:
            yield case
            continue
        error = case.error(("name",), f"a test on line {other.line} is called {case.name!r} too: name them apart")
        name = f"{case.name} (line {case.line})"
        yield Case(name, case.file, case.line, case.index, case.parameters, error, case.source)
