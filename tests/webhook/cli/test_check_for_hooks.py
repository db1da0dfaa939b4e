"""What `gpugate check` does where a hook names the files of a commit, whatever they are."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

if TYPE_CHECKING:
    from collections.abc import Callable

    Run = Callable[..., Any]

CODES = {
    "nothing to check": ((), 4),
    "that is fine": (("--allow-empty",), 4),
    "named by a hook": (("--force-exclude",), 3),
    "both": (("--allow-empty", "--force-exclude"), 0),
}


@pytest.mark.parametrize(("flags", "code"), CODES.values(), ids=CODES)
def test_yaml_that_is_no_manifest(flags: tuple[str, ...], code: int, gpugate: Run, tmp_path: Path) -> None:
    file = tmp_path / "workflow.yaml"
    file.write_text("on: push\n")

    assert gpugate("check", *flags, file).code == code


def test_a_denial_is_one_still(gpugate: Run, tmp_path: Path) -> None:
    file = tmp_path / "pod.yaml"
    file.write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: many}\n")

    assert gpugate("check", "--allow-empty", "--force-exclude", file).code == 1


def test_what_cannot_be_read_is_incomplete_still(gpugate: Run, tmp_path: Path) -> None:
    file = tmp_path / "pod.yaml"
    file.write_text("apiVersion: v1\nkind: Pod\na: [\n")

    assert gpugate("check", "--allow-empty", "--force-exclude", file).code == 4


POD = """apiVersion: v1
kind: Pod
metadata: {name: a}
spec:
  containers:
    - {name: main, image: a, resources: {limits: {nvidia.com/gpu: 1}}}
"""
NAMED_LIKE_FLAGS = ("--fix.yaml", "--policy-file=evil.yaml", "-pevil.yaml", "--output=text=stolen.yaml", "--no-ignores")


@pytest.mark.parametrize("name", NAMED_LIKE_FLAGS)
def test_a_file_that_is_called_like_a_flag_is_no_flag(name: str, gpugate: Run, tree: Callable[..., Path]) -> None:
    tree({"evil.yaml": "a: b\n", "pod.yaml": POD})
    Path(name).write_text("a: b\n")

    ran = gpugate("check", "--force-exclude", name, "pod.yaml")

    assert (ran.code, "end the arguments of the hook with `--`" in ran.err) == (2, True)


@pytest.mark.parametrize("name", NAMED_LIKE_FLAGS)
def test_behind_two_dashes_it_is_a_file(name: str, gpugate: Run, tree: Callable[..., Path]) -> None:
    tree({"evil.yaml": "a: b\n"})
    Path(name).write_text(POD)

    ran = gpugate("check", "--force-exclude", "--quiet", "-o", "concise", "--", name)

    assert "pods/" in ran.out
    assert not Path("stolen.yaml").exists()


ROOT = Path(__file__).parents[3]
HOOKS = {hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))}


def test_a_hook_ends_its_arguments() -> None:
    assert [hook["args"] for hook in HOOKS.values() if hook.get("pass_filenames", True)] == [["--"], ["--"]]


def test_hooks_that_read_terraform_install_the_extra() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]

    installed = {name: hook.get("additional_dependencies") for name, hook in HOOKS.items()}

    checks = dict.fromkeys(("gpugate-check", "gpugate-check-charts", "gpugate-check-all"), extras["terraform"])
    assert installed == {**checks, "gpugate-test": None}


FILES = {
    "charts/app/templates/_helpers.tpl": {"gpugate-check-charts", "gpugate-check-all"},
    "templates/lib/names.tpl": {"gpugate-check-charts", "gpugate-check-all"},
    "charts/app/Chart.lock": {"gpugate-check-charts", "gpugate-check-all"},
    "overlays/prod/Kustomization": {"gpugate-check-charts", "gpugate-check-all"},
    "charts/app/templates/pod.yaml": {"gpugate-check-all"},  # `gpugate-check` has it by its type
    "main.tf": {"gpugate-check-all"},
    "nodepool.tftpl": {"gpugate-check-all"},
    "site/page.tpl": {"gpugate-check-all"},
    "templates/NOTES.txt": set(),
    "README.md": set(),
}


@pytest.mark.parametrize(("name", "hooks"), FILES.items(), ids=FILES)
def test_hooks_that_select_files_by_their_names(name: str, hooks: set[str]) -> None:
    assert {each for each, hook in HOOKS.items() if "files" in hook and re.search(hook["files"], name)} == hooks


@pytest.mark.parametrize("name", ["templates/_helpers.tpl", "templates/pod.yaml", "Chart.lock", "values.yaml"])
def test_a_file_of_a_chart_stands_for_the_chart(
    name: str, gpugate: Run, tree: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    tree({f"app/{each}": "a: b\n" for each in ("Chart.yaml", "templates/pod.yaml", name)})

    # Without Helm, which is what says that the chart would be rendered.
    ran = gpugate("check", "--allow-empty", "--force-exclude", "-o", "concise", "--", f"app/{name}")

    assert (ran.code, "not rendered: app" in ran.out) == (4, True)


OTHERS = {
    "a helper template of no chart": ("templates/_helpers.tpl", '{{- define "a" }}b{{ end }}\n'),
    "values of Terraform": ("a.tfvars", 'region = "eu"\ntags = {\n  a = "b"\n}\n'),
    "Terraform without manifests": ("main.tf", 'resource "aws_vpc" "a" {\n}\n'),
}


@pytest.mark.parametrize(("name", "text"), OTHERS.values(), ids=OTHERS)
def test_a_file_without_manifests_passes(name: str, text: str, gpugate: Run, tree: Callable[..., Path]) -> None:
    tree({name: text})

    assert gpugate("check", "--allow-empty", "--force-exclude", "--", name).code == 0


def test_a_manifest_in_terraform_is_checked(gpugate: Run, tree: Callable[..., Path]) -> None:
    pod = POD.replace("nvidia.com/gpu: 1", "nvidia.com/gpu: many").replace("\n", "\n    ")
    tree({"main.tf": f'resource "kubectl_manifest" "a" {{\n  yaml_body = <<-YAML\n    {pod}\n  YAML\n}}\n'})

    ran = gpugate("check", "--allow-empty", "--force-exclude", "-o", "concise", "--", "main.tf")

    assert (ran.code, "main.tf:8:" in ran.out) == (1, True)
