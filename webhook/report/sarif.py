"""SARIF 2.1.0 (OASIS, errata 01), in the subset that GitHub's code scanning reads.

A region is on one line, because GitHub shows the file next to the finding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from gpugate import __version__
from gpugate.webhook.report import policy_text, words
from gpugate.webhook.report.fingerprints import Fingerprints, uri
from gpugate.webhook.report.located import Located, Location, Report, Sort, Suppressed, SuppressedBy
from gpugate.webhook.report.plain import plain, plain_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from gpugate.policies.sdk.policy import Policy

SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
FINGERPRINT: Final = "gpugate/v1"
# Descriptions of findings without a policy.
_TROUBLES: Final = {
    Sort.MALFORMED: "A field has a type that the API server refuses.",
    Sort.SCHEMA: "The API server refuses an object by the schema of its kind, or loses a field of it.",
    Sort.UNREADABLE: "A file, or a document in it, cannot be read.",
    Sort.AMBIGUOUS: "A document means something else to Kubernetes than it looks.",
    Sort.IGNORE: "A suppression comment is invalid, or suppresses no finding.",
}
_MOST_RELATED: Final = 100  # GitHub rejects a result with more than 1,000 locations
_MOST_TEXT: Final = 1024  # of a description, in GitHub's documentation of SARIF support

_Object = dict[str, Any]  # Any: the JSON edge


def write(report: Report, policies: Iterable[Policy], root: Path, *, suppressed: bool = False, docs: str = "") -> str:
    """Write a report with descriptions of `policies`.

    Paths are relative to `root`; `docs` is the address of the documentation.

    Suppressed findings are omitted unless requested, because GitHub shows them as open (code scanning does not read
    `suppressions`; github/codeql-action issue 1230).
    """
    return log(report, policies, root, "check", passing=report.suppressed if suppressed else (), docs=docs)


def log(  # noqa: PLR0913 -- what `check` and `audit` have differs
    report: Report,
    policies: Iterable[Policy],
    root: Path,
    command: str,
    gaps: Sequence[str] = (),
    *,
    passing: Sequence[Suppressed] = (),
    docs: str = "",
) -> str:
    """Write the findings of a command; `gaps` are sentences on missing evaluations, `passing` suppressed findings."""
    rules = _rules([*report.findings, *(suppressed.finding for suppressed in passing)], policies, docs)
    index = {rule["id"]: number for number, rule in enumerate(rules)}
    fingerprints = Fingerprints(root)
    driver = {"name": "gpugate", "semanticVersion": __version__, "rules": rules}
    results = [_result(finding, index, root, fingerprints) for finding in report.findings]
    if report.baseline is not None:
        results = [{**result, "baselineState": "new"} for result in results]
    results += [
        {**_result(suppressed.finding, index, root, fingerprints), **_passing(suppressed)} for suppressed in passing
    ]
    run = {
        "tool": {"driver": driver},
        "automationDetails": {"id": f"gpugate/{command}/"},
        "columnKind": "unicodeCodePoints",
        "results": results,
    }
    if gaps:
        notes = [{"level": "warning", "message": {"text": plain(gap)}} for gap in gaps]
        run["invocations"] = [{"executionSuccessful": True, "toolExecutionNotifications": notes}]
    document = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return plain_json(msgspec.json.format(msgspec.json.encode(document), indent=2).decode()) + "\n"


def _passing(suppressed: Suppressed) -> _Object:
    """Return the members of a suppressed result (SARIF 2.1.0, 3.27.23, 3.27.24 and 3.35)."""
    if suppressed.by is SuppressedBy.BASELINE:
        return {
            "baselineState": "unchanged",
            "suppressions": [{"kind": "external", "justification": plain(suppressed.reason)}],
        }
    return {"suppressions": [{"kind": "inSource", "justification": plain(suppressed.reason)}]}


def _rules(findings: Iterable[Located], policies: Iterable[Policy], docs: str) -> list[_Object]:
    known = {policy.id: policy for policy in policies}
    rules: dict[str, _Object] = {}
    for finding in findings:
        code = words.code(finding)
        if code not in rules:
            policy = known.get(code)
            rule = _policy_rule(policy, finding) if policy else _trouble_rule(code, finding)
            address = words.page(finding, docs)
            rules[code] = {**rule, "helpUri": address} if address else rule
    return [rules[code] for code in sorted(rules)]


def _policy_rule(policy: Policy, finding: Located) -> _Object:
    why = policy_text.first_sentence(policy_text.section(policy.doc, policy_text.WHY))
    instead = policy_text.section(policy.doc, policy_text.INSTEAD)
    return {
        "id": policy.id,
        "name": "".join(part.capitalize() for part in policy.id.replace("/", "-").split("-")),
        "shortDescription": {"text": policy.title[:_MOST_TEXT]},
        "fullDescription": {"text": (why or policy.title)[:_MOST_TEXT]},
        "help": {"text": instead or policy.title, "markdown": f"# {policy.doc}"},
        "defaultConfiguration": {"level": finding.severity.value},
        "properties": {"tags": [policy.id.partition("/")[0]], "precision": "very-high"},
    }


def _trouble_rule(code: str, finding: Located) -> _Object:
    text = {"text": _TROUBLES.get(finding.sort, "A policy failed on an object.")}
    rule = {"id": code, "name": code.capitalize(), "shortDescription": text, "fullDescription": text, "help": text}
    return {**rule, "defaultConfiguration": {"level": finding.severity.value}}


def _result(finding: Located, index: dict[str, int], root: Path, fingerprints: Fingerprints) -> _Object:
    code = words.code(finding)
    about = f" ({finding.object})" if finding.object else ""
    text = "\n".join([f"{words.message(finding)}{about}", *(f"Fix: {line}" for line in words.fixes(finding))])
    result: _Object = {
        "ruleId": code,
        "ruleIndex": index[code],
        "level": finding.severity.value,
        "message": {"text": "\n".join(plain(line) for line in text.split("\n"))},
        "locations": [_location(finding, root)],
        "partialFingerprints": {FINGERPRINT: fingerprints.of(finding)},
    }
    if finding.related:
        related = finding.related[:_MOST_RELATED]
        result["relatedLocations"] = [
            {
                **_location(further, root),
                "id": number,
                "message": {"text": plain(str(further.object or further.message))},
            }
            for number, further in enumerate(related)
        ]
    return result


def _location(finding: Located, root: Path) -> _Object:
    location: _Object = {"physicalLocation": _physical(finding.location, root)} if finding.location.file else {}
    if finding.object:
        name = finding.object
        full = f"{name.api_version}/{name}#{finding.path}"
        location["logicalLocations"] = [{"fullyQualifiedName": plain(full), "kind": "object"}]
    return location


def _physical(location: Location, root: Path) -> _Object:
    physical: _Object = {"artifactLocation": {"uri": uri(location.file, root)}}
    if location.line:
        region = {"startLine": location.line, "endLine": location.line}
        columns = {"startColumn": max(1, location.column), "endColumn": max(location.end, location.column + 1, 2)}
        physical["region"] = region | columns
    return physical
