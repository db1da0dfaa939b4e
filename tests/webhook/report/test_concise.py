from __future__ import annotations

from typing import TYPE_CHECKING

from gpugate.webhook.report import concise
from gpugate.webhook.report.view import View

if TYPE_CHECKING:
    from gpugate.webhook.report.located import Report


def test_a_finding_is_a_line_that_editors_read(report: Report) -> None:
    assert concise.write(report, view=View(quiet=True)).splitlines() == [
        "a b/pod.yaml:2:1: warning[pods/doubtful] is doubtful (Pod/ml/trainer)",
        "a b/pod.yaml:3:5: error[pods/missing-gpu-toleration] is wrong | 100% (Pod/ml/trainer)",
        "a b/pod.yaml:9:1: note[pods/adds] adds a (Pod/ml/trainer)",
        "b.yaml:1:2: error[unreadable] not YAML",
    ]


def test_the_summary_follows(report: Report) -> None:
    assert concise.write(report).splitlines()[4].startswith("Checked 3 objects in 3 files against 4 policies: 2 errors")
