"""One verdict as JSON, for programs; `patch` is RFC 6902, from the object as sent to `object`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from gpugate.policies.sdk.field import render
from gpugate.webhook.report.plain import plain_json

if TYPE_CHECKING:
    from gpugate.policies.engine.verdict import Finding, Verdict

SCHEMA: Final = "gpugate.dev/review/v1"


def write(verdict: Verdict) -> str:
    """Write a verdict."""
    document = {
        "schema": SCHEMA,
        "allowed": verdict.allowed,
        "denials": verdict.denials,
        "warnings": verdict.warnings,
        "findings": [_finding(finding) for finding in verdict.findings],
        "malformed": [{"path": render(wrong.path), "message": wrong.message} for wrong in verdict.malformed],
        "skipped": [{"policy": o.policy, "reason": reason} for o in verdict.outcomes for reason in o.skipped],
        "broke": [{"policy": o.policy, "error": o.error} for o in verdict.outcomes if o.error],
        "patch": verdict.operations,
        "object": verdict.object,
    }
    return plain_json(msgspec.json.format(msgspec.json.encode(document), indent=2).decode()) + "\n"


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "policy": finding.policy,
        "path": render(finding.path),
        "message": finding.message,
        "stance": finding.stance.word,
        "hint": finding.hint,
        "note": finding.note,
        "template_of": finding.template_of.kind if finding.template_of else None,
    }
