"""What controllers make of an object and the base that it names, and where its values are written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml
from kubernetes.client import V1Container, V1JobSpec, V1PodSpec

from gpugate.policies.sdk.field import Field, Unknown
from gpugate.policies.sdk.objects import GroupVersionKind, Operation, Request
from gpugate.webhook.manifests.expansion import Expanded, expanded
from gpugate.webhook.manifests.load import RunFacts

if TYPE_CHECKING:
    from gpugate.policies.sdk.field import Path

RUNTIME = """
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata: {name: torch}
spec:
  template:
    metadata: {labels: {queue: a}}
    spec:
      replicatedJobs:
        - name: prepare
          template:
            spec:
              template:
                spec:
                  containers: [{name: node, image: prepare}]
        - name: train
          template:
            metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
            spec:
              template:
                metadata: {labels: {team: ml}}
                spec:
                  nodeSelector: {zone: a}
                  tolerations: [{key: a}]
                  volumes: [{name: data, emptyDir: {}}]
                  containers:
                    - {name: log, image: log}
                    - name: node
                      image: base
                      args: [--from, base]
                      env: [{name: A, value: base}, {name: B, value: base}]
                      resources: {limits: {nvidia.com/gpu: 1}, requests: {cpu: 1}}
"""
POD: Path = ("spec", "replicatedJobs", 1, "template", "spec", "template")
NODE: Path = (*POD, "spec", "containers", 1)
POD_SPEC: Path = ("spec", "replicatedJobs", 0, "template", "spec", "template", "spec")


def request(obj: Any, namespace: str = "ml") -> Request:
    kind = GroupVersionKind.of(obj["apiVersion"], obj["kind"])
    namespace = "" if kind.kind.startswith("Cluster") else namespace
    return Request(kind, Operation.CREATE, obj, name=obj["metadata"]["name"], namespace=namespace)


def train_job(spec: str, *bases: str) -> Expanded | None:
    read = yaml.safe_load(spec)
    obj = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "tune"},
        "spec": {"runtimeRef": {"name": "torch"}, **read},
    }
    return expanded(request(obj), RunFacts([request(yaml.safe_load(base)) for base in bases or (RUNTIME,)]))


@pytest.mark.parametrize(
    ("spec", "path", "value", "written"),
    [
        pytest.param("{}", (*NODE, "image"), "base", ("spec", "runtimeRef", "name"), id="of-the-runtime"),
        pytest.param("trainer: {image: own}", (*NODE, "image"), "own", ("spec", "trainer", "image"), id="image"),
        pytest.param("trainer: {args: [b]}", (*NODE, "args"), ["b"], ("spec", "trainer", "args"), id="arguments"),
        pytest.param(
            "trainer: {resourcesPerNode: {limits: {nvidia.com/gpu: 8}}}",
            (*NODE, "resources"),
            {"limits": {"nvidia.com/gpu": 8}},
            ("spec", "trainer", "resourcesPerNode"),
            id="resources-are-replaced",
        ),
        pytest.param(
            "trainer: {resourcesPerNode: {}}",
            (*NODE, "resources", "limits", "nvidia.com/gpu"),
            1,
            ("spec", "runtimeRef", "name"),
            id="empty-resources",
        ),
        pytest.param(
            "trainer: {env: [{name: B, value: own}, {name: C, value: own}]}",
            (*NODE, "env", 2, "value"),
            "own",
            ("spec", "trainer", "env", 1, "value"),
            id="environment",
        ),
        pytest.param(
            "trainer: {numNodes: 4}",
            ("spec", "replicatedJobs", 1, "template", "spec", "parallelism"),
            4,
            ("spec", "trainer", "numNodes"),
            id="nodes",
        ),
        pytest.param(
            "trainer: {image: own}",
            ("spec", "replicatedJobs", 0, "template", "spec", "template", "spec", "containers", 0, "image"),
            "prepare",
            ("spec", "runtimeRef", "name"),
            id="other-jobs-are-left",
        ),
        pytest.param(
            "podSpecOverrides: [{targetJobs: [{name: train}], nodeSelector: {type: b}}]",
            (*POD, "spec", "nodeSelector"),
            {"zone": "a", "type": "b"},
            ("spec", "runtimeRef", "name"),
            id="maps-are-merged",
        ),
        pytest.param(
            "podSpecOverrides: [{targetJobs: [{name: train}], tolerations: [{key: b}]}]",
            (*POD, "spec", "tolerations"),
            [{"key": "b"}],
            ("spec", "podSpecOverrides", 0, "tolerations"),
            id="tolerations-are-replaced",
        ),
        pytest.param(
            "podSpecOverrides: [{targetJobs: [{name: other}], tolerations: [{key: b}]}]",
            (*POD, "spec", "tolerations"),
            [{"key": "a"}],
            ("spec", "runtimeRef", "name"),
            id="an-override-of-another-job",
        ),
        pytest.param(
            "podTemplateOverrides: [{targetJobs: [{name: train}], spec: {volumes: [{name: more}]}}]",
            (*POD, "spec", "volumes", 1),
            {"name": "more"},
            ("spec", "podTemplateOverrides", 0, "spec", "volumes", 0),
            id="volumes-are-merged-by-name",
        ),
        pytest.param(
            "podTemplateOverrides: [{targetJobs: [{name: train}], metadata: {labels: {team: own}}}]",
            (*POD, "metadata", "labels", "team"),
            "own",
            ("spec", "podTemplateOverrides", 0, "metadata", "labels", "team"),
            id="labels-of-the-pods",
        ),
        pytest.param(
            """
            runtimePatches:
              - manager: a
                trainingRuntimeSpec:
                  template:
                    spec:
                      replicatedJobs: [{name: train, template: {spec: {template: {spec: {nodeSelector: {zone: b}}}}}}]
            """,
            (*POD, "spec", "nodeSelector", "zone"),
            "b",
            (
                *("spec", "runtimePatches", 0, "trainingRuntimeSpec", "template", "spec", "replicatedJobs", 0),
                *("template", "spec", "template", "spec", "nodeSelector", "zone"),
            ),
            id="patches-of-the-runtime",
        ),
        pytest.param("labels: {team: own}", ("metadata", "labels"), {"queue": "a", "team": "own"}, None, id="labels"),
        pytest.param("labels: {team: own}", (*POD, "metadata", "labels"), {"team": "ml"}, None, id="not-of-the-pods"),
    ],
)
def test_a_train_job_is_the_job_set_of_its_runtime(spec: str, path: Path, value: Any, written: Path | None) -> None:
    made = train_job(spec)
    assert made is not None
    assert Field(made.request.object)[path].value == value
    if written:
        assert made.written(path) == written


@pytest.mark.parametrize(
    ("spec", "base"),
    [
        pytest.param("{}", RUNTIME.replace("torch", "other"), id="another-name"),
        pytest.param("runtimeRef: {name: torch, kind: TrainingRuntime}", RUNTIME, id="another-kind"),
        pytest.param("runtimeRef: {name: torch, apiGroup: example.com}", RUNTIME, id="another-group"),
        pytest.param(
            "runtimeRef: {name: torch, kind: TrainingRuntime}",
            RUNTIME.replace("ClusterTrainingRuntime", "TrainingRuntime").replace("torch}", "torch, namespace: other}"),
            id="another-namespace",
        ),
        pytest.param("{}", RUNTIME.replace("replicatedJobs", "jobs"), id="a-runtime-without-jobs"),
        pytest.param(f"podSpecOverrides: [{'{targetJobs: [{name: train}]}, ' * 101}]", RUNTIME, id="many-overrides"),
        pytest.param("{}", RUNTIME.replace("[--from, base]", f"[{'a, ' * 2_001}]"), id="a-large-runtime"),
        pytest.param(
            "{}",
            RUNTIME.replace("      replicatedJobs:\n", "      replicatedJobs:\n" + "        - name: more\n" * 19),
            id="many-jobs",
        ),
    ],
)
def test_nothing_is_made_of_a_runtime_that_is_not_known(spec: str, base: str) -> None:
    facts = yaml.safe_load(base)
    namespace = facts["metadata"].get("namespace", "ml")
    obj = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "tune"},
        "spec": {"runtimeRef": {"name": "torch"}, **yaml.safe_load(spec)},
    }
    assert expanded(request(obj), RunFacts([request(facts, namespace)])) is None


ALONE = "{runtimeRef: {name: other}, trainer: {numNodes: 2, env: [{name: A, value: b}], resourcesPerNode: {limits: {%s: 8}}}}"


@pytest.mark.parametrize(
    ("place", "written"),
    [
        ((*NODE, "resources", "limits", "nvidia.com/gpu"), ("resourcesPerNode", "limits", "nvidia.com/gpu")),
        (("spec", "replicatedJobs", 0, "template", "spec", "parallelism"), ("numNodes",)),
    ],
)
def test_a_train_job_whose_runtime_is_not_known_has_its_own_resources(place: Path, written: Path) -> None:
    made = train_job(ALONE % "nvidia.com/gpu")
    assert made is not None
    assert made.is_partial
    path = tuple(0 if part == 1 else part for part in place)
    assert Field(made.request.object)[path].known
    assert made.written(path) == ("spec", "trainer", *written)


@pytest.mark.parametrize(
    ("model", "place", "left_out"),
    [
        (V1PodSpec, POD_SPEC, {"initContainers", "ephemeralContainers", "resourceClaims"}),
        (V1Container, (*POD_SPEC, "containers", 0), set[str]()),
        (V1JobSpec, POD_SPEC[:-2], set[str]()),
    ],
)
def test_every_other_value_of_a_train_job_without_its_runtime_is_unknown(
    model: type[Any], place: Path, left_out: set[str]
) -> None:
    made = train_job(ALONE % "nvidia.com/gpu")
    assert made is not None
    fields = Field(made.request.object)[place].mapping
    assert set(model.attribute_map.values()) - left_out <= fields.keys()
    own = {"containers", "name", "resources", "template", "parallelism", "completions"}
    known = {name for name, value in fields.items() if not isinstance(value, Unknown)}
    assert known <= own


def test_a_train_job_without_runtime_that_requests_no_device_is_left_alone() -> None:
    assert train_job(ALONE % "cpu") is None


def test_a_placeholder_of_the_runtime_stays_unknown() -> None:
    base = yaml.safe_load(RUNTIME)
    pod = Field(base)["spec", "template", "spec", "replicatedJobs", 1, "template", "spec", "template", "spec"].value
    pod["tolerations"] = Unknown("${TOLERATIONS}")
    job = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "tune"},
        "spec": {"runtimeRef": {"name": "torch"}},
    }
    facts = RunFacts(
        [
            Request(
                GroupVersionKind.of(base["apiVersion"], base["kind"]),
                Operation.CREATE,
                base,
                name="torch",
                is_template=True,
            )
        ]
    )
    made = expanded(request(job), facts)
    assert made is not None
    assert made.request.is_template
    assert isinstance(Field(made.request.object)[(*POD, "spec", "tolerations")].value, Unknown)


SERVING = """
apiVersion: serving.kserve.io/v1alpha1
kind: ServingRuntime
metadata: {name: vllm, namespace: ml}
spec:
  labels: {team: base, stage: base}
  nodeSelector: {zone: a}
  tolerations: [{key: a}]
  containers:
    - {name: log, image: log}
    - name: kserve-container
      image: base
      args: [--from, base]
      resources: {requests: {cpu: 1}, limits: {cpu: 2}}
