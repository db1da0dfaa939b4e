"""Build report objects for the findings of an audit, and compare them with stored ones."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass
from itertools import accumulate, groupby
from typing import TYPE_CHECKING, Any, Final

import orjson

from gpugate.webhook.report import words
from gpugate.webhook.report.audit_tally import code
from gpugate.webhook.report.audited import Action
from gpugate.webhook.report.plain import plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gpugate.webhook.report.audited import Audited, Finding
    from gpugate.webhook.report.report_kinds import ReportKinds

# What makes a finding a result. What is only recorded, such as by an exemption, is none.
WRITTEN: Final = frozenset({Action.DENY, Action.MUTATE, Action.WARN})


@dataclass(frozen=True, slots=True)
class Limits:
    """The most that is written.

    Attributes:
        results: results in a report, with the one that says how many were cut.
        bytes: of these as JSON; a hundred with texts of full length are 400 KB, and four times as much where nothing in them is
            ASCII. etcd takes 1.5 MB in one request (`--max-request-bytes`, v3.6).
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
# What a warning is worth is not scored: `summary.warn` counts those that are not (openreports v1alpha1 ReportSummary).
_RESULTS: Final = {Action.DENY: "fail", Action.MUTATE: "warn", Action.WARN: "warn"}
_SEVERITIES: Final = {Action.DENY: "high", Action.WARN: "medium", Action.MUTATE: "low"}
_ORDER: Final = list(Action)
_ID_LENGTH: Final = 16


def results(audited: Audited, earlier: Sequence[Mapping[str, Any]], seconds: int, limits: Limits) -> list[Json]:
    """Return the results on an object, worst first.

    A result that was there keeps its time, which so says since when. One of a policy that could not look this time stays:
    what was not looked at was not mended.

    Args:
        audited: the object.
        earlier: the results that its report holds.
        seconds: the time of this audit, in Unix time.
        limits: of the texts.
    """
    since = {_id(result): result["timestamp"] for result in earlier if "timestamp" in result}
    found = [
        {**result, "timestamp": since.get(_id(result), {"seconds": seconds, "nanos": 0})}
        for result in _found(audited, limits)
    ]
    named = {result["policy"] for result in found}
    kept = [
        dict(result) for result in earlier if result.get("policy") in audited.skipped and result["policy"] not in named
    ]
    return found + kept


def _id(result: Mapping[str, Any]) -> str:
    return str((result.get("properties") or {}).get("resultID", ""))


def _found(audited: Audited, limits: Limits) -> Iterator[Json]:
    def place(finding: Finding) -> tuple[str, str]:
        return code(finding), finding.path

    written = [finding for finding in audited.findings if finding.action in WRITTEN]
    ids: dict[int, str] = {}
    for where, group in groupby(sorted(written, key=lambda each: (*place(each), each.message)), key=place):
        # Messages hold figures that change; the number is for the rare policy that finds several things in one place.
        for number, finding in enumerate(group):
            ids[id(finding)] = _hash(audited.uid, *where, str(number))
    for finding in sorted(written, key=lambda each: (_ORDER.index(each.action), *place(each), each.message)):
        yield _result(finding, ids[id(finding)], limits.text)


def _result(finding: Finding, result_id: str, longest: int) -> Json:
    name = code(finding)
    family, _, _ = name.rpartition("/")
    properties = {
        "resultID": result_id,
        "wouldAction": finding.action.value,
        "field": finding.place,
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


def cut_to(found: list[Json], uid: str, limits: Limits) -> list[Json]:
    """Return so many results, and so long ones; the last one says how many more there are."""
    ends = accumulate(len(orjson.dumps(result)) for result in found)
    fitting = sum(1 for end in ends if end <= limits.bytes)
    if len(found) <= min(fitting, limits.results):
        return found
    kept = found[: min(fitting, limits.results - 1)]
    left = len(found) - len(kept)
    told: Json = {
        "source": SOURCE,
        "policy": CUT,
        "severity": "info",
        "result": "skip",
        "scored": False,
        "message": f"{left} more findings are not in this report; `gpugate audit` shows them",
        "properties": {"resultID": _hash(uid, CUT), "cut": str(left)},
    }
    return [*kept, told]


def short(text: str, longest: int) -> str:
    """Return a text that is harmless in a terminal, and not too long."""
    shown = plain(text)
    return shown if len(shown) <= longest else f"{shown[: longest - 1]}…"


def lines(text: str, longest: int) -> str:
    """Do the same, line by line."""
    shown = "\n".join(map(plain, text.splitlines()))
    return shown if len(shown) <= longest else f"{shown[: longest - 1]}…"


def _hash(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:_ID_LENGTH]


MANAGED_BY: Final = "app.kubernetes.io/managed-by"
OURS: Final = {MANAGED_BY: SOURCE}
# All that says something, in either group.
_CONTENT: Final = ("source", "configuration", "scope", "scopeSelector", "summary", "results")


def name_of(uid: str) -> str:
    """Return what the report on an object is called.

    Kyverno calls its own by the uid alone, and writes to whatever has that name.
    """
    return f"{SOURCE}-{uid}"


def is_ours(stored: Mapping[str, Any]) -> bool:
    """Tell whether a report was written by us."""
    labels = stored["metadata"].get("labels") or {}
    return all(labels.get(key) == value for key, value in OURS.items())


def body(
    kinds: ReportKinds, audited: Audited, earlier: Sequence[Mapping[str, Any]], seconds: int, limits: Limits
) -> Json | None:
    """Return the report on an object, None when there is nothing to say.

    The figures of its summary are of all findings, also of those that were cut. What was found to be good is not counted:
    there is a report for what is not.

    Args:
        kinds: the group to write.
        audited: the object, whose uid is known.
        earlier: the results that its report holds now.
        seconds: the time of this audit, in Unix time.
        limits: of results and texts.
    """
    found = results(audited, [result for result in earlier if result.get("policy") != CUT], seconds, limits)
    if not found:
        return None
    name = audited.object
    within = {"namespace": name.namespace} if name.namespace else {}
    owner = {"apiVersion": name.api_version, "kind": name.kind, "name": name.name, "uid": audited.uid}
    counts = Counter(result["result"] for result in found)
    header = {"source": SOURCE, "configuration": {"limits": {"maxResults": limits.results}}} if kinds.headed else {}
    return {
        "apiVersion": kinds.api_version,
        "kind": kinds.of(name.namespace).name,
        # The owner takes it along when it is deleted.
        "metadata": {"name": name_of(audited.uid), **within, "labels": OURS, "ownerReferences": [owner]},
        **header,
        "scope": {**owner, **within},
        "summary": {"fail": counts["fail"], "warn": counts["warn"], "skip": len(audited.skipped)},
        "results": cut_to(found, audited.uid, limits),
    }


def same(stored: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Tell whether a stored report says what is wanted, whatever others wrote into its metadata."""
    was, will_be = stored["metadata"], wanted["metadata"]
    return (
        all(stored.get(key) == wanted.get(key) for key in _CONTENT)
        and was.get("ownerReferences") == will_be["ownerReferences"]
        and is_ours(stored)
    )


def in_place_of(stored: Mapping[str, Any], wanted: Mapping[str, Any]) -> Json:
    """Return a report to put in the place of a stored one, if that is still as it was read."""
    was, will_be = stored["metadata"], wanted["metadata"]
    return {**wanted, "metadata": {**was, **will_be, "labels": {**(was.get("labels") or {}), **will_be["labels"]}}}
