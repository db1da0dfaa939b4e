from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Run = Callable[..., Any]

TOLERATION = "pods/missing-gpu-toleration"
POLICY = f"apiVersion: gpugate.dev/v1\nkind: PolicyConfig\npolicies: {{{TOLERATION}: {{mode: warn}}}}\n"


def severities(out: str) -> dict[str, str]:
    return {finding["policy"]: finding["severity"] for finding in json.loads(out)["findings"]}


def test_a_file_says_how_check_runs(gpugate: Run, project: Path) -> None:
    (project / ".gpugate.yaml").write_text(
        f"paths: [manifests]\npolicy_file: policy.yaml\nselect: [{TOLERATION}]\nfail_on: warn\noutput: [json]\n"
    )
    (project / "policy.yaml").write_text(POLICY)

    ran = gpugate("check")

    assert (ran.code, severities(ran.out)) == (1, {TOLERATION: "warning"})


def test_pyproject_says_it_too(gpugate: Run, project: Path) -> None:
    (project / "pyproject.toml").write_text(f'[tool.gpugate]\nselect = ["{TOLERATION}"]\noutput = ["json"]\n')

    assert set(severities(gpugate("check").out)) == {TOLERATION}


def test_it_holds_below_too_with_paths_relative_to_it(
    gpugate: Run, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / ".gpugate.yaml").write_text(f"paths: [manifests]\npolicy_file: policy.yaml\nselect: [{TOLERATION}]\n")
    (project / "policy.yaml").write_text(POLICY)
    (project / "docs").mkdir()
    monkeypatch.chdir(project / "docs")

    document = json.loads(gpugate("check", "-o", "json").out)

    assert [finding["file"] for finding in document["findings"]] == ["../manifests/pod.yaml"]


FLAGS_WIN: dict[str, tuple[list[str], dict[str, str], set[str]]] = {
    "the file": ([], {}, {TOLERATION}),
    "a variable over the file": ([], {"GPUGATE_SELECT": "claims/*"}, set()),
    "a flag over a variable": (["--select", TOLERATION], {"GPUGATE_SELECT": "claims/*"}, {TOLERATION}),
    "no file": (["--no-config", "--select", "claims/*"], {}, set()),
    "another file": (["--config", "other.yaml"], {}, set()),
    "another file by its variable": ([], {"GPUGATE_CONFIG": "other.yaml"}, set()),
}


@pytest.mark.parametrize(("flags", "variables", "found"), FLAGS_WIN.values(), ids=FLAGS_WIN)
def test_what_wins(
    flags: list[str],
    variables: dict[str, str],
    found: set[str],
    gpugate: Run,
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (project / ".gpugate.yaml").write_text(f"select: [{TOLERATION}]\n")
    (project / "other.yaml").write_text("select: [claims/*]\n")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    assert set(severities(gpugate("check", "-o", "json", *flags, "manifests").out)) == found


REFUSED = {
    "an unknown key": ("selct: [a]\n", [], ".gpugate.yaml:1:8: selct: unknown key; did you mean `select`?"),
    "an unknown policy": (
        "\nselect: [pods/missing-gpu-tolerations]\n",
        [],
        f".gpugate.yaml:2:9: select: pods/missing-gpu-tolerations: unknown policy; did you mean {TOLERATION}?",
    ),
    "an unknown format": ("output: [txt]\n", [], ".gpugate.yaml:1:9: output: txt: unknown format; did you mean text?\nwrite text, concise, json"),
    "a policy file that is missing": ("policy_file: none.yaml\n", [], "none.yaml: no such file or directory"),
    "a baseline that is missing": ("baseline: none.json\n", [], "none.json: no such file: create it with --write-baseline"),
    "a flag is told as it is": ("select: [claims/*]\n", ["--select", "zzz"], "--select zzz: unknown policy"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "flags", "message"), REFUSED.values(), ids=REFUSED)
def test_a_mistake_is_told_where_it_stands(
    text: str, flags: list[str], message: str, gpugate: Run, project: Path
) -> None:
    (project / ".gpugate.yaml").write_text(text)

    ran = gpugate("check", *flags)

    assert (ran.code, ran.err[: len(message) + 7]) == (2, f"error: {message}")


def test_a_second_file_that_is_not_read_is_told(gpugate: Run, project: Path) -> None:
    (project / ".gpugate.yaml").write_text("")
    (project / "pyproject.toml").write_text("[tool.gpugate]\n")

    out = gpugate("check").out

    assert (
        "pyproject.toml: [tool.gpugate] is not read, because .gpugate.yaml in the same directory takes precedence\n"
        in out
    )


def test_other_commands_leave_it_alone(gpugate: Run, project: Path) -> None:
    (project / ".gpugate.yaml").write_text("selct: [a]\n")

    assert gpugate("schema", "list").code == 0


def test_a_report_of_the_project_gives_way_to_a_diff(gpugate: Run, project: Path) -> None:
    (project / ".gpugate.yaml").write_text("output: [text, json=found.json]\n")

    ran = gpugate("check", "--diff", "manifests")

    assert (ran.out[:4], (project / "found.json").exists()) == ("--- ", True)


def test_findings_link_to_the_site_that_the_file_names(gpugate: Run, project: Path) -> None:
    (project / ".gpugate.yaml").write_text("docs: {base_url: https://docs.example.com}\n")

    found = json.loads(gpugate("check", "manifests", "-o", "json").out)["findings"]

    assert {each["docs"] for each in found if each["policy"]} == {
        f"https://docs.example.com/docs/policies/{each['policy']}.html" for each in found if each["policy"]
    }


def test_a_switch_of_the_file_can_be_turned_off_by_a_flag(gpugate: Run, project: Path) -> None:
    (project / ".gpugate.yaml").write_text("complete_context: true\n")

    shown = [gpugate("config", "show", "--origin", *flags).out for flags in ([], ["--no-complete-context"])]

    lines = [line for out in shown for line in out.splitlines() if line.startswith("complete_context")]
    assert lines == [
        "complete_context: true  # .gpugate.yaml:1",
        "complete_context: false  # --complete-context",
    ]
