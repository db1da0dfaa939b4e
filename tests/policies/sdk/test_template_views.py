"""What a policy reads of a workload whose Pods have another shape stands where the path says."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from gpugate.policies.sdk.field import Field, render
from gpugate.policies.sdk.objects import GroupVersionKind, subjects_of
from gpugate.policies.sdk.pod_templates import pod_templates

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


SPARK = """
apiVersion: sparkoperator.k8s.io/v1beta2
kind: SparkApplication
metadata: {name: etl, labels: {team: of-the-application-only}}
spec:
  image: spark:4
  volumes: [{name: scratch}]
  nodeSelector: {zone: a}
  sparkConf:
    spark.executor.resource.gpu.amount: "2"
    spark.executor.resource.gpu.vendor: nvidia.com
    spark.executor.resource.fpga.amount: "1"
    spark.kubernetes.executor.node.selector.node-type: gpu
    spark.kubernetes.executor.label.team: search
  driver:
    labels: {cost-center: cc-1}
    tolerations: [{key: dedicated}]
    gpu: {name: amd.com/gpu, quantity: 1}
    sidecars: [{name: logs}]
  executor:
    env: [{name: A, value: b}]
    template:
      metadata: {annotations: {a: b}}
      spec:
        tolerations: [{key: nvidia.com/gpu}]
        containers: [{name: proxy}]
"""


class TestSpark:
    driver, executor = templates(SPARK)

    def test_driver_and_executors_are_pods(self) -> None:
        assert where(self.driver, self.executor) == ["spec.driver", "spec.executor"]

    def test_the_main_container_is_the_role_itself(self) -> None:
        containers = self.driver["spec", "containers"]
        assert where(*containers) == ["spec.driver", "spec.driver.sidecars[0]"]
        assert where(self.executor["spec", "containers", 0, "env", 0]) == ["spec.executor.env[0]"]
        assert self.driver["spec", "containers", 0, "image"].text == "spark:4"

    @pytest.mark.parametrize(
        ("pod", "limits", "path"),
        [
            (driver, {"amd.com/gpu": 1}, "spec.driver.gpu"),
            (executor, {"nvidia.com/gpu": "2"}, 'spec.sparkConf["spark.executor.resource.gpu.amount"]'),
        ],
    )
    def test_gpus_are_limits_in_their_own_place(self, pod: Field, limits: dict[str, Any], path: str) -> None:
        found = pod["spec", "containers", 0, "resources", "limits"]
        assert found.value == limits
        assert where(*found.members()) == [path]

    def test_the_template_adds_to_what_the_role_says(self) -> None:
        assert where(*self.executor["spec", "tolerations"]) == ["spec.executor.template.spec.tolerations[0]"]
        assert where(self.executor["spec", "tolerations"]) == ["spec.executor.tolerations"]
        assert where(self.executor["spec", "containers", 1]) == ["spec.executor.template.spec.containers[0]"]
        assert self.executor["metadata", "annotations"].value == {"a": "b"}

    def test_labels_and_selectors_are_also_in_the_configuration(self) -> None:
        assert self.executor["metadata", "labels"].value == {"team": "search"}
        assert self.executor["spec", "nodeSelector"].value == {"zone": "a", "node-type": "gpu"}
        assert self.driver["metadata", "labels"].value == {"cost-center": "cc-1"}

    def test_a_role_with_a_template_in_a_file_is_not_known(self) -> None:
        named = "spark.kubernetes.executor.podTemplateFile: s3://bucket/pod.yaml"
        assert where(*templates(SPARK.replace("sparkConf:", f"sparkConf:\n    {named}"))) == ["spec.driver"]

    def test_a_configuration_larger_than_any_real_one_is_not_read(self) -> None:
        conf: dict[str, Any] = {f"spark.executor.resource.gpu{n}.amount": "1" for n in range(5_001)}
        spec: dict[str, Any] = {"sparkConf": conf, "driver": {}, "executor": {}}
        assert not list(pod_templates("sparkoperator.k8s.io", "SparkApplication", Field({"spec": spec})))

    def test_a_scheduled_application_has_the_same_pods(self) -> None:
        spec = {"sparkConf": {"spark.kubernetes.executor.label.team": "a"}, "driver": {}, "executor": {}}
        root = Field({"spec": {"template": spec}})
        _, executor = pod_templates("sparkoperator.k8s.io", "ScheduledSparkApplication", root)
        assert where(executor) == ["spec.template.executor"]
        assert executor["metadata", "labels"].value == {"team": "a"}


FLINK = """
apiVersion: flink.apache.org/v1beta1
kind: FlinkDeployment
spec:
  flinkConfiguration:
    external-resource.gpu.amount: 1
    external-resource.gpu.kubernetes.config-key: nvidia.com/gpu
    kubernetes.taskmanager.tolerations: "key:nvidia.com/gpu,operator:Exists;key:spot,operator:Equal,value:yes"
  podTemplate:
    metadata: {labels: {team: search}}
    spec:
      volumes: [{name: all}]
      containers: [{name: flink-main-container}]
  jobManager: {}
  taskManager:
    podTemplate:
      metadata: {labels: {cost-center: cc-1}}
      spec:
        nodeSelector: {node-type: gpu}
        tolerations: [{key: own}]
