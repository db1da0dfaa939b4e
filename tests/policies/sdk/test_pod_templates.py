from __future__ import annotations

from typing import Any

import pytest

from gpugate.policies.sdk.field import Field, render
from gpugate.policies.sdk.pod_templates import TEMPLATES, pod_templates
from gpugate.policies.sdk.template_views import shared

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


# `[0]` stands for every element of a list, `.any` for every member of an object.
LOCATIONS = {
    "apps.nvidia.com NIMService": ["spec"],
    "apps DaemonSet": ["spec.template"],
    "apps Deployment": ["spec.template"],
    "apps ReplicaSet": ["spec.template"],
    "apps StatefulSet": ["spec.template"],
    "argoproj.io ClusterWorkflowTemplate": ["spec.templates[0]"],
    "argoproj.io CronWorkflow": ["spec.workflowSpec.templates[0]"],
    "argoproj.io Workflow": ["spec.templates[0]"],
    "argoproj.io WorkflowTemplate": ["spec.templates[0]"],
    "batch.volcano.sh Job": ["spec.tasks[0].template"],
    "batch CronJob": ["spec.jobTemplate.spec.template"],
    "batch Job": ["spec.template"],
    "flink.apache.org FlinkDeployment": ["spec.jobManager", "spec.taskManager"],
    "jobset.x-k8s.io JobSet": ["spec.replicatedJobs[0].template.spec.template"],
    "keda.sh ScaledJob": ["spec.jobTargetRef.template"],
    "kubeflow.org JAXJob": ["spec.jaxReplicaSpecs.any.template"],
    "kubeflow.org MPIJob": ["spec.mpiReplicaSpecs.any.template"],
    "kubeflow.org Notebook": ["spec.template"],
    "kubeflow.org PaddleJob": ["spec.paddleReplicaSpecs.any.template"],
    "kubeflow.org PyTorchJob": ["spec.pytorchReplicaSpecs.any.template"],
    "kubeflow.org TFJob": ["spec.tfReplicaSpecs.any.template"],
    "kubeflow.org XGBoostJob": ["spec.xgbReplicaSpecs.any.template"],
    "leaderworkerset.x-k8s.io LeaderWorkerSet": [
        "spec.leaderWorkerTemplate.leaderTemplate",
        "spec.leaderWorkerTemplate.workerTemplate",
    ],
    "nvidia.com DynamoGraphDeployment": ["spec.services.any", "spec.components[0]"],
    "production-stack.vllm.ai VLLMRuntime": ["spec.deploymentConfig"],
    "ray.io RayCluster": ["spec.headGroupSpec.template", "spec.workerGroupSpecs[0].template"],
    "ray.io RayCronJob": [
        "spec.jobTemplate.rayClusterSpec.headGroupSpec.template",
        "spec.jobTemplate.rayClusterSpec.workerGroupSpecs[0].template",
    ],
    "ray.io RayJob": [
        "spec.rayClusterSpec.headGroupSpec.template",
        "spec.rayClusterSpec.workerGroupSpecs[0].template",
    ],
    "ray.io RayService": [
        "spec.rayClusterConfig.headGroupSpec.template",
        "spec.rayClusterConfig.workerGroupSpecs[0].template",
    ],
    "sagemaker.amazonaws.com HyperPodPyTorchJob": ["spec.replicaSpecs[0].template"],
    "serving.kserve.io InferenceService": [
        "spec.predictor",
        "spec.predictor.workerSpec",
        "spec.transformer",
        "spec.explainer",
    ],
    "serving.kserve.io LLMInferenceService": [
        "spec.template",
        "spec.worker",
        "spec.prefill.template",
        "spec.prefill.worker",
    ],
    "sparkoperator.k8s.io ScheduledSparkApplication": ["spec.template.driver", "spec.template.executor"],
    "sparkoperator.k8s.io SparkApplication": ["spec.driver", "spec.executor"],
    "trainer.kubeflow.org ClusterTrainingRuntime": ["spec.template.spec.replicatedJobs[0].template.spec.template"],
    "trainer.kubeflow.org TrainingRuntime": ["spec.template.spec.replicatedJobs[0].template.spec.template"],
    "workload.codeflare.dev AppWrapper": ["spec.components[0].template"],
}
# Read as a Pod template, as a Pod spec, and as each of the shapes that operators have.
ANYTHING: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"labels": {"team": "ml"}},
    "spec": {"containers": [{"name": "a"}]},
    "containers": [{"name": "a"}],
    "container": {"name": "a"},
    "podTemplate": {"spec": {"containers": [{"name": "a"}]}},
    "extraPodSpec": {"mainContainer": {"name": "a"}},
}


