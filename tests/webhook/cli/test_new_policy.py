"""`gpugate new-policy` writes files that pass their own tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpugate.webhook.cli.main import main
from gpugate.webhook.own_policies.scaffold import constant_of, kinds

if TYPE_CHECKING:
    from pathlib import Path

ID = "acme/bad-name"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_in_an_empty_directory_it_writes_policy_examples_and_project_file(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["new-policy", ID, "--kind", "Pod"]) == 0

    assert capsys.readouterr().out.splitlines() == [
        "wrote policies/acme/bad_name.py",
        "wrote policies/acme/examples/bad_name/bad-first.yaml",
        "wrote policies/acme/examples/bad_name/good-first.yaml",
        "wrote .gpugate.yaml",
        "Write the check and its documentation, and make the examples real. Then run:",
        "  gpugate test policies",
        "  gpugate explain acme/bad-name",
        "  gpugate check .",
    ]
    assert "SDK = 1\n" in (folder / "policies/acme/bad_name.py").read_text()


@pytest.mark.parametrize("language", [[], ["--cel"]], ids=["Python", "CEL"])
@pytest.mark.parametrize("kind", sorted({kind.name for kind in kinds().values()}))
def test_its_examples_pass_for_every_kind(
    kind: str, language: list[str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["new-policy", ID, "--kind", kind, *language]) == 0
    code = main(["test", str(folder / "policies")])
    assert (code, "2 passed" in capsys.readouterr().out) == (0, True)


def test_in_cel_it_writes_one_document_that_is_in_force_in_the_project(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["new-policy", ID, "--kind", "Pod", "--cel"]) == 0

    assert capsys.readouterr().out.splitlines() == [
        "wrote policies/acme/bad_name.yaml",
        "wrote .gpugate.yaml",
        "Write the expressions and the documentation, and make the examples real. Then run:",
        "  gpugate test policies",
        "  gpugate explain acme/bad-name",
        "  gpugate check .",
    ]
    metadata = "{name: bad, namespace: a}"
    (folder / "pod.yaml").write_text(f"apiVersion: v1\nkind: Pod\nmetadata: {metadata}\nspec: {{containers: []}}\n")
    assert main(["check", "--select", ID, "."]) == 1
    assert f"error[{ID}]: is called bad" in capsys.readouterr().out


def test_a_project_file_says_where_the_directory_is(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / ".gpugate.yaml").write_text("policy_paths: [platform/rules]\n")

    assert main(["new-policy", ID, "--kind", "NodePool"]) == 0

    assert (folder / "platform/rules/acme/bad_name.py").exists()
    assert "wrote .gpugate.yaml" not in capsys.readouterr().out


def test_a_project_file_is_not_changed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / ".gpugate.yaml").write_text("fail_on: warn\n")

    assert main(["new-policy", ID, "--kind", "Pod"]) == 0

    assert "Add `policy_paths: [policies]` to .gpugate.yaml." in capsys.readouterr().out
    assert (folder / ".gpugate.yaml").read_text() == "fail_on: warn\n"


# Arguments, and the beginning of the error.
REFUSED = {
    "a family of the library": (["pods/x", "--kind", "Pod"], "error: pods/x: `pods` is a family of the library"),
    "no organisation": (["x", "--kind", "Pod"], "error: x: invalid id: write ORGANISATION/NAME-OF-THE-BAD-PATTERN"),
    "an id that leads elsewhere": (["../x", "--kind", "Pod"], "error: ../x: invalid id"),
    "an id that is not one, in CEL": (["x", "--kind", "Pod", "--cel"], "error: x: invalid id: write ORGANISATION"),
    "a misspelt kind": ([ID, "--kind", "Nodepool"], "error: --kind Nodepool: unknown kind; did you mean NodePool?"),
}


@pytest.mark.parametrize(("arguments", "error"), REFUSED.values(), ids=REFUSED)
def test_it_refuses(arguments: list[str], error: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new-policy", *arguments]) == 2
    assert capsys.readouterr().err.startswith(error)
    assert list(folder.iterdir()) == []


def test_it_overwrites_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["new-policy", ID, "--kind", "Pod"])
    (folder / "policies/acme/bad_name.py").unlink()

    assert main(["new-policy", ID, "--kind", "Pod"]) == 2
    assert "bad-first.yaml: already exists" in capsys.readouterr().err
    assert not (folder / "policies/acme/bad_name.py").exists()


def test_of_several_kinds_of_one_name_the_current_one_is_meant() -> None:
    assert [constant_of(kind) for kind in ("NodePool", "ResourceClaim", "Pod")] == [
        "NODE_POOL",
        "RESOURCE_CLAIM",
        "POD",
    ]