"""


class TestFlink:
    job_manager, task_manager = templates(FLINK)

    def test_each_role_has_what_all_have_and_its_own(self) -> None:
        assert self.job_manager["metadata", "labels"].value == {"team": "search"}
        assert self.task_manager["metadata", "labels"].value == {"team": "search", "cost-center": "cc-1"}
        assert where(*self.job_manager["spec", "volumes"]) == ["spec.podTemplate.spec.volumes[0]"]
        assert where(self.task_manager["spec", "nodeSelector", "node-type"]) == [
            "spec.taskManager.podTemplate.spec.nodeSelector.node-type"
        ]

    def test_external_resources_are_those_of_task_managers(self) -> None:
        conf = 'spec.flinkConfiguration["external-resource.gpu.amount"]'
        _, added = self.task_manager["spec", "containers"]
        assert where(added) == [conf]
        assert added["resources", "limits"].value == {"nvidia.com/gpu": 1}
        assert len(list(self.job_manager["spec", "containers"])) == 1

    def test_tolerations_are_also_in_the_configuration(self) -> None:
        own, first, second = self.task_manager["spec", "tolerations"]
        assert own.value == {"key": "own"}
        assert first.value == {"key": "nvidia.com/gpu", "operator": "Exists"}
        assert second.value == {"key": "spot", "operator": "Equal", "value": "yes"}
        assert not list(self.job_manager["spec", "tolerations"])


@pytest.mark.parametrize(
    "conf",
    [{f"key{n}": "a" for n in range(5_001)}, {"kubernetes.taskmanager.tolerations": "key:a;" * 4_000}],
)
def test_a_flink_configuration_larger_than_any_real_one_is_not_read(conf: dict[str, Any]) -> None:
    root = Field({"spec": {"flinkConfiguration": conf, "taskManager": {}}})
    assert not list(pod_templates("flink.apache.org", "FlinkDeployment", root))


NIM = """
apiVersion: apps.nvidia.com/v1alpha1
kind: NIMService
metadata: {name: llama, labels: {team: of-the-service-only}}
spec:
  image: {repository: nim/llama, tag: "1.0"}
  labels: {team: search}
  resources: {limits: {nvidia.com/gpu: 2}}
  draResources: [{resourceClaimTemplateName: gpu}]
  initContainers: [{name: a, image: {repository: b}}]
