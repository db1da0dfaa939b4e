"""Writes a policy file that lets off, until a day, every object that would be blocked, so that enforcement can start."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

from gpugate.policies.engine.config import API_VERSION, KIND, GpugateError
from gpugate.policies.sdk.objects import POD
from gpugate.webhook.manifests.policy_file import MAX_POLICY_FILE
from gpugate.webhook.report import yaml_text
from gpugate.webhook.report.audited import Action

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gpugate.policies.sdk.field import Json
    from gpugate.policies.sdk.policy import Policy
    from gpugate.webhook.report.audited import Audited, AuditReport
    from gpugate.webhook.report.located import ObjectName

MOST_DAYS: Final = 366


class ExemptionsError(GpugateError):
    """Exemptions cannot be written as asked; says why and what to do."""


class _Group(NamedTuple):
    """What exemptions of several objects have in common."""

    policies: tuple[str, ...]
    kinds: tuple[str, ...]
    namespace: str


def exemptions(report: AuditReport, policies: Iterable[Policy], days: int, owner: str) -> str:
    """Return the policy file's text; a person merges its `exemptions` into their own.

    An entry lets objects of one kind in one namespace off the policies that would block each of them. Where such a policy
    judges Pods, it holds for the Pods too that carry the workload's name before a dash, because these are what admission
    denies. Findings that only warn or mutate get none.

    Args:
        report: the audit, names unchanged.
        policies: those of the audit.
        days: how many days from the audit's day on the exemptions hold.
        owner: who answers for them.

    Raises:
        ExemptionsError: no days, or more than a year; no owner; or more than a policy file holds.
    """
    if not 0 < days <= MOST_DAYS:
        raise ExemptionsError(f"exemptions for {days} days: write 1 to {MOST_DAYS}, so that they end")
    if not owner.strip():
        raise ExemptionsError("exemptions without an owner: name who answers for them")
    of_pods = frozenset(policy.id for policy in policies if any(kind == POD for kind in policy.kinds))
    known = frozenset(policy.id for policy in policies)
    day = report.time.astimezone(dt.UTC).date()
    groups: defaultdict[_Group, set[str]] = defaultdict(set)
    left: list[str] = []
    for audited in report.audited:
        for name, found in _blocking(audited).items():
            for group, names in _groups(name, found & known, of_pods):
                groups[group].update(names)
            left += [str(name)] if found - known else []
    entries = [dict(_entry(group, names, report, day, days, owner)) for group, names in sorted(groups.items())]
    document: dict[str, Json] = {"apiVersion": API_VERSION, "kind": KIND, "exemptions": list(entries)}
    text = _head(report, day, days, left) + yaml_text.block(document)
    if len(text.encode()) > MAX_POLICY_FILE:
        raise ExemptionsError(
            f"exemptions for {len(groups):,} groups of objects are larger than the {MAX_POLICY_FILE >> 20} MiB of a policy "
            "file: audit fewer namespaces or policies at once, or set a namespace's mode to warn instead"
        )
    return text


def _blocking(audited: Audited) -> dict[ObjectName, set[str]]:
    """Return the policies that would block an object, and those that would block what it makes, by its name.

    Pods are named after what made them, and their own names are made anew. A finding stands for those of other policies
    at its path, which block the object once the finding is exempt.
    """
    found: defaultdict[ObjectName, set[str]] = defaultdict(set)
    for finding in audited.findings:
        if finding.action is Action.DENY:
            dependent = finding.dependent if finding.dependent and finding.dependent.kind != POD.name else None
            found[dependent or audited.object].update((finding.policy, *finding.covers))
    return found


def _groups(name: ObjectName, blocking: set[str], of_pods: frozenset[str]) -> Iterator[tuple[_Group, tuple[str, ...]]]:
    namespace = "" if name.kind == "Namespace" else name.namespace
    own, pods = sorted(blocking - of_pods), sorted(blocking & of_pods)
    if name.kind == POD.name:
        own, pods = sorted(blocking), []
    if own:
        yield _Group(tuple(own), (name.kind,), namespace), (name.name,)
    if pods:
        yield _Group(tuple(pods), (name.kind, POD.name), namespace), (name.name, f"{name.name}-*")


def _entry(
    group: _Group, names: Iterable[str], report: AuditReport, day: dt.date, days: int, owner: str
) -> Iterator[tuple[str, Json]]:
    yield "policies", [*group.policies]
    yield "kinds", [*group.kinds]
    if group.namespace:
        yield "namespaces", [group.namespace]
    yield "names", [*sorted(names)]
    yield "reason", f"found by gpugate audit of {report.cluster.name} on {day}, to be mended"
    yield "owner", owner.strip()
    yield "expires", (day + dt.timedelta(days=days)).isoformat()


def _head(report: AuditReport, day: dt.date, days: int, left: list[str]) -> str:
    blocked = sum(audited.action is Action.DENY for audited in report.audited)
    lines = [
        f"{blocked} objects that policies would block on {day}, let off for {days} days.",
        "Merge the exemptions into your policy file, and delete a name when its object is mended.",
    ]
    if report.not_evaluated or report.coverage < 1:
        lines.append("Not everything could be evaluated: what was not may still be blocked.")
    if left:
        shown = ", ".join(left[:5]) + (f" and {len(left) - 5} more" if len(left) > 5 else "")
        lines.append(f"No exemption helps where a field has the wrong type, which the API server refuses: {shown}.")
    return "".join(f"# {line}\n" for line in lines)
