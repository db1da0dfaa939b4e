from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gpugate.webhook.report import github
from gpugate.webhook.report.located import Located, Location, Report

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path("/checkout/copy")


def lines(*findings: Located) -> Sequence[str]:
    return github.write(Report(findings), ROOT).splitlines()


def test_the_worst_come_first(report: Report) -> None:
    commands = [line.partition(" ")[0] for line in github.write(report, ROOT).splitlines()]

    assert commands == ["::error", "::error", "::warning", "::notice", "Checked"]


def test_a_command_names_the_region_and_escapes(denial: Located) -> None:
    assert lines(denial)[0] == (
        "::error file=a b/pod.yaml,line=3,endLine=3,col=5,endColumn=9,title=pods/missing-gpu-toleration"
        "::is wrong | 100%25 (Pod/ml/trainer)%0Afix: write another"
    )


def test_a_file_cannot_add_properties_or_commands(denial: Located) -> None:
    evil = replace(
        denial, location=Location("a,line=1::b%\n::error::.yaml"), message="x\n::add-mask::y", hint="", fix=None
    )

    first, *others = lines(evil)

    assert first == (
        "::error file=a%2Cline=1%3A%3Ab%25\ufffd%3A%3Aerror%3A%3A.yaml,title=pods/missing-gpu-toleration"
        "::x\ufffd::add-mask::y (Pod/ml/trainer)"
    )
    assert [line for line in others if "::" in line] == []


PATHS = {
    "relative": ("pods/a.yaml", "pods/a.yaml"),
    "below the top": ("/checkout/copy/pods/a.yaml", "pods/a.yaml"),
    "elsewhere": ("/etc/a.yaml", "/etc/a.yaml"),
    "of a shell": ("./a.yaml", "a.yaml"),
}


@pytest.mark.parametrize(("given", "shown"), PATHS.values(), ids=PATHS)
def test_a_path_is_relative_to_the_top_of_the_working_copy(given: str, shown: str, denial: Located) -> None:
    assert f" file={shown},line=3," in lines(replace(denial, location=replace(denial.location, file=given)))[0]