"""


def test_a_nim_service_is_one_container() -> None:
    (pod,) = templates(NIM)
    (container,) = pod["spec", "containers"]
    assert where(container["resources", "limits", "nvidia.com/gpu"]) == ['spec.resources.limits["nvidia.com/gpu"]']
    assert where(pod["spec", "tolerations"]) == ["spec.tolerations"]
    assert container["image"].text == "nim/llama:1.0"
    assert pod["metadata", "labels"].value == {"team": "search"}
    assert pod["spec", "resourceClaims", 0, "resourceClaimTemplateName"].text == "gpu"
    assert not list(pod["spec", "initContainers"])


VLLM = """
apiVersion: production-stack.vllm.ai/v1alpha1
kind: VLLMRuntime
metadata: {name: llama, labels: {team: search}, annotations: {a: of-the-runtime-only}}
spec:
  vllmConfig: {env: [{name: A, value: b}]}
  deploymentConfig:
    resources: {cpu: "1", gpu: "2"}
    podAnnotations: {b: c}
    nodeSelectorTerms: [{matchExpressions: [{key: zone, operator: In, values: [a]}]}]
"""


def test_a_vllm_runtime_requests_gpus_by_amount_and_type() -> None:
    (pod,) = templates(VLLM)
    (container,) = pod["spec", "containers"]
    assert container["resources", "limits"].value == {"nvidia.com/gpu": "2"}
    assert where(*container["resources", "limits"].members()) == ["spec.deploymentConfig.resources.gpu"]
    assert where(pod["spec", "tolerations"]) == ["spec.deploymentConfig.toleration"]
    assert pod["metadata", "labels"].value == {"team": "search"}
    assert pod["metadata", "annotations"].value == {"b": "c"}
    terms = pod["spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"]
    assert where(terms["nodeSelectorTerms", 0]) == ["spec.deploymentConfig.nodeSelectorTerms"]

    (other,) = templates(VLLM.replace('gpu: "2"', 'gpu: "1", gpuType: amd.com/gpu'))
    assert other["spec", "containers", 0, "resources", "limits"].value == {"amd.com/gpu": "1"}
    (without,) = templates(VLLM.replace(', gpu: "2"', ""))
    assert not without["spec", "containers", 0, "resources"]


DYNAMO = """
apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeployment
metadata: {name: llama, labels: {team: of-the-graph-only}}
spec:
  labels: {team: search, stage: a}
  envs: [{name: A, value: a}]
  services:
    Worker:
      labels: {cost-center: cc-1}
      envs: [{name: B, value: b}]
      volumeMounts: [{name: models, mountPoint: /models}]
      resources:
        requests: {cpu: "4"}
        claims: [{name: nic}]
        limits: {gpu: "2", memory: 1Gi, custom: {example.com/nic: "1"}}
      extraPodMetadata: {labels: {stage: b}}
      extraPodSpec:
        tolerations: [{key: nvidia.com/gpu}]
        containers: [{name: sidecar}]
        mainContainer: {image: vllm, resources: {limits: {memory: 2Gi, nvidia.com/gpu: "1"}, requests: {cpu: "1"}}}
"""
COMPONENTS = """
apiVersion: nvidia.com/v1beta1
kind: DynamoGraphDeployment
metadata: {name: llama}
spec:
  labels: {team: search, stage: a}
  annotations: {d: e}
  components:
    - name: router
    - name: worker
      podTemplate:
        metadata: {labels: {stage: b}}
        spec: {containers: [{name: main, resources: {limits: {nvidia.com/gpu: 2}}}]}
