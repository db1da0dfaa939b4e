"""Write a policy file with temporary exemptions for all objects that would be denied, so that enforcement can start."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

from gpugate.policies.engine.config import API_VERSION, KIND, GpugateError
from gpugate.policies.sdk.objects import POD
from gpugate.webhook.audit.model import Action
from gpugate.webhook.manifests.policy_file import MAX_POLICY_FILE
from gpugate.webhook.report import yaml_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gpugate.policies.sdk.field import Json
    from gpugate.policies.sdk.policy import Policy
    from gpugate.webhook.audit.model import Audited, AuditReport
    from gpugate.webhook.audit.records import Covered
    from gpugate.webhook.report.located import ObjectName

MOST_DAYS: Final = 366


class ExemptionsError(GpugateError):
    """Exemptions cannot be written; the message has the reason and the fix."""


class Origin(NamedTuple):
    """Where findings come from, in words.

    Attributes:
        by: the command and its source, as the subject of "found by".
        which: which objects are denied, behind "objects".
    """

    by: str
    which: str


class _Group(NamedTuple):
    """The common fields of the exemptions of several objects."""

    policies: tuple[str, ...]
    kinds: tuple[str, ...]
    namespace: str


def exemptions(
    report: AuditReport,
    covered: Covered,
    policies: Iterable[Policy],
    days: int,
    owner: str,
    origin: Origin | None = None,
) -> str:
    """Return the text of a policy file, whose `exemptions` the user merges into their own file.

    An entry exempts objects of one kind in one namespace from the policies that would deny each of them. If such a policy
    evaluates Pods, the entry also covers Pods named after the workload plus a dash, because admission denies these Pods.
    Findings that only warn or mutate need no exemption.

    Args:
        report: the audit, with original names.
        covered: the policies whose findings others of the audit replace.
        policies: the policies of the audit.
        days: the number of days after the audit until the exemptions expire.
        owner: the owner of the exemptions.
        origin: where the findings come from; None is the audit.

    Raises:
        ExemptionsError: the days are not from 1 to 366, the owner is empty, or the text exceeds the limit of a policy file.
    """
    if not 0 < days <= MOST_DAYS:
        raise ExemptionsError(f"exemptions for {days} days: set 1 to {MOST_DAYS} days")
    if not owner.strip():
        raise ExemptionsError("exemptions without an owner: set one")
    origin = origin or Origin(f"gpugate audit of {report.cluster.name}", "that would be denied")
    day = report.time.astimezone(dt.UTC).date()
    proposed, left = entries(report, covered, policies, days, owner, origin)
    document: dict[str, Json] = {"apiVersion": API_VERSION, "kind": KIND, "exemptions": list(proposed)}
    text = _head(report, origin, day, days, left) + yaml_text.block(document)
    if len(text.encode()) > MAX_POLICY_FILE:
        raise ExemptionsError(
            f"exemptions for {len(proposed):,} groups of objects are larger than the {MAX_POLICY_FILE >> 20} MiB of a policy "
            "file: audit fewer namespaces or policies at once, or set the mode of a namespace to warn"
        )
    return text


def entries(
    report: AuditReport, covered: Covered, policies: Iterable[Policy], days: int, owner: str, origin: Origin
) -> tuple[list[dict[str, Json]], list[str]]:
    """Return the entries of `exemptions`, and the objects that no entry can exempt; the arguments are those of `exemptions`."""
    policies = tuple(policies)
    of_pods = frozenset(policy.id for policy in policies if any(kind == POD for kind in policy.kinds))
    known = frozenset(policy.id for policy in policies)
    day = report.time.astimezone(dt.UTC).date()
    groups: defaultdict[_Group, set[str]] = defaultdict(set)
    left: list[str] = []
    for audited in report.audited:
        for name, blocking in _blocking(audited, covered).items():
            for group, names in _groups(name, blocking & known, of_pods):
                groups[group].update(names)
            left += [str(name)] if blocking - known else []
    return [dict(_entry(group, names, origin, day, days, owner)) for group, names in sorted(groups.items())], left


def _blocking(audited: Audited, covered: Covered) -> dict[ObjectName, set[str]]:
    """Return object -> the policies that would deny it, for an object and the objects that it owns.

    Pods count as their owner, because their names are generated. The policies that a finding covers are included, because
    they would deny the object once the finding is exempt.
    """
    blocking: defaultdict[ObjectName, set[str]] = defaultdict(set)
    for finding in audited.findings:
        if finding.action is Action.DENY:
            dependent = finding.dependent if finding.dependent and finding.dependent.kind != POD.name else None
            further = covered.get((audited.object, finding.dependent), ())
            blocking[dependent or audited.object].update((finding.policy, *further))
    return blocking


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
    group: _Group, names: Iterable[str], origin: Origin, day: dt.date, days: int, owner: str
) -> Iterator[tuple[str, Json]]:
    yield "policies", [*group.policies]
    yield "kinds", [*group.kinds]
    if group.namespace:
        yield "namespaces", [group.namespace]
    yield "names", [*sorted(names)]
    yield "reason", f"found by {origin.by} on {day}, to be fixed"
    yield "owner", owner.strip()
    yield "expires", (day + dt.timedelta(days=days)).isoformat()


def _head(report: AuditReport, origin: Origin, day: dt.date, days: int, left: list[str]) -> str:
    denied = sum(audited.action is Action.DENY for audited in report.audited)
    lines = [
        f"Exemptions for the {denied} objects {origin.which} on {day}. They expire after {days} days.",
        "Merge the exemptions into your policy file, and delete a name when its object is fixed.",
    ]
    if report.not_evaluated or report.coverage < 1:
        lines.append("Not everything could be evaluated: objects that were not evaluated may still be denied.")
    if left:
        names = ", ".join(left[:5]) + (f" and {len(left) - 5} more" if len(left) > 5 else "")
        lines.append(f"Exemptions cannot allow fields of the wrong type, because the API server rejects them: {names}.")
    return "".join(f"# {line}\n" for line in lines)
