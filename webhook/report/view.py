"""The selection of findings that formats for people show, with order, length and counts by policy."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, Literal

from gpugate.policies.sdk.structs import Struct
from gpugate.webhook.report import words
from gpugate.webhook.report.located import Located, Severity
from gpugate.webhook.report.plain import plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

GroupBy = Literal["policy", "file", "object"]


class View(Struct, frozen=True):
    """The options of a view.

    Attributes:
        quiet: leave out the summary.
        seconds: how long the run took; None: not shown.
        suppressed: show suppressed findings too, with the reason.
        skipped: list the parts of the input that were passed over, with the reason.
        brief: show errors in full, and after them every other finding in one line.
        verbose: list everything that the summary would cut short.
        group_by: put findings that share this under one heading, the worst group first; None: in the order of the files.
        most: the largest number of findings shown; None: all.
        statistics: end with the counts of each policy.
        findings: show findings at all.
        docs: the address of the documentation's site, to which findings link; empty: none.
    """

    quiet: bool = False
    seconds: float | None = None
    suppressed: bool = False
    skipped: bool = False
    brief: bool = False
    verbose: bool = False
    group_by: GroupBy | None = None
    most: int | None = None
    statistics: bool = False
    findings: bool = True
    docs: str = ""


class Group(Struct, frozen=True):
    """Findings under one heading, which is empty if findings are not grouped."""

    heading: str
    findings: Sequence[Located]


_RANK: Final = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.NOTE: 2}


def groups(findings: Sequence[Located], view: View) -> tuple[Sequence[Group], int]:
    """Return the findings to show in their groups, and the number that `View.most` omits.

    With a limit, the most severe findings are shown.
    """
    if not view.findings:
        return (), 0
    listed = list(findings)
    if view.most is not None and len(listed) > view.most:
        listed = sorted(listed, key=lambda finding: _RANK[finding.severity])[: view.most]
        identities = {id(finding) for finding in listed}
        listed = [finding for finding in findings if id(finding) in identities]
    left_out = len(findings) - len(listed)
    if view.group_by is None:
        return ([Group("", listed)] if listed else []), left_out
    by_heading: dict[str, list[Located]] = {}
    for finding in listed:
        by_heading.setdefault(_heading(finding, view.group_by), []).append(finding)
    return [
        Group(heading, members)
        for heading, members in sorted(by_heading.items(), key=lambda item: (_order(item[1]), item[0]))
    ], left_out


def _heading(finding: Located, by: GroupBy) -> str:
    if by == "policy":
        return words.code(finding)
    if by == "file":
        return finding.location.file
    return str(finding.object) if finding.object else "no object"


def _order(findings: Sequence[Located]) -> tuple[int, ...]:
    counts = Counter(finding.severity for finding in findings)
    return tuple(-counts[severity] for severity in Severity)


def heading(group: Group) -> str:
    """Write the heading of a group with its counts, such as `pods/wildcard-toleration: 2 warnings`."""
    counts = Counter(finding.severity for finding in group.findings)
    return plain(f"{group.heading}: {', '.join(_count(counts[s], s.value) for s in Severity if counts[s])}")


def statistics(findings: Sequence[Located]) -> Iterator[str]:
    """Yield a table of the counts of each policy, the most severe first; nothing without findings."""
    by_policy: dict[str, list[Located]] = {}
    for finding in findings:
        by_policy.setdefault(words.code(finding), []).append(finding)
    rows = [("errors", "warnings", "notes", "fixable", "policy")]
    for policy, members in sorted(by_policy.items(), key=lambda item: (_order(item[1]), item[0])):
        counts = Counter(finding.severity for finding in members)
        fixable = sum(finding.safely_fixable or finding.unsafely_fixable for finding in members)
        numbers = (*(counts[severity] for severity in Severity), fixable)
        rows.append((*(f"{number:,}" for number in numbers), policy))  # type: ignore[arg-type] # four numbers
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    if by_policy:
        for row in rows:
            numbers_shown = "  ".join(text.rjust(width) for text, width in zip(row, widths, strict=False))
            yield f"{numbers_shown}  {row[-1]}"


def left_out(count: int) -> str:
    """Return a line with the number of findings that `View.most` omits."""
    return f"and {_count(count, 'more finding')}; --max-findings shows more"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
