"""A TrainJob and an InferenceService are evaluated with the runtime that they name, where that is among the files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Run = Callable[..., Any]

JOB = """\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata:
  name: tune
  namespace: ml
spec:
  runtimeRef:
    name: torch
  trainer:
    resourcesPerNode:
      limits:
        nvidia.com/gpu: 8
      requests:
        nvidia.com/gpu: 4
"""
RUNTIME = """\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata:
  name: torch
spec:
  template:
    spec:
      replicatedJobs:
        - name: node
          template:
            metadata:
              labels:
                trainer.kubeflow.org/trainjob-ancestor-step: trainer
            spec:
              template:
                spec:
                  containers:
                    - name: node
                      image: registry.example.org/train:1.0
"""
ALSO_WRONG = """\
                      resources:
                        limits:
                          nvidia.com/gpu: 2
                        requests:
                          nvidia.com/gpu: 1
"""
QUANTITY = "pods/invalid-gpu-quantity"
TOLERATION = "pods/missing-gpu-toleration"
ONLY = ("--select", f"{QUANTITY},{TOLERATION}")


@pytest.fixture
def check(gpugate: Run, tmp_path: Path) -> Callable[..., list[tuple[str, str, str, int]]]:
    """Check texts, each a file `1.yaml`, `2.yaml` and so on; return policy, object, file and line of each finding."""

    def checked(*texts: str, jobs: int = 1) -> list[tuple[str, str, str, int]]:
        for number, text in enumerate(texts, 1):
            (tmp_path / f"{number}.yaml").write_text(text)
        report = json.loads(gpugate("check", *ONLY, "-j", str(jobs), "-o", "json", tmp_path).out)
        return sorted(
            (each["policy"], each["object"]["kind"], each["file"].rpartition("/")[2], each["line"])
            for each in report["findings"]
        )

    return checked


@pytest.mark.parametrize("jobs", [1, 2])
def test_what_a_train_job_adds_is_found_at_its_line(check: Callable[..., Any], jobs: int) -> None:
    assert check(JOB, RUNTIME, jobs=jobs) == [
        (QUANTITY, "TrainJob", "1.yaml", 14),
        (TOLERATION, "TrainJob", "1.yaml", 8),
    ]


def test_what_the_runtime_has_is_found_once(check: Callable[..., Any]) -> None:
    job = JOB.partition("  trainer:")[0]
    assert check(job, RUNTIME + ALSO_WRONG) == [
        (QUANTITY, "ClusterTrainingRuntime", "2.yaml", 24),
        (TOLERATION, "ClusterTrainingRuntime", "2.yaml", 16),
    ]


def test_a_toleration_of_the_runtime_counts(check: Callable[..., Any]) -> None:
    runtime = RUNTIME.replace(
        "                  containers:",
        "                  tolerations: [{operator: Exists}]\n                  containers:",
    )
    assert check(JOB, runtime) == [(QUANTITY, "TrainJob", "1.yaml", 14)]


def test_the_own_resources_of_a_train_job_without_its_runtime_are_evaluated(
    gpugate: Run, tmp_path: Path, check: Callable[..., Any]
) -> None:
    assert check(JOB) == [(QUANTITY, "TrainJob", "1.yaml", 14)]
    assert "1 TrainJob gets its Pods from ClusterTrainingRuntime torch" in gpugate("check", tmp_path).out
    check(JOB, RUNTIME)
    assert "TrainJob (trainer.kubeflow.org/v1alpha1)" not in gpugate("check", tmp_path).out


def test_the_runtime_is_named_as_the_place_to_change(gpugate: Run, tmp_path: Path, check: Callable[..., Any]) -> None:
    check(JOB, RUNTIME)
    before = (tmp_path / "1.yaml").read_text()
    said = gpugate("check", "--select", TOLERATION, tmp_path).out
    assert "fix: make this change in ClusterTrainingRuntime torch" in said
    gpugate("check", *ONLY, "--fix", "--unsafe-fixes", tmp_path)
    assert (tmp_path / "1.yaml").read_text() == before


SERVICE = """\
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata:
  name: llm
  namespace: ml
spec:
  predictor:
    model:
      modelFormat:
        name: huggingface
      runtime: vllm
      resources:
        limits:
          nvidia.com/gpu: 8
"""
SERVING = """\
apiVersion: serving.kserve.io/v1alpha1
kind: ServingRuntime
metadata:
  name: vllm
  namespace: ml
spec:
  tolerations:
    - operator: Exists
  containers:
    - name: kserve-container
      image: registry.example.org/vllm:1.0
      resources:
        requests:
          nvidia.com/gpu: 4
"""


def test_an_inference_service_has_what_its_runtime_gives(check: Callable[..., Any]) -> None:
    assert check(SERVICE) == [(TOLERATION, "InferenceService", "1.yaml", 7)]
    assert check(SERVICE, SERVING) == [(QUANTITY, "InferenceService", "1.yaml", 11)]


LLM = """\
apiVersion: serving.kserve.io/v1alpha1
kind: LLMInferenceService
metadata:
  name: llm
  namespace: ml
spec:
  baseRefs:
    - name: gpu
  template:
    containers:
      - name: main
        resources:
          limits:
            nvidia.com/gpu: 8
"""
CONFIG = """\
apiVersion: serving.kserve.io/v1alpha1
kind: LLMInferenceServiceConfig
metadata:
  name: gpu
  namespace: ml
spec:
  template:
    containers:
      - name: main
        resources:
          requests:
            nvidia.com/gpu: 4
"""


def test_an_llm_service_needs_its_configurations(gpugate: Run, tmp_path: Path, check: Callable[..., Any]) -> None:
    assert check(LLM) == []
    assert "1 LLMInferenceService is not evaluated: not all of baseRefs are among" in gpugate("check", tmp_path).out
    assert check(LLM, CONFIG) == [
        (QUANTITY, "LLMInferenceService", "1.yaml", 7),
        (TOLERATION, "LLMInferenceService", "1.yaml", 7),
    ]
    assert "not evaluated: not all" not in gpugate("check", tmp_path).out
