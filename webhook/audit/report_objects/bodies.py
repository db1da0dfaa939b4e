"""A report object: what it says of one object, and whether it says the same as another."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from gpugate.webhook.audit.report_objects.results import CUT, SOURCE, cut_to, results

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpugate.webhook.audit.report_objects.limits import Limits
    from gpugate.webhook.report.audited import Audited
    from gpugate.webhook.report.report_kinds import ReportKinds

Json = dict[str, Any]  # Any: the JSON edge

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
