"""Views of workloads that describe their Pods in another shape than a Pod template.

Sources: KServe v0.19.0
(`pkg/apis/serving/v1beta1/predictor.go`, `transformer.go`, `explainer.go`, `v1alpha1/llm_inference_service_types.go`,
`pkg/controller/v1beta1/inferenceservice/components/predictor.go`), Argo Workflows v3.7.3
(`pkg/apis/workflow/v1alpha1/workflow_types.go`, `workflow/controller/workflowpod.go`), Spark operator v1beta2
(`api/v1beta2/sparkapplication_types.go`) and Spark 4.0 (Running on Kubernetes, Configuration), Flink Kubernetes operator v1beta1 and
Flink 2.0 (Configuration, external resources), NIM operator v1alpha1 (`api/apps/v1alpha1/nimservice_types.go`), vLLM production
stack v1alpha1 (`operator/internal/controller/vllmruntime_controller.go`), Dynamo operator v1.0, v1alpha1 and v1beta1
(`deploy/operator/internal/dynamo/graph.go` GenerateBasePodSpec, `internal/controller_common/resource.go` GetResourcesConfig).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from gpugate.policies.sdk.field import Field, Json, UnknownValueError
from gpugate.policies.sdk.field_views import ListView, ObjectView, Shaped, first, joined, merged

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping


# The members of a component that are a further container of its Pod spec, one for each model server.
_MODEL_SERVERS: Final = (
    *("model", "huggingface", "triton", "pytorch", "tensorflow", "onnx"),
    *("sklearn", "xgboost", "lightgbm", "paddle", "pmml", "art"),
)


def kserve_component(component: Field, root: Field) -> Field:
    """View a component of an InferenceService as a Pod template: a Pod spec with labels and a model server.

    The additions of the serving runtime are unknown here; `check` merges them first if it is among the files. The Pods
    also have the labels and annotations of the InferenceService, and workers have those of the predictor.
    """
    owner = root["spec", "predictor"] if component.path[-1:] == ("workerSpec",) else component
    servers = [component[name] for name in _MODEL_SERVERS if component[name].mapping]
    spec = ObjectView(component, {"containers": joined(component["containers"], servers)})
    metadata = ObjectView(
        owner,
        {block: merged(owner[block], root["metadata", block]) for block in ("labels", "annotations")},
    )
    return ObjectView(component, {"metadata": metadata, "spec": spec})


def llm_pod(pod: Field, root: Field) -> Field | None:
    """View a Pod spec of an LLMInferenceService as a Pod template; None if base configurations are not merged."""
    if list(root["spec", "baseRefs"]):
        return None
    owner = root["spec", "prefill"] if pod.path[-2:-1] == ("prefill",) else root["spec"]
    return ObjectView(pod, {"metadata": owner, "spec": pod})


def argo_template(template: Field, workflow: Field) -> Field | None:
    """View a template of an Argo workflow as a Pod template; `workflow` is the workflow's spec.

    The template contains parts of a Pod. Selectors, affinity and tolerations are the template's, or else those of
    `templateDefaults` or the workflow. None for a template that runs no container of the user, such as a DAG.
    """
    own = _own_containers(template)
    if not own:
        return None
    defaults = workflow["templateDefaults"]
    layers = (template, defaults, workflow)
    spec = ObjectView(
        template,
        {
            "containers": joined(template["container"], [*own, *template["sidecars"]]),
            "volumes": joined(template["volumes"], [*defaults["volumes"], *workflow["volumes"]]),
            **{name: first(layers, name) for name in ("nodeSelector", "affinity", "tolerations")},
        },
    )
    metadata = ObjectView(
        template["metadata"],
        {
            block: merged(template["metadata", block], defaults["metadata", block], workflow["podMetadata", block])
            for block in ("labels", "annotations")
        },
    )
    return ObjectView(template, {"metadata": metadata, "spec": spec})


def _workflow_view(path: tuple[str, ...]) -> Callable[[Field, Field], Field | None]:
    return lambda part, root: argo_template(part, root[path])


class Shared(NamedTuple):
    """A list or map of a workload that each of its `pods` Pod templates has at `target`, such as `spec.volumes`."""

    field: Field
    target: str
    pods: int

    @property
    def size(self) -> int:
        """The number of entries in all Pods."""
        value = self.field.value
        return self.pods * len(value) if isinstance(value, list | dict) else 0


# The spec in each kind of Argo workflow.
WORKFLOW_SPECS: Final[Mapping[tuple[str, str], tuple[str, ...]]] = {
    ("argoproj.io", "CronWorkflow"): ("spec", "workflowSpec"),
    **{("argoproj.io", kind): ("spec",) for kind in ("ClusterWorkflowTemplate", "Workflow", "WorkflowTemplate")},
}
DYNAMO: Final = ("nvidia.com", "DynamoGraphDeployment")
# The most entries that all Pods of a workflow may copy from it; `engine.bounds` has a lower limit.
_MOST_SHARED: Final = 200_000


def shared(group: str, kind: str, root: Field) -> tuple[Shared, ...]:
    """Return the lists and maps that the Pod templates of an object of this type copy from it."""
    spec = root[WORKFLOW_SPECS.get((group, kind), ("spec",))]
    if (group, kind) == DYNAMO:
        pods = len(spec["services"].mapping) + len(list(spec["components"]))
        copied = [(spec, block, f"metadata.{block}") for block in ("labels", "annotations")]
        copied.append((spec, "envs", "spec.containers.*.env"))
    elif (group, kind) in WORKFLOW_SPECS:
        pods = sum(1 for template in spec["templates"] if _own_containers(template))
        defaults = spec["templateDefaults"]
        copied = [(layer, "volumes", "spec.volumes") for layer in (spec, defaults)]
        for layer in (spec["podMetadata"], defaults["metadata"]):
            copied += [(layer, block, f"metadata.{block}") for block in ("labels", "annotations")]
    else:
        return ()
    return tuple(Shared(layer[name], target, pods) for layer, name, target in copied if layer[name])


def _own_containers(template: Field) -> list[Field]:
    own = [template[kind] for kind in ("container", "script") if template[kind].mapping]
    return [*own, *template["containerSet", "containers"]]


def shares_too_much(group: str, kind: str, root: Field) -> bool:
    """Tell whether the Pods of an object copy more from it than `_MOST_SHARED` entries."""
    try:
        return sum(part.size for part in shared(group, kind, root)) > _MOST_SHARED
    except UnknownValueError:
        return False  # a placeholder in a file; known values have been counted before


def spark_pod(role: Field, root: Field) -> Field | None:
    """View the driver or the executors of a SparkApplication as a Pod template.

    None if `sparkConf` names a file with a Pod template, which is unknown here, or exceeds `_MOST_SETTINGS`.
    `sparkConf` may also have labels, selectors and GPUs, as `spark.executor.resource.gpu.amount` with `.vendor`.
    """
    name, conf = str(role.path[-1]), root["spec", "sparkConf"]
    if len(conf.mapping) > _MOST_SETTINGS or conf[f"spark.kubernetes.{name}.podTemplateFile"]:
        return None
    base = role["template"]
    gpu = role["gpu"]
    requested = _shares((Shaped(gpu, {gpu["name"].text: gpu["quantity"].value}),) if gpu["name"].text else ())
    main = ObjectView(
        role,
        {
            "name": Shaped(role, f"spark-kubernetes-{name}"),
            "image": role["image"] or root["spec", "image"],
            "resources": requested or _shares(_spark_resources(name, conf)),
        },
    )
    pod = {
        "containers": ListView(role["sidecars"], [main, *role["sidecars"], *base["spec", "containers"]]),
        "initContainers": joined(role["initContainers"], list(base["spec", "initContainers"])),
        "tolerations": joined(role["tolerations"], list(base["spec", "tolerations"])),
        "volumes": joined(root["spec", "volumes"], list(base["spec", "volumes"])),
        "affinity": first((role, base["spec"]), "affinity"),
        "nodeSelector": merged(
            role["nodeSelector"],
            root["spec", "nodeSelector"],
            base["spec", "nodeSelector"],
            _prefixed(conf, f"spark.kubernetes.{name}.node.selector."),
            _prefixed(conf, "spark.kubernetes.node.selector."),
        ),
        "resources": _ABSENT,
    }
    metadata = {
        block: merged(role[block], base["metadata", block], _prefixed(conf, f"spark.kubernetes.{name}.{block[:-1]}."))
        for block in ("labels", "annotations")
    }
    return ObjectView(role, {"metadata": ObjectView(role, metadata), "spec": ObjectView(role, pod)})


_ABSENT: Final = Field(None)
_LONGEST_SETTING: Final = 20_000  # characters
_MOST_SETTINGS: Final = 5_000  # of Spark or Flink, which know about a thousand; every view reads all of them


def _spark_resources(role: str, conf: Field) -> Iterator[Field]:
    prefix = f"spark.{role}.resource."
    for key in conf.mapping:
        if key.startswith(prefix) and key.endswith(".amount"):
            amount = conf[key]
            vendor = conf[key.removesuffix(".amount") + ".vendor"].text
            if vendor:
                resource = key.removeprefix(prefix).removesuffix(".amount")
                yield Shaped(amount, {f"{vendor}/{resource}": amount.value})


def _shares(amounts: Iterable[Field]) -> Field:
    """Return resources with the limits of several maps from resource to amount, each with its own path."""
    fields = list(amounts)
    limits = {name: amount for field in fields for name, amount in field.items()}
    return ObjectView(fields[0], {"limits": ObjectView(Shaped(fields[0], {}), limits)}) if fields else _ABSENT


def _prefixed(conf: Field, prefix: str) -> Field:
    members = {key.removeprefix(prefix): conf[key] for key in conf.mapping if key.startswith(prefix)}
    return ObjectView(Shaped(conf, {}), members)


def flink_pod(role: Field, root: Field) -> Field | None:
    """View the Pods of a FlinkDeployment's job or task managers as a Pod template.

    They get the common template and that of their role. `flinkConfiguration` may have tolerations, and GPUs of task
    managers as `external-resource.NAME.amount` with `.kubernetes.config-key`. None if it exceeds a limit.
    """
    own, common, conf = role["podTemplate"], root["spec", "podTemplate"], root["spec", "flinkConfiguration"]
    name = str(role.path[-1]).lower()
    written = conf[f"kubernetes.{name}.tolerations"]
    if len(conf.mapping) > _MOST_SETTINGS or len(written.text) > _LONGEST_SETTING:
        return None
    gpus = [
        Shaped(amount, {conf[f"{key.removesuffix('.amount')}.kubernetes.config-key"].text: amount.value})
        for key, amount in (conf.items() if name == "taskmanager" else ())
        if key.startswith("external-resource.") and key.endswith(".amount")
    ]
    main = [Shaped(amount, {"name": "flink-main-container", "resources": {"limits": amount.value}}) for amount in gpus]
    tolerations = [
        Shaped(written, {key: value for key, _, value in (pair.partition(":") for pair in toleration.split(","))})
        for toleration in written.text.split(";")
        if toleration.strip()
    ]
    pod = {
        key: joined(own["spec", key], [*common["spec", key], *more])
        for key, more in (("containers", main), ("initContainers", []), ("tolerations", tolerations), ("volumes", []))
    }
    pod["nodeSelector"] = merged(own["spec", "nodeSelector"], common["spec", "nodeSelector"])
    pod["affinity"] = first((own["spec"], common["spec"]), "affinity")
    metadata = {block: merged(own["metadata", block], common["metadata", block]) for block in ("labels", "annotations")}
    return ObjectView(own, {"metadata": ObjectView(own["metadata"], metadata), "spec": ObjectView(own["spec"], pod)})


def nim_pod(spec: Field, root: Field) -> Field:
    """View the spec of a NIMService, which describes one container and its Pod, as a Pod template."""
    image = spec["image"]
    container = {
        "name": Shaped(root["metadata", "name"], f"{root['metadata', 'name'].text}-ctr"),
        "image": Shaped(image, f"{image['repository'].text}:{image['tag'].text}"),
        "resources": spec["resources"],
    }
    pod = {
        "containers": ListView(spec, [ObjectView(spec, container)]),
        "resourceClaims": spec["draResources"],
        # Members whose shapes differ from those of a Pod.
        **dict.fromkeys(("resources", "initContainers", "volumes"), _ABSENT),
    }
    return ObjectView(spec, {"metadata": spec, "spec": ObjectView(spec, pod)})


def vllm_pod(config: Field, root: Field) -> Field:
    """View the `deploymentConfig` of a VLLMRuntime as a Pod template.

    The names and amounts of GPUs are in two fields. The Pods have the labels of the object.
    """
    gpu, terms = config["resources", "gpu"], config["nodeSelectorTerms"]
    resource = config["resources", "gpuType"].text or "nvidia.com/gpu"
    image = config["image"]
    container = {
        "name": Shaped(root["metadata", "name"], "vllm"),
        "image": Shaped(image, f"{image['registry'].text}/{image['name'].text}"),
        "resources": _shares((Shaped(gpu, {resource: gpu.value}),) if gpu else ()),
        "env": root["spec", "vllmConfig", "env"],
    }
    required: Json = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms.value}}
    pod = {
        "containers": ListView(config, [ObjectView(Shaped(config, {}), container)]),
        "tolerations": config["toleration"],
        "affinity": Shaped(terms, {"nodeAffinity": required} if terms else None),
    }
    metadata = {"labels": root["metadata", "labels"], "annotations": config["podAnnotations"]}
    return ObjectView(
        Shaped(config, {}),
        {"metadata": ObjectView(Shaped(config, {}), metadata), "spec": ObjectView(Shaped(config, {}), pod)},
    )


def dynamo_pod(service: Field, root: Field) -> Field | None:
    """View a service (v1alpha1) or a component (v1beta1) of a DynamoGraphDeployment as a Pod template.

    `resources` of a service have short names, such as `gpu`, and take precedence over those of its main container. None
    if the operator replaces the GPUs by its own claim (`gpuMemoryService`), and for a component without a Pod template.
    """
    if any(part["gpuMemoryService", "enabled"].value is True for part in (service, service["experimental"])):
        return None
    if service.path[1:2] == ("components",):
        template = service["podTemplate"]
        layers = {block: (template["metadata", block], root["spec", block]) for block in ("labels", "annotations")}
        metadata = ObjectView(template["metadata"], {block: merged(*part) for block, part in layers.items()})
        return ObjectView(template, {"metadata": metadata, "spec": template["spec"]}) if template.mapping else None
    extra = service["extraPodSpec"]
    main, resources = extra["mainContainer"], service["resources"]
    amounts = {block: _dynamo_amounts(resources[block], main["resources", block]) for block in ("limits", "requests")}
    claims = joined(main["resources", "claims"], list(resources["claims"]))
    container = {
        "name": Shaped(main, "main"),
        "resources": ObjectView(Shaped(resources, {}), {**amounts, "claims": claims}),
        "env": joined(main["env"], [*service["envs"], *root["spec", "envs"]]),
    }
    mounted: list[Field] = [
        Shaped(mount, {"name": mount["name"].value, "persistentVolumeClaim": {"claimName": mount["name"].value}})
        for mount in service["volumeMounts"]
    ]
    pod = {
        "containers": ListView(extra["containers"], [*extra["containers"], ObjectView(main, container)]),
        "volumes": joined(extra["volumes"], mounted),
    }
    labels = {
        block: merged(service["extraPodMetadata", block], service[block], root["spec", block])
        for block in ("labels", "annotations")
    }
    metadata = ObjectView(service["extraPodMetadata"], labels)
    return ObjectView(service, {"metadata": metadata, "spec": ObjectView(extra, pod)})


def _dynamo_amounts(own: Field, base: Field) -> Field:
    """Return the amounts of a container merged with those of a service, by the names of the resources."""
    gpu = {own["gpuType"].text or "nvidia.com/gpu": own["gpu"]} if own["gpu"] else {}
    named = {name: own[name] for name in ("cpu", "memory") if own[name]}
    members = {**dict(base.items()), **named, **gpu, **dict(own["custom"].items())}
    return ObjectView(Shaped(own, {}), members) if members else _ABSENT


# Functions of a value and its object (`root`) that return a view of the value as a Pod template.
VIEWS: Final[dict[tuple[str, str], Callable[[Field, Field], Field | None]]] = {
    ("apps.nvidia.com", "NIMService"): nim_pod,
    **{kind: _workflow_view(path) for kind, path in WORKFLOW_SPECS.items()},
    ("flink.apache.org", "FlinkDeployment"): flink_pod,
    DYNAMO: dynamo_pod,
    ("production-stack.vllm.ai", "VLLMRuntime"): vllm_pod,
    ("serving.kserve.io", "InferenceService"): kserve_component,
    ("serving.kserve.io", "LLMInferenceService"): llm_pod,
    ("sparkoperator.k8s.io", "ScheduledSparkApplication"): lambda part, root: spark_pod(
        part, ObjectView(root, {"spec": root["spec", "template"]})
    ),
    ("sparkoperator.k8s.io", "SparkApplication"): spark_pod,
}