"""
SERVICE = """
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata: {name: llm, labels: {stage: own}}
spec:
  predictor:
    minReplicas: 2
    nodeSelector: {type: b}
    containers: [{name: more, image: more}]
    model:
      runtime: vllm
      modelFormat: {name: hf}
      args: [--own]
      resources: {limits: {nvidia.com/gpu: 8}}
"""
PREDICTOR: Path = ("spec", "predictor")


@pytest.mark.parametrize(
    ("path", "value", "written"),
    [
        (("containers", 1, "name"), "kserve-container", ("model", "runtime")),
        (("containers", 1, "args"), ["--from", "base", "--own"], None),
        (("containers", 1, "resources", "limits"), {"cpu": 2, "nvidia.com/gpu": 8}, None),
        (
            ("containers", 1, "resources", "limits", "nvidia.com/gpu"),
            8,
            ("model", "resources", "limits", "nvidia.com/gpu"),
        ),
        (("containers", 2, "image"), "more", ("containers", 0, "image")),
        (("nodeSelector", "type"), "b", ("nodeSelector", "type")),
        (("nodeSelector", "zone"), "a", ("model", "runtime")),
        (("tolerations",), [{"key": "a"}], ("model", "runtime")),
        (("minReplicas",), 2, ("minReplicas",)),
        (("labels",), {"team": "base"}, ("model", "runtime")),
        (("model",), None, None),
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", ["ServingRuntime", "ClusterServingRuntime"])
def test_a_predictor_has_what_its_runtime_gives(kind: str, path: Path, value: Any, written: Path | None) -> None:
    base = yaml.safe_load(SERVING.replace("ServingRuntime", kind))
    made = expanded(request(yaml.safe_load(SERVICE)), RunFacts([request(base)]))
    assert made is not None
    assert made.base_name == f"{kind} vllm"
    assert Field(made.request.object)[(*PREDICTOR, *path)].value == value
    if written:
        assert made.written((*PREDICTOR, *path)) == (*PREDICTOR, *written)


def test_the_runtime_of_the_namespace_comes_first() -> None:
    bases = [
        yaml.safe_load(SERVING.replace("ServingRuntime", kind)) for kind in ("ClusterServingRuntime", "ServingRuntime")
    ]
    made = expanded(request(yaml.safe_load(SERVICE)), RunFacts(map(request, bases)))
    assert made is not None
    assert made.base_name == "ServingRuntime vllm"


@pytest.mark.parametrize(
    ("service", "base"),
    [
        pytest.param(SERVICE.replace("      runtime: vllm\n", ""), SERVING, id="a-service-that-names-none"),
        pytest.param(SERVICE, SERVING.replace("spec:", "spec:\n  disabled: true"), id="disabled"),
        pytest.param(SERVICE, SERVING.replace("containers:", "other:"), id="without-containers"),
        pytest.param(
            SERVICE.replace("name: llm", "name: llm, namespace: a"), SERVING.replace("vllm,", "other,"), id="another"
        ),
    ],
)
def test_a_service_without_a_runtime_that_is_known_is_left(service: str, base: str) -> None:
    assert expanded(request(yaml.safe_load(service)), RunFacts([request(yaml.safe_load(base))])) is None


LLM = """
apiVersion: serving.kserve.io/v1alpha1
kind: LLMInferenceService
metadata: {name: llm}
spec:
  baseRefs: [{name: first}, {name: second}]
  template: {containers: [{name: main, resources: {limits: {nvidia.com/gpu: 8}}}]}
