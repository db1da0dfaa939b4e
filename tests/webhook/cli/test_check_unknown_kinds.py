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


RELEASE = """\
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: a, namespace: ml}
spec:
  chart: {spec: {chart: vllm}}
  values: {engine: {resources: {limits: {nvidia.com/gpu: 1}}}}
"""
CHART = """\
apiVersion: helm.cattle.io/v1
kind: HelmChart
metadata: {name: a, namespace: kube-system}
spec:
  chart: vllm
"""
K3S_GPUS = """\
  valuesContent: |
    resources:
      limits:
        nvidia.com/gpu: 1
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (RELEASE, "1 HelmRelease of Flux deploys Helm charts, which are not evaluated; the values of 1 request GPUs"),
        (
            RELEASE.replace("chart: {spec: {chart: vllm}}", "chartRef: {kind: OCIRepository, name: vllm}"),
            "1 HelmRelease of Flux deploys Helm charts, which are not evaluated; the values of 1 request GPUs",
        ),
        (CHART, "1 HelmChart of K3s deploys Helm charts, which are not evaluated\n"),
        (CHART + K3S_GPUS, "1 HelmChart of K3s deploys Helm charts, which are not evaluated; the values of 1 request"),
        (
            f"{RELEASE}---\n{RELEASE}---\n{APPLICATION}",
            "1 Application of Argo CD and 2 HelmReleases of Flux deploy Helm charts, which are not evaluated; the values of 2",
        ),
    ],
)
def test_objects_that_install_helm_charts_are_counted(gpugate: Run, train: Path, text: str, said: str) -> None:
    train.write_text(text)

    ran = gpugate("check", train)

    assert said in ran.out + ran.err
    assert "no policy knows" not in ran.out + ran.err


def test_json_counts_them_by_kind(gpugate: Run, train: Path) -> None:
    train.write_text(f"{RELEASE}---\n{CHART}")

    assert json.loads(gpugate("check", "-o", "json", train).out)["helm_applications"] == {
        "objects": 2,
        "gpu_objects": 1,
        "kinds": {"HelmChart of K3s": 1, "HelmRelease of Flux": 1},
    }


def test_an_application_without_a_chart_is_not_counted(gpugate: Run, train: Path) -> None:
    train.write_text("apiVersion: argoproj.io/v1alpha1\nkind: Application\nspec: {sources: [{path: a}]}\n")

    assert json.loads(gpugate("check", "-o", "json", train).out)["helm_applications"] == {
        "objects": 0,
        "gpu_objects": 0,
        "kinds": {},
    }


TRAIN_JOB = """\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: tune, namespace: ml}
spec:
  runtimeRef: {name: torch, kind: %s}
  trainer:
    resourcesPerNode:
      limits: {nvidia.com/gpu: 8}
"""
RUNTIME = """\
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainingRuntime
metadata: {name: torch, namespace: %s}
spec: {mlPolicy: {numNodes: 1}}
"""


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (TRAIN_JOB % "ClusterTrainingRuntime", "from ClusterTrainingRuntime torch, which is not among the files"),
        (TRAIN_JOB % "", "from ClusterTrainingRuntime torch, which is not among the files"),
        (TRAIN_JOB % "TrainingRuntime", "from TrainingRuntime ml/torch, which is not among the files"),
        (
            TRAIN_JOB % "TrainingRuntime" + RUNTIME % "other",
            "from TrainingRuntime ml/torch, which is not among the files",
        ),
        (
            TRAIN_JOB % "TrainingRuntime" + RUNTIME % "ml",
            "from TrainingRuntime ml/torch, which is evaluated without them",
        ),
    ],
)
def test_the_runtime_of_a_train_job_is_named(gpugate: Run, tmp_path: Path, text: str, line: str) -> None:
    (tmp_path / "job.yaml").write_text(text)
    ran = gpugate("check", tmp_path)
    said = ran.out + ran.err

    is_known = "without them" in line
    alone = "" if is_known else "; only its own resources were evaluated"
    assert f"1 TrainJob gets its Pods {line}{alone}" in said
    assert ("TrainJob (trainer.kubeflow.org/v1alpha1) 1" in said) is is_known
    assert "pod_templates" not in said


def test_resources_of_a_train_job_without_its_runtime_are_evaluated(gpugate: Run, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(TRAIN_JOB.replace("limits", "requests") % "")
    said = gpugate("check", "--output", "concise", tmp_path).out

    assert "job.yaml:8:34: error[pods/invalid-gpu-quantity] requests nvidia.com/gpu without a limit" in said


def test_a_train_job_without_a_runtime_is_counted_only(gpugate: Run, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(TRAIN_JOB.replace("name: torch, ", "") % "TrainingRuntime")
    ran = gpugate("check", tmp_path)

    assert "TrainJob (trainer.kubeflow.org/v1alpha1) 1" in ran.out + ran.err
    assert "gets its Pods" not in ran.out + ran.err
