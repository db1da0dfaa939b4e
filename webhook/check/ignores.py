"""Comments that let findings pass: `# gpugate: ignore[ID, ID] reason`, with `until=2027-03-31` in the reason until a day.

A comment behind something counts for its own line; one on a line of its own for the next line that is neither empty
nor a comment. A finding stands on the line of its key or list item. At admission nothing reads them.
"""

from __future__ import annotations

import datetime as dt
import re
from bisect import bisect_right
from collections import Counter
from itertools import accumulate
from typing import TYPE_CHECKING, Final, Literal

from gpugate.policies.engine.config import WITHOUT_POLICY, near_misses
from gpugate.policies.sdk.structs import Struct
from gpugate.webhook.manifests.bounded_file import MAX_BYTES
from gpugate.webhook.manifests.documents import SourceText
from gpugate.webhook.manifests.inputs import Input
from gpugate.webhook.manifests.placeholders import encoded
from gpugate.webhook.manifests.problems import Problem
from gpugate.webhook.report.located import Located, Location, Severity, Sort, Suppressed, SuppressedBy

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from gpugate.webhook.manifests.documents import Document
    from gpugate.webhook.manifests.git import Revision
    from gpugate.webhook.report.located import Report

_MARK: Final = "gpugate:"
_COMMENT: Final = re.compile(r"#[ \t]*gpugate:[ \t]*ignore\b[ \t]*(?:\[(?P<ids>[^]\n]*)])?(?P<reason>[^\r\n]*)")
# Any word that begins so, so that a date that is none is found too.
_UNTIL: Final = re.compile(r"(?:^|(?<=\s))until=(?P<day>\S*)\s*")
_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
_FORM: Final = "write `# gpugate: ignore[pods/some-policy] reason`"
_SUPPRESSIBLE: Final = {Sort.VIOLATION, Sort.PATCH, Sort.MALFORMED, Sort.SCHEMA}


class Ignore(Struct, frozen=True):
    """A comment: its location, the line (from 1) that it applies to, its policies, its reason, and its last day.

    `until` is the last day on which it applies; None if it does not expire, empty if it is not a date.
    """

    location: Location
    line: int
    policies: tuple[str, ...]
    reason: str
    until: dt.date | Literal[""] | None = None


def ignores(document: Document) -> Iterator[Ignore]:
    """Yield the comments of a document, in order."""
    if _MARK not in document.text:
        return
    # Few files have such comments.
    from gpugate.webhook.manifests.edit_tree import EditError, parse, texts  # noqa: PLC0415

    text = document.text
    try:
        # In an expression of Terraform, a string that is a comment of ours is too rare to parse for.
        spans = [] if document.places is not None else sorted(texts(parse(text)))
    except EditError:
        template = encoded(text)
        if template is None:
            return
        try:
            spans = sorted(texts(parse(template)))
        except EditError:
            return
    # A document can have thousands of comments and values, so each is visited once.
    starts, ends = [start for start, _ in spans], list(accumulate((end for _, end in spans), max))
    lines, source = text.splitlines(), SourceText(document)
    following, index, counted = _following(lines), 0, 0
    for match in _COMMENT.finditer(text):
        before = bisect_right(starts, match.start())
        if before and match.start() < ends[before - 1]:
            continue
        begin = text.rfind("\n", 0, match.start()) + 1
        index, counted = index + text.count("\n", counted, begin), begin
        number, column = document.first_line + index, match.start() - begin + 1
        around = source.around(number)
        location = Location(document.source, number, column, column + len(match[0]), around.lines, around.first_line)
        alone = not text[begin : match.start()].strip()
        ids = tuple(name.strip() for name in (match["ids"] or "").split(",") if name.strip())
        line = document.first_line + (following[index] if alone else index)
        reason = _UNTIL.sub("", match["reason"]).strip()
        yield Ignore(location, line, ids, reason, _until(match["reason"]))


def _until(reason: str) -> dt.date | Literal[""] | None:
    match = _UNTIL.search(reason)
    if match is None:
        return None
    try:
        return dt.date.fromisoformat(match["day"]) if _DAY.fullmatch(match["day"]) else ""
    except ValueError:
        return ""


