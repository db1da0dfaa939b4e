"""A diagnosis for people and for programs."""

from __future__ import annotations

import json

import pytest

from gpugate.webhook.operate import diagnosis
from gpugate.webhook.operate.diagnosis import Diagnosis, Gap, Problem
from gpugate.webhook.report.located import Severity
from gpugate.webhook.report.plain import Paint

ERROR = Problem(Severity.ERROR, "no-leader", "no replica holds the Lease", "Lease gpugate/gpugate", "kubectl get pods")
WARNING = Problem(Severity.WARNING, "timeout", "timeoutSeconds is 30", "webhook a", "set 10 or less")
ASKED = Gap("Secret gpugate/a", "these credentials may not read it")
IDLE = Gap("a probe through the API server", "use --probe to send one", applies=False)


@pytest.mark.parametrize(
    ("problems", "gaps", "code"),
    [
        ((), (), 0),
        ((WARNING,), (), 0),
        ((), (IDLE,), 0),
        ((WARNING,), (ASKED,), 4),
        ((ERROR, WARNING), (ASKED,), 1),
    ],
)
def test_the_exit_code_says_whether_to_act(problems: tuple[Problem, ...], gaps: tuple[Gap, ...], code: int) -> None:
    assert Diagnosis(problems, (), gaps).exit_code == code


DIAGNOSIS = Diagnosis((ERROR, WARNING), ("Lease gpugate/gpugate",), (ASKED, IDLE), "v1.36.3")


def test_a_person_reads_each_problem_and_what_was_looked_at() -> None:
    assert diagnosis.write_text(DIAGNOSIS) == (
        "error[no-leader]: no replica holds the Lease\n"
        " --> Lease gpugate/gpugate\n"
        "  = fix: kubectl get pods\n"
        "\n"
        "warning[timeout]: timeoutSeconds is 30\n"
        " --> webhook a\n"
        "  = fix: set 10 or less\n"
        "\n"
        "Checked 1 part of the installation of a Kubernetes v1.36.3 cluster: 1 error, 1 warning, 0 notes\n"
        "  Lease gpugate/gpugate\n"
        "Not checked:\n"
        "  Secret gpugate/a: these credentials may not read it\n"
        "  a probe through the API server: use --probe to send one\n"
    )


def test_what_a_cluster_holds_does_not_act_on_the_terminal() -> None:
    hostile = Problem(Severity.ERROR, "missing", "\x1b[2J\u202e", "\r\n", "\x07")

    text = diagnosis.write_text(Diagnosis((hostile,), ()))

    assert all(line.isprintable() for line in text.splitlines())


def test_colours_are_for_terminals() -> None:
    assert "\x1b[" in diagnosis.write_text(DIAGNOSIS, Paint(enabled=True))


def test_a_program_reads_the_same() -> None:
    document = json.loads(diagnosis.write_json(DIAGNOSIS))

    assert document["schema"] == "gpugate.dev/doctor/v1"
    assert document["problems"][0] == {
        "severity": "error",
        "code": "no-leader",
        "message": "no replica holds the Lease",
        "location": "Lease gpugate/gpugate",
        "fix": "kubectl get pods",
    }
    assert document["not_checked"][1]["applies"] is False
    assert (document["healthy"], document["summary"]["exit_code"]) == (False, 1)
