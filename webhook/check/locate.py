"""Gives the findings of a verdict their place in the file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpugate.policies.engine.update_ratchet import keyed_path
from gpugate.policies.sdk.field import Field, render
from gpugate.policies.sdk.findings import Other, Stance
from gpugate.policies.sdk.structs import replace
from gpugate.webhook.manifests.placeholders import decoded
from gpugate.webhook.report.located import DocumentLocations, Located, Location, ObjectName, Severity, Sort
from gpugate.webhook.report.policy_text import patch_groups, reasons

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gpugate.policies.engine.verdict import Finding, Outcome, Verdict
    from gpugate.policies.sdk.field import Json, Path
    from gpugate.policies.sdk.objects import Request
    from gpugate.policies.sdk.policy import Policy
    from gpugate.webhook.manifests.objects import Manifest
    from gpugate.webhook.manifests.problems import Problem
    from gpugate.webhook.schemas.wording import SchemaProblem

_SEVERITY = {Stance.ENFORCE: Severity.ERROR, Stance.WARN: Severity.WARNING}


class Locator:
    """Locates findings in one document after the other; the positions of the last document are cached."""

    def __init__(self, policies: Mapping[str, Policy]) -> None:
        self._reasons = reasons(policies.values())
        self._last: DocumentLocations | None = None

    def findings(self, manifest: Manifest, verdict: Verdict) -> Iterator[Located]:
        """Yield the errors, warnings and notes of a verdict."""
        request = manifest.request
        name = _name(request)
        root = verdict.object or request.object or {}
        for wrong in verdict.malformed:
            location, path = self._locate(manifest, wrong.path), render(wrong.path)
            severity = _SEVERITY.get(wrong.at_most, Severity.NOTE)
            stable = keyed_path(wrong.path, request.object or {})
            yield Located(
                Sort.MALFORMED,
                severity,
                wrong.message,
                location,
                object=name,
                path=path,
                hint=wrong.hint,
                stable_path=stable,
            )
        for outcome in verdict.outcomes:
            for finding in outcome.findings:
                written = _unsealed(finding) if verdict.request.is_template else finding
                yield self._finding(manifest, written, name, root)
            if outcome.patches or outcome.template_patches:
                yield from self._patches(manifest, outcome, name, root)
            if outcome.error:
                message = f"the policy failed on this object: {outcome.error}"
                location = self._locate(manifest, ())
                hint = "report it, and set the policy to warn or exempt the object until it is fixed"
                yield Located(Sort.BROKE, Severity.ERROR, message, location, outcome.policy, name, hint=hint)

    def schema_problem(self, manifest: Manifest, problem: SchemaProblem) -> Located:
        """Return the finding for a problem that a schema reports."""
        request = manifest.request
        return Located(
            sort=Sort.SCHEMA,
            severity=Severity.ERROR,
            message=problem.message,
            location=self._locate(manifest, problem.path),
            object=_name(request),
            path=render(problem.path),
            hint=problem.remedy,
            stable_path=keyed_path(problem.path, request.object or {}),
        )

    def _finding(self, manifest: Manifest, finding: Finding, name: ObjectName, root: Mapping[str, Json]) -> Located:
        return Located(
            sort=Sort.PATCH if finding.would_patch else Sort.VIOLATION,
            severity=Severity.NOTE if finding.convention else _SEVERITY.get(finding.stance, Severity.NOTE),
            message=finding.message,
            location=self._locate(manifest, finding.path),
            policy=finding.policy,
            object=name,
            path=render(finding.path),
            stance=finding.stance,
            why="" if finding.would_patch else finding.why or self._reasons.get(finding.policy, ""),
            hint=finding.hint,
            note=finding.note,
            fix=finding.fix,
            template_of=finding.template_of.kind if finding.template_of else "",
            stable_path=keyed_path(finding.path, root),
            convention=finding.convention,
            others=finding.others,
            follows=finding.follows,
            owner=_owner(manifest.request),
        )

    def _patches(
        self, manifest: Manifest, outcome: Outcome, name: ObjectName, root: Mapping[str, Json]
    ) -> Iterator[Located]:
        for group in patch_groups(outcome):
            yield Located(
                sort=Sort.PATCH,
                severity=Severity.NOTE,
                message=str(decoded(group.message)),
                location=self._locate(manifest, group.patches[0].path),
                policy=outcome.policy,
                object=name,
                path=render(group.patches[0].path),
                stance=Stance.ENFORCE,
                patches=group.patches,
                template_of=group.template_of,
                stable_path=keyed_path(group.patches[0].path, root),
                owner=_owner(manifest.request),
            )

    def _locate(self, manifest: Manifest, path: Path) -> Location:
        if self._last is None or self._last.document is not manifest.document:
            self._last = DocumentLocations(manifest.document)
        return self._last.find((*manifest.prefix, *path))


def _name(request: Request) -> ObjectName:
    """Return the name of an object as it is written, with its placeholders."""
    kind, namespace, name = request.kind, str(decoded(request.namespace)), str(decoded(request.shown_name))
    return ObjectName(kind.api_version, kind.kind, namespace, name)


def _unsealed(finding: Finding) -> Finding:
    """Return a finding that names objects with placeholders as they are written."""
    message, hint, why, note = (
        str(decoded(text)) for text in (finding.message, finding.hint, finding.why, finding.note)
    )
    others = tuple(
        replace(other, namespace=str(decoded(other.namespace)), name=str(decoded(other.name)))
        for other in finding.others
    )
    return replace(finding, message=message, hint=hint, why=why, note=note, others=others)


def _owner(request: Request) -> Other | None:
    """Return the controller of an object, as its metadata names it; the owner of a dumped Pod is in the same dump."""
    for reference in Field(request.object)["metadata", "ownerReferences"]:
        if reference["controller"].value is True:
            return Other(reference["kind"].text, str(decoded(request.namespace)), reference["name"].text)
    return None


def located_problem(problem: Problem) -> Located:
    """Return the finding for input that could not be read."""
    around = problem.excerpt
    location = Location(problem.source, problem.line, problem.column, problem.end, around.lines, around.first_line)
    sort, severity = (Sort.UNREADABLE, Severity.NOTE if problem.note else Severity.ERROR)
    if problem.warning:
        sort, severity = (Sort.AMBIGUOUS, Severity.WARNING)
    return Located(sort, severity, problem.message, location, hint=problem.remedy, of_rendering=problem.of_rendering)
