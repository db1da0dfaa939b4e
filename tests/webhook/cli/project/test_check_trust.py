"""`gpugate check --trust base`: whatever a change writes beside its manifests, the settings of the base hold."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Ran

    Run = Callable[..., Ran]

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not on PATH")

POD = """apiVersion: v1
kind: Pod
metadata: {name: a}
spec:
  containers:
    - {name: main, image: a, resources: {limits: {nvidia.com/gpu: 1}}}
"""
POLICY = "pods/missing-cost-labels"
CONFIG = f"apiVersion: gpugate.dev/v1\nkind: PolicyConfig\npolicies:\n  {POLICY}: {{mode: %s}}\n"
FILES = {
    ".gpugate.yaml": f"policy_file: policy.yaml\nselect: [{POLICY}]\nfail_on: warn\nbaseline: baseline.json\n",
    "policy.yaml": CONFIG % "enforce",
    "baseline.json": '{"schema": "gpugate.dev/baseline/v1", "findings": []}\n',
    "pod.yaml": "",
}
KNOWN = {"policy": POLICY, "kind": "Pod", "namespace": "default", "name": "a", "path": "metadata.labels", "count": 9}
# What a change writes so that its Pod passes.
SILENCED = {
    "another project file": {".gpugate.yaml": "select: [pods/missing-gpu-toleration]\n"},
    "no project file": {".gpugate.yaml": "exclude: ['*']\n"},
    "another mode": {"policy.yaml": CONFIG % "off"},
    "a baseline": {"baseline.json": json.dumps({"schema": "gpugate.dev/baseline/v1", "findings": [KNOWN]})},
}


def git(*arguments: str) -> str:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    ran = subprocess.run(["git", *who, *arguments], check=True, capture_output=True, text=True)  # noqa: S603, S607 -- fixed words
    return ran.stdout.strip()


def commit(files: dict[str, str]) -> str:
    for name, text in files.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text)
    git("add", "--all")
    git("commit", "--quiet", "--message", "all")
    return git("rev-parse", "HEAD")


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A repository in the working directory, whose Pod comes with the change; the commit before it."""
    monkeypatch.chdir(tmp_path)
    for name in ("GITHUB_BASE_REF", "CI_MERGE_REQUEST_TARGET_BRANCH_SHA", "CI_MERGE_REQUEST_DIFF_BASE_SHA"):
        monkeypatch.delenv(name, raising=False)
    git("init", "--quiet", "--initial-branch", "main")
    return commit(FILES)


@pytest.mark.parametrize("change", SILENCED.values(), ids=SILENCED)
def test_a_change_does_not_choose_what_it_is_checked_by(change: dict[str, str], base: str, gpugate: Run) -> None:
    commit({"pod.yaml": POD, **change})

    assert gpugate("check", "--allow-empty", ".").code == 0
    assert gpugate("check", "--trust", "base", "--base", base, ".").code == 1


def test_what_is_read_from_the_base_is_said(base: str, gpugate: Run) -> None:
    commit({"pod.yaml": POD})

    said = gpugate("check", "--trust", "base", "--base", base, ".").out

    files = ".gpugate.yaml, policy.yaml, baseline.json"
    assert f"read from {base} ({base[:12]}), not from the change: {files}" in said


def test_a_project_file_that_the_base_lacks_is_not_read(base: str, gpugate: Run) -> None:
    git("rm", "--quiet", ".gpugate.yaml")
    before = commit({})
    commit({"pod.yaml": POD, ".gpugate.yaml": "exclude: ['*']\n"})

    ran = gpugate(
        "check",
        "--select",
        "pods/missing-gpu-toleration",
        "--fail-on",
        "warn",
        "--trust",
        "base",
        "--base",
        before,
        ".",
    )

    assert before != base
    assert ran.code == 1


def test_a_policy_file_that_the_base_lacks_is_refused(base: str, gpugate: Run) -> None:
    commit({"pod.yaml": POD, "mine.yaml": CONFIG % "off"})

    ran = gpugate("check", "--policy-file", "mine.yaml", "--trust", "base", "--base", base, ".")

    assert (ran.code, f"mine.yaml: {base} has no such file" in ran.err) == (2, True)


def test_suppressions_that_come_with_a_change_count_and_are_said(base: str, gpugate: Run) -> None:
    comment = f"  # gpugate: ignore[{POLICY}] mine"
    commit({"pod.yaml": POD.replace("{name: a}\n", f"{{name: a}}{comment}\n", 1)})

    ran = gpugate("check", "--trust", "base", "--base", base, "pod.yaml")

    assert ran.code == 0
    assert f"pod.yaml: 1 suppression not in {base}" in ran.out


def test_schemas_of_the_change_do_not_hold(base: str, gpugate: Run) -> None:
    commit({"pod.yaml": "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a}\n"})
    commit({".gpugate/schemas/example.com.Thing.json": "no table"})

    assert "no table of schemas" in gpugate("check", ".").err
    assert gpugate("check", "--trust", "base", "--base", base, ".").code == 0


VARIABLES = {
    "of GitHub": ("GITHUB_BASE_REF", "main", True),
    "of GitLab": ("CI_MERGE_REQUEST_DIFF_BASE_SHA", "{base}", True),
    "that is empty": ("GITHUB_BASE_REF", "", False),
    "that names nothing": ("GITHUB_BASE_REF", "gone", False),
    "that is a flag of git": ("CI_MERGE_REQUEST_DIFF_BASE_SHA", "--output=stolen", False),
}


@pytest.mark.parametrize(("name", "value", "known"), VARIABLES.values(), ids=VARIABLES)
def test_the_base_is_that_of_the_merge_request(
    name: str,
    value: str,
    known: bool,  # noqa: FBT001 -- a column of the table
    base: str,
    gpugate: Run,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    git("update-ref", "refs/remotes/origin/main", base)
    commit({"pod.yaml": POD, **SILENCED["another mode"]})
    monkeypatch.setenv(name, value.format(base=base))

    ran = gpugate("check", "--trust", "base", ".")

    assert ran.code == (1 if known else 2)
    assert known or "--base" in ran.err
    assert not Path("stolen").exists()


def test_a_baseline_is_not_written_where_the_base_is_trusted(base: str, gpugate: Run) -> None:
    ran = gpugate("check", "--trust", "base", "--base", base, "--write-baseline", "new.json", ".")

    assert (ran.code, "--trust base: a baseline is read from the base" in ran.err) == (2, True)


def test_no_filter_of_the_repository_runs(base: str, gpugate: Run, tmp_path: Path) -> None:
    git("config", "filter.evil.smudge", f"touch {tmp_path}/started; cat")
    git("config", "diff.evil.textconv", f"touch {tmp_path}/started; cat")
    commit({".gitattributes": "*.yaml filter=evil diff=evil\n", "pod.yaml": POD})
    Path("started").unlink(missing_ok=True)

    gpugate("check", "--trust", "base", "--base", base, ".")

    assert not Path("started").exists()


@pytest.mark.parametrize("replaced", ["{0}", "{0}^{{tree}}", "{0}:policy.yaml"], ids=["commit", "tree", "file"])
def test_the_base_is_not_replaced_by_another_one(replaced: str, base: str, gpugate: Run) -> None:
    change = commit({"pod.yaml": POD, **SILENCED["another mode"]})
    git("replace", replaced.format(base), replaced.format(change))

    assert gpugate("check", "--trust", "base", "--base", base, ".").code == 1
