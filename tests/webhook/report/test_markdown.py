from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gpugate.webhook.report import markdown
from gpugate.webhook.report.located import Location, Report

if TYPE_CHECKING:
    from gpugate.webhook.report.located import Located


def test_the_worst_come_first_in_a_table(report: Report) -> None:
    rows = [line for line in markdown.write(report).splitlines() if line.startswith("|")]

    assert rows == [
        "| | where | what |",
        "|---|---|---|",
        r"| error | a b/pod.yaml:3<br>Pod/ml/trainer | is wrong \| 100% (`pods/missing-gpu-toleration`) |",
        "| error | b.yaml:1 | not YAML (`unreadable`) |",
        "| warning | a b/pod.yaml:2<br>Pod/ml/trainer | is doubtful (`pods/doubtful`) |",
        "| note | a b/pod.yaml:9<br>Pod/ml/trainer | adds a (`pods/adds`) |",
    ]


def test_fixes_are_folded_away(denial: Located) -> None:
    lines = markdown.write(Report((denial,))).splitlines()

    start = lines.index("<details><summary>How to fix them</summary>")
    assert lines[start + 2 : start + 4] == [
        "- a b/pod.yaml:3, `pods/missing-gpu-toleration`: write another",
        "      set spec.a: 1",
    ]


def test_text_from_a_file_is_no_markup(denial: Located) -> None:
    evil = replace(denial, location=Location("<img>|.yaml", 1), message="@team [x](y) `z` #1\n| a |", hint="", fix=None)

    (row,) = [line for line in markdown.write(Report((evil,))).splitlines() if line.startswith("| error")]

    assert row == (
        r"| error | \<img\>\|.yaml:1<br>Pod/ml/trainer | @&#8203;team \[x\](y) \`z\` \#&#8203;1" + "\ufffd"
        r"\| a \| (`pods/missing-gpu-toleration`) |"
    )


def test_a_long_report_is_cut(denial: Located) -> None:
    text = markdown.write(Report((denial,) * 1234))

    assert "and 1,034 more" in text.splitlines()
    assert len(text) < 65_536
