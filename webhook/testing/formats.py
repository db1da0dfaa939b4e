"""Results of policy tests as text, JSON and JUnit."""

from __future__ import annotations

import shlex
from itertools import groupby
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final
from xml.etree import ElementTree as ET

import msgspec

from gpugate.webhook.report.junit import finished
from gpugate.webhook.report.plain import BOLD, DIM, GREEN, RED, YELLOW, Paint, plain, plain_json
from gpugate.webhook.testing.results import Ending, PolicyCoverage, TestedCase, TestReport

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gpugate.webhook.testing.results import Failure

SCHEMA: Final = "gpugate.dev/test-report/v1"


def write_json(report: TestReport, seconds: float = 0.0) -> str:
    """Write a report; `seconds` is how long the run took."""
    document: dict[str, Any] = {  # Any: the JSON edge
        "schema": SCHEMA,
        "seconds": round(seconds, 3),
        "exit_code": report.exit_code,
        "tests": [
            {
                "file": case.file,
                "line": case.line,
                "name": case.name,
                "result": case.ending.value,
                "seconds": round(case.seconds, 4),
                "failures": [_failure(failure) for failure in case.failures],
            }
            for case in report.cases
        ],
        "unreadable": [_failure(mistake) for mistake in report.broken],
        "not_chosen": report.deselected,
    }
    coverage = report.coverage
    if coverage is not None:
        document["coverage"] = {
            "percent": round(coverage.percent, 1),
            "policies": len(coverage.bound),
            "covered": coverage.covered,
            "without_failing": coverage.without_failing,
            "without_passing": coverage.without_passing,
        }
    return plain_json(msgspec.json.format(msgspec.json.encode(document), indent=2).decode()) + "\n"


def _failure(failure: Failure) -> dict[str, Any]:
    location = failure.location
    return {
        "message": failure.message,
        "file": location.file,
        "line": location.line,
        "column": location.column,
        "details": failure.details,
    }


_TAGS = {Ending.FAILED: "failure", Ending.BROKEN: "error"}


def write_junit(report: TestReport, seconds: float = 0.0) -> str:
    """Write a report; `seconds` is how long the run took."""
    root = ET.Element("testsuites", name="gpugate test", time=f"{seconds:.3f}")
    for file, group in groupby(report.cases, key=lambda case: case.file):
        cases = list(group)
        took = sum(case.seconds for case in cases)
        suite = ET.SubElement(root, "testsuite", name=plain(file), time=f"{took:.3f}")
        for case in cases:
            _case(suite, case)
    if report.broken:
        suite = ET.SubElement(root, "testsuite", name="unreadable", time="0")
        for mistake in report.broken:
            element = ET.SubElement(suite, "testcase", name=plain(mistake.location.file), classname="gpugate", time="0")
            _add_result(element, "error", (mistake,))
    return finished(root)


def _case(suite: ET.Element, case: TestedCase) -> None:
    attributes = {"name": plain(case.name), "classname": plain(case.file), "time": f"{case.seconds:.3f}"}
    element = ET.SubElement(suite, "testcase", {**attributes, "file": plain(case.file), "line": str(case.line)})
    if case.ending in _TAGS:
        _add_result(element, _TAGS[case.ending], case.failures)


def _add_result(element: ET.Element, tag: str, failures: tuple[Failure, ...]) -> None:
    child = ET.SubElement(element, tag, message=plain(failures[0].message), type=tag)
    child.text = "\n\n".join("\n".join(failure.lines()) for failure in failures)


_WIDTH: Final = 60
_COLOURS: Final = {Ending.PASSED: GREEN, Ending.FAILED: RED, Ending.BROKEN: RED, Ending.UPDATED: YELLOW}
_SIGNS: Final = {Ending.PASSED: "✓", Ending.FAILED: "✗", Ending.BROKEN: "✗", Ending.UPDATED: "✎"}
# For terminals whose encoding has no such signs.
_WORDS: Final = {Ending.PASSED: "ok", Ending.FAILED: "FAIL", Ending.BROKEN: "ERROR", Ending.UPDATED: "new"}


