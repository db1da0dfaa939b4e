"""Policy tests as JUnit XML: a suite for each file, a case for each test, with file and line."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from gpugate.webhook.report.junit import finished
from gpugate.webhook.report.plain import plain
from gpugate.webhook.report.policy_tested import Ending

if TYPE_CHECKING:
    from gpugate.webhook.report.policy_tested import Failure, TestedCase, TestReport

_TAGS = {Ending.FAILED: "failure", Ending.BROKEN: "error"}


def write(report: TestReport, seconds: float = 0.0) -> str:
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
            element = ET.SubElement(suite, "testcase", name=plain(mistake.place.file), classname="gpugate", time="0")
            _tell(element, "error", (mistake,))
    return finished(root)


def _case(suite: ET.Element, case: TestedCase) -> None:
    attributes = {"name": plain(case.name), "classname": plain(case.file), "time": f"{case.seconds:.3f}"}
    element = ET.SubElement(suite, "testcase", {**attributes, "file": plain(case.file), "line": str(case.line)})
    if case.ending in _TAGS:
        _tell(element, _TAGS[case.ending], case.failures)


def _tell(element: ET.Element, tag: str, failures: tuple[Failure, ...]) -> None:
    found = ET.SubElement(element, tag, message=plain(failures[0].message), type=tag)
    found.text = "\n\n".join("\n".join(failure.lines()) for failure in failures)
