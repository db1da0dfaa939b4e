"""The steps of the GitHub Action, with inputs as a workflow gives them and as an attacker would."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

if TYPE_CHECKING:
    from collections.abc import Callable

    Run = Callable[..., Any]

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "integrations" / "github" / "action.sh"
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
STEPS = ACTION["runs"]["steps"]


def test_findings_are_annotated_counted_summarised_and_kept(step: Run, workspace: Path) -> None:
    ran = step("check")

    assert "::error file=pod.yaml,line=8," in ran.log
    assert ran.outputs == {"exit-code": "1", "sarif-file": "gpugate.sarif", "findings": ran.outputs["findings"]}
    assert int(ran.outputs["findings"]) >= 1
    assert ran.summary.startswith("### gpugate\n")
    assert json.loads((workspace / "gpugate.sarif").read_text())["version"] == "2.1.0"


def test_findings_do_not_fail_the_step_so_that_they_can_be_uploaded(step: Run) -> None:
    assert step("check").code == 0


def test_nothing_found_is_zero_findings(step: Run, workspace: Path) -> None:
    (workspace / "pod.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")

    ran = step("check")

    assert (ran.outputs["exit-code"], ran.outputs["findings"]) == ("0", "0")


VERDICTS = {
    "nothing wrong": ("0", "true", 0),
    "denied": ("1", "true", 1),
    "denied, to be shown only": ("1", "false", 0),
    "wrong usage": ("2", "true", 2),
    "nothing to check": ("3", "true", 2),
    "incomplete, which is never only shown": ("4", "false", 2),
    "killed": ("137", "true", 2),
    "the step before did not run": ("", "true", 2),
}


@pytest.mark.parametrize(("exit_code", "fails", "code"), VERDICTS.values(), ids=VERDICTS)
def test_the_verdict(exit_code: str, fails: str, code: int, step: Run) -> None:
    assert step("verdict", EXIT_CODE=exit_code, INPUT_FAIL=fails).code == code


def test_several_paths_come_in_lines(step: Run, workspace: Path) -> None:
    for name in ("a", "b c"):
        (workspace / name).mkdir()
        (workspace / name / "pod.yaml").write_text((workspace / "pod.yaml").read_text())

    ran = step("check", INPUT_PATHS="a\n\n  b c  \n")

    assert "file=a/pod.yaml," in ran.log
    assert "file=b c/pod.yaml," in ran.log
    assert "file=pod.yaml," not in ran.log


def test_further_arguments_come_in_lines(step: Run) -> None:
    ran = step("check", INPUT_ARGS="--select=nodepools/*\n--allow-empty")

    assert "unrecognized" not in ran.log
    assert ran.outputs["exit-code"] in {"0", "1"}


def test_a_policy_file_is_used(step: Run, workspace: Path) -> None:
    (workspace / "my policy.yaml").write_text("apiVersion: gpugate.dev/v1\nkind: PolicyConfig\npolices: {}\n")

    ran = step("check", INPUT_POLICY_FILE="my policy.yaml")

    assert "my policy.yaml:3:" in ran.log
    assert ran.outputs == {"exit-code": "2", "sarif-file": "", "findings": "0"}


def test_a_report_of_an_earlier_step_does_not_pass_for_this_one(step: Run, workspace: Path) -> None:
    step("check")

    step("check", INPUT_POLICY_FILE="missing.yaml")

    assert not (workspace / "gpugate.sarif").exists()


EVIL = "x; touch stolen && touch stolen | touch stolen & $(touch stolen) `touch stolen` ' \" touch stolen"
INPUTS = [
    "INPUT_TRUST",
    "INPUT_PATHS",
    "INPUT_POLICY_FILE",
    "INPUT_CONFIG",
    "INPUT_FAIL_ON",
    "INPUT_SARIF_FILE",
    "INPUT_ARGS",
]


@pytest.mark.parametrize("name", INPUTS)
def test_an_input_is_never_a_command(name: str, step: Run, workspace: Path) -> None:
    step("check", **{name: EVIL})

    assert not (workspace / "stolen").exists()


@pytest.mark.parametrize("name", ["INPUT_PATHS", "INPUT_ARGS"])
def test_nor_is_a_line_of_one(name: str, step: Run, workspace: Path) -> None:
    step("check", **{name: "pod.yaml\ntouch stolen\n"})

    assert not (workspace / "stolen").exists()


def test_nor_is_the_name_of_the_python(step: Run, workspace: Path) -> None:
    ran = step("install", INPUT_PYTHON=EVIL)

    assert (ran.code, (workspace / "stolen").exists()) == (2, False)


@pytest.mark.parametrize("name", ["INPUT_SARIF_FILE", "INPUT_POLICY_FILE", "INPUT_CONFIG", "INPUT_FAIL_ON"])
def test_an_input_cannot_add_outputs(name: str, step: Run) -> None:
    ran = step("check", **{name: "x\nfindings=0"})

    assert (ran.code, ran.outputs) == (2, {})
    assert "must be one line" in ran.log


def test_a_path_cannot_be_a_flag(step: Run, workspace: Path) -> None:
    before = (workspace / "pod.yaml").read_text()

    step("check", INPUT_PATHS="pod.yaml\n--fix")

    assert (workspace / "pod.yaml").read_text() == before


@pytest.mark.parametrize("module", ["yaml", "msgspec", "json", "gpugate", "sitecustomize"])
def test_python_files_of_the_pull_request_are_not_imported(module: str, step: Run, workspace: Path) -> None:
    (workspace / f"{module}.py").write_text("import pathlib; pathlib.Path('stolen').touch()\n")

    step("check")

    assert not (workspace / "stolen").exists()


def test_a_file_name_cannot_be_a_workflow_command(step: Run, workspace: Path) -> None:
    evil = workspace / "a\n::set-output name=x::y.yaml"
    evil.write_text((workspace / "pod.yaml").read_text())

    lines = step("check").log.splitlines()

    assert [line for line in lines if line.startswith("::set-output")] == []


def git(workspace: Path, *arguments: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    subprocess.run(["git", "-C", workspace, *who, *arguments], check=True, capture_output=True)  # noqa: S603, S607 -- fixed words


@pytest.fixture
def pull_request(workspace: Path, tmp_path: Path) -> Path:
    """A shallow checkout of a change that comes with a project file of its own; `origin` has the branch it is for."""
    origin = tmp_path / "origin"
    origin.mkdir()
    git(origin, "init", "--quiet", "--initial-branch", "main")
    git(origin, "commit", "--quiet", "--allow-empty", "--message", "base")
    git(workspace, "init", "--quiet", "--initial-branch", "change")
    git(workspace, "remote", "add", "origin", origin.as_uri())
    (workspace / ".gpugate.yaml").write_text("exclude: ['*']\n")
    git(workspace, "add", ".")
    git(workspace, "commit", "--quiet", "--message", "change")
    return workspace


TRUST = {
    "by itself": ({}, "1"),
    "the base": ({"INPUT_TRUST": "base"}, "1"),
    "the change": ({"INPUT_TRUST": "change"}, "3"),
}


@pytest.mark.usefixtures("pull_request")
@pytest.mark.parametrize(("inputs", "code"), TRUST.values(), ids=TRUST)
def test_a_pull_request_does_not_choose_what_it_is_checked_by(inputs: dict[str, str], code: str, step: Run) -> None:
    assert step("check", GITHUB_BASE_REF="main", **inputs).outputs["exit-code"] == code


BASES = ("gone", "--upload-pack=touch stolen", "$(touch stolen)", "main\nfindings=0")


@pytest.mark.parametrize("base", BASES)
def test_a_base_that_cannot_be_had_fails(base: str, step: Run, pull_request: Path) -> None:
    ran = step("check", GITHUB_BASE_REF=base)

    assert (ran.code, ran.outputs) == (2, {})
    assert not (pull_request / "stolen").exists()


def test_trust_is_one_of_three(step: Run) -> None:
    assert "the input trust takes auto, base or change" in step("check", INPUT_TRUST="all").log


def test_python_runs_isolated() -> None:
    script = SCRIPT.read_text()

    assert re.findall(r"\$(?:environment/bin/python|python)\"(?! -I| >)", script) == []
    assert "bin/gpugate" not in script


@pytest.mark.parametrize("number", range(len(STEPS)), ids=[step["name"] for step in STEPS])
def test_no_expression_is_part_of_a_script(number: int) -> None:
    assert "${{" not in STEPS[number]["run"]


def test_no_other_action_is_used() -> None:
    assert [step for step in STEPS if "uses" in step] == []


def test_every_input_is_read_and_every_output_written() -> None:
    used = " ".join(str(value) for step in STEPS for value in step["env"].values())

    assert {name for name in ACTION["inputs"] if f"inputs.{name} " not in used} == set()
    assert set(ACTION["outputs"]) == {"findings", "exit-code", "sarif-file", "simulation-file", "new-denials"}


def test_every_variable_of_a_step_is_one_that_the_script_reads() -> None:
    script = SCRIPT.read_text()

    assert [name for step in STEPS for name in step["env"] if f"${{{name}" not in script] == []


@pytest.mark.skipif(
    not shutil.which("shellcheck"), reason="shellcheck is missing; on Debian: apt-get install shellcheck"
)
def test_shellcheck_finds_nothing() -> None:
    ran = subprocess.run(["shellcheck", SCRIPT], capture_output=True, text=True, check=False)  # noqa: S603, S607 -- fixed words

    assert ran.stdout == ""