def placed(path: str, value: Any) -> dict[str, Any]:
    """Return an object with a value at a path."""
    for step in reversed(path.replace("[0]", ".[0]").split(".")):
        value = [value] if step == "[0]" else {step: value}
    return value  # type: ignore[no-any-return] # the first step is a key


@pytest.mark.parametrize(("kind", "path"), [(kind, path) for kind, paths in LOCATIONS.items() for path in paths])
def test_a_template_is_found_at_each_location(kind: str, path: str) -> None:
    root = Field(placed(path, ANYTHING))

    # A component of KServe holds another one.
    *_, template = pod_templates(*kind.split(), root)

    containers = list(template["spec", "containers"])
    assert containers
    assert all(render(each.path).startswith(path) for each in containers)


def test_every_location_is_in_the_table() -> None:
    known = {
        f"{group} {kind}": [".".join(path).replace(".*", "[*]") for path in paths]
        for (group, kind), paths in TEMPLATES.items()
    }
    expected = {
        kind: [path.replace("[0]", "[*]").replace(".any", "[*]") for path in paths] for kind, paths in LOCATIONS.items()
    }
    assert known == expected


ENTRIES = {f"k{number}": "a" for number in range(7)}
VOLUMES = [{"name": str(number)} for number in range(5)]
RUNS: dict[str, Any] = {"container": {"name": "a"}}


@pytest.mark.parametrize(
    ("kind", "spec", "expected"),
    [
        pytest.param(
            "argoproj.io Workflow",
            {"templates": [RUNS, RUNS, {"dag": {}}], "volumes": VOLUMES},
            {("spec.volumes", "spec.volumes"): 10},
            id="the volumes of a workflow",
        ),
        pytest.param(
            "argoproj.io ClusterWorkflowTemplate",
            {
                "templates": [RUNS, {"script": {"image": "a"}}, {"containerSet": {"containers": [{"name": "a"}]}}],
                "templateDefaults": {"volumes": VOLUMES, "metadata": {"labels": ENTRIES, "annotations": ENTRIES}},
                "podMetadata": {"labels": ENTRIES, "annotations": ENTRIES},
            },
            {
                ("spec.templateDefaults.volumes", "spec.volumes"): 15,
                ("spec.templateDefaults.metadata.labels", "metadata.labels"): 21,
                ("spec.templateDefaults.metadata.annotations", "metadata.annotations"): 21,
                ("spec.podMetadata.labels", "metadata.labels"): 21,
                ("spec.podMetadata.annotations", "metadata.annotations"): 21,
            },
            id="the defaults and labels of a workflow",
        ),
        pytest.param(
            "argoproj.io CronWorkflow",
            {"workflowSpec": {"templates": [RUNS], "volumes": VOLUMES}},
            {("spec.workflowSpec.volumes", "spec.volumes"): 5},
            id="a workflow that runs at times",
        ),
        pytest.param(
            "nvidia.com DynamoGraphDeployment",
            {
                "services": {"a": {}, "b": {}},
                "components": [{}],
                "labels": ENTRIES,
                "annotations": ENTRIES,
                "envs": VOLUMES,
            },
            {
                ("spec.labels", "metadata.labels"): 21,
                ("spec.annotations", "metadata.annotations"): 21,
                ("spec.envs", "spec.containers.*.env"): 15,
            },
            id="a graph of services",
        ),
        pytest.param(
            "argoproj.io Workflow",
            {"templates": [RUNS], "volumes": "a"},
            {("spec.volumes", "spec.volumes"): 0},
            id="text",
        ),
        pytest.param("argoproj.io Workflow", {"templates": [RUNS]}, {}, id="nothing"),
        pytest.param("apps Deployment", {"volumes": VOLUMES, "labels": ENTRIES}, {}, id="another kind"),
    ],
)
def test_what_each_pod_copies_from_its_workload(
    kind: str, spec: dict[str, Any], expected: dict[tuple[str, str], int]
) -> None:
    found = shared(*kind.split(), Field({"spec": spec}))
    assert {(render(each.field.path), each.target): each.size for each in found} == expected


@pytest.mark.parametrize(("volumes", "templates"), [(100_000, 2), (100_001, 0)])
def test_a_workflow_whose_pods_copy_more_than_the_limit_has_no_templates(volumes: int, templates: int) -> None:
    spec = {"templates": [RUNS, RUNS], "volumes": [None] * volumes}
    assert len(list(pod_templates("argoproj.io", "Workflow", Field({"spec": spec})))) == templates
