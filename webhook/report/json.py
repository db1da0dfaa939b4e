"""A report as JSON, for programs; `schema` changes with the meaning of a field."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import msgspec

from gpugate.policies.sdk.findings import Patches, Replacement
from gpugate.webhook.report import words
from gpugate.webhook.report.located import Located, Report, Severity
from gpugate.webhook.report.plain import plain_json

if TYPE_CHECKING:
    from gpugate.policies.sdk.findings import Patch
    from gpugate.webhook.report.located import BaselineUse

SCHEMA: Final = "gpugate.dev/check/v1"

_Object = dict[str, Any]  # Any: the JSON edge


def write(report: Report, docs: str = "") -> str:
    """Write a report; `docs` is the address of the documentation's site, or empty."""
    document: _Object = {
        "schema": SCHEMA,
        "findings": [_finding(finding, docs) for finding in report.findings],
        "suppressed": [{**_finding(s.finding, docs), "reason": s.reason, "by": s.by.value} for s in report.suppressed],
        "baseline": _baseline(report.baseline),
        "exemptions": {"expired": report.expired, "unused": report.unused},
        "not_rendered": [{"name": chart.name, "files": chart.files} for chart in report.not_rendered],
        "skipped": [{"policy": s.policy, "reason": s.reason, "objects": s.objects} for s in report.skipped],
        "unknown_kinds": [
            {"apiVersion": u.api_version, "kind": u.kind, "objects": u.objects, "gpu_objects": u.gpu_objects}
            for u in report.unknown_kinds
        ],
        "passed_over": [
            {
                "file": part.file,
                "line": part.line,
                "reason": part.reason.value,
                "yaml_files": part.files,
                "detail": part.detail,
            }
            for part in report.passed
        ],
        "helm_applications": dataclasses.asdict(report.applications),
        "summary": {
            "objects": report.objects,
            "files": report.files,
            "policies": report.policies,
            "passed_over": report.passed_over,
            "passed_over_by_reason": dict(Counter(part.reason.value for part in report.passed)),
            "hidden_files": report.hidden,
            "errors": report.count(Severity.ERROR),
            "warnings": report.count(Severity.WARNING),
            "notes": report.count(Severity.NOTE),
            "suppressed": len(report.suppressed),
            "fixed": report.fixed,
            "target": report.target,
            "exit_code": report.exit_code,
        },
    }
    return plain_json(msgspec.json.format(msgspec.json.encode(document), indent=2).decode()) + "\n"


def _baseline(used: BaselineUse | None) -> _Object | None:
    if used is None:
        return None
    of_no_use = {
        name: [{**dataclasses.asdict(key), "count": count} for key, count in entries]
        for name, entries in (("stale", used.stale), ("unseen", used.unseen))
    }
    return {"file": used.file, "hidden": used.hidden, **of_no_use}


def _finding(finding: Located, docs: str) -> _Object:
    name = finding.object
    return {
        "sort": finding.sort.value,
        "severity": finding.severity.value,
        "policy": finding.policy or None,
        "docs": words.page(finding, docs) or None,
        "message": finding.message,
        "object": name
        and {"apiVersion": name.api_version, "kind": name.kind, "namespace": name.namespace, "name": name.name},
        "template_of": finding.template_of or None,
        "file": finding.location.file,
        "line": finding.location.line,
        "column": finding.location.column,
        "end_column": finding.location.end,
        "rendered_line": finding.location.rendered or None,
        "rendered_with": list(finding.location.variants),
        "unrendered": finding.location.unrendered or None,
        "without_patches": finding.location.altered,
        "path": finding.path,
        "related": [_location(related) for related in finding.related],
        "mode": finding.stance.word if finding.stance is not None else None,
        "at_admission": words.at_admission(finding),
        "note": finding.note,
        "hint": finding.hint,
        "fix": _fix(finding.fix),
        "patches": [_patch(patch) for patch in finding.patches],
    }


def _location(finding: Located) -> _Object:
    """Return the location of another finding with the same cause."""
    name = finding.object
    return {
        "object": name
        and {"apiVersion": name.api_version, "kind": name.kind, "namespace": name.namespace, "name": name.name},
        "file": finding.location.file,
        "line": finding.location.line,
        "column": finding.location.column,
        "rendered_line": finding.location.rendered or None,
        "path": finding.path,
        "message": finding.message,
    }


def _fix(fix: Patches | Replacement | None) -> _Object | None:
    if isinstance(fix, Patches):
        return {"safe": fix.safe, "patches": [_patch(patch) for patch in fix.patches]}
    return {"safe": fix.safe, "objects": list(fix.objects)} if fix else None


def _patch(patch: Patch) -> _Object:
    return {"op": patch.op, "path": list(patch.path), "value": patch.value, "reason": patch.reason}
