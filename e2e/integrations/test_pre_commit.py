"""The hooks, run by pre-commit itself on a small repository, from a copy of this one."""

from __future__ import annotations

import os
import re
import subprocess
from typing import TYPE_CHECKING

import pytest
from integrations.snapshot import commit, copy_of_this_repository, git

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Run = Callable[..., subprocess.CompletedProcess[str]]

DENIED = """\
apiVersion: v1
kind: Pod
metadata: {name: trainer}
spec:
  containers:
    - name: main
      image: registry.example.org/trainer:1.0
      resources: {limits: {nvidia.com/gpu: many}}
"""
FINE = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n"
CASES = """\
tests:
  - name: settings are let in
    object: settings.yaml
    expect: {allow: true}
"""


CONFIGURATION = """\
repos:
  - repo: {hooks}
    rev: {commit}
    hooks: [{{id: gpugate-check}}, {{id: gpugate-check-charts}}, {{id: gpugate-check-all}}, {{id: gpugate-test}}]
"""


@pytest.fixture(scope="session")
def hooks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_of_this_repository(tmp_path_factory.mktemp("gpugate"))


@pytest.fixture(scope="session")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pre-commit keeps the environment of the hooks, which it makes once."""
    return tmp_path_factory.mktemp("pre-commit")


@pytest.fixture
def pre_commit(kept: Path, integrations: Path, tmp_path: Path) -> Run:
    """Run pre-commit in a repository with some files."""

    def run(files: dict[str, str], *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        for name, text in files.items():
            file = tmp_path / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        commit(tmp_path)
        ran = subprocess.run(  # noqa: S603 -- fixed words
            [integrations / "bin" / "pre-commit", *arguments, "--color", "never"],
            cwd=tmp_path,
            env={**os.environ, "PRE_COMMIT_HOME": str(kept)},
            capture_output=True,
            text=True,
            check=False,
        )
        if re.search(r"(Temporary failure in name resolution|NewConnectionError|ConnectTimeout)", ran.stdout):
            pytest.skip("pre-commit installs gpugate with pip, which reaches no package index here")
        return ran

    return run


@pytest.fixture
def run_hook(pre_commit: Run, hooks: Path) -> Run:
    """Run a hook on some files of a repository, or on all."""

    def run(hook: str, files: dict[str, str], *names: str) -> subprocess.CompletedProcess[str]:
        head = git(hooks, "rev-parse", "HEAD").strip()
        configuration = {".pre-commit-config.yaml": CONFIGURATION.format(hooks=hooks, commit=head)}
        only = ["--files", *names] if names else ["--all-files"]
        return pre_commit({**files, **configuration}, "run", hook, "--verbose", *only)

    return run


def test_they_can_be_tried_without_a_configuration(pre_commit: Run, hooks: Path) -> None:
    ran = pre_commit({"pod.yaml": DENIED}, "try-repo", hooks, "gpugate-check", "--all-files")

    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert "pod.yaml:8:" in ran.stdout


def test_a_denied_object_fails_the_commit_and_is_shown(run_hook: Run) -> None:
    ran = run_hook("gpugate-check", {"pod.yaml": DENIED})

    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert "pod.yaml:8:" in ran.stdout


def test_terraform_is_read_with_what_the_hook_installs(run_hook: Run) -> None:
    body = "".join(f"    {line}\n" for line in DENIED.splitlines())

    ran = run_hook(
        "gpugate-check", {"main.tf": f'resource "kubectl_manifest" "a" {{\n  yaml_body = <<-YAML\n{body}  YAML\n}}\n'}
    )

    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert "main.tf:10:" in ran.stdout


def test_only_changed_files_are_checked(run_hook: Run) -> None:
    ran = run_hook("gpugate-check", {"pod.yaml": DENIED, "settings.yaml": FINE}, "settings.yaml")

    assert ran.returncode == 0, ran.stdout + ran.stderr


NOTHING = {
    "yaml that is no manifest": {"workflow.yaml": "on: push\n"},
    "no yaml": {"README.md": "read me\n"},
}


@pytest.mark.parametrize("files", NOTHING.values(), ids=NOTHING)
def test_a_commit_without_manifests_passes(run_hook: Run, files: dict[str, str]) -> None:
    ran = run_hook("gpugate-check", files)

    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_the_repository_is_checked_as_a_whole(run_hook: Run) -> None:
    ran = run_hook("gpugate-check-all", {"pod.yaml": DENIED, "settings.yaml": FINE}, "settings.yaml")

    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert "pod.yaml:8:" in ran.stdout


TESTS = {"pass": ("true", 0), "fail": ("false", 1)}


@pytest.mark.parametrize(("allowed", "code"), TESTS.values(), ids=TESTS)
def test_policy_tests(run_hook: Run, allowed: str, code: int) -> None:
    cases = CASES.replace("allow: true", f"allow: {allowed}")

    ran = run_hook("gpugate-test", {"settings.yaml": FINE, "settings.gpugate-test.yaml": cases})

    assert ran.returncode == code, ran.stdout + ran.stderr
