from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING, Any

import pytest

from gpugate.policies.catalog import CATALOG
from gpugate.policies.sdk.findings import Stance

if TYPE_CHECKING:
    from collections.abc import Callable

    Run = Callable[..., pytest.RunResult]

pytest_plugins = ["pytester"]
OPT_IN = {"a flag": ("--gpugate",), "a setting": ("-o", "gpugate=true")}


@pytest.mark.parametrize("arguments", OPT_IN.values(), ids=OPT_IN)
def test_case_files_are_collected_when_asked_for(arguments: tuple[str, ...], run: Run) -> None:
    run(*arguments).assert_outcomes(passed=2)


def test_each_test_has_its_file_line_and_name(run: Run) -> None:
    ran = run("--gpugate", "--collect-only", "-q")

    assert ran.outlines[:2] == [
        "pools.gpugate-test.yaml::a pool without a limit is refused",
        "pools.gpugate-test.yaml::settings are let in",
    ]


def test_one_can_be_named(run: Run) -> None:
    run("--gpugate", "pools.gpugate-test.yaml::settings are let in").assert_outcomes(passed=1)


def test_words_choose(run: Run) -> None:
    run("--gpugate", "-k", "settings and not limit").assert_outcomes(passed=1, deselected=1)


def rewrite(project: pytest.Pytester, old: str, new: str) -> None:
    file = project.path / "pools.gpugate-test.yaml"
    file.write_text(file.read_text().replace(old, new, 1))


@pytest.fixture
def failing(project: pytest.Pytester) -> pytest.Pytester:
    rewrite(project, "deny: [nodepools/missing-gpu-limit]", "allow: true")
    return project


@pytest.mark.usefixtures("failing")
def test_a_failure_shows_the_code_frame_and_no_traceback(run: Run) -> None:
    ran = run("--gpugate")

    ran.assert_outcomes(passed=1, failed=1)
    ran.stdout.fnmatch_lines(
        [
            "*nodepools/missing-gpu-limit*",
            "*--> pool.yaml:4:1*",
            "4 | spec:",
            "*^^^^*",
            "accept with: pytest --gpugate --gpugate-update 'pools.gpugate-test.yaml::a pool without a limit is refused'",
        ]
    )
    ran.stdout.no_fnmatch_line("*Traceback*")


@pytest.mark.usefixtures("failing")
def test_a_failure_is_told_with_the_line_of_the_test(run: Run) -> None:
    hook: dict[str, Any] = {}

    class Spy:
        @staticmethod
        def pytest_runtest_logreport(report: pytest.TestReport) -> None:
            if report.failed:
                hook["location"] = report.location

    run("--gpugate", plugins=[Spy()])

    assert hook["location"] == ("pools.gpugate-test.yaml", 1, "a pool without a limit is refused")


@pytest.mark.usefixtures("failing")
def test_failures_are_remembered(run: Run) -> None:
    run("--gpugate").assert_outcomes(passed=1, failed=1)

    run("--gpugate", "--lf").assert_outcomes(failed=1)


def test_junit_has_them(run: Run, project: pytest.Pytester) -> None:
    run("--gpugate", "--junitxml=out.xml")

    cases = ET.parse(project.path / "out.xml").iter("testcase")  # noqa: S314 -- our own file
    assert [case.get("name") for case in cases] == ["a pool without a limit is refused", "settings are let in"]


def test_several_processes_run_them(run: Run) -> None:
    run("--gpugate", "-n", "2").assert_outcomes(passed=2)


def test_manifests_with_expectations_are_tests(run: Run, project: pytest.Pytester) -> None:
    file = project.path / "pool.yaml"
    file.write_text(file.read_text().replace("\nspec:", "\nspec:  # expect: nodepools/missing-gpu-limit"))

    ran = run("--gpugate", "-v", "pool.yaml")

    ran.assert_outcomes(passed=1)
    ran.stdout.fnmatch_lines(["pool.yaml::expectations PASSED*"])


