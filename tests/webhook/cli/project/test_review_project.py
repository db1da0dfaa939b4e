"""What a repository's file says holds for `review` as it does for `check`: one object has one verdict."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Run = Callable[..., Any]

TOLERATION = "pods/missing-gpu-toleration"
POLICY = f"apiVersion: gpugate.dev/v1\nkind: PolicyConfig\npolicies: {{{TOLERATION}: {{mode: 'off'}}}}\n"


@pytest.fixture
def lenient(project: Path) -> Path:
    """The project, with a policy file that leaves its Pod as it is."""
    (project / ".gpugate.yaml").write_text("policy_file: policy.yaml\n")
    (project / "policy.yaml").write_text(POLICY)
    return project


@pytest.mark.parametrize(
    ("flags", "environment", "changed"),
    [
        pytest.param([], {}, False, id="the-file"),
        pytest.param(["--no-config"], {}, True, id="no-file"),
        pytest.param([], {"GPUGATE_POLICY_FILE": "shipped.yaml"}, True, id="a-variable-over-the-file"),
        pytest.param(
            ["-p", "policy.yaml"], {"GPUGATE_POLICY_FILE": "shipped.yaml"}, False, id="a-flag-over-a-variable"
        ),
    ],
)
@pytest.mark.usefixtures("lenient")
def test_by_what_policy_file_an_object_is_reviewed(
    gpugate: Run,
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    flags: list[str],
    environment: dict[str, str],
    changed: bool,  # noqa: FBT001 -- a column of the table
) -> None:
    (project / "shipped.yaml").write_text("apiVersion: gpugate.dev/v1\nkind: PolicyConfig\n")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    ran = gpugate("review", "manifests/pod.yaml", *flags)

    assert (ran.code, f"[{TOLERATION}]" in ran.out) == (0, changed)


@pytest.mark.usefixtures("lenient")
def test_a_file_that_is_refused_ends_it(gpugate: Run, project: Path) -> None:
    (project / ".gpugate.yaml").write_text("policy_fil: policy.yaml\n")

    ran = gpugate("review", "manifests/pod.yaml")

    assert ran.code == 2
    assert ".gpugate.yaml:1:1" in ran.err


def test_policies_that_are_not_loaded_are_named_beside_the_output(gpugate: Run, project: Path) -> None:
    (project / ".gpugate.yaml").write_text("policy_paths: [policies]\n")

    ran = gpugate("review", "manifests/pod.yaml", "--no-project-policies", "-o", "json")

    assert json.loads(ran.out)["schema"] == "gpugate.dev/review/v1"
    assert ran.err == "warning: policies: not loaded, because of --no-project-policies\n"
