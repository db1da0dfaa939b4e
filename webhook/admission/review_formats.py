"""One verdict as text or JSON: the decision, its reasons and the diff of the object."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any, Final

import msgspec

from gpugate.policies.sdk.field import render
from gpugate.policies.sdk.findings import Stance
from gpugate.webhook.admission.decisions import DENY, ERROR, MUTATE, RECORD, SKIP, WARN
from gpugate.webhook.manifests.problems import lines_of_template
from gpugate.webhook.report import words, yaml_text
from gpugate.webhook.report.plain import plain, plain_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.engine.verdict import Finding, Verdict

SCHEMA: Final = "gpugate.dev/review/v1"


def write_json(verdict: Verdict) -> str:
    """Write a verdict."""
    document = {
        "schema": SCHEMA,
        "allowed": verdict.allowed,
        "denials": verdict.denials,
        "warnings": verdict.warnings,
        "findings": [_finding(finding) for finding in verdict.findings],
        "malformed": [{"path": render(wrong.path), "message": wrong.message} for wrong in verdict.malformed],
        "skipped": [{"policy": o.policy, "reason": reason} for o in verdict.outcomes for reason in o.skipped],
        "errors": [{"policy": o.policy, "error": o.error} for o in verdict.outcomes if o.error],
        "patch": verdict.operations,
        "object": verdict.object,
    }
    return plain_json(msgspec.json.format(msgspec.json.encode(document), indent=2).decode()) + "\n"


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "policy": finding.policy,
        "path": render(finding.path),
        "message": finding.message,
        "mode": finding.stance.word,
        "hint": finding.hint,
        "note": finding.note,
        "template_of": finding.template_of.kind if finding.template_of else None,
    }


_MARGIN = 7  # as wide as the longest label and a space


def write_text(verdict: Verdict) -> str:
    """Write a verdict, and the difference between the object as sent and as stored."""
    lines = [_decision(verdict)]
    for label, text in _reasons(verdict):
        lines.append(f"  {label:<{_MARGIN}}{plain(text)}".rstrip())
    changed = list(_diff(verdict))
    return "\n".join([*lines, *([""] if changed else []), *changed]) + "\n"


def _decision(verdict: Verdict) -> str:
    request = verdict.request
    decision = "DENIED" if not verdict.allowed else "ALLOWED, mutated" if verdict.patches else "ALLOWED"
    where = f" in {request.namespace}" if request.namespace else ""
    who = f" by {request.user}" if request.user else ""
    part = f" ({request.subresource})" if request.subresource else ""
    return plain(
        f"{decision}: {request.operation} of {request.stored_kind.kind} {request.shown_name}{part}{where}{who}"
    )


def _reasons(verdict: Verdict) -> Iterator[tuple[str, str]]:
    labels = {Stance.ENFORCE: DENY, Stance.WARN: WARN, Stance.AUDIT: RECORD}
    for wrong in verdict.malformed:
        yield labels.get(wrong.at_most, "note"), f"{render(wrong.path)}: {wrong.message}"
    for finding in verdict.findings:
        pods = f" (Pods of this {finding.template_of.kind})" if finding.template_of else ""
        yield labels.get(finding.stance, "note"), finding.line + pods
        for extra in (finding.hint, finding.note):
            if extra:
                yield "", extra
    for policy, patch in verdict.patches:
        yield MUTATE, f"[{policy}] {patch.reason}"
        yield "", words.change((patch,))
    for policy, later in verdict.template_patches:
        yield MUTATE, f"[{policy}] {later.patch.reason} (Pods of this {later.template_of.kind}, when they are created)"
        yield "", words.change((later.patch,))
    for outcome in verdict.outcomes:
        if outcome.error:
            yield ERROR, f"[{outcome.policy}] failed on this object: {outcome.error}"
        for reason in outcome.skipped:
            yield SKIP, f"[{outcome.policy}] not evaluated: {reason}"


def _diff(verdict: Verdict) -> Iterator[str]:
    before, after = verdict.request.object, verdict.object
    if before is None or after is None or not verdict.operations:
        return
    name = f"{verdict.request.kind.kind}/{verdict.request.shown_name}"
    yield from (
        plain(line)
        for line in difflib.unified_diff(
            lines_of_template(yaml_text.block(before).splitlines()),
            lines_of_template(yaml_text.block(after).splitlines()),
            f"{name} as sent",
            f"{name} as stored",
            lineterm="",
        )
    )