"""
CONFIG = """
apiVersion: serving.kserve.io/v1alpha1
kind: LLMInferenceServiceConfig
metadata: {name: %s}
spec:
  labels: {%s: a, team: %s}
  template: {tolerations: [{key: %s}], containers: [{name: main, image: %s}]}
"""


def llm(*configs: str, namespace: str = "ml") -> Expanded | None:
    facts = RunFacts([request(yaml.safe_load(CONFIG % ((name,) * 5)), namespace) for name in configs])
    return expanded(request(yaml.safe_load(LLM)), facts)


@pytest.mark.parametrize("namespace", ["ml", "kserve"])
def test_an_llm_service_has_what_its_configurations_add(namespace: str) -> None:
    made = llm("second", "first", namespace=namespace)
    assert made is not None
    spec = Field(made.request.object)["spec"]
    assert spec["labels"].value == {"first": "a", "second": "a", "team": "second"}
    assert spec["template", "tolerations"].value == [{"key": "second"}]
    (container,) = spec["template", "containers"]
    assert container.value == {"name": "main", "image": "second", "resources": {"limits": {"nvidia.com/gpu": 8}}}
    assert made.written((*container.path, "resources", "limits")) == (*container.path, "resources", "limits")
    assert made.written(("spec", "template", "tolerations")) == ("spec", "baseRefs")
    assert not spec["baseRefs"]


@pytest.mark.parametrize(("configs", "namespace"), [(["first"], "ml"), (["first", "second"], "other")])
def test_an_llm_service_without_all_its_configurations_is_left(configs: list[str], namespace: str) -> None:
    assert llm(*configs, namespace=namespace) is None