def _following(lines: Sequence[str]) -> list[int]:
    """Return for each line the one that a comment alone on it applies to, from 0; past the end if none follows."""
    next_line, following = len(lines), []
    for number in range(len(lines) - 1, -1, -1):
        following.append(next_line)
        if lines[number].strip() and not lines[number].lstrip().startswith("#"):
            next_line = number
    return following[::-1]


def sift(
    findings: Iterable[Located],
    comments: Sequence[Ignore],
    known: Collection[str],
    unused: Collection[str],
    today: dt.date,
) -> tuple[list[Located], list[Suppressed]]:
    """Split the findings in a file into remaining and suppressed ones; invalid comments are findings too.

    Args:
        findings: the findings in the file.
        comments: its comments.
        known: the ids of all policies.
        unused: the policies for which an unneeded comment is reported: those that were evaluated.
        today: the day, for comments that expire.
    """
    honoured: dict[int, list[Ignore]] = {}
    for comment in comments:
        if _counts(comment, today):
            honoured.setdefault(comment.line, []).append(comment)
    used: set[tuple[int, str]] = set()
    remaining: list[Located] = []
    suppressed: list[Suppressed] = []
    for finding in findings:
        passing = [c for c in honoured.get(finding.location.line, ()) if finding.code in c.policies]
        if passing and finding.sort in _SUPPRESSIBLE:
            used.update((id(comment), finding.code) for comment in passing)
            suppressed.append(Suppressed(finding, passing[0].reason))
        else:
            remaining.append(finding)
    for comment in comments:
        remaining += _faults(comment, known, today)
        for policy in comment.policies if _counts(comment, today) else ():
            if policy in unused and (id(comment), policy) not in used:
                remaining.append(_wrong(comment, f"{policy} finds nothing on line {comment.line}", "remove it"))
    return remaining, suppressed


def _counts(comment: Ignore, today: dt.date) -> bool:
    return bool(comment.reason) and comment.until != "" and (comment.until is None or today <= comment.until)


def _faults(comment: Ignore, known: Collection[str], today: dt.date) -> Iterator[Located]:
    if not comment.policies:
        yield _wrong(comment, "this comment names no policy", _FORM)
    elif not comment.reason:
        yield _wrong(comment, "this comment has no reason, so it suppresses nothing", _FORM)
    if comment.until == "":
        yield _wrong(comment, "invalid date after until=, so this comment suppresses nothing", "write until=2027-03-31")
    elif comment.until is not None and comment.until < today:
        over = f"this comment expired on {comment.until} and suppresses nothing"
        yield _wrong(comment, over, "fix the finding, or set a later date")
    for policy in comment.policies:
        if policy not in known and policy not in WITHOUT_POLICY:
            near = near_misses(policy, (*known, *WITHOUT_POLICY))
            remedy = f"did you mean {near[0]}?" if near else "`gpugate policies` lists them"
            yield _wrong(comment, f"unknown policy {policy}", remedy)


def _wrong(comment: Ignore, message: str, remedy: str) -> Located:
    return Located(Sort.IGNORE, Severity.WARNING, message, comment.location, hint=remedy)


def added(report: Report, base: Revision) -> tuple[str, ...]:
    """Return a sentence for each file with suppressions that are not in the base revision of a change.

    They apply, because a reviewer sees them in the change; the report says where to look.
    """
    from gpugate.webhook.manifests.git import GitError  # noqa: PLC0415 -- starts programs, and few runs have a base

    files = {
        suppressed.finding.location.file for suppressed in report.suppressed if suppressed.by is SuppressedBy.COMMENT
    }
    remarks = []
    for name in sorted(files):
        data = Input(name, explicit=True).read()
        if isinstance(data, Problem):
            continue
        try:
            before = base.file(name, MAX_BYTES) if base.holds(name) else None
        except GitError:
            before = None  # a link or a directory there: all of the file is new
        new = _texts(data) - _texts(before or b"")
        if new:
            count = new.total()
            remarks.append(f"{name}: {count} suppression{'s' if count > 1 else ''} not in {base.name}")
    return tuple(remarks)


def _texts(data: bytes) -> Counter[str]:
    return Counter(match[0].strip() for match in _COMMENT.finditer(data.decode(errors="replace")))
