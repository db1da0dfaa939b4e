from __future__ import annotations

import io
import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Run = Callable[..., Any]

POD = """\
apiVersion: v1
kind: Pod
metadata:
  name: trainer
spec:
  containers:
    - name: main
      image: registry.example.org/trainer:1.0
      resources:
        limits:
          nvidia.com/gpu: {}
"""


def found(out: str) -> set[tuple[str, str]]:
    return {(f["file"].rpartition("/")[2], f["policy"]) for f in json.loads(out)["findings"]}


def test_the_manifests_of_a_directory_are_judged_together(gpugate: Run, manifests: Path) -> None:
    ran = gpugate("check", "-o", "json", manifests)

    pool = "nodepool-gpu-inference-without-node-class-group.yaml"
    assert ran.code == 1
    assert found(ran.out) >= {
        (pool, "nodepools/incomplete-node-class-ref"),
        ("ec2nodeclass-gpu-optimized.yaml", "nodeclasses/unpinned-ami"),
        ("ec2nodeclass-gpu-training.yaml", "nodeclasses/unpinned-ami"),
        ("scaledobject-model-a.yaml", "scaling/hpa-conflict"),
    }


def test_a_pool_without_gpus_is_left_alone(gpugate: Run, manifests: Path) -> None:
    ran = gpugate("check", "-o", "json", manifests / "nodepool-multi-arch.yaml")

    assert (ran.code, found(ran.out)) == (0, set())


def test_a_file_alone_proves_no_conflict(gpugate: Run, manifests: Path) -> None:
    ran = gpugate("check", "-o", "json", manifests / "hpa-model-a.yaml")

    assert ("hpa-model-a.yaml", "scaling/hpa-conflict") not in found(ran.out)


def test_a_quantity_with_a_unit_is_one_error(gpugate: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(POD.format('"8 GPUs"').encode())))

    ran = gpugate("check", "-", "--quiet")

    assert ran.code == 1
    assert ran.out.splitlines() == [
        (
            'error[malformed]: "8 GPUs" is not a quantity: " GPUs" after the number is not a known suffix; '
            "write 8 alone, or one of m, k, M, G, T, Ki, Mi, Gi, Ti"
        ),
        "  --> <stdin>:11:27   Pod/default/trainer",
        "   |",
        "10 |         limits:",
        '11 |           nvidia.com/gpu: "8 GPUs"',
        "   |                           ^^^^^^^^",
        "   |",
        '   = field: spec.containers[0].resources.limits["nvidia.com/gpu"]',
        "   = at admission: would be DENIED (the API server refuses it too)",
    ]


def test_a_list_where_an_object_belongs_is_an_error_and_the_rest_is_judged(gpugate: Run, tmp_path: Path) -> None:
    file = tmp_path / "pods.yaml"
    file.write_text(f"{POD.format(1)}---\n{POD.format(1).replace('trainer', 'second').replace('main', '3')}")

    ran = gpugate("check", "-o", "json", file)

    errors = [
        (f["object"]["name"], f["path"], f["message"])
        for f in json.loads(ran.out)["findings"]
        if f["severity"] == "error"
    ]
    assert errors == [("second", "spec.containers[0].name", "must be a string, not a number")]
    assert {f["object"]["name"] for f in json.loads(ran.out)["findings"]} == {"trainer", "second"}


EXIT_CODES: dict[str, tuple[list[str], int]] = {
    "fine": (["nodepool-multi-arch.yaml"], 0),
    "denied": (["nodepool-gpu-training-protected.yaml"], 1),
    "missing": (["nowhere.yaml"], 4),
    "denied and missing": (["nowhere.yaml", "nodepool-gpu-training-protected.yaml"], 1),
    "warnings": (["ec2nodeclass-gpu-optimized.yaml"], 0),
    "notes on names that are not configured": (["ec2nodeclass-gpu-optimized.yaml", "--select", "*cost-tags"], 0),
    "such notes never count": (["ec2nodeclass-gpu-optimized.yaml", "--select", "*cost-tags", "--fail-on", "warn"], 0),
    "warnings that count": (["ec2nodeclass-gpu-optimized.yaml", "--fail-on", "warn"], 1),
    "denied, which never fails": (["nodepool-gpu-training-protected.yaml", "--fail-on", "never"], 0),
    "missing, which is no decision": (["nowhere.yaml", "--fail-on", "never"], 4),
    "-f": (["-f", "nodepool-gpu-training-protected.yaml"], 1),
}


@pytest.mark.parametrize(("arguments", "code"), EXIT_CODES.values(), ids=EXIT_CODES)
def test_exit_codes(
    arguments: list[str], code: int, gpugate: Run, manifests: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(manifests)

    assert gpugate("check", *arguments).code == code


def test_an_empty_directory_is_nothing_to_check(gpugate: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    ran = gpugate("check")

    assert (ran.code, ran.out.splitlines()[-1]) == (3, "Nothing was checked: exit code 3")


def test_the_same_findings_in_two_formats(gpugate: Run, manifests: Path, tmp_path: Path) -> None:
    file = tmp_path / "out.json"

    ran = gpugate("check", manifests / "nodepool-gpu-training-protected.yaml", "-o", "text", "-o", f"json={file}")

    assert "error[nodepools/missing-gpu-limit]: " in ran.out
    assert ("nodepool-gpu-training-protected.yaml", "nodepools/missing-gpu-limit") in found(file.read_text())
    assert [path.name for path in tmp_path.iterdir()] == ["out.json"]


def test_an_output_that_cannot_be_written_is_wrong_usage(gpugate: Run, manifests: Path, tmp_path: Path) -> None:
    ran = gpugate("check", manifests / "nodepool-multi-arch.yaml", "-o", f"json={tmp_path}/none/out.json")

    assert (ran.code, ran.err) == (2, f"error: {tmp_path}/none/out.json: no such file or directory\n")


@pytest.mark.parametrize("count", ["-1", "0", "two", "1.5"])
def test_a_number_of_processes_that_is_none_is_wrong_usage(count: str, gpugate: Run) -> None:
    ran = gpugate("check", f"--jobs={count}")

    assert (ran.code, ran.out) == (2, "")
    assert ran.err == f"error: -j/--jobs: invalid number {count!r}: write 1 or more\n"


def test_the_policy_file_decides(gpugate: Run, manifests: Path, tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text("apiVersion: gpugate.dev/v1\nkind: PolicyConfig\nmode: warn\n")

    ran = gpugate("check", "-p", file, "-o", "json", manifests / "nodepool-gpu-training-protected.yaml")

    assert (ran.code, {f["mode"] for f in json.loads(ran.out)["findings"]}) == (0, {"warn"})


def test_the_namespace_of_objects_without_one(gpugate: Run, manifests: Path) -> None:
    ran = gpugate("check", "-n", "ml-training", "-o", "json", manifests / "pod-training-job.yaml")

    assert {f["object"]["namespace"] for f in json.loads(ran.out)["findings"]} == {"ml-training"}


def test_colour_is_forced(gpugate: Run, manifests: Path) -> None:
    assert gpugate("check", "--color", "always", manifests / "nodepool-gpu-training-protected.yaml").out.startswith(
        "\x1b[1;3"
    )
