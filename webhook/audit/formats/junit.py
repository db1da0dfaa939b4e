"""An audit as JUnit XML: a suite for each namespace, a case for each object and policy with findings.

A case fails if the object would be denied. Other findings are output of a passed case. What was not evaluated is skipped.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from gpugate.webhook.audit import words as say
from gpugate.webhook.audit.formats.presentation import located
from gpugate.webhook.audit.tally import CLUSTER, code, skipped
from gpugate.webhook.report import junit
from gpugate.webhook.report.plain import plain

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpugate.webhook.audit.formats.presentation import Presentation
    from gpugate.webhook.audit.model import Audited, AuditReport


def render(report: AuditReport, presentation: Presentation) -> str:
    """Write an audit; objects without findings are cases with `--include-passed`."""
    root = ET.Element("testsuites", name="gpugate audit", time=f"{presentation.seconds or 0:.3f}")
    by_namespace: dict[str, list[Audited]] = {}
    for audited in report.audited:
        by_namespace.setdefault(audited.object.namespace or CLUSTER, []).append(audited)
    for namespace, objects in sorted(by_namespace.items()):
        suite = ET.SubElement(root, "testsuite", name=plain(namespace), time="0")
        for audited in objects:
            _cases(suite, audited, presentation)
        if not len(suite):
            ET.SubElement(suite, "testcase", name=plain(namespace), classname="gpugate", time="0")
    _skipped(root, "not evaluated", say.not_evaluated(report))
    _skipped(root, "policies not evaluated", (f"{policy}: {reason}" for policy, reason in skipped(report)))
    return junit.finished(root)


def _cases(suite: ET.Element, audited: Audited, presentation: Presentation) -> None:
    name = plain(str(audited.object))
    for policy, findings in groupby(sorted(audited.findings, key=code), key=code):
        case = ET.SubElement(suite, "testcase", name=name, classname=plain(policy), time="0")
        junit.tell(case, [located(audited, finding) for finding in findings])
    if not audited.findings and presentation.include_passed:
        ET.SubElement(suite, "testcase", name=name, classname="gpugate", time="0")


def _skipped(root: ET.Element, name: str, reasons: Iterable[str]) -> None:
    texts = list(map(plain, reasons))
    if texts:
        suite = ET.SubElement(root, "testsuite", name=name, time="0")
        for text in texts:
            case = ET.SubElement(suite, "testcase", name=text, classname="gpugate", time="0")
            ET.SubElement(case, "skipped", message=text)
