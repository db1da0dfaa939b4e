"""A baseline: findings that are known and hidden, so that only new ones count."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from gpugate.webhook.report.baselined import BaselineKey, BaselineUse
from gpugate.webhook.report.located import Located, Report, Sort, Suppressed, SuppressedBy

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gpugate.webhook.check.seen import ObjectKey, Seen

# The others are never hidden: what cannot be read or judged.
_HIDEABLE: Final = {Sort.VIOLATION, Sort.PATCH, Sort.SCHEMA}


@dataclass(frozen=True, slots=True)
class Baseline:
    """How many findings of each key are known; `file` is its name."""

    file: str
    counts: Mapping[BaselineKey, int] = field(default_factory=dict)


def key(finding: Located) -> BaselineKey | None:
    """Return what makes a finding the same as one of another run; None where it can be in no baseline.

    What the policy file exempts is in none, because it would stay hidden when the exemption is over.
    """
    if finding.sort not in _HIDEABLE or finding.object is None or finding.exempt:
        return None
    name = finding.object
    group = name.api_version.rpartition("/")[0]
    policy = finding.policy or finding.sort.value
    return BaselineKey(policy, group, name.kind, name.namespace, name.name, finding.stable_path)


def made_of(file: str, findings: Iterable[Located]) -> Baseline:
    """Return a baseline of findings."""
    return Baseline(file, Counter(found for each in findings if (found := key(each)) is not None))


def hidden(report: Report, baseline: Baseline, seen: Seen) -> Report:
    """Hide what a baseline knows, and say which of its entries are of no use any more.

    Of findings with the same key, as many are hidden as the baseline counts. Whether an entry is of no use can be said
    only where its policy looked, and its object was read or does not exist.
    """
    left = Counter(baseline.counts)
    kept: list[Located] = []
    suppressed: list[Suppressed] = []
    for finding in report.findings:
        found = key(finding)
        if found is not None and left[found] > 0:
            left[found] -= 1
            suppressed.append(Suppressed(finding, f"in {baseline.file}", SuppressedBy.BASELINE))
        else:
            kept.append(finding)
    of_no_use = sorted((found, count) for found, count in left.items() if count > 0 and found.policy in seen.policies)
    use = BaselineUse(
        baseline.file,
        len(suppressed),
        stale=tuple((found, count) for found, count in of_no_use if _object(found) in seen.objects),
        unseen=tuple((found, count) for found, count in of_no_use if seen.whole and _object(found) not in seen.objects),
    )
    return replace(report, findings=tuple(kept), suppressed=(*report.suppressed, *suppressed), baseline=use)


def pruned(baseline: Baseline, use: BaselineUse) -> Baseline:
    """Return a baseline without what is of no use any more."""
    of_no_use = Counter(dict(use.stale)) + Counter(dict(use.unseen))
    return Baseline(baseline.file, Counter(baseline.counts) - of_no_use)


def _object(found: BaselineKey) -> ObjectKey:
    return found.group, found.kind, found.namespace, found.name
