"""Build report objects for the findings of an audit, and compare them with stored ones."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass
from itertools import accumulate, groupby
from typing import TYPE_CHECKING, Any, Final

import orjson

from gpugate.webhook.audit.model import Action
from gpugate.webhook.audit.tally import code
from gpugate.webhook.report import words
from gpugate.webhook.report.plain import plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gpugate.webhook.audit.model import Audited, Finding
    from gpugate.webhook.registration.report_kinds import ReportKinds

# The actions of findings that become results; recorded findings, such as exempted ones, do not.
WRITTEN: Final = frozenset({Action.DENY, Action.MUTATE, Action.WARN})


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of report objects.

    Attributes:
        results: results in a report, including the one that counts omitted results.
        bytes: size of the results as JSON; a hundred with the longest texts are 400 KB, or four times that without ASCII.
            etcd accepts 1.5 MB in one request (`--max-request-bytes`, v3.6).
        reports: reports in the cluster.
        text: characters of a message or a fix.
    """

    results: int = 100
    bytes: int = 1_000_000
    reports: int = 5000
    text: int = 1000


Json = dict[str, Any]  # Any: the JSON edge

SOURCE: Final = "gpugate"
CUT: Final = "results-cut"
# Warnings are not scored, because `summary.warn` counts unscored results (openreports v1alpha1 ReportSummary).
_RESULTS: Final = {Action.DENY: "fail", Action.MUTATE: "warn", Action.WARN: "warn"}
_SEVERITIES: Final = {Action.DENY: "high", Action.WARN: "medium", Action.MUTATE: "low"}
_ORDER: Final = list(Action)
_ID_LENGTH: Final = 16


def results(audited: Audited, earlier: Sequence[Mapping[str, Any]], seconds: int, limits: Limits) -> list[Json]:
    """Return the results on an object, worst first.

    A result keeps the time of its first report. The results of a policy that was not evaluated this time are kept, because
    they may still be valid.

    Args:
        audited: the object.
        earlier: the results in its stored report.
        seconds: the Unix time of this audit.
        limits: the limits of texts.
    """
    since = {_id(result): result["timestamp"] for result in earlier if "timestamp" in result}
    entries = [
        {**result, "timestamp": since.get(_id(result), {"seconds": seconds, "nanos": 0})}
        for result in _results_of_findings(audited, limits)
    ]
    named = {result["policy"] for result in entries}
    unevaluated = [
        dict(result) for result in earlier if result.get("policy") in audited.skipped and result["policy"] not in named
    ]
    return entries + unevaluated


def _id(result: Mapping[str, Any]) -> str:
    return str((result.get("properties") or {}).get("resultID", ""))


def _results_of_findings(audited: Audited, limits: Limits) -> Iterator[Json]:
    def policy_and_path(finding: Finding) -> tuple[str, str]:
        return code(finding), finding.path

    def worst_first(finding: Finding) -> tuple[int, str, str, str]:
        return _ORDER.index(finding.action), *policy_and_path(finding), finding.message

    written = [finding for finding in audited.findings if finding.action in WRITTEN]
    ids: dict[int, str] = {}
    for where, group in groupby(
        sorted(written, key=lambda finding: (*policy_and_path(finding), finding.message)), key=policy_and_path
    ):
        # Messages contain figures that change. The number distinguishes several findings of a policy at one path.
        for number, finding in enumerate(group):
            ids[id(finding)] = _hash(audited.uid, *where, str(number))
    for finding in sorted(written, key=worst_first):
        yield _result(finding, ids[id(finding)], limits.text)


def _result(finding: Finding, result_id: str, longest: int) -> Json:
    name = code(finding)
    family, _, _ = name.rpartition("/")
    properties = {
        "resultID": result_id,
        "wouldAction": finding.action.value,
        "field": finding.location,
        "podsOf": finding.template_of,
        "note": finding.note,
        "fix": "\n".join(words.fixes(finding)),
    }
    return {
        "source": SOURCE,
        "policy": name,
        **({"category": family} if family else {}),
        "severity": _SEVERITIES[finding.action],
        "result": _RESULTS[finding.action],
        "scored": finding.action is Action.DENY,
        "message": short(finding.message, longest),
        "properties": {key: lines(text, longest) for key, text in properties.items() if text},
    }


