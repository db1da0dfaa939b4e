from __future__ import annotations

from typing import Any

import pytest

from gpugate.policies.sdk.field import Field, render
from gpugate.policies.sdk.pod_templates import TEMPLATES, pod_templates

TEMPLATE: dict[str, Any] = {"spec": {"containers": []}}


@pytest.mark.parametrize(
    ("group", "kind", "spec", "paths"),
    [
        ("apps", "Deployment", {"template": TEMPLATE}, ["spec.template"]),
        ("batch", "CronJob", {"jobTemplate": {"spec": {"template": TEMPLATE}}}, ["spec.jobTemplate.spec.template"]),
        ("keda.sh", "ScaledJob", {"jobTargetRef": {"template": TEMPLATE}}, ["spec.jobTargetRef.template"]),
        (
            "kubeflow.org",
            "PyTorchJob",
            {"pytorchReplicaSpecs": {"Master": {"template": TEMPLATE}, "Worker": {"template": TEMPLATE}}},
            ["spec.pytorchReplicaSpecs.Master.template", "spec.pytorchReplicaSpecs.Worker.template"],
        ),
        (
            "jobset.x-k8s.io",
            "JobSet",
            {"replicatedJobs": [{"template": {"spec": {"template": TEMPLATE}}}]},
            ["spec.replicatedJobs[0].template.spec.template"],
        ),
        (
            "leaderworkerset.x-k8s.io",
            "LeaderWorkerSet",
            {"leaderWorkerTemplate": {"workerTemplate": TEMPLATE}},
            ["spec.leaderWorkerTemplate.workerTemplate"],
        ),
        (
            "ray.io",
            "RayJob",
            {"rayClusterSpec": {"headGroupSpec": {"template": TEMPLATE}, "workerGroupSpecs": [{"template": TEMPLATE}]}},
            ["spec.rayClusterSpec.headGroupSpec.template", "spec.rayClusterSpec.workerGroupSpecs[0].template"],
        ),
        ("batch.volcano.sh", "Job", {"tasks": [{"template": TEMPLATE}]}, ["spec.tasks[0].template"]),
        (
            "ray.io",
            "RayCronJob",
            {"jobTemplate": {"rayClusterSpec": {"headGroupSpec": {"template": TEMPLATE}}}},
            ["spec.jobTemplate.rayClusterSpec.headGroupSpec.template"],
        ),
        (
            "sagemaker.amazonaws.com",
            "HyperPodPyTorchJob",
            {"replicaSpecs": [{"template": TEMPLATE}]},
            ["spec.replicaSpecs[0].template"],
        ),
        (
            "trainer.kubeflow.org",
            "ClusterTrainingRuntime",
            {"template": {"spec": {"replicatedJobs": [{"template": {"spec": {"template": TEMPLATE}}}]}}},
            ["spec.template.spec.replicatedJobs[0].template.spec.template"],
        ),
        ("", "ConfigMap", {"template": TEMPLATE}, []),
        ("apps", "Deployment", {"template": "a text"}, []),
        ("batch.volcano.sh", "Job", {"tasks": "a text"}, []),
        ("apps", "Deployment", None, []),
    ],
)
def test_it_finds_every_template(group: str, kind: str, spec: object, paths: list[str]) -> None:
    root = Field({"spec": spec})
    assert [render(template.path) for template in pod_templates(group, kind, root)] == paths


def test_every_workload_that_makes_pods_is_known() -> None:
    assert {kind for _, kind in TEMPLATES} == {
        *("CronJob", "DaemonSet", "Deployment", "Job", "ReplicaSet", "StatefulSet"),
        *("JAXJob", "MPIJob", "Notebook", "PaddleJob", "PyTorchJob", "TFJob", "XGBoostJob"),
        *("JobSet", "LeaderWorkerSet", "RayCluster", "RayJob", "RayService", "ScaledJob"),
        *("AppWrapper", "ClusterTrainingRuntime", "HyperPodPyTorchJob", "RayCronJob", "TrainingRuntime"),
        *(
            "DynamoGraphDeployment",
            "FlinkDeployment",
            "NIMService",
            "ScheduledSparkApplication",
            "SparkApplication",
            "VLLMRuntime",
        ),
        *(
            "ClusterWorkflowTemplate",
            "CronWorkflow",
            "InferenceService",
            "LLMInferenceService",
            "Workflow",
            "WorkflowTemplate",
        ),
    }


@pytest.mark.parametrize(
    ("spec", "path", "found"),
    [
        ({"workers": [{"template": TEMPLATE}, {"template": TEMPLATE}]}, "spec.workers.*.template", 2),
        ({"roles": {"a": {"pod": TEMPLATE}}}, "spec.roles.*.pod", 1),
        ({"pod": {"containers": []}}, "spec.pod", 1),
        ({"pod": {"image": "a"}}, "spec.pod", 0),
        ({"pod": [TEMPLATE]}, "spec.pod", 0),
        ({"pod": TEMPLATE}, "spec.other", 0),
    ],
)
def test_a_policy_file_adds_paths(spec: object, path: str, found: int) -> None:
    steps = tuple(path.split("."))
    assert len(list(pod_templates("example.com", "Train", Field({"spec": spec}), [steps]))) == found


def test_a_path_that_is_known_is_evaluated_once() -> None:
    found = pod_templates("apps", "Deployment", Field({"spec": {"template": TEMPLATE}}), [("spec", "template")])
    assert len(list(found)) == 1


def test_a_pod_of_a_bare_spec_has_the_labels_of_the_object() -> None:
    root = Field({"metadata": {"labels": {"team": "ml"}}, "spec": {"pod": {"containers": [{"name": "a"}]}}})

    (template,) = pod_templates("example.com", "Train", root, [("spec", "pod")])

    assert template["metadata", "labels"].value == {"team": "ml"}
    assert render(template["spec", "containers", 0].path) == "spec.pod.containers[0]"
