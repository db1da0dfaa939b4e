"""A diagnosis as JSON, for programs; `schema` changes when a field's meaning does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from gpugate.webhook.report.located import Severity
from gpugate.webhook.report.plain import plain_json

if TYPE_CHECKING:
    from gpugate.webhook.report.diagnosis import Diagnosis

SCHEMA: Final = "gpugate.dev/doctor/v1"


def write(diagnosis: Diagnosis) -> str:
    """Write a diagnosis."""
    document = {
        "schema": SCHEMA,
        "healthy": not diagnosis.exit_code,
        "problems": [
            {
                "severity": problem.severity.value,
                "code": problem.code,
                "found": problem.found,
                "where": problem.where,
                "remedy": problem.remedy,
            }
            for problem in diagnosis.problems
        ],
        "looked_at": list(diagnosis.looked_at),
        "not_looked_at": [{"what": gap.what, "reason": gap.reason, "asked": gap.asked} for gap in diagnosis.gaps],
        "summary": {
            "errors": diagnosis.count(Severity.ERROR),
            "warnings": diagnosis.count(Severity.WARNING),
            "notes": diagnosis.count(Severity.NOTE),
            "kubernetes": diagnosis.server,
            "exit_code": diagnosis.exit_code,
        },
    }
    return plain_json(msgspec.json.format(msgspec.json.encode(document), indent=2).decode()) + "\n"
