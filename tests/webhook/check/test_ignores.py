from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gpugate.webhook.report.located import Sort

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpugate.webhook.check.run import CheckResult

    Run = Callable[..., CheckResult]

POD = """\
apiVersion: v1
kind: Pod
metadata:
  name: a
  labels:
    {}
"""

SUPPRESSED = {
    "behind it": "denied: x # gpugate: ignore[pods/denied] agreed",
    "on the line above": "# gpugate: ignore[pods/denied] agreed\n    denied: x",
    "above another comment and an empty line": "# gpugate: ignore[pods/denied] agreed\n\n    # note\n    denied: x",
    "among others": "denied: x # gpugate: ignore[pods/warned, pods/denied]  agreed",
    "written closely": "denied: x #gpugate:ignore[pods/denied]agreed",
}


@pytest.mark.parametrize("text", SUPPRESSED.values(), ids=SUPPRESSED)
def test_a_comment_lets_a_finding_pass(text: str, run: Run) -> None:
    report = run(POD.format(text), policies=("pods/denied",)).report

    assert [(passing.finding.policy, passing.reason) for passing in report.suppressed] == [("pods/denied", "agreed")]
    assert (report.findings, report.exit_code) == ((), 0)


def test_each_of_several_comments_counts_for_its_own_line(run: Run) -> None:
    comment = "# gpugate: ignore[pods/denied] agreed"
    text = (
        POD.format(f"denied: x {comment} 1")
        + f"""\
  annotations:
    text: |
      {comment} 2
    {comment} 3
    {comment} 4

    a: x {comment} 5
    b: "{comment} 6"
"""
    )
    document = run(text + "---\n" + text, policies=("pods/denied",)).report

    assert [passing.reason for passing in document.suppressed] == ["agreed 1", "agreed 1"]
    assert [(finding.message, finding.location.line) for finding in document.findings] == [
        (f"pods/denied finds nothing on line {line}", place)
        for first in (0, 15)
        for line, place in ((first + 13, first + 10), (first + 13, first + 11), (first + 13, first + 13))
    ]


def test_a_patch_passes_too(run: Run) -> None:
    text = POD.format("patched: x").replace("metadata:", "metadata: # gpugate: ignore[pods/patched] by hand")

    report = run(text, policies=("pods/patched",)).report

    assert (len(report.suppressed), report.findings) == (1, ())


FAULTS = {
    "on another line": (
        "denied: x\n    # gpugate: ignore[pods/denied] agreed\n    b: y",
        "pods/denied finds nothing on line 8",
        "remove it",
    ),
    "for another policy": (
        "denied: x # gpugate: ignore[pods/warned] agreed",
        "pods/warned finds nothing on line 6",
        "remove it",
    ),
    "without a reason": (
        "denied: x # gpugate: ignore[pods/denied]",
        "this comment has no reason, so it suppresses nothing",
        "write `# gpugate: ignore[pods/some-policy] reason`",
    ),
    "without a policy": (
        "denied: x # gpugate: ignore agreed",
        "this comment names no policy",
        "write `# gpugate: ignore[pods/some-policy] reason`",
    ),
    "for no policy there is": (
        "denied: x # gpugate: ignore[pods/denyed] agreed",
        "unknown policy pods/denyed",
        "did you mean pods/denied?",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "message", "hint"), FAULTS.values(), ids=FAULTS)
def test_a_comment_that_is_of_no_use_is_a_warning(text: str, message: str, hint: str, run: Run) -> None:
    report = run(POD.format(text), policies=("pods/denied", "pods/warned")).report

    found = [(f.message, f.hint) for f in report.findings if f.sort is Sort.IGNORE]
    assert found == [(message, hint)]
    assert [f.policy for f in report.findings if f.sort is Sort.VIOLATION] == ["pods/denied"]


# The day of these runs is 2026-01-01.
UNTIL: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "until another day": ("until=2026-01-02 agreed", ("agreed",), ()),
    "until this day, which is the last": ("until=2026-01-01 agreed", ("agreed",), ()),
    "behind the reason": ("agreed until=2026-01-02", ("agreed",), ()),
    "over": ("until=2025-12-31 agreed", (), ("this comment expired on 2025-12-31 and suppresses nothing",)),
    "no date": (
        "until=31.12.2026 agreed",
        (),
        ("invalid date after until=, so this comment suppresses nothing",),
    ),
    "no such day": (
        "until=2026-02-30 agreed",
        (),
        ("invalid date after until=, so this comment suppresses nothing",),
    ),
    "without a reason": (
        "until=2026-01-02",
        (),
        ("this comment has no reason, so it suppresses nothing",),
    ),
    "a word that only ends so": ("gpuuntil=2025-12-31", ("gpuuntil=2025-12-31",), ()),
}  # fmt: skip


@pytest.mark.parametrize(("text", "reasons", "messages"), UNTIL.values(), ids=UNTIL)
def test_a_comment_may_count_until_a_day(
    text: str, reasons: tuple[str, ...], messages: tuple[str, ...], run: Run
) -> None:
    report = run(POD.format(f"denied: x # gpugate: ignore[pods/denied] {text}"), policies=("pods/denied",)).report

    assert tuple(passing.reason for passing in report.suppressed) == reasons
    assert tuple(finding.message for finding in report.findings if finding.sort is Sort.IGNORE) == messages


NO_COMMENTS = {
    "in quotes": "'denied': ' # gpugate: ignore[pods/denied] agreed'",
    "in a block of lines": "b: |\n      # gpugate: ignore[pods/denied] agreed\n    denied: x",
}


@pytest.mark.parametrize("text", NO_COMMENTS.values(), ids=NO_COMMENTS)
def test_a_text_is_no_comment(text: str, run: Run) -> None:
    report = run(POD.format(text), policies=("pods/denied",)).report

    assert [finding.sort for finding in report.findings] == [Sort.VIOLATION]


NOT_UNUSED: dict[str, tuple[str, tuple[str, ...], dict[str, Any]]] = {
    "a policy that is not in force": ("b: x # gpugate: ignore[pods/warned] agreed", ("pods/denied",), {}),
    "a policy that could not look": ("b: x # gpugate: ignore[pods/blind] agreed", ("pods/blind",), {}),
    "a file that cannot be read": (
        "b: x # gpugate: ignore[pods/denied] agreed\n---\na: b: c",
        ("pods/denied",),
        {},
    ),
    "comments are not honoured": (
        "b: x # gpugate: ignore[pods/denied] agreed",
        ("pods/denied",),
        {"ignores": False},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "policies", "options"), NOT_UNUSED.values(), ids=NOT_UNUSED)
def test_nobody_can_say_that_it_is_unused(text: str, policies: Any, options: dict[str, Any], run: Run) -> None:
    findings = run(POD.format(text), policies=policies, **options).report.findings

    assert [finding for finding in findings if finding.sort is Sort.IGNORE] == []


def test_comments_are_not_honoured_when_the_user_says_so(run: Run) -> None:
    text = POD.format("denied: x # gpugate: ignore[pods/denied] agreed")

    assert run(text, policies=("pods/denied",), ignores=False).exit_code == 1
