"""What a policy reads of a workload whose Pods have another shape stands where the path says."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from gpugate.policies.sdk.field import Field, render
from gpugate.policies.sdk.objects import pod_templates

SERVICE = """
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata:
  labels: {team: search}
spec:
  predictor:
    labels: {cost-center: cc-1}
    nodeSelector: {node-type: gpu-inference}
    model:
      modelFormat: {name: huggingface}
      resources: {limits: {nvidia.com/gpu: "1"}}
    containers:
      - name: proxy
    workerSpec:
      tolerations: [{key: nvidia.com/gpu}]
      containers: [{name: worker}]
  transformer:
    containers: [{name: tokens}]
"""
WORKFLOW = """
apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata:
  labels: {team: of-the-workflow-only}
spec:
  podMetadata: {labels: {team: search, cost-center: cc-1}}
  tolerations: [{key: nvidia.com/gpu}]
  nodeSelector: {node-type: gpu}
  volumes: [{name: data}]
  templates:
    - name: all
      dag: {}
    - name: train
      metadata: {labels: {team: research}}
      nodeSelector: {node-type: gpu-training}
      volumes: [{name: checkpoints}]
      initContainers: [{name: fetch}]
      container: {image: trainer}
      sidecars: [{name: logs}]
    - name: report
      script: {image: python}
    - name: both
      containerSet: {containers: [{name: a}, {name: b}]}
"""


def templates(manifest: str) -> list[Field]:
    obj: dict[str, Any] = yaml.safe_load(manifest)
    group = obj["apiVersion"].partition("/")[0]
    return list(pod_templates(group, obj["kind"], Field(obj)))


def where(*fields: Field) -> list[str]:
    return [render(field.path) for field in fields]


class TestKServe:
    predictor, worker, transformer = templates(SERVICE)

    def test_every_component_is_a_template(self) -> None:
        found = where(self.predictor, self.worker, self.transformer)
        assert found == ["spec.predictor", "spec.predictor.workerSpec", "spec.transformer"]

    def test_the_model_server_is_a_container_beside_the_others(self) -> None:
        containers = self.predictor["spec", "containers"]
        assert where(*containers) == ["spec.predictor.containers[0]", "spec.predictor.model"]
        assert where(containers) == ["spec.predictor.containers"]
        assert where(containers[1, "resources", "limits"]) == ["spec.predictor.model.resources.limits"]
        assert where(containers[2]) == ["spec.predictor.containers[2]"]

    def test_the_rest_of_the_pod_spec_stands_in_the_component(self) -> None:
        assert where(self.predictor["spec", "nodeSelector", "node-type"]) == ["spec.predictor.nodeSelector.node-type"]
        assert where(self.worker["spec"]["tolerations"][0]) == ["spec.predictor.workerSpec.tolerations[0]"]
        assert where(self.transformer["spec", "tolerations"]) == ["spec.transformer.tolerations"]

    def test_its_pods_have_the_labels_of_both(self) -> None:
        labels = self.predictor["metadata", "labels"]
        assert labels.labels == {"team": "search", "cost-center": "cc-1"}
        assert where(labels["team"], labels["cost-center"], labels["owner"]) == [
            "metadata.labels.team",
            "spec.predictor.labels.cost-center",
            "spec.predictor.labels.owner",
        ]

    def test_a_worker_has_the_labels_of_its_predictor_and_a_transformer_its_own(self) -> None:
        assert "cost-center" in self.worker["metadata", "labels"].mapping
        assert where(self.transformer["metadata", "annotations", "a"]) == ["spec.transformer.annotations.a"]
        assert self.transformer["metadata", "labels"].labels == {"team": "search"}


class TestArgo:
    train, report, both = templates(WORKFLOW)

    def test_only_what_runs_containers_is_a_template(self) -> None:
        found = where(self.train, self.report, self.both)
        assert found == ["spec.templates[1]", "spec.templates[2]", "spec.templates[3]"]

    def test_containers_stand_in_several_places(self) -> None:
        assert where(*self.train["spec", "containers"], *self.train["spec", "initContainers"]) == [
            "spec.templates[1].container",
            "spec.templates[1].sidecars[0]",
            "spec.templates[1].initContainers[0]",
        ]
        assert where(*self.report["spec", "containers"]) == ["spec.templates[2].script"]
        assert where(*self.both["spec", "containers"])[1:] == ["spec.templates[3].containerSet.containers[1]"]

    def test_what_the_template_does_not_say_the_workflow_says(self) -> None:
        assert where(self.train["spec", "nodeSelector"], self.report["spec", "nodeSelector"]) == [
            "spec.templates[1].nodeSelector",
            "spec.nodeSelector",
        ]
        assert where(self.train["spec", "tolerations", 0, "key"]) == ["spec.tolerations[0].key"]
        assert where(*self.train["spec", "volumes"]) == ["spec.templates[1].volumes[0]", "spec.volumes[0]"]

    def test_what_nobody_says_belongs_in_the_template(self) -> None:
        assert where(self.report["spec", "affinity"]) == ["spec.templates[2].affinity"]

    def test_labels_of_pods_are_not_those_of_the_workflow(self) -> None:
        labels = self.train["metadata", "labels"]
        assert labels.labels == {"team": "research", "cost-center": "cc-1"}
        assert sorted(where(*labels.members())) == [
            "spec.podMetadata.labels.cost-center",
            "spec.templates[1].metadata.labels.team",
        ]


@pytest.mark.parametrize(
    ("kind", "spec", "path"),
    [
        ("WorkflowTemplate", {"templates": [{"container": {}}, {"container": {"image": "a"}}]}, "spec.templates[1]"),
        (
            "CronWorkflow",
            {"workflowSpec": {"templates": [{"script": {"image": "a"}}]}},
            "spec.workflowSpec.templates[0]",
        ),
    ],
)
def test_other_kinds_of_workflows(kind: str, spec: object, path: str) -> None:
    assert where(*pod_templates("argoproj.io", kind, Field({"spec": spec}))) == [path]  # type: ignore[dict-item] # plain JSON
