from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from gpugate.webhook.report import junit
from gpugate.webhook.report.located import Report

if TYPE_CHECKING:
    from gpugate.webhook.report.located import Located


def cases(report: Report) -> list[tuple[str, str, str, list[str]]]:
    root = ET.fromstring(junit.write(report))  # noqa: S314 -- what was written a moment ago
    return [
        (suite.get("name", ""), case.get("classname", ""), case.get("name", ""), [child.tag for child in case])
        for suite in root
        for case in suite
    ]


def test_there_is_a_case_for_each_object_and_policy_and_for_each_clean_file(report: Report) -> None:
    assert cases(report) == [
        ("a b/pod.yaml", "pods/adds", "Pod/ml/trainer", ["system-out"]),
        ("a b/pod.yaml", "pods/doubtful", "Pod/ml/trainer", ["system-out"]),
        ("a b/pod.yaml", "pods/missing-gpu-toleration", "Pod/ml/trainer", ["failure"]),
        ("b.yaml", "unreadable", "b.yaml", ["error"]),
        ("clean.yaml", "gpugate", "clean.yaml", []),
        ("not evaluated", "pods/blind", "needs Jobs", ["skipped"]),
    ]


def test_the_counts_are_those_of_the_cases(report: Report) -> None:
    root = ET.fromstring(junit.write(report, 1.25))  # noqa: S314 -- what was written a moment ago

    counted = [root.get(key) for key in ("tests", "failures", "errors", "skipped", "time")]
    assert counted == ["6", "1", "1", "1", "1.250"]


def test_two_findings_of_a_policy_in_an_object_are_one_failure(denial: Located) -> None:
    root = ET.fromstring(junit.write(Report((denial, replace(denial, message="is worse")))))  # noqa: S314 -- as above

    (failure,) = root.iter("failure")
    assert failure.get("message") == "is wrong | 100%"
    assert "error: is worse" in (failure.text or "")


def test_what_xml_does_not_allow_is_replaced(denial: Located) -> None:
    root = ET.fromstring(junit.write(Report((replace(denial, message="a\x00\ufffe]]><b>"),))))  # noqa: S314 -- as above

    (failure,) = root.iter("failure")
    assert failure.get("message") == "a\ufffd\ufffd]]><b>"
