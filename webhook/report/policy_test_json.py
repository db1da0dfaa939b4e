"""Policy tests as JSON, `gpugate.dev/test-report/v1`: within a version fields are added, never renamed or removed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from gpugate.webhook.report.plain import plain_json

if TYPE_CHECKING:
    from gpugate.webhook.report.policy_tested import Failure, TestReport

SCHEMA: Final = "gpugate.dev/test-report/v1"


def write(report: TestReport, seconds: float = 0.0) -> str:
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
                "failures": [_failure(each) for each in case.failures],
            }
            for case in report.cases
        ],
        "unreadable": [_failure(each) for each in report.broken],
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
    place = failure.place
    return {
        "message": failure.message,
        "file": place.file,
        "line": place.line,
        "column": place.column,
        "details": failure.details,
    }
