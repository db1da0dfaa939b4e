"""Policies outside the library in the commands: reported, fixed, configured, explained, tested, and never from a change."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import yaml
from own_policies.written import PAUSED, SCALER, write

from gpugate.webhook.cli.main import main

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

EXAMPLE = SCALER.replace('paused: "true"', 'paused: "true"  # expect: acme/paused-scaler')
ALLOWED = SCALER.replace('"true"', '"false"')
FIXED = SCALER.replace('annotations:\n    autoscaling.keda.sh/paused: "true"', "annotations: {}")
SELECT = ("--select", "acme/*")


@pytest.fixture
def project(folder: Path) -> Path:
    """Write a project with a policy, its examples and a manifest."""
    write(
        folder,
        {
            ".gpugate.yaml": "policy_paths: [policies]\n",
            "policies/acme/paused_scaler.py": PAUSED,
            "policies/acme/examples/paused_scaler/bad-first.yaml": EXAMPLE,
            "policies/acme/examples/paused_scaler/fixed-first.yaml": FIXED,
            "policies/acme/examples/paused_scaler/good-first.yaml": f"{ALLOWED.rstrip()}  # expect: nothing\n",
            "scaler.yaml": SCALER,
        },
    )
    return folder


def findings(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, list[tuple[str, str]]]:
    code = main(["check", "-o", "json", *arguments])
    report = json.loads(capsys.readouterr().out)
    return code, [(found.get("policy", found["sort"]), found["severity"]) for found in report["findings"]]


@pytest.mark.usefixtures("project")
def test_check_reports_it_with_reason_and_fix(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", *SELECT, "."]) == 1

    printed = capsys.readouterr().out
    assert "error[acme/paused-scaler]: the scaler is paused" in printed
    assert "--> ./scaler.yaml:7:33" in printed
    assert "= why: A paused scaler does not add replicas." in printed
    assert "= fix: Remove the annotation" in printed
    # The examples beside the policy are denied on purpose.
    assert "examples" not in printed


def test_check_fixes_it(project: Path) -> None:
    assert main(["check", *SELECT, "--fix", "scaler.yaml"]) == 0
    assert "paused" not in (project / "scaler.yaml").read_text()


@pytest.mark.usefixtures("project")
def test_several_processes_know_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert findings(capsys, *SELECT, "--jobs", "2", ".") == (1, [("acme/paused-scaler", "error")])


# The policy file, and what check reports.
CONFIGURED = {
    "a mode": ("policies: {acme/paused-scaler: {mode: warn}}", (0, [("acme/paused-scaler", "warning")])),
    "a pattern": ("policies: {acme/*: {mode: off}}", (0, [])),
    "the mode of all": ("mode: audit", (0, [("acme/paused-scaler", "note")])),
    "a parameter": ("policies: {acme/paused-scaler: {params: {annotation: example.com/x}}}", (0, [])),
    "a namespace": (
        "namespaces: {serving: {policies: {acme/paused-scaler: {mode: audit}}}}",
        (0, [("acme/paused-scaler", "note")]),
    ),
    "an exemption": (
        "exemptions: [{policies: [acme/paused-scaler], reason: r, owner: o, expires: 2999-01-01}]",
        (0, [("acme/paused-scaler", "note")]),
    ),
}


@pytest.mark.parametrize(("text", "expected"), CONFIGURED.values(), ids=CONFIGURED)
def test_the_policy_file_configures_it(
    text: str, expected: tuple[int, list[tuple[str, str]]], project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(project, {"policy.yaml": f"apiVersion: gpugate.dev/v1\nkind: PolicyConfig\n{text}\n"})

    code, found = findings(capsys, *SELECT, "-p", "policy.yaml", "scaler.yaml")

    assert (code, [each for each in found if each[0] == "acme/paused-scaler"]) == expected


# The policy file, and the beginning of the error.
REFUSED = {
    "a misspelt id": (
        "policies: {acme/paused-scalr: {mode: warn}}",
        "policy.yaml:3:12: policies.acme/paused-scalr: unknown policy `acme/paused-scalr`; did you mean `acme/paused-sc",
    ),
    "an unknown parameter": (
        "policies: {acme/paused-scaler: {params: {anotation: x}}}",
        "unknown key; did you mean `annotation`?",
    ),
    "a directory outside": ("policy_paths: [../other]", "policy_paths[0]: ../other leads out of the repository"),
}


@pytest.mark.parametrize(("text", "error"), REFUSED.values(), ids=REFUSED)
def test_a_mistake_in_the_policy_file_has_its_line(
    text: str, error: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / ".git").mkdir()
    write(project, {"policy.yaml": f"apiVersion: gpugate.dev/v1\nkind: PolicyConfig\n{text}\n"})

    assert main(["check", "-p", "policy.yaml", "scaler.yaml"]) == 2
    assert error.rsplit(": ", maxsplit=1)[-1] in capsys.readouterr().err


def test_a_comment_suppresses_it(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ignored = SCALER.replace('paused: "true"', 'paused: "true"  # gpugate: ignore[acme/paused-scaler] migration')
    write(project, {"scaler.yaml": ignored})

    assert findings(capsys, *SELECT, "scaler.yaml") == (0, [])


@pytest.mark.usefixtures("project")
def test_its_examples_are_its_tests(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["test", "policies", "--coverage"]) == 0

    printed = capsys.readouterr().out
    assert "3 passed" in printed
    # The tests are examples of policies outside the library, so that the coverage is theirs.
    assert "policy coverage 1/1 (100 %)" in printed


def test_findings_of_the_library_are_not_unexpected_in_its_examples(project: Path) -> None:
    # The library reports a missing maximum, and may report more in its next version.
    unbounded = EXAMPLE.replace("  maxReplicaCount: 4\n", "")
    write(project, {"policies/acme/examples/paused_scaler/bad-second.yaml": unbounded})
    write(project, {"test.yaml": unbounded})

    assert (main(["test", "policies"]), main(["test", "test.yaml"])) == (0, 1)


def test_a_wrong_fixed_example_fails(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(project, {"policies/acme/examples/paused_scaler/fixed-first.yaml": ALLOWED})

    assert main(["test", "policies"]) == 1
    assert "the bad example becomes something else" in capsys.readouterr().out


@pytest.mark.usefixtures("project")
def test_policies_shows_the_origin(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policies", "-o", "json"]) == 0

    listed = json.loads(capsys.readouterr().out)
    assert {entry["origin"] for entry in listed} == {"gpugate", "policies/acme/paused_scaler.py"}
    assert listed[-1]["id"] == "acme/paused-scaler"


@pytest.mark.usefixtures("project")
def test_explain_prints_documentation_parameters_and_examples(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "acme/paused-scaler"]) == 0

    printed = capsys.readouterr().out
    assert "Origin  policies/acme/paused_scaler.py" in printed
    assert "annotation (default: autoscaling.keda.sh/paused)" in printed
    assert 'autoscaling.keda.sh/paused: "true"' in printed


@pytest.mark.usefixtures("project")
def test_review_shows_the_decision(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["review", "scaler.yaml"]) == 1
    assert "acme/paused-scaler" in capsys.readouterr().out


def test_a_flag_names_a_directory(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(folder, {"own/acme/paused_scaler.py": PAUSED, "scaler.yaml": SCALER})

    assert findings(capsys, "--policy-path", "own", *SELECT, "scaler.yaml") == (1, [("acme/paused-scaler", "error")])


def test_a_variable_names_directories(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(folder, {"own/acme/paused_scaler.py": PAUSED, "scaler.yaml": SCALER})
    monkeypatch.setenv("GPUGATE_POLICY_PATHS", "own")

    assert findings(capsys, *SELECT, "scaler.yaml") == (1, [("acme/paused-scaler", "error")])


def test_a_project_file_names_no_directory_outside_the_repository(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(folder, {"other/acme/paused_scaler.py": PAUSED, "repo/.gpugate.yaml": "policy_paths: [../other]\n"})
    (folder / "repo/.git").mkdir()

    assert main(["check", "-c", "repo/.gpugate.yaml", "repo"]) == 2
    assert "policy_paths[0]: ../other leads out of the repository" in capsys.readouterr().err


def test_a_policy_that_fails_is_an_error_of_its_id(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken = PAUSED.replace('if paused.text == "true":', "if paused.txt:")
    write(project, {"policies/acme/paused_scaler.py": broken})

    assert main(["check", "scaler.yaml", *SELECT]) == 4
    printed = capsys.readouterr().out
    assert "acme/paused-scaler" in printed
    assert "AttributeError at paused_scaler.py:" in printed


@pytest.mark.parametrize(
    "result",
    [
        "'text'",
        "Violation('metadata.name', 'x')",
        "Violation(('metadata',), 5)",
        "Patch('set', ('a',), 1, 'x')",
        "None",
        "Violation(('metadata',), 'x', fix='text')",
        "Violation(('metadata',), 'x', fix=Patches((Patch('replace', ('a',), 1, 'x'),)))",
    ],
)
def test_a_check_that_yields_something_else_is_an_error(
    result: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    yields = PAUSED.replace(
        'yield Violation(paused.path, "the scaler is paused", hint="Remove the annotation", fix=fix)', f"yield {result}"
    )
    write(project, {"policies/acme/paused_scaler.py": yields})

    assert main(["check", "scaler.yaml", *SELECT]) == 4
    assert "UnexpectedYieldError" in capsys.readouterr().out


def test_no_project_policies_runs_no_code_of_the_project(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(
        project,
        {
            "policies/acme/paused_scaler.py": "raise SystemExit",
            "policy.yaml": "apiVersion: gpugate.dev/v1\nkind: PolicyConfig\npolicies: {acme/paused-scaler: {mode: warn}}\n",
            "scaler.yaml": SCALER.replace('"true"', '"true"  # gpugate: ignore[acme/paused-scaler] migration'),
        },
    )

    assert main(["check", "--no-project-policies", "-p", "policy.yaml", "scaler.yaml"]) == 0
    printed = capsys.readouterr().out
    assert "policies: not loaded, because of --no-project-policies" in printed
    assert "unknown policy" not in printed


ALLOWING = PAUSED.replace('paused.text == "true"', "False")


@pytest.fixture
def change(project: Path, git: Callable[..., None]) -> Path:
    """Commit the project as the base, and let the change write a policy that allows everything."""
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "base")
    write(project, {"policies/acme/paused_scaler.py": ALLOWING, "policies/acme/other.py": "raise SystemExit"})
    return project


@pytest.mark.usefixtures("change")
def test_with_trust_base_the_policies_of_the_base_decide(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--trust", "base", "--base", "main", *SELECT, "scaler.yaml"]) == 1
    assert "policies read from main, not from the change: policies" in capsys.readouterr().out


def test_in_a_pull_request_the_policies_of_the_base_decide(
    change: Path, git: Callable[..., None], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    git("branch", "origin/main")
    monkeypatch.setenv("GITHUB_BASE_REF", "main")

    # The change configures its new policy too, which is no mistake.
    configured = "policies: {acme/other: {mode: warn}, acme/paused-scaler: {mode: enforce}}"
    write(change, {"policy.yaml": f"apiVersion: gpugate.dev/v1\nkind: PolicyConfig\n{configured}\n"})

    assert main(["check", "-p", "policy.yaml", *SELECT, "scaler.yaml"]) == 1
    assert "policies read from origin/main, not from the change: policies" in capsys.readouterr().out


@pytest.mark.usefixtures("change")
def test_in_a_pull_request_a_flag_is_no_way_to_run_code_of_the_change(
    git: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    git("branch", "origin/main")
    monkeypatch.setenv("GITHUB_BASE_REF", "main")

    assert main(["check", "--policy-path", "policies", *SELECT, "scaler.yaml"]) == 1


def test_in_a_pull_request_new_directories_are_not_loaded(
    folder: Path, git: Callable[..., None], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(folder, {"scaler.yaml": ALLOWED})
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "base")
    git("branch", "origin/main")
    monkeypatch.setenv("GITHUB_BASE_REF", "main")
    write(folder, {"policies/acme/a.py": "raise SystemExit", ".gpugate.yaml": "policy_paths: [policies]"})

    assert main(["check", "scaler.yaml"]) == 0
    assert "policies: not loaded, because origin/main has no policies there" in capsys.readouterr().out


@pytest.mark.usefixtures("change")
def test_in_a_pull_request_without_its_base_nothing_of_the_change_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GITHUB_BASE_REF", "unknown")

    assert main(["check", "scaler.yaml"]) == 2
    assert "--base origin/unknown: unknown commit; fetch it" in capsys.readouterr().err


def test_trust_change_runs_the_policies_of_the_change(
    change: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GITHUB_BASE_REF", "main")
    (change / "policies/acme/other.py").unlink()

    assert main(["check", "--trust", "change", *SELECT, "scaler.yaml"]) == 0


NEEDING = PAUSED.replace(
    "params=PausedParams, mode=Stance.ENFORCE", "params=PausedParams, needs=(Need(WIDGET, ('spec',)),)"
)
NEEDING = NEEDING.replace(
    "SDK = 1\n",
    'SDK = 1\nWIDGET = Kind("example.com", ("v1",), "Widget", "widgets")\n',
).replace(
    "objects import SCALED_OBJECT", "objects import SCALED_OBJECT, Kind\nfrom gpugate.policies.sdk.facts import Need"
)
NEEDING = NEEDING.replace("@validates(SCALED_OBJECT,", "@validates(SCALED_OBJECT, WIDGET,")


def test_the_registration_sends_its_kinds_and_lets_the_webhook_read_what_it_needs(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(folder, {"own/acme/a.py": NEEDING})

    assert main(["registration", "--certificate-secret", "s", "--policy-path", "own"]) == 0

    objects = list(yaml.safe_load_all(capsys.readouterr().out))
    configuration = next(obj for obj in objects if obj["kind"] == "ValidatingWebhookConfiguration")
    sent = {
        (entry["failurePolicy"], *rule["resources"])
        for entry in configuration["webhooks"]
        for rule in entry["rules"]
        if rule["apiGroups"] == ["example.com"]
    }
    assert sent == {("Ignore", "widgets")}
    granted = [rule for obj in objects if obj["kind"] == "ClusterRole" for rule in obj["rules"]]
    assert [rule["verbs"] for rule in granted if "widgets" in rule["resources"]] == [["get", "list", "watch"]]


def test_an_audit_of_a_dump_reports_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(folder, {"own/acme/paused_scaler.py": PAUSED, "dump.yaml": SCALER})

    assert main(["audit", "--from", "dump.yaml", "--policy-path", "own", *SELECT, "-o", "json"]) == 0

    assert "acme/paused-scaler" in capsys.readouterr().out


def test_the_schema_for_editors_has_its_parameters(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(folder, {"own/acme/paused_scaler.py": PAUSED})

    assert main(["config", "schema", "--policy-path", "own"]) == 0

    schema = json.loads(capsys.readouterr().out)
    params = schema["properties"]["policies"]["properties"]["acme/paused-scaler"]["properties"]["params"]
    name = params["$ref"].rpartition("/")[2]
    assert schema["$defs"][name]["properties"]["annotation"]["default"] == "autoscaling.keda.sh/paused"


MUTATING = PAUSED.replace("import Params, validates", "import Params, mutates").replace("@validates", "@mutates")
MUTATING = MUTATING.replace(
    MUTATING[MUTATING.index("        fix = ") :],
    '        yield Patch("set", paused.path, "false", "paused scalers are resumed")\n',
)


def test_a_mutation_is_applied_and_can_be_fixed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(folder, {"own/acme/paused_scaler.py": MUTATING, "scaler.yaml": SCALER})

    assert main(["review", "--policy-path", "own", "-o", "json", "scaler.yaml"]) == 0
    stored = json.loads(capsys.readouterr().out)["object"]
    assert stored["metadata"]["annotations"] == {"autoscaling.keda.sh/paused": "false"}
    assert main(["check", "--policy-path", "own", *SELECT, "--fix", "--fail-on", "mutate", "scaler.yaml"]) == 0
    assert 'paused: "false"' in (folder / "scaler.yaml").read_text()