def write_text(
    report: TestReport,
    paint: Paint | None = None,
    *,
    quiet: bool = False,
    seconds: float | None = None,
    signs: bool = True,
) -> str:
    """Write a report.

    Args:
        report: what to write.
        paint: colours; none where it is not given.
        quiet: only what failed and why.
        seconds: how long the run took.
        signs: whether the output can show signs beyond ASCII.
    """
    paint = paint or Paint()
    marks = _SIGNS if signs else _WORDS
    blocks = [] if quiet else ["\n".join(_listed(report.cases, marks, paint))]
    failed = [case for case in report.cases if case.ending in {Ending.FAILED, Ending.BROKEN}]
    blocks += ["\n".join(_failed(case, paint)) for case in failed]
    for mistake in report.broken:
        first, *others = mistake.lines(paint)
        blocks.append("\n".join([f"{paint('ERROR', BOLD, RED)} {first}", *others]))
    if not quiet:
        blocks.append("\n".join(_summary(report, seconds)))
    return "".join(f"{block}\n\n" for block in blocks[:-1] if block) + (f"{blocks[-1]}\n" if blocks else "")


def _listed(cases: Sequence[TestedCase], marks: dict[Ending, str], paint: Paint) -> Iterator[str]:
    """Each test of a case file in a line; of files with expectations only those that did not pass."""
    for (heading, inline), group in groupby(cases, key=_group):
        yield plain(heading)
        members = list(group)
        if not inline:
            yield from (_line(case, marks, paint) for case in members)
            continue
        passed = [case for case in members if case.ending is Ending.PASSED]
        if passed:
            manifests = _counted(sum(case.manifests for case in passed), "manifest")
            expectations = _counted(sum(case.expectations for case in passed), "expectation")
            yield f"  {paint(marks[Ending.PASSED], GREEN)} {manifests}, {expectations}"
        yield from (_line(case, marks, paint) for case in members if case.ending is not Ending.PASSED)


def _group(case: TestedCase) -> tuple[str, bool]:
    if not case.manifests:
        return case.file, False
    return f"{PurePath(case.file).parent}/*.yaml (inline expectations)", True


def _line(case: TestedCase, marks: dict[Ending, str], paint: Paint) -> str:
    took = f"{case.seconds * 1000:,.0f} ms"
    return f"  {paint(marks[case.ending], _COLOURS[case.ending])} {plain(case.name):<{_WIDTH}} {paint(took, DIM)}"


def _failed(case: TestedCase, paint: Paint) -> Iterator[str]:
    word = "FAIL" if case.ending is Ending.FAILED else "ERROR"
    yield f"{paint(word, BOLD, RED)} {plain(case.file)}:{case.line} {paint(plain(case.name), BOLD)}"
    for failure in case.failures:
        yield from (f"  {line}" for line in failure.lines(paint))
    if case.ending is Ending.FAILED and case.can_update:
        chosen = "" if case.manifests else f" -k {shlex.quote(plain(case.name))}"
        yield f"  accept with: gpugate test {shlex.quote(plain(case.file))}{chosen} --update"


def _summary(report: TestReport, seconds: float | None) -> Iterator[str]:
    yield from map(plain, report.remarks)
    counted = [
        f"{count:,} {ending.value}"
        for ending in Ending
        if (count := report.count(ending)) or (ending is Ending.PASSED and report.cases)
    ]
    if report.broken:
        counted.append(_counted(len(report.broken), "file") + " unreadable")
    if report.deselected:
        counted.append(f"{report.deselected:,} not chosen")
    took = f" in {seconds:.1f} s" if seconds is not None else ""
    yield f"{', '.join(counted) or 'no tests'}{took}"
    if report.coverage is not None and report.wanted is not None:
        yield from _coverage(report.coverage, report.wanted)


def _coverage(coverage: PolicyCoverage, wanted: float) -> Iterator[str]:
    enough = "" if coverage.percent >= wanted else f", and {wanted:g} % is asked for"
    share = f"{len(coverage.covered)}/{len(coverage.bound)} ({coverage.percent:.0f} %)"
    yield f"policy coverage {share}{enough}"
    for kind, policies in (("failing", coverage.without_failing), ("passing", coverage.without_passing)):
        if policies:
            yield f"no {kind} test for {_joined(policies)}"


def _joined(policies: Iterable[str]) -> str:
    return ", ".join(policies)


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
