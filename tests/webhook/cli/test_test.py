"""`gpugate test` from the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from .conftest import Ran

    Run = Callable[..., Ran]

ROOT = Path(__file__).parents[3]
CI_EXAMPLE = ROOT / "tests" / "ci-example"
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: a, namespace: serving, labels: {team: a, cost-center: cc-1}}
spec:
  containers: [{name: a, image: "registry.example.com/a:1", resources: {limits: {nvidia.com/gpu: 1}}}]
"""
TOLERATES = "pods/missing-gpu-toleration"
PASSING = f"  - {{name: it passes, object: pod.yaml, expect: {{mutate: [{TOLERATES}]}}}}\n"
FAILING = "  - {name: it fails, object: pod.yaml, expect: {allow: true}}  # kept\n"
BROKEN = "  - {name: it is wrong, object: pod.yaml, expct: {}}\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pod.yaml").write_text(POD)
    return tmp_path


def write(folder: Path, *tests: str) -> None:
    (folder / "x.gpugate-test.yaml").write_text("tests:\n" + "".join(tests))


def test_every_policy_of_the_library_is_covered_both_ways(gpugate: Run) -> None:
    ran = gpugate("test", ROOT / "policies", "--coverage=100", "-o", "json")
    report = json.loads(ran.out)
    assert [test["failures"] for test in report["tests"] if test["failures"]] == []
    assert (report["coverage"]["without_failing"], report["coverage"]["without_passing"]) == ([], [])
    assert ran.code == 0


def test_the_example_for_ci_passes(gpugate: Run) -> None:
    ran = gpugate("test", CI_EXAMPLE)
    assert (ran.code, ran.err) == (0, "")
    assert "12 passed in" in ran.out


@pytest.mark.parametrize(
    ("tests", "code"),
    [
        ([PASSING], 0),
        ([PASSING, FAILING], 1),
        ([PASSING, BROKEN], 4),
        ([FAILING, BROKEN], 1),
    ],
)
def test_the_exit_code_tells_failures_from_mistakes(gpugate: Run, folder: Path, tests: list[str], code: int) -> None:
    write(folder, *tests)
    assert gpugate("test").code == code


def test_what_a_terminal_would_act_on_is_not_shown(gpugate: Run, folder: Path) -> None:
    write(folder, '  - {name: "a\\x1b[31m", object: pod.yaml, expect: {allow: false}}\n')
    ran = gpugate("test")
    assert "--update" in ran.out
    assert "\x1b" not in ran.out


def test_an_expectation_that_cannot_be_read_passes_no_test(gpugate: Run, folder: Path) -> None:
    (folder / "pod.yaml").write_text(POD.replace("nvidia.com/gpu", "cpu").replace("spec:", "spec:  # expect: a (b)"))
    ran = gpugate("test", ".")
    assert ran.code == 4
    assert "pod.yaml:4:8" in ran.out


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["-k", "no such test"], 3, "-k matches no test"),
        (["-k", "it and"], 2, "a text is missing at the end"),
        (["-o", "sarif"], 2, "-o sarif: unknown format\nwrite text, junit or json"),
        (["-o", "json", "-o", "junit"], 2, "standard output already has format json"),
        (["-p", "no.yaml"], 2, "no.yaml: no such file"),
        (["-"], 2, "test does not read standard input"),
        (["--coverage", "x"], 2, "write a number from 0 to 100"),
        (["--coverage=100"], 1, "and 100 % is asked for"),
        (["no.yaml"], 4, "no.yaml"),
        (["pod.yaml"], 3, "pod.yaml contains no tests"),
        (["pod.yaml", "--require-tests"], 1, "pod.yaml contains no tests"),
        (["pod.yaml", ".", "--require-tests"], 1, "pod.yaml contains no tests"),
        (["pod.yaml", "."], 0, "pod.yaml contains no tests"),
    ],
)
def test_what_is_asked_for(gpugate: Run, folder: Path, arguments: list[str], code: int, says: str) -> None:
    write(folder, PASSING)
    ran = gpugate("test", *arguments)
    assert ran.code == code
    assert says in ran.out + ran.err


def test_a_path_without_tests_is_nothing_to_check(gpugate: Run, folder: Path) -> None:
    assert gpugate("test", folder).code == 3


