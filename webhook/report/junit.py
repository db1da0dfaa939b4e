"""JUnit XML, which CI systems show as tests: a suite for each file, a case for each object and policy with findings.

A file without findings is one case that passes, so that no report is empty. Errors fail; warnings and notes pass and
are reported as output; input that could not be read or evaluated is an error of the case. Each case has at most one
failure or error and a time, because some readers use only the first.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from gpugate.webhook.report import words
from gpugate.webhook.report.located import Located, Report, Severity, Sort
from gpugate.webhook.report.plain import plain, plain_xml

if TYPE_CHECKING:
    from collections.abc import Sequence

_INCOMPLETE = {Sort.UNREADABLE, Sort.BROKE}


def write(report: Report, seconds: float = 0.0) -> str:
    """Write a report; `seconds` is how long the run took."""
    root = ET.Element("testsuites", name="gpugate", time=f"{seconds:.3f}")
    by_file: dict[str, list[Located]] = {name: [] for name in report.names}
    for finding in report.findings:
        by_file.setdefault(finding.location.file, []).append(finding)
    for file, findings in by_file.items():
        suite = ET.SubElement(root, "testsuite", name=plain(file), time="0")
        _cases(suite, file, findings)
    if report.skipped:
        suite = ET.SubElement(root, "testsuite", name="not evaluated", time="0")
        for skipped in report.skipped:
            case = ET.SubElement(suite, "testcase", name=plain(skipped.reason), classname=skipped.policy, time="0")
            ET.SubElement(case, "skipped", message=plain(skipped.reason))
    return finished(root)


def finished(root: ET.Element) -> str:
    """Return the text of all suites, with their counts."""
    for suite in root:
        _count(suite)
    _count(root)
    ET.indent(root)
    return f"<?xml version='1.0' encoding='utf-8'?>\n{plain_xml(ET.tostring(root, encoding='unicode'))}\n"


def _cases(suite: ET.Element, file: str, findings: Sequence[Located]) -> None:
    if not any(finding.severity is Severity.ERROR for finding in findings):
        ET.SubElement(suite, "testcase", name=plain(file), classname="gpugate", time="0")

    def case_of(finding: Located) -> tuple[str, str]:
        return words.code(finding), str(finding.object or "")

    for (code, name), group in groupby(sorted(findings, key=case_of), key=case_of):
        in_case = list(group)
        attributes = {"name": plain(name or file), "classname": code, "time": "0", "file": plain(file)}
        if in_case[0].location.line:
            attributes["line"] = str(in_case[0].location.line)
        tell(ET.SubElement(suite, "testcase", attributes), in_case)


def tell(case: ET.Element, findings: Sequence[Located]) -> None:
    """Add findings to a case."""
    errors = [finding for finding in findings if finding.severity is Severity.ERROR]
    if errors:
        tag = "error" if errors[0].sort in _INCOMPLETE else "failure"
        failed = ET.SubElement(case, tag, message=plain(errors[0].message), type=words.code(errors[0]))
        failed.text = "\n\n".join(map(_text, errors))
    others = [finding for finding in findings if finding.severity is not Severity.ERROR]
    if others:
        ET.SubElement(case, "system-out").text = "\n\n".join(map(_text, others))


def _text(finding: Located) -> str:
    location = finding.location
    lines = [f"{finding.severity.value}: {finding.message}", *(text for text in (location.where, finding.path) if text)]
    lines += [f"fix: {line}" for line in words.fixes(finding)]
    return "\n".join(plain(line) for line in lines)


def _count(parent: ET.Element) -> None:
    cases = list(parent.iter("testcase"))
    parent.set("tests", str(len(cases)))
    for attribute, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        parent.set(attribute, str(sum(case.find(tag) is not None for case in cases)))
