from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    Run = Callable[..., pytest.RunResult]

pytest_plugins = ["pytester"]
ALL = ("--gpugate", "-o", "gpugate_manifests=*.yaml", "--deselect", "pools.gpugate-test.yaml")


def test_each_object_is_a_test(run: Run) -> None:
    ran = run(*ALL, "--collect-only", "-q", "settings.yaml", "pool.yaml")

    assert ran.outlines[:4] == [
        "settings.yaml::can be read",
        "settings.yaml::ConfigMap/default/settings",
        "pool.yaml::can be read",
        "pool.yaml::NodePool/gpu",
    ]


def test_without_the_setting_there_are_none(run: Run) -> None:
    assert [line for line in run("--gpugate", "--collect-only", "-q").outlines if "pool.yaml::" in line] == []


def test_a_denied_object_fails_with_a_code_frame(run: Run) -> None:
    ran = run(*ALL, "pool.yaml", "settings.yaml")

    ran.assert_outcomes(passed=3, failed=1)
    ran.stdout.fnmatch_lines(
        ["error?nodepools/missing-gpu-limit?: *", "*--> pool.yaml:4:1 *NodePool/gpu", "4 | spec:", "*= fix: *"]
    )


def test_a_warning_fails_nothing(run: Run, project: pytest.Pytester) -> None:
    policies = "policies: {nodepools/missing-gpu-limit: {mode: warn}}\n"
    (project.path / "policy.yaml").write_text(f"apiVersion: gpugate.dev/v1\nkind: PolicyConfig\n{policies}")

    run(*ALL, "--gpugate-policy-file", "policy.yaml", "pool.yaml").assert_outcomes(passed=2)


def test_a_reason_in_the_file_lets_a_finding_pass(run: Run, project: pytest.Pytester) -> None:
    file = project.path / "pool.yaml"
    file.write_text(
        file.read_text().replace("\nspec:", "\nspec:  # gpugate: ignore[nodepools/missing-gpu-limit] small")
    )

    run(*ALL, "pool.yaml").assert_outcomes(passed=2)


def test_objects_of_one_name_are_told_apart(run: Run, project: pytest.Pytester) -> None:
    file = project.path / "pool.yaml"
    fine = file.read_text().replace("\nspec:", '\nspec:\n  limits: {nvidia.com/gpu: "8"}')
    file.write_text(f"{file.read_text()}---\n{fine}")

    ran = run(*ALL, "-v", "pool.yaml")

    ran.stdout.fnmatch_lines(["pool.yaml::NodePool/gpu FAILED*", "pool.yaml::NodePool/gpu (2) PASSED*"])


def test_a_document_that_cannot_be_read_fails_the_file(run: Run, project: pytest.Pytester) -> None:
    (project.path / "settings.yaml").write_text("a: [\n")

    ran = run(*ALL, "settings.yaml")

    ran.assert_outcomes(failed=1)
    ran.stdout.fnmatch_lines(["error?unreadable?: *", "*--> settings.yaml:*"])


def test_several_processes_agree(run: Run) -> None:
    run(*ALL, "-n", "2", "pool.yaml", "settings.yaml").assert_outcomes(passed=3, failed=1)


def test_a_file_may_be_called_like_a_flag(run: Run, project: pytest.Pytester) -> None:
    (project.path / "pool.yaml").rename(project.path / "--fix.yaml")

    run(*ALL, "--", ".").assert_outcomes(passed=3, failed=1)


INI = """\
[pytest]
testpaths = {testpaths}
gpugate = true
gpugate_manifests =
    {patterns}
"""


@pytest.fixture
def clusters(project: pytest.Pytester) -> pytest.Pytester:
    """Settings in `tests`, and a pool in `clusters` and in `build`, into which pytest does not look."""
    for name, file in {"tests": "settings.yaml", "clusters": "pool.yaml", "build": "pool.yaml"}.items():
        folder = project.mkdir(name)
        (folder / file).write_text((project.path / file).read_text())
    (project.path / "tests/test_one.py").write_text("def test_one(): pass\n")
    return project


def settings(project: pytest.Pytester, testpaths: str, *patterns: str) -> None:
    (project.path / "pytest.ini").write_text(INI.format(testpaths=testpaths, patterns="\n    ".join(patterns)))


LEFT_OUT = {
    "not below testpaths": (
        "tests",
        "clusters/**/*.yaml",
        "*matches clusters/pool.yaml, which pytest did not collect*",
    ),
    "not looked into": (".", "build/*.yaml", "*matches build/pool.yaml, which pytest did not collect*"),
    "above the root": ("tests", "../*/clusters/*.yaml", "*which pytest did not collect*"),
    "a typo": ("tests", "cluster/*.yaml", "*matches no file below*"),
    "a directory": ("tests clusters", "clusters", "*matches no file below*"),
    "a whole path": ("tests clusters", "/clusters/*.yaml", "*matches no file below*"),
}
PROCESSES = {"one process": (), "several": ("-n", "2")}


@pytest.mark.parametrize("processes", PROCESSES.values(), ids=PROCESSES)
@pytest.mark.parametrize(("testpaths", "pattern", "says"), LEFT_OUT.values(), ids=LEFT_OUT)
def test_what_is_named_and_not_judged_fails_the_run(
    testpaths: str, pattern: str, says: str, processes: tuple[str, ...], clusters: pytest.Pytester, run: Run
) -> None:
    settings(clusters, testpaths, "tests/*.yaml", pattern)

    ran = run("--deselect", "pools.gpugate-test.yaml", *processes)

    assert ran.ret == pytest.ExitCode.USAGE_ERROR
    ran.stdout.fnmatch_lines([f"pytest.ini: gpugate_manifests: {pattern.replace('*', '[*]')} {says}"])


RIGHT = {
    "everything is collected": ("tests clusters build", "*/*.yaml", (), 5),
    "only some files are asked for": ("tests", "clusters/*.yaml", ("tests/test_one.py",), 1),
}


@pytest.mark.parametrize(("testpaths", "pattern", "named", "passed"), RIGHT.values(), ids=RIGHT)
def test_what_is_judged_or_not_asked_for_fails_nothing(
    testpaths: str,
    pattern: str,
    named: tuple[str, ...],
    passed: int,
    clusters: pytest.Pytester,
    run: Run,
) -> None:
    settings(clusters, testpaths, pattern)

    ran = run("-k", "not NodePool", *named)

    assert ran.ret == 0
    ran.stdout.no_fnmatch_line("*gpugate_manifests: *")
    assert ran.parseoutcomes()["passed"] == passed


def test_files_below_what_is_asked_for_are_to_be_collected(clusters: pytest.Pytester, run: Run) -> None:
    settings(clusters, "tests", "build/*.yaml", "clusters/*.yaml")

    ran = run("--deselect", "pools.gpugate-test.yaml", "--deselect", "clusters", ".")

    assert ran.ret == pytest.ExitCode.USAGE_ERROR
    ran.stdout.fnmatch_lines(["*build/pool.yaml, which pytest did not collect*"])
    ran.stdout.no_fnmatch_line("*clusters/pool.yaml, which*")