BROKEN = {
    "a typo in a key": ("expect:", "expct:", "expct: unknown key; did you mean `expect`?"),
    "a policy that does not exist": ("missing-gpu-limit", "mising-gpu-limit", "*did you mean*missing-gpu-limit*"),
    "a file that does not exist": ("object: pool.yaml", "object: pol.yaml", "*pol.yaml*"),
}


@pytest.mark.parametrize(("good", "bad", "shown"), BROKEN.values(), ids=BROKEN)
def test_a_mistake_in_a_test_fails_it_and_not_the_others(
    good: str, bad: str, shown: str, run: Run, project: pytest.Pytester
) -> None:
    rewrite(project, good, bad)

    ran = run("--gpugate")

    ran.assert_outcomes(passed=1, failed=1)
    ran.stdout.fnmatch_lines([shown])


def test_a_file_that_cannot_be_read_is_an_error_of_collection(run: Run, project: pytest.Pytester) -> None:
    (project.path / "pools.gpugate-test.yaml").write_text("tests: [\n")

    ran = run("--gpugate")

    ran.assert_outcomes(errors=1)
    ran.stdout.fnmatch_lines(["*pools.gpugate-test.yaml:*"])


def test_expectations_are_rewritten_on_request(failing: pytest.Pytester, run: Run) -> None:
    first = run("--gpugate", "--gpugate-update")

    first.assert_outcomes(passed=1, skipped=1)
    assert "nodepools/missing-gpu-limit" in (failing.path / "pools.gpugate-test.yaml").read_text()
    run("--gpugate").assert_outcomes(passed=2)


REFUSED = {
    "updates by several processes": (["--gpugate", "--gpugate-update", "-n", "2"], "*leave out -n*"),
    "updates of nothing": (["--gpugate-update"], "*add --gpugate*"),
    "coverage of nothing": (["--gpugate-coverage"], "*add --gpugate*"),
    "a coverage that is no number": (["--gpugate", "--gpugate-coverage", "pool.yaml"], "*--gpugate-coverage=80*"),
    "a policy file that is missing": (["--gpugate", "--gpugate-policy-file", "no.yaml"], "*no.yaml*"),
}


@pytest.mark.parametrize(("arguments", "shown"), REFUSED.values(), ids=REFUSED)
def test_flags_that_cannot_be_are_refused(arguments: list[str], shown: str, run: Run) -> None:
    ran = run(*arguments)

    assert ran.ret == pytest.ExitCode.USAGE_ERROR
    ran.stderr.fnmatch_lines([shown])


PROCESSES = {"one process": (), "several": ("-n", "2")}


@pytest.mark.parametrize("processes", PROCESSES.values(), ids=PROCESSES)
def test_coverage_adds_up(processes: tuple[str, ...], run: Run, project: pytest.Pytester) -> None:
    passing = '  - name: with one\n    object: {base: pool.yaml, patch: {spec: {limits: {nvidia.com/gpu: "8"}}}}\n'
    rewrite(project, "tests:\n", f"tests:\n{passing}    expect: {{allow: true}}\n")

    ran = run("--gpugate", "--gpugate-coverage", *processes)

    assert ran.ret == 0
    enabled = sum(policy.mode is not Stance.OFF for policy in CATALOG)
    ran.stdout.fnmatch_lines(["*gpugate policy coverage*", f"1/{enabled} ({100 / enabled:.0f} %)"])


@pytest.mark.parametrize("processes", PROCESSES.values(), ids=PROCESSES)
def test_too_little_coverage_fails_the_run(processes: tuple[str, ...], run: Run) -> None:
    ran = run("--gpugate", "--gpugate-coverage=90", *processes)

    assert ran.ret == pytest.ExitCode.TESTS_FAILED
    ran.stdout.fnmatch_lines(["0/* (0 %), and 90 % is asked for"])


def test_the_policy_file_holds(run: Run, project: pytest.Pytester) -> None:
    policies = "policies: {nodepools/missing-gpu-limit: {mode: warn}}\n"
    (project.path / "policy.yaml").write_text(f"apiVersion: gpugate.dev/v1\nkind: PolicyConfig\n{policies}")

    ran = run("--gpugate", "-o", "gpugate_policy_file=policy.yaml", "-k", "refused")

    ran.assert_outcomes(failed=1, deselected=1)
