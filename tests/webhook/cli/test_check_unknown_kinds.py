"""Objects of kinds that no policy knows are counted; the policy file adds where their Pod templates are."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Run = Callable[..., Any]

TRAIN = """\
apiVersion: example.com/v1
kind: Train
metadata:
  name: a
spec:
  workers:
    - template:
        spec:
          containers:
            - name: main
              image: registry.example.org/train:1.0
              resources:
                limits:
                  nvidia.com/gpu: 1
"""
POLICY = """\
apiVersion: gpugate.dev/v1
kind: PolicyConfig
pod_templates:
  - apiVersion: example.com/v1
    kind: Train
    path: spec.workers[*].template
"""
TOLERATION = "pods/missing-gpu-toleration"


@pytest.fixture
def train(tmp_path: Path) -> Path:
    file = tmp_path / "train.yaml"
    file.write_text(TRAIN)
    return file


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    file = tmp_path / "policy.yaml"
    file.write_text(POLICY)
    return file


def test_an_unknown_kind_is_named(gpugate: Run, train: Path) -> None:
    ran = gpugate("check", train)

    assert ran.code == 0
    assert "1 object requests GPUs in kinds that no policy knows: Train (example.com/v1) 1" in ran.out + ran.err


def test_an_added_kind_is_evaluated_like_a_known_one(gpugate: Run, train: Path, policy: Path) -> None:
    ran = gpugate("check", "-o", "json", "--policy-file", policy, train)

    document = json.loads(ran.out)
    (finding,) = [each for each in document["findings"] if each["policy"] == TOLERATION]
    assert document["unknown_kinds"] == []
    assert (finding["path"], finding["template_of"]) == ("spec.workers[0].template.spec.tolerations", "Train")
    assert finding["object"]["namespace"] == "default"
    assert finding["at_admission"]


def test_only_the_version_that_the_policy_file_names_is_added(gpugate: Run, train: Path, policy: Path) -> None:
    train.write_text(TRAIN.replace("example.com/v1", "example.com/v2"))

    document = json.loads(gpugate("check", "-o", "json", "--policy-file", policy, train).out)

    assert (document["findings"], [each["apiVersion"] for each in document["unknown_kinds"]]) == (
        [],
        ["example.com/v2"],
    )


APPLICATION = """\
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: a}
spec:
  source:
    chart: vllm
    helm:
"""
GPUS = """\
      values: |
        engine:
          resources:
            limits:
              nvidia.com/gpu: 1
"""


@pytest.mark.parametrize(
    ("helm", "said"),
    [
        (GPUS, "1 Application of Argo CD deploys Helm charts, which are not evaluated; the values of 1 request GPUs"),
        (
            "      valuesObject: {resources: {limits: {nvidia.com/gpu: 2}}}\n",
            "1 Application of Argo CD deploys Helm charts, which are not evaluated; the values of 1 request GPUs",
        ),
        ("      values: '{not: [yaml'\n", "1 Application of Argo CD deploys Helm charts, which are not evaluated\n"),
        ("      valueFiles: [a.yaml]\n", "1 Application of Argo CD deploys Helm charts, which are not evaluated\n"),
    ],
)
def test_applications_with_helm_charts_are_counted(gpugate: Run, train: Path, helm: str, said: str) -> None:
    train.write_text(APPLICATION + helm)

    ran = gpugate("check", train)

    assert said in ran.out + ran.err
    assert "no policy knows" not in ran.out + ran.err


def test_an_application_without_a_chart_is_not_counted(gpugate: Run, train: Path) -> None:
    train.write_text("apiVersion: argoproj.io/v1alpha1\nkind: Application\nspec: {sources: [{path: a}]}\n")

    assert json.loads(gpugate("check", "-o", "json", train).out)["helm_applications"] == {
        "objects": 0,
        "gpu_objects": 0,
    }
