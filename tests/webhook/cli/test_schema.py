"""`gpugate schema list` and `gpugate schema add`, and what `gpugate check` makes of what was added."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from gpugate.webhook.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path

DEFINITION = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: trainings.example.com
spec:
  group: example.com
  names: {kind: Training, plural: trainings}
  scope: Namespaced
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              required: [gpus]
              properties:
                gpus: {type: integer, minimum: 1}
                image:
                  type: string
                  x-kubernetes-validations:
                    - {rule: "isURL(self)", message: must be a URL}
"""
TRAINING = "apiVersion: example.com/v1\nkind: Training\nmetadata:\n  name: a\nspec:\n  gpu: 1\n"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "crd.yaml").write_text(DEFINITION, encoding="utf-8")
    (tmp_path / "training.yaml").write_text(TRAINING, encoding="utf-8")


def test_the_kinds_that_come_along_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", "list"]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 23
    assert any(line.split()[:3] == ["karpenter.sh", "NodePool", "v1,v1beta1"] and "1.14" in line for line in lines)
    assert any(line.split()[:3] == ["autoscaling", "HorizontalPodAutoscaler", "v1,v2"] for line in lines)


def test_programs_get_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", "list", "-o", "json"]) == 0

    rows = {row["kind"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["ScaledObject"]["sources"][-1] == "github.com/kedacore/keda/v2@v2.21.0"
    assert rows["ResourceClaim"]["versions"] == ["v1", "v1alpha3", "v1beta1", "v1beta2"]


def test_what_is_added_is_used_listed_and_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "training.yaml", "-o", "concise"]) == 0
    assert main(["schema", "add", "crd.yaml"]) == 0
    assert capsys.readouterr().out.splitlines()[-2:] == [
        "Training of example.com (v1): wrote .gpugate/schemas/example.com.Training.json",
        "  not checked: spec.image: isURL(self): unknown function `isURL`",
    ]

    assert main(["check", "training.yaml", "-o", "concise", "-q"]) == 1
    said = 'error[schema] unknown field "spec.gpu": kubectl rejects it, and other clients drop it silently'
    assert capsys.readouterr().out.splitlines() == [f"training.yaml:6:8: {said} (Training/a)"]
    assert main(["schema", "list"]) == 0
    assert capsys.readouterr().out.splitlines()[0].split() == (
        ["example.com", "Training", "v1", "crd.yaml", "(1", "rules", "not", "checked)"]
    )


def test_another_folder_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", "add", "crd.yaml", "--schemas", "ours"]) == 0
    assert main(["check", "training.yaml", "-q"]) == 0
    assert main(["check", "training.yaml", "-q", "--schemas", "ours"]) == 1
    assert main(["check", "training.yaml", "-q", "--schemas", "ours", "--no-schemas"]) == 0
    assert main(["check", "training.yaml", "-q", "--schemas", "nowhere"]) == 2
    assert capsys.readouterr().err == (
        "error: --schemas nowhere: no such directory; create it with `gpugate schema add`\n"
    )


BAD: dict[str, tuple[str, int, str]] = {
    "no definition": (TRAINING, 3, "error: the input contains no CustomResourceDefinition"),
    "a definition of another time": (DEFINITION.replace("io/v1\n", "io/v1beta1\n", 1), 4, "bad.yaml:1: apiVersion is"),
    "a second of one kind": (f"{DEFINITION}---\n{DEFINITION}", 4, "is also defined in bad.yaml:1; leave one out"),
    "no YAML": ("a: [", 4, "bad.yaml:"),
    "nothing": ("", 3, "contains no CustomResourceDefinition"),
    "a name that leads elsewhere": (DEFINITION.replace("group: example.com", "group: ../../x"), 4, "no DNS name"),
}


@pytest.mark.parametrize(("text", "code", "words"), BAD.values(), ids=BAD)
def test_bad_input_is_named(
    text: str, code: int, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad.yaml").write_text(text, encoding="utf-8")

    assert main(["schema", "add", "bad.yaml"]) == code
    assert words in capsys.readouterr().err


def test_a_bad_file_leaves_the_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", "add", "missing.yaml", "crd.yaml"]) == 4

    assert (tmp_path / ".gpugate/schemas/example.com.Training.json").is_file()
    assert "missing.yaml:0: no such file" in capsys.readouterr().err


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()

    assert main(["schema", "add", "crd.yaml", "--schemas", "file/inside"]) == 4
    assert "cannot be written" in capsys.readouterr().err


def test_a_table_that_is_broken_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["schema", "add", "crd.yaml"])
    (tmp_path / ".gpugate/schemas/example.com.Training.json").write_text("{", encoding="utf-8")

    assert main(["check", "training.yaml"]) == 2
    assert "make it again with `gpugate schema add`" in capsys.readouterr().err


@pytest.mark.parametrize("releases", [[], [{"minor": "", "source": "crd.yaml", "served": {}}]], ids=["none", "empty"])
@pytest.mark.parametrize("command", [["schema", "list"], ["check", "training.yaml"]], ids=["list", "check"])
def test_a_table_of_no_release_is_named(
    releases: list[Any], command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["schema", "add", "crd.yaml"])
    file = tmp_path / ".gpugate/schemas/example.com.Training.json"
    file.write_text(json.dumps({**json.loads(file.read_bytes()), "releases": releases}), encoding="utf-8")

    assert main(command) == 2
    assert "it is of no release" in capsys.readouterr().err
