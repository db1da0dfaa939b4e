"""What the formats for people show of a report with many findings."""

from __future__ import annotations

import pytest

from gpugate.webhook.report import concise, text
from gpugate.webhook.report.located import Located, Location, ObjectName, Report, Severity, Skipped, Sort
from gpugate.webhook.report.summary import summary
from gpugate.webhook.report.view import View


def finding(severity: Severity, policy: str, file: str, name: str = "a") -> Located:
    pod = ObjectName("v1", "Pod", "default", name)
    return Located(Sort.VIOLATION, severity, f"{policy} in {file}", Location(file, 3, 1, 2), policy, pod, "spec")


NOTE, WARNING, ERROR = Severity.NOTE, Severity.WARNING, Severity.ERROR
FINDINGS = (
    finding(NOTE, "pods/n", "a.yaml"),
    finding(WARNING, "pods/w", "a.yaml"),
    finding(ERROR, "pods/e", "b.yaml", "b"),
    finding(WARNING, "pods/w", "c.yaml", "b"),
    finding(ERROR, "pods/e", "c.yaml"),
)
REPORT = Report(FINDINGS, objects=2, files=3, policies=58)


def heads(shown: str) -> list[str]:
    """File and policy of each line with a finding, and headings as they are."""
    lines = [line for line in shown.splitlines() if line]
    return [
        f"{line.partition(':')[0]} {line.partition('[')[2].partition(']')[0]}" if "[" in line else line
        for line in lines
    ]


@pytest.mark.parametrize(
    ("view", "lines"),
    [
        pytest.param(
            View(),
            ["a.yaml pods/n", "a.yaml pods/w", "b.yaml pods/e", "c.yaml pods/w", "c.yaml pods/e"],
            id="in the order of the files",
        ),
        pytest.param(
            View(group_by="policy"),
            [
                "pods/e: 2 errors",
                "b.yaml pods/e",
                "c.yaml pods/e",
                "pods/w: 2 warnings",
                "a.yaml pods/w",
                "c.yaml pods/w",
                "pods/n: 1 note",
                "a.yaml pods/n",
            ],
            id="by policy, the worst first",
        ),
        pytest.param(
            View(group_by="file"),
            [
                "c.yaml: 1 error, 1 warning",
                "c.yaml pods/w",
                "c.yaml pods/e",
                "b.yaml: 1 error",
                "b.yaml pods/e",
                "a.yaml: 1 warning, 1 note",
                "a.yaml pods/n",
                "a.yaml pods/w",
            ],
            id="by file",
        ),
        pytest.param(
            View(group_by="object", most=3),
            [
                "Pod/default/a: 1 error, 1 warning",
                "a.yaml pods/w",
                "c.yaml pods/e",
                "Pod/default/b: 1 error",
                "b.yaml pods/e",
                "and 2 more findings; --max-findings shows more",
            ],
            id="by object, the three worst",
        ),
        pytest.param(
            View(most=1), ["b.yaml pods/e", "and 4 more findings; --max-findings shows more"], id="the worst one"
        ),
        pytest.param(View(most=5), heads(concise.write(REPORT, View(quiet=True))), id="as many as there are"),
        pytest.param(
            View(findings=False, statistics=True),
            [
                "errors  warnings  notes  fixable  policy",
                "     2         0      0        0  pods/e",
                "     0         2      0        0  pods/w",
                "     0         0      1        0  pods/n",
            ],
            id="counts only",
        ),
    ],
)
def test_findings_in_a_line_each(view: View, lines: list[str]) -> None:
    shown = concise.write(REPORT, View(**{**{f: getattr(view, f) for f in View.__dataclass_fields__}, "quiet": True}))

    assert heads(shown) == lines


def test_brief_text_shows_errors_in_full_and_then_the_rest_in_a_line_each() -> None:
    shown = text.write(REPORT, view=View(quiet=True, brief=True)).splitlines()

    full = [line for line in shown if line.startswith(("error[", "warning[", "note["))]
    assert full == ["error[pods/e]: pods/e in b.yaml", "error[pods/e]: pods/e in c.yaml"]
    assert [line.partition(":")[0] for line in shown[-3:]] == ["a.yaml", "a.yaml", "c.yaml"]


def test_text_that_is_not_brief_shows_all_in_full() -> None:
    shown = text.write(REPORT, view=View(quiet=True)).splitlines()

    assert sum(line.startswith(("error[", "warning[", "note[")) for line in shown) == len(FINDINGS)


def skipped(count: int) -> Report:
    return Report(
        (), objects=1, skipped=tuple(Skipped(f"pods/p{number}", "the claim is not known", 1) for number in range(count))
    )


@pytest.mark.parametrize(
    ("count", "verbose", "lines"),
    [
        pytest.param(10, False, 11, id="few reasons: a line each"),
        pytest.param(11, False, 1, id="many: the policies in one line"),
        pytest.param(11, True, 12, id="many, and all are asked for"),
    ],
)
def test_reasons_why_policies_were_not_evaluated(count: int, verbose: bool, lines: int) -> None:  # noqa: FBT001 -- a table's column
    shown = list(summary(skipped(count), View(verbose=verbose)))[1:]

    assert len(shown) == lines
    assert all(f"pods/p{number}" in " ".join(shown) for number in range(count))