def test_names_choose_tests(gpugate: Run, folder: Path) -> None:
    write(folder, PASSING, FAILING)
    ran = gpugate("test", "-k", "passes or nothing")
    assert ran.code == 0
    assert "1 passed, 1 not chosen in" in ran.out


def test_it_stops_at_the_first_that_fails(gpugate: Run, folder: Path) -> None:
    write(folder, FAILING, PASSING)
    assert "0 passed, 1 failed in" in gpugate("test", "-x").out


def test_a_file_that_two_paths_hold_is_tested_once(gpugate: Run, folder: Path) -> None:
    write(folder, PASSING)
    assert "1 passed in" in gpugate("test", ".", "x.gpugate-test.yaml").out


def test_quiet_says_only_what_failed(gpugate: Run, folder: Path) -> None:
    write(folder, PASSING)
    assert gpugate("test", "-q").out == ""


def test_update_rewrites_expectations_and_shows_what_changes(gpugate: Run, folder: Path) -> None:
    write(folder, PASSING, FAILING)
    (folder / "expecting.yaml").write_text(POD.replace("kind: Pod", f"kind: Pod  # expect: {TOLERATES}"))
    ran = gpugate("test", "--update")
    assert ran.code == 0
    assert "1 passed, 2 updated in" in ran.out
    assert "-kind: Pod  # expect: pods/missing-gpu-toleration\n+kind: Pod\n" in ran.err
    written = FAILING.replace("{allow: true}", f"{{allow: true, mutate: [{TOLERATES}]}}")
    assert (folder / "x.gpugate-test.yaml").read_text() == f"tests:\n{PASSING}{written}"
    assert (folder / "expecting.yaml").read_text() == POD.replace("spec:", f"spec:  # expect: {TOLERATES}")
    assert gpugate("test").code == 0


def test_update_says_what_it_leaves(gpugate: Run, folder: Path) -> None:
    write(folder, FAILING.replace("name: it fails", "name: it fails, parametrize: {ct: [a]}"))
    ran = gpugate("test", "--update")
    assert ran.code == 1
    assert "it fails [a] was not updated: it has parameters" in ran.out


def test_several_reports_are_written(gpugate: Run, folder: Path) -> None:
    write(folder, PASSING, FAILING, BROKEN)
    (folder / "y.gpugate-test.yaml").write_text("test: []\n")
    ran = gpugate("test", "-o", "text", "-o", "junit=junit.xml", "-o", "json=report.json")
    assert "1 passed, 1 failed, 1 broken, 1 file unreadable in" in ran.out
    suites = ET.parse(folder / "junit.xml").getroot()  # noqa: S314 -- what was written a moment ago
    assert {key: suites.get(key) for key in ("tests", "failures", "errors")} == {
        "tests": "4",
        "failures": "1",
        "errors": "2",
    }
    report = json.loads((folder / "report.json").read_text())
    assert [(test["name"], test["line"], test["result"]) for test in report["tests"]] == [
        ("it passes", 2, "passed"),
        ("it fails", 3, "failed"),
        ("it is wrong", 4, "broken"),
    ]
    assert report["unreadable"][0]["message"] == "unknown key test; did you mean `tests`?"
    assert report["exit_code"] == ran.code == 1


def test_the_policy_file_holds_for_tests_that_name_none(gpugate: Run, folder: Path) -> None:
    (folder / "policy.yaml").write_text(
        f"apiVersion: gpugate.dev/v1\nkind: PolicyConfig\npolicies: {{{TOLERATES}: {{mode: off}}}}\n"
    )
    write(folder, FAILING)
    assert gpugate("test", "-p", "policy.yaml").code == 0


def test_a_terminal_without_signs_gets_words(gpugate: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpugate.webhook.testing.command.encoding", lambda: "ascii")
    write(folder, PASSING)
    ran = gpugate("test")
    assert "  ok it passes" in ran.out
    assert ran.out.isascii()


def test_the_schema_of_case_files_is_printed(gpugate: Run) -> None:
    published = (ROOT / "docs" / "schemas" / "test-v1.schema.json").read_text()
    assert gpugate("config", "schema", "test").out == published
