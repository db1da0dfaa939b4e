"""The results in a report: what policies found in one object, the same each time while nothing changes."""

from __future__ import annotations

import hashlib
from itertools import accumulate, groupby
from typing import TYPE_CHECKING, Any, Final

import orjson

from gpugate.webhook.audit.report_objects.limits import WRITTEN
from gpugate.webhook.report import words
from gpugate.webhook.report.audit_tally import code
from gpugate.webhook.report.audited import Action
from gpugate.webhook.report.plain import plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gpugate.webhook.audit.report_objects.limits import Limits
    from gpugate.webhook.report.audited import Audited, Finding

Json = dict[str, Any]  # Any: the JSON edge

SOURCE: Final = "gpugate"
CUT: Final = "results-cut"
# What a warning is worth is not scored: `summary.warn` counts those that are not (openreports v1alpha1 ReportSummary).
_RESULTS: Final = {Action.BLOCK: "fail", Action.MUTATE: "warn", Action.WARN: "warn"}
_SEVERITIES: Final = {Action.BLOCK: "high", Action.WARN: "medium", Action.MUTATE: "low"}
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
        "scored": finding.action is Action.BLOCK,
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
        "message": f"{left} more findings are not shown here; `gpugate audit` shows them",
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
