"""Compare an audit with an earlier one: new, fixed and unchanged findings."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

from gpugate.webhook.audit.comparison import Changed, Comparison
from gpugate.webhook.audit.formats.json import AuditDocumentError, read

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gpugate.webhook.audit.model import AuditReport
    from gpugate.webhook.report.located import ObjectName

_INDEX: Final = re.compile(r"\[\d+\]")


class _Key(NamedTuple):
    """The identity of a finding, independent of the API version and of list indices."""

    policy: str
    group: str
    kind: str
    namespace: str
    name: str
    path: str


def compare(
    old: str | bytes, report: AuditReport, looked_at: Callable[[ObjectName, str], bool] | None = None
) -> Comparison:
    """Compare with an earlier audit.

    Two findings are the same if policy, object and path are equal. List indices in the path and the message are ignored,
    because they change. A missing finding is fixed if its object was evaluated or no longer exists.

    Args:
        old: the JSON document of the earlier audit, of any version of gpugate up to this one.
        report: this audit.
        looked_at: returns whether this audit evaluated a policy on an object; by default everything that `report` does not
            list as not evaluated.

    Raises:
        AuditDocumentError: `old` is not an audit, or one of a later version.
    """
    before, now = _findings(earlier := read(old)), _findings(report)
    unseen = _Unseen(report, looked_at)
    new: list[Changed] = []
    fixed: list[Changed] = []
    unchanged = unknown = 0
    for key in {**now, **before}:
        gone, added, same = _matched(before.get(key, ()), now.get(key, ()))
        unchanged += same
        new += added
        for change in gone:
            if unseen(change):
                unknown += 1
            else:
                fixed.append(change)
    return Comparison(earlier.time, tuple(new), tuple(fixed), unchanged, unknown)


def _findings(report: AuditReport) -> dict[_Key, list[Changed]]:
    by_key: defaultdict[_Key, list[Changed]] = defaultdict(list)
    for audited in report.audited:
        name = audited.object
        group = name.api_version.rpartition("/")[0]
        for finding in audited.findings:
            path = _INDEX.sub("[]", finding.path)
            key = _Key(finding.policy, group, name.kind, name.namespace, name.name, path)
            by_key[key].append(Changed(name, finding))
    return dict(by_key)


def _matched(before: Sequence[Changed], now: Sequence[Changed]) -> tuple[Sequence[Changed], Sequence[Changed], int]:
    """Pair findings with the same key, equal messages first; return the unpaired ones and the number of pairs."""
    old_messages, new_messages = (Counter(change.finding.message for change in changes) for changes in (before, now))
    both = old_messages & new_messages
    left_before, left_now = list(_without(before, both)), list(_without(now, both))
    others = min(len(left_before), len(left_now))
    return left_before[others:], left_now[others:], both.total() + others


def _without(changes: Sequence[Changed], messages: Counter[str]) -> Iterator[Changed]:
    left = Counter(messages)
    for change in changes:
        if left[change.finding.message]:
            left[change.finding.message] -= 1
        else:
            yield change


class _Unseen:
    """Returns whether this audit could not have reported an earlier finding."""

    def __init__(self, report: AuditReport, looked_at: Callable[[ObjectName, str], bool] | None) -> None:
        self._skipped = {(audited.object, policy) for audited in report.audited for policy in audited.skipped}
        self._there = {audited.object for audited in report.audited}
        # The text contains a kind as `Pod` or `pods`, among other words.
        self._words = {word for gap in report.not_evaluated for word in re.findall(r"[a-z0-9]+", gap.what.casefold())}
        self._looked_at = looked_at

    def __call__(self, change: Changed) -> bool:
        name, policy = change.object, change.finding.policy
        if self._looked_at is not None and not self._looked_at(name, policy):
            return True
        if name in self._there:
            return (name, policy) in self._skipped
        kind = name.kind.casefold()
        return not self._words.isdisjoint({kind, f"{kind}s", f"{kind}es", f"{kind.removesuffix('y')}ies"})


__all__ = ["AuditDocumentError", "compare"]