def cut_to(entries: list[Json], uid: str, limits: Limits) -> list[Json]:
    """Limit the number and the size of results; the last result counts the omitted ones."""
    ends = accumulate(len(orjson.dumps(result)) for result in entries)
    fitting = sum(1 for end in ends if end <= limits.bytes)
    if len(entries) <= min(fitting, limits.results):
        return entries
    fitting_entries = entries[: min(fitting, limits.results - 1)]
    left = len(entries) - len(fitting_entries)
    omitted: Json = {
        "source": SOURCE,
        "policy": CUT,
        "severity": "info",
        "result": "skip",
        "scored": False,
        "message": f"{left} more findings are not in this report; `gpugate audit` shows them",
        "properties": {"resultID": _hash(uid, CUT), "cut": str(left)},
    }
    return [*fitting_entries, omitted]


def short(text: str, longest: int) -> str:
    """Return a text without control characters, and shortened."""
    printable = plain(text)
    return printable if len(printable) <= longest else f"{printable[: longest - 1]}…"


def lines(text: str, longest: int) -> str:
    """Return a text of several lines without other control characters, and shortened."""
    printable = "\n".join(map(plain, text.splitlines()))
    return printable if len(printable) <= longest else f"{printable[: longest - 1]}…"


def _hash(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:_ID_LENGTH]


MANAGED_BY: Final = "app.kubernetes.io/managed-by"
OURS: Final = {MANAGED_BY: SOURCE}
# The fields to compare, in either API group.
_CONTENT: Final = ("source", "configuration", "scope", "scopeSelector", "summary", "results")


def name_of(uid: str) -> str:
    """Return the name of the report on an object.

    The prefix avoids conflicts with Kyverno, whose reports are named by the uid alone.
    """
    return f"{SOURCE}-{uid}"


def is_ours(stored: Mapping[str, Any]) -> bool:
    """Return whether gpugate wrote a report."""
    labels = stored["metadata"].get("labels") or {}
    return all(labels.get(key) == value for key, value in OURS.items())


def body(
    kinds: ReportKinds, audited: Audited, earlier: Sequence[Mapping[str, Any]], seconds: int, limits: Limits
) -> Json | None:
    """Return the report on an object; None without results.

    Its summary counts all findings, including omitted ones. Passed policies are not counted, because objects without findings
    have no report.

    Args:
        kinds: the API group of the report.
        audited: the object, with a uid.
        earlier: the results in its stored report.
        seconds: the Unix time of this audit.
        limits: the limits of results and texts.
    """
    entries = results(audited, [result for result in earlier if result.get("policy") != CUT], seconds, limits)
    if not entries:
        return None
    name = audited.object
    within = {"namespace": name.namespace} if name.namespace else {}
    owner = {"apiVersion": name.api_version, "kind": name.kind, "name": name.name, "uid": audited.uid}
    counts = Counter(result["result"] for result in entries)
    header = {"source": SOURCE, "configuration": {"limits": {"maxResults": limits.results}}} if kinds.headed else {}
    return {
        "apiVersion": kinds.api_version,
        "kind": kinds.of(name.namespace).name,
        # The garbage collector deletes the report with its owner.
        "metadata": {"name": name_of(audited.uid), **within, "labels": OURS, "ownerReferences": [owner]},
        **header,
        "scope": {**owner, **within},
        "summary": {"fail": counts["fail"], "warn": counts["warn"], "skip": len(audited.skipped)},
        "results": cut_to(entries, audited.uid, limits),
    }


def same(stored: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Return whether a stored report has the wanted content, regardless of other metadata."""
    was, will_be = stored["metadata"], wanted["metadata"]
    return (
        all(stored.get(key) == wanted.get(key) for key in _CONTENT)
        and was.get("ownerReferences") == will_be["ownerReferences"]
        and is_ours(stored)
    )


def in_place_of(stored: Mapping[str, Any], wanted: Mapping[str, Any]) -> Json:
    """Return the update of a stored report, which fails if the report was modified since."""
    was, will_be = stored["metadata"], wanted["metadata"]
    return {**wanted, "metadata": {**was, **will_be, "labels": {**(was.get("labels") or {}), **will_be["labels"]}}}
