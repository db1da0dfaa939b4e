"""Policies in CEL in a directory: loaded beside those in Python, and used by the commands."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from own_policies.written import PAUSED, SCALER, SMALL, policy, write

from gpugate.policies.engine.config import PolicyConfig
from gpugate.policies.sdk.findings import Stance
from gpugate.webhook.cli.main import main
from gpugate.webhook.own_policies.catalog import OwnPaths
from gpugate.webhook.own_policies.load import load_sources
from gpugate.webhook.own_policies.sources import MOST_POLICIES, OwnPolicyError, read_directories

if TYPE_CHECKING:
    from collections.abc import Callable

GOOD = policy("@validates(POD)\ndef check(pod, ctx):\n    return iter(())")


def origins(*directories: str) -> dict[str, str]:
    catalog = OwnPaths(tuple(map(Path, directories))).catalog(PolicyConfig(), None)
    return {own.policy.id: own.origin for own in catalog.own}


def named(policy_id: str) -> str:
    return SMALL.replace("acme/many-replicas", policy_id)


def test_a_document_has_what_a_file_of_python_has(folder: Path) -> None:
    write(folder, {"p/acme/limits.yaml": SMALL})

    (own,) = load_sources(read_directories([Path("p")]))

    assert own.policy.id == "acme/many-replicas"
    assert own.policy.title == "ScaledObject with many replicas"
    assert own.policy.mode is Stance.ENFORCE
    assert own.policy.params.__struct_fields__ == ("most",)
    assert own.origin == "p/acme/limits.yaml"
    assert own.examples == Path("p/acme/examples/many_replicas")


# Files, and the origins of the policies in them.
LOADED = {
    "beside Python": (
        {"p/acme/a.py": GOOD, "p/acme/b.yaml": SMALL},
        {"acme/a": "p/acme/a.py", "acme/many-replicas": "p/acme/b.yaml"},
    ),
    "several in a file": (
        {"p/acme/a.yml": f"---\n{named('acme/b')}---\n{named('acme/a')}"},
        {"acme/a": "p/acme/a.yml", "acme/b": "p/acme/a.yml"},
    ),
    "an organisation of two words": (
        {"p/acme_corp/a.yaml": named("acme-corp/x")},
        {"acme-corp/x": "p/acme_corp/a.yaml"},
    ),
    "a name that Python cannot have": (
        {"p/acme/Rules.2026.yaml": SMALL},
        {"acme/many-replicas": "p/acme/Rules.2026.yaml"},
    ),
    "other YAML": (
        {
            "p/acme/a.yaml": SMALL,
            "p/acme/values.yaml": "a: 1\n",
            "p/acme/broken.yaml": "a: [",
            "p/acme/scaler.gpugate-test.yaml": "tests: []\n",
            "p/acme/.hidden.yaml": named("acme/hidden"),
            "p/acme/examples/b.yaml": named("acme/example"),
            "p/policy.yaml": "apiVersion: gpugate.dev/v1\nkind: PolicyConfig\n",
        },
        {"acme/many-replicas": "p/acme/a.yaml"},
    ),
    "other YAML in a folder with the name of a family": ({"p/pods/pod.yaml": "apiVersion: v1\nkind: Pod\n"}, {}),
}


@pytest.mark.parametrize(("files", "expected"), LOADED.values(), ids=LOADED)
def test_policies_are_loaded_with_their_origin(files: dict[str, str], expected: dict[str, str], folder: Path) -> None:
    write(folder, files)

    assert origins("p") == expected


MANY = "---\n".join(named(f"acme/p{number}") for number in range(101))
# Files, and how the error reads.
REFUSED = {
    "the organisation of another folder": (
        {"p/acme/a.yaml": named("other/many-replicas")},
        "p/acme/a.yaml:3:5: id: must begin with `acme/`, after the folder of the file: write acme/many-replicas, or",
    ),
    "an organisation with an underscore": (
        {"p/acme_corp/a.yaml": named("acme/x")},
        "p/acme_corp/a.yaml:3:5: id: must begin with `acme-corp/`",
    ),
    "a family of the library": ({"p/pods/a.yaml": named("pods/a")}, "p/pods/a.yaml: `pods` is a family of the library"),
    "the id of a policy in Python": (
        {"p/acme/a.yaml": SMALL, "p/acme/many_replicas.py": GOOD},
        "p/acme/many_replicas.py: p/acme/a.yaml has the same id acme/many-replicas: rename one",
    ),
    "the id of another document": (
        {"p/acme/a.yaml": SMALL, "p/acme/b.yaml": SMALL},
        "p/acme/b.yaml: p/acme/a.yaml has the same id acme/many-replicas: rename one",
    ),
    "the id of a document in this file": (
        {"p/acme/a.yaml": f"{SMALL}---\n{SMALL}"},
        "p/acme/a.yaml:20:5: id: two policies have the id acme/many-replicas; rename one of them",
    ),
    "an unknown variable": (
        {"p/acme/a.yaml": SMALL.replace("params.most", "params.mots")},
        "p/acme/a.yaml:13:17: validations[0].expression: character 53: unknown field `params.mots`; did you mean `pa",
    ),
    "not YAML": ({"p/acme/a.yaml": f"{SMALL}examples: ["}, "p/acme/a.yaml:18:1: not YAML: "),
    "not in the folder of an organisation": (
        {"p/a.yaml": SMALL},
        "p/a.yaml: not in the folder of an organisation: move it to p/acme/a.yaml, where `acme` is your organisation",
    ),
    "too many": (
        {f"p/acme{number}/a.yaml": MANY.replace("acme/", f"acme{number}/") for number in range(5)},
        f"p/acme4/a.yaml: more than {MOST_POLICIES} policies outside the library: remove some",
    ),
}


@pytest.mark.parametrize(("files", "error"), REFUSED.values(), ids=REFUSED)
def test_a_mistake_has_its_file(files: dict[str, str], error: str, folder: Path) -> None:
    write(folder, files)

    with pytest.raises(OwnPolicyError, match=f"^{re.escape(error)}"):
        origins("p")


@pytest.fixture
def project(folder: Path) -> Path:
    """Write a project with a policy in Python, one in CEL, and a manifest."""
    write(
        folder,
        {
            ".gpugate.yaml": "policy_paths: [policies]\n",
            "policies/acme/paused_scaler.py": PAUSED,
            "policies/acme/limits.yaml": SMALL,
            "scaler.yaml": SCALER,
        },
    )
    return folder


def findings(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, list[tuple[str, str]]]:
    code = main(["check", "-o", "json", "--select", "acme/*", *arguments])
    report = json.loads(capsys.readouterr().out)
    return code, sorted((finding["policy"], finding["severity"]) for finding in report["findings"])


BOTH = [("acme/many-replicas", "error"), ("acme/paused-scaler", "error")]


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_check_reports_findings_of_both(jobs: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert findings(capsys, "--jobs", jobs, ".") == (1, BOTH)


# The section of the policy file for the policy, and what check reports.
CONFIGURED = {
    "a mode": ("{mode: warn}", [("acme/many-replicas", "warning")]),
    "a parameter": ("{params: {most: 4}}", []),
}


@pytest.mark.parametrize(("section", "expected"), CONFIGURED.values(), ids=CONFIGURED)
def test_the_policy_file_configures_it(
    section: str, expected: list[tuple[str, str]], project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    head = "apiVersion: gpugate.dev/v1\nkind: PolicyConfig\n"
    write(
        project,
        {"policy.yaml": f"{head}policies: {{acme/paused-scaler: {{mode: off}}, acme/many-replicas: {section}}}\n"},
    )

    assert findings(capsys, "-p", "policy.yaml", "scaler.yaml")[1] == expected


def test_in_a_pull_request_the_documents_of_the_base_decide(
    project: Path, git: Callable[..., None], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "base")
    git("branch", "origin/main")
    monkeypatch.setenv("GITHUB_BASE_REF", "main")
    write(project, {"policies/acme/limits.yaml": SMALL.replace("most: 3", "most: 100")})

    assert findings(capsys, "scaler.yaml") == (1, BOTH)


def example(maximum: int) -> str:
    lines = SCALER.replace("maxReplicaCount: 4", f"maxReplicaCount: {maximum}").splitlines()
    return "    - " + "\n      ".join(lines) + "\n"


EXAMPLES = f"{SMALL}examples:\n  allowed:\n{example(3)}  denied:\n{example(4)}"


def outcomes(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, list[tuple[int, str, str]], str]:
    """Run `gpugate test`; return the exit code, line, name and result of each test, and the messages of failures."""
    code = main(["test", "-o", "json", *arguments])
    report = json.loads(capsys.readouterr().out)
    failures = [failure for test in report["tests"] for failure in (*test["failures"],)] + report["unreadable"]
    results = [(test["line"], test["name"], test["result"]) for test in report["tests"]]
    return code, results, "\n".join("\n".join((failure["message"], *failure["details"])) for failure in failures)


ALLOWED = (19, "acme/many-replicas: allowed example 1")
DENIED = (33, "acme/many-replicas: denied example 1")


def test_the_examples_in_a_document_are_tests(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(project, {"policies/acme/limits.yaml": EXAMPLES})

    assert outcomes(capsys, "policies") == (0, [(*ALLOWED, "passed"), (*DENIED, "passed")], "")


def test_coverage_counts_the_examples_of_documents(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(project, {"policies/acme/limits.yaml": EXAMPLES})

    assert main(["test", "policies", "--coverage=50"]) == 0
    printed = capsys.readouterr().out
    assert "policy coverage 1/2 (50 %)" in printed
    assert "no failing test for acme/paused-scaler" in printed


# The document, the results of its allowed and its denied example, and the message.
WRONG = {
    "an allowed example with a finding": (
        EXAMPLES.replace("most: 3", "most: 2"),
        ("failed", "passed"),
        "acme/many-replicas finds something in an allowed example\nspec.maxReplicaCount: has too many replicas",
    ),
    "a denied example without one": (
        EXAMPLES.replace("most: 3", "most: 4"),
        ("passed", "failed"),
        "acme/many-replicas finds nothing in a denied example\nit finds nothing",
    ),
    "a denied example of another kind": (
        EXAMPLES.replace("kinds: [ScaledObject]", "kinds: [ScaledJob]"),
        ("passed", "failed"),
        "acme/many-replicas finds nothing in a denied example\nit does not apply to this CREATE of ScaledObject",
    ),
    "an example that is not evaluated": (
        EXAMPLES.replace(
            "object.spec.?maxReplicaCount.orValue(100) <= params.most", "namespaceObject.metadata.name == 'a'"
        ),
        ("failed", "failed"),
        "acme/many-replicas was not evaluated",
    ),
    "no object": (
        f"{SMALL}examples: {{allowed: [{{a: 1}}], denied: [[]]}}",
        ("broken", "broken"),
        "not an object for the API server: write one with apiVersion and kind",
    ),
}


@pytest.mark.parametrize(("text", "results", "message"), WRONG.values(), ids=WRONG)
def test_a_wrong_example_fails(
    text: str, results: tuple[str, str], message: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(project, {"policies/acme/limits.yaml": text})

    _, tests, messages = outcomes(capsys, "policies")

    assert tuple(result for _, _, result in tests) == results
    assert message in messages


def test_an_example_may_need_other_objects(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    namespace = "{apiVersion: v1, kind: Namespace, metadata: {name: serving, labels: {small: 'yes'}}}"
    other = "- " + example(4).strip().removeprefix("- ").replace("\n      ", "\n        ")
    text = SMALL.replace(
        "object.spec.?maxReplicaCount.orValue(100) <= params.most",
        "namespaceObject.metadata.?labels.small.orValue('') == ''",
    )
    write(project, {"policies/acme/limits.yaml": f"{text}examples:\n  denied:\n    - - {namespace}\n      {other}\n"})

    assert outcomes(capsys, "policies") == (0, [(19, "acme/many-replicas: denied example 1", "passed")], "")


def test_examples_are_not_rewritten(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = EXAMPLES.replace("most: 3", "most: 4")
    write(project, {"policies/acme/limits.yaml": text})

    assert main(["test", "policies", "--update"]) == 1
    printed = capsys.readouterr().out
    assert "denied example 1 was not updated: correct the example or the policy" in printed
    assert "accept with" not in printed
    assert (project / "policies/acme/limits.yaml").read_text() == text


def test_a_document_that_is_not_loaded_is_no_silent_success(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(folder, {"policies/acme/limits.yaml": EXAMPLES})

    code, results, messages = outcomes(capsys, "policies")

    assert (code, [result for *_, result in results]) == (4, ["broken", "broken"])
    assert "policy acme/many-replicas is not loaded: name the directory of its folder with `policy_paths`" in messages


# Files that mention the group and have no test.
UNTESTED = {
    "no examples": SMALL,
    "a policy file": "apiVersion: gpugate.dev/v1\nkind: PolicyConfig\n",
    "a template": "metadata:\n  labels: {gpugate.dev/x: y}\n{{ if }\n",
}


@pytest.mark.parametrize("text", UNTESTED.values(), ids=UNTESTED)
def test_a_file_without_examples_has_no_test(text: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(folder, {"other/a.yaml": text})

    assert outcomes(capsys, "other") == (3, [], "")


def test_an_invalid_document_has_its_location(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(folder, {"other/a.yaml": SMALL.replace("title:", "titel:")})

    assert main(["test", "other"]) == 4
    printed = capsys.readouterr().out
    assert "titel: unknown key; did you mean `title`?" in printed
    assert "--> other/a.yaml:4:" in printed


def test_explain_prints_parameters_and_the_examples_of_the_document(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(project, {"policies/acme/limits.yaml": EXAMPLES})

    assert main(["explain", "acme/many-replicas"]) == 0

    printed = capsys.readouterr().out
    assert "Origin  policies/acme/limits.yaml" in printed
    assert "most (default: 3)" in printed
    denied, allowed = printed.partition("\nDenied\n")[2].split("\nAllowed\n")
    assert "maxReplicaCount: 4" in denied
    assert "maxReplicaCount: 3" in allowed


def test_check_reports_neither_the_document_nor_its_examples(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(project, {"policies/acme/limits.yaml": EXAMPLES})

    assert findings(capsys, "policies", "scaler.yaml") == (1, BOTH)