"""


def test_a_service_of_a_dynamo_graph_has_short_names_of_resources() -> None:
    (pod,) = templates(DYNAMO)
    service = "spec.services.Worker"
    sidecar, main = pod["spec", "containers"]
    assert (sidecar["name"].text, main["name"].text, main["image"].text) == ("sidecar", "main", "vllm")
    limits = main["resources", "limits"]
    assert limits.value == {"memory": "1Gi", "nvidia.com/gpu": "2", "example.com/nic": "1"}
    assert where(limits["nvidia.com/gpu"], limits["example.com/nic"]) == [
        f"{service}.resources.limits.gpu",
        f'{service}.resources.limits.custom["example.com/nic"]',
    ]
    assert main["resources", "requests"].value == {"cpu": "4"}
    assert main["resources", "claims"].value == [{"name": "nic"}]
    assert [each["name"].text for each in main["env"]] == ["B", "A"]
    assert pod["metadata", "labels"].value == {"team": "search", "cost-center": "cc-1", "stage": "b"}
    assert where(pod["spec", "tolerations"]) == [f"{service}.extraPodSpec.tolerations"]
    assert pod["spec", "volumes", 0, "persistentVolumeClaim", "claimName"].text == "models"

    (other,) = templates(
        DYNAMO.replace('gpu: "2"', 'gpu: "1", gpuType: amd.com/gpu').replace(', nvidia.com/gpu: "1"', "")
    )
    assert set(other["spec", "containers", 1, "resources", "limits"].mapping) == {
        "amd.com/gpu",
        "memory",
        "example.com/nic",
    }


@pytest.mark.parametrize("place", ["      ", "      experimental:\n        "])
def test_gpus_that_the_dynamo_operator_claims_are_not_known(place: str) -> None:
    claimed = DYNAMO.replace("    Worker:\n", f"    Worker:\n{place}gpuMemoryService: {{enabled: true}}\n")
    assert templates(claimed) == []


def test_a_component_of_a_dynamo_graph_has_a_pod_template() -> None:
    (pod,) = templates(COMPONENTS)
    assert where(pod["spec", "containers", 0, "resources"]) == [
        "spec.components[1].podTemplate.spec.containers[0].resources"
    ]
    assert pod["metadata", "labels"].value == {"team": "search", "stage": "b"}
    assert pod["metadata", "annotations"].value == {"d": "e"}


LLM = """
apiVersion: serving.kserve.io/v1alpha1
kind: LLMInferenceService
metadata: {name: llama, labels: {team: of-the-service-only}}
spec:
  labels: {team: search}
  template: {containers: [{name: main}]}
  worker: {containers: [{name: main}]}
  prefill:
    labels: {team: prefill}
    template: {containers: [{name: main}]}
"""


def test_an_llm_service_has_pod_specs_with_labels_beside_them() -> None:
    pods = templates(LLM)
    assert [(each["metadata", "labels", "team"].text, *where(each["spec", "containers", 0])) for each in pods] == [
        ("search", "spec.template.containers[0]"),
        ("search", "spec.worker.containers[0]"),
        ("prefill", "spec.prefill.template.containers[0]"),
    ]
    assert templates(LLM.replace("spec:\n  labels", "spec:\n  baseRefs: [{name: a}]\n  labels", 1)) == []


WRAPPER = """
apiVersion: workload.codeflare.dev/v1beta2
kind: AppWrapper
spec:
  components:
    - template:
        apiVersion: kubeflow.org/v1
        kind: PyTorchJob
        spec: {pytorchReplicaSpecs: {Worker: {template: {spec: {containers: []}}}}}
    - template: {apiVersion: v1, kind: Pod, spec: {containers: []}}
    - template: {apiVersion: v1, kind: Service, spec: {}}
    - template: {apiVersion: workload.codeflare.dev/v1beta2, kind: AppWrapper, spec: {components: []}}
"""


def test_an_app_wrapper_holds_whole_objects() -> None:
    first = "spec.components[0].template.spec.pytorchReplicaSpecs.Worker.template"
    assert where(*templates(WRAPPER)) == [first, "spec.components[1].template"]
    subjects = subjects_of(GroupVersionKind.of("workload.codeflare.dev/v1beta2", "AppWrapper"), yaml.safe_load(WRAPPER))
    assert [subject.wrapper.kind.kind for subject in subjects if subject.wrapper] == ["PyTorchJob", "Pod"]
