"""The GitLab template: its shape, and its script with variables as a project sets them."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

if TYPE_CHECKING:
    from collections.abc import Callable

TEMPLATE = yaml.safe_load(
    (Path(__file__).parents[2] / "integrations" / "gitlab" / "gpugate.gitlab-ci.yml").read_text(encoding="utf-8")
)
JOB = TEMPLATE["gpugate"]
ENVIRONMENT = JOB["before_script"][1].split()[-1]
# Source: GitLab 18 documentation, "CI/CD YAML syntax reference".
JOB_KEYS = {"stage", "image", "variables", "cache", "rules", "before_script", "script", "artifacts"}


def test_a_job_has_only_keys_that_gitlab_knows() -> None:
    assert set(JOB) <= JOB_KEYS
    assert set(TEMPLATE) == {"variables", "gpugate"}


def test_the_image_is_not_a_variant_without_git() -> None:
    assert JOB["image"].split("-")[1:] == []


def test_every_line_of_a_script_is_a_text() -> None:
    assert all(isinstance(line, str) for line in [*JOB["before_script"], *JOB["script"]])


def test_reports_are_kept_when_the_job_fails() -> None:
    assert JOB["artifacts"]["when"] == "always"
    assert JOB["artifacts"]["reports"] == {"codequality": "gl-code-quality-report.json", "junit": "gpugate.xml"}


@pytest.fixture
def job(workspace: Path, runner_temp: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the script as a runner does: its lines in one shell."""

    def run(**variables: str) -> subprocess.CompletedProcess[str]:
        lines = "\n".join(["set -e", *JOB["script"]]).replace(ENVIRONMENT, str(runner_temp / "gpugate"))
        environment = {"PATH": os.environ["PATH"], "CI_PROJECT_DIR": str(workspace), **TEMPLATE["variables"]}
        return subprocess.run(  # noqa: S603 -- our own lines
            ["/bin/sh", "-c", lines],
            cwd=workspace,
            env={**environment, **variables},
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def test_the_script_reports_and_fails(job: Callable[..., subprocess.CompletedProcess[str]], workspace: Path) -> None:
    ran = job()

    (first, *_) = json.loads((workspace / "gl-code-quality-report.json").read_text())
    assert ran.returncode == 1
    assert first["location"]["path"] == "pod.yaml"
    assert (workspace / "gpugate.xml").read_text().startswith("<?xml")


def test_several_paths_and_arguments(job: Callable[..., subprocess.CompletedProcess[str]], workspace: Path) -> None:
    (workspace / "apps").mkdir()
    (workspace / "apps" / "pod.yaml").write_text((workspace / "pod.yaml").read_text())

    job(GPUGATE_CHECK_PATHS="apps pod.yaml", GPUGATE_CHECK_ARGS="--select pods/* --quiet")

    report = json.loads((workspace / "gl-code-quality-report.json").read_text())
    assert {entry["location"]["path"] for entry in report} == {"apps/pod.yaml", "pod.yaml"}


@pytest.mark.parametrize("name", ["GPUGATE_CHECK_PATHS", "GPUGATE_CHECK_ARGS"])
def test_a_variable_is_never_a_command(
    name: str, job: Callable[..., subprocess.CompletedProcess[str]], workspace: Path
) -> None:
    job(**{name: "; touch stolen $(touch stolen)"})

    assert not (workspace / "stolen").exists()


PACKAGES = {
    "a name": ("gpugate", 2),
    "a name with a version": ("gpugate==0.1.0", 2),
    "nothing": ("", 2),
    "a commit": ("git+https://example.com/gpugate.git@0123", 0),
    "a wheel with its hash": ("https://example.com/gpugate-0.1.0-py3-none-any.whl#sha256=0123", 0),
    "a wheel of the runner": ("/wheels/gpugate-0.1.0-py3-none-any.whl", 0),
}


@pytest.mark.parametrize(("package", "code"), PACKAGES.values(), ids=PACKAGES)
def test_no_name_of_the_public_index_is_installed(package: str, code: int) -> None:
    environment = {"PATH": os.environ["PATH"], "GPUGATE_PACKAGE": package}

    ran = subprocess.run(["/bin/sh", "-c", JOB["before_script"][0]], env=environment, check=False)  # noqa: S603 -- our own lines

    assert ran.returncode == code


BASES = ("CI_MERGE_REQUEST_TARGET_BRANCH_SHA", "CI_MERGE_REQUEST_DIFF_BASE_SHA")


@pytest.mark.parametrize("name", BASES)
def test_a_merge_request_does_not_choose_what_it_is_checked_by(
    name: str, job: Callable[..., subprocess.CompletedProcess[str]], workspace: Path
) -> None:
    def git(*arguments: str) -> str:
        command = ["git", "-C", workspace, "-c", "user.name=a", "-c", "user.email=a@example.com", *arguments]
        ran = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603 -- fixed words
        return ran.stdout.strip()

    git("init", "--quiet")
    git("commit", "--quiet", "--allow-empty", "--message", "base")
    base = git("rev-parse", "HEAD")
    (workspace / ".gpugate.yaml").write_text("exclude: ['*']\n")

    assert job().returncode == 3
    assert job(**{name: base}).returncode == 1


def test_the_base_is_in_the_clone() -> None:
    assert JOB["variables"]["GIT_DEPTH"] == "0"


@pytest.mark.parametrize(
    ("changed", "arguments", "code"), [(True, "", 0), (True, " --max-new-denials 0", 1), (False, "", 0)]
)
def test_a_merge_request_that_changes_the_policy_file_is_simulated(
    changed: bool,  # noqa: FBT001 -- a parameter of a test
    arguments: str,
    code: int,
    job: Callable[..., subprocess.CompletedProcess[str]],
    workspace: Path,
) -> None:
    def git(*arguments: str) -> str:
        command = ["git", "-C", workspace, "-c", "user.name=a", "-c", "user.email=a@example.com", *arguments]
        ran = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603 -- fixed words
        return ran.stdout.strip()

    text = "apiVersion: gpugate.dev/v1\nkind: PolicyConfig\npolicies:\n  pods/wildcard-toleration: {mode: warn}\n"
    spec = {"containers": [{"name": "c", "image": "registry.example.org/c:1"}], "tolerations": [{"operator": "Exists"}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "ml"}, "spec": spec}
    (workspace / "pod.yaml").unlink()
    (workspace / "policy.yaml").write_text(text)
    (workspace / "dump.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [pod]}))
    git("init", "--quiet")
    git("add", ".")
    git("commit", "--quiet", "--message", "base")
    (workspace / "policy.yaml").write_text(text.replace("warn", "enforce") if changed else text)

    ran = job(
        CI_MERGE_REQUEST_DIFF_BASE_SHA=git("rev-parse", "HEAD"),
        GPUGATE_CHECK_ARGS="--allow-empty",
        GPUGATE_CHECK_PATHS="policy.yaml",
        GPUGATE_POLICY_FILE="policy.yaml",
        GPUGATE_SIMULATE_ARGS=f"--from dump.json{arguments}",
    )

    report = workspace / "gpugate-simulation.md"
    assert ran.returncode == code, ran.stderr
    assert report.exists() == changed
    assert not changed or "1 owner newly denied" in report.read_text()
