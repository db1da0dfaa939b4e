from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from gpugate.policies.sdk.field import Field
from gpugate.policies.sdk.findings import Skip
from gpugate.policies.sdk.objects import GroupVersionKind, Wrapper
from gpugate.policies.sdk.platform import Platform, WorkloadClasses
from gpugate.policies.sdk.workload_class import namespace_doubt, owner_kind, workload_class

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpugate.policies.sdk.policy import Context

Contexts: TypeAlias = "Callable[..., Context[Any]]"

GPU = {"limits": {"nvidia.com/gpu": 1}}
PORTS = {"ports": [{"containerPort": 8000}]}


def pod(
    labels: dict[str, str] | None = None, *, owner: str = "", gpu: bool = True, container: dict[str, Any] | None = None
) -> dict[str, Any]:
    owners = [{"kind": owner, "name": "o", "controller": True}] if owner else []
    resources = {"resources": GPU} if gpu else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "labels": labels or {}, "ownerReferences": owners},
        "spec": {"containers": [{"name": "c", **resources, **(container or {})}]},
    }


def kubeflow(role: str = "worker") -> dict[str, str]:
    return {"training.kubeflow.org/job-name": "j", "training.kubeflow.org/replica-type": role}


def said(ctx: Context[Any]) -> str:
    """Return the class, and the one that is only possible; "none" for neither."""
    found = ctx.derived(workload_class)
    possible = f"possibly {found.possible}" if found.possible else ""
    return " ".join(filter(None, (found.name, possible))) or "none"


JOBSET = {"jobset.sigs.k8s.io/jobset-name": "j", "batch.kubernetes.io/job-name": "j-node-0"}
JOB = {"batch.kubernetes.io/job-name": "j"}
INDEXED = {**JOB, "batch.kubernetes.io/job-completion-index": "0"}
HUB = {"app": "jupyterhub", "component": "singleuser-server"}


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        pytest.param(pod(kubeflow("worker")), "training", id="PyTorchJob worker"),
        pytest.param(
            pod({**kubeflow("worker"), "training.kubeflow.org/operator-name": "mpi-operator"}),
            "possibly training",
            id="MPIJob worker",
        ),
        pytest.param(pod(kubeflow("master"), gpu=False), "training", id="TFJob chief on CPUs"),
        pytest.param(pod({**kubeflow("launcher"), **JOB}, gpu=False), "batch", id="MPIJob launcher"),
        pytest.param(pod(kubeflow("launcher")), "training", id="MPIJob launcher that computes"),
        pytest.param(
            pod({"training.kubeflow.org/job-name": "j", "training.kubeflow.org/job-role": "launcher"}, gpu=False),
            "none",
            id="MPIJob v2 launcher",
        ),
        pytest.param(pod(JOBSET), "possibly training", id="JobSet, TrainJob"),
        pytest.param(pod(JOBSET, gpu=False), "batch", id="TrainJob initializer"),
        pytest.param(pod({"volcano.sh/job-name": "j"}, owner="Job"), "possibly training", id="Volcano"),
        pytest.param(pod({"leaderworkerset.sigs.k8s.io/name": "l"}, owner="StatefulSet"), "inference", id="LWS"),
        pytest.param(pod({"serving.kserve.io/inferenceservice": "i"}), "inference", id="KServe"),
        pytest.param(pod({"notebook-name": "n"}, owner="StatefulSet"), "interactive", id="Kubeflow notebook"),
        pytest.param(pod(HUB), "interactive", id="JupyterHub"),
        pytest.param(pod({"ray.io/cluster": "made-for-job"}), "possibly training", id="RayJob"),
        pytest.param(pod({"ray.io/cluster": "made-for-service"}), "inference", id="RayService"),
        pytest.param(pod({"ray.io/cluster": "plain"}), "none", id="RayCluster"),
        pytest.param(pod({"ray.io/cluster": "unknown"}), "none", id="RayCluster that is not known"),
        pytest.param(pod({"kueue.x-k8s.io/queue-name": "q"}), "none", id="Kueue says nothing"),
        pytest.param(pod(INDEXED, owner="Job"), "possibly training", id="indexed Job"),
        pytest.param(pod(JOB, owner="Job"), "batch", id="Job that is not known"),
        pytest.param(pod({"job-name": "parallel"}, owner="Job"), "possibly training", id="parallel Job"),
        pytest.param(pod({"job-name": "indexed"}, owner="Job"), "possibly training", id="Job that is indexed"),
        pytest.param(pod({"job-name": "single"}, owner="Job"), "batch", id="single Job"),
        pytest.param(pod(owner="DaemonSet"), "system", id="DaemonSet"),
        pytest.param(pod(owner="ReplicaSet", container=PORTS), "inference", id="ReplicaSet with ports"),
        pytest.param(pod(owner="StatefulSet", container={"readinessProbe": {}}), "inference", id="with a probe"),
        pytest.param(pod(owner="ReplicaSet"), "none", id="ReplicaSet without ports"),
        pytest.param(pod(container=PORTS), "none", id="bare Pod with ports"),
        pytest.param(pod(), "none", id="bare Pod"),
    ],
)
def test_the_framework_or_the_owner_of_a_pod_tells(context: Contexts, obj: dict[str, Any], expected: str) -> None:
    facts = """
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: made-for-job, namespace: research, labels: {ray.io/originated-from-crd: RayJob}}
---
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: made-for-service, namespace: research, labels: {ray.io/originated-from-crd: RayService}}
---
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: plain, namespace: research}
---
apiVersion: batch/v1
kind: Job
metadata: {name: parallel, namespace: research}
spec: {parallelism: 4}
---
apiVersion: batch/v1
kind: Job
metadata: {name: indexed, namespace: research}
spec: {completionMode: Indexed}
---
apiVersion: batch/v1
kind: Job
metadata: {name: single, namespace: research}
spec: {parallelism: 1}
"""
    assert said(context(obj, facts=facts)) == expected


@pytest.mark.parametrize(
    ("labels", "owner", "doubt"),
    [
        pytest.param(JOB, "Job", "Job j was not found, and may be parallel", id="Job"),
        pytest.param({}, "Job", "its Job was not found, and may be parallel", id="Job without a label"),
        pytest.param({"ray.io/cluster": "r"}, "RayCluster", "RayCluster r was not found", id="RayCluster"),
        pytest.param(INDEXED, "Job", "", id="a Pod that says it is one of many"),
        pytest.param(JOBSET, "Job", "", id="a framework that needs no object"),
        pytest.param({}, "ReplicaSet", "", id="ReplicaSet"),
    ],
)
def test_what_would_tell_and_is_not_known_is_a_doubt(
    context: Contexts, labels: dict[str, str], owner: str, doubt: str
) -> None:
    found = context(pod(labels, owner=owner)).derived(workload_class).doubt
    assert bool(found) == bool(doubt)
    assert found is None or found.reason.startswith(doubt)


@pytest.mark.parametrize(
    ("api_version", "kind", "path", "expected"),
    [
        ("kubeflow.org/v1", "PyTorchJob", ("pytorchReplicaSpecs", "Worker"), "training"),
        ("kubeflow.org/v1", "TFJob", ("tfReplicaSpecs", "PS"), "training"),
        ("kubeflow.org/v1", "XGBoostJob", ("xgbReplicaSpecs", "Worker"), "training"),
        ("kubeflow.org/v1", "PaddleJob", ("paddleReplicaSpecs", "Worker"), "training"),
        ("kubeflow.org/v1", "JAXJob", ("jaxReplicaSpecs", "Worker"), "training"),
        ("kubeflow.org/v2beta1", "MPIJob", ("mpiReplicaSpecs", "Worker"), "possibly training"),
        ("kubeflow.org/v1", "Notebook", (), "interactive"),
        ("batch.volcano.sh/v1alpha1", "Job", ("tasks", 0), "possibly training"),
        ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", None, "inference"),
        ("ray.io/v1", "RayJob", ("rayClusterSpec", "headGroupSpec"), "possibly training"),
        ("ray.io/v1", "RayService", ("rayClusterConfig", "headGroupSpec"), "inference"),
        ("ray.io/v1", "RayCluster", ("headGroupSpec",), "none"),
        ("apps/v1", "DaemonSet", (), "system"),
        ("batch/v1", "Job", (), "batch"),
    ],
)
def test_the_workload_around_a_template_tells(
    context: Contexts, api_version: str, kind: str, path: tuple[str | int, ...] | None, expected: str
) -> None:
    template = {"metadata": {}, "spec": pod()["spec"]}
    spec: Any = {"leaderWorkerTemplate": {"workerTemplate": template}} if path is None else {"template": template}
    for key in reversed(path or ()):
        spec = [spec] if isinstance(key, int) else {key: spec}
    workload = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "w"}, "spec": spec}
    assert said(context(workload, subject=1)) == expected


@pytest.mark.parametrize(
    ("kind", "spec", "expected"),
    [
        ("Job", {"parallelism": 4}, "possibly training"),
        ("Job", {"completionMode": "Indexed"}, "possibly training"),
        ("CronJob", {"jobTemplate": {"spec": {"parallelism": 2}}}, "possibly training"),
        ("CronJob", {"jobTemplate": {"spec": {}}}, "batch"),
    ],
)
def test_a_parallel_or_indexed_job_possibly_trains(
    context: Contexts, kind: str, spec: dict[str, Any], expected: str
) -> None:
    template = {"spec": pod()["spec"]}
    job = spec["jobTemplate"]["spec"] if kind == "CronJob" else spec
    workload = {"apiVersion": "batch/v1", "kind": kind, "metadata": {"name": "w"}, "spec": spec}
    job["template"] = template
    assert said(context(workload, subject=1)) == expected


def test_jobs_of_a_scaled_job_are_batch_work(context: Contexts) -> None:
    workload = {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledJob",
        "metadata": {"name": "w"},
        "spec": {"jobTargetRef": {"template": {"spec": pod()["spec"]}}},
    }
    assert context(workload, subject=1).derived(workload_class).name == "batch"


NAMESPACE = """
apiVersion: v1
kind: Namespace
metadata: {name: research, labels: {gpugate.dev/workload-class: interactive}}
"""


def labelled(**labels: str) -> dict[str, Any]:
    return pod({key.replace("_", "-"): value for key, value in labels.items()})


def selecting(node_type: str) -> dict[str, Any]:
    obj = pod({"workload": "genai"})
    obj["spec"]["nodeSelector"] = {"node-type": node_type}
    return obj


def requiring(*terms: list[str], **expression: Any) -> dict[str, Any]:
    """A Pod whose node affinity has a term for each list of values of node-type."""
    obj = pod({"workload": "genai"})
    expressions = [{"key": "node-type", "operator": "In", "values": values, **expression} for values in terms]
    selector = {"nodeSelectorTerms": [{"matchExpressions": [each]} for each in expressions]}
    obj["spec"]["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": selector}}
    return obj


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        (requiring(["gpu-training"]), "training"),
        (requiring(["gpu-training", "other"]), "training"),
        (requiring(["gpu-inference", "gpu-spot"]), "inference"),
        (requiring(["gpu-inference"], ["gpu-spot"]), "inference"),
        (requiring(["gpu-training", "gpu-inference"]), None),
        (requiring(["gpu-training"], ["gpu-inference"]), None),
        (requiring(["other"]), None),
        (requiring(["gpu-training"], operator="NotIn"), None),
    ],
)
def test_a_required_node_affinity_tells_the_class_like_a_node_selector(
    context: Contexts, obj: dict[str, Any], expected: str | None
) -> None:
    assert context(obj).derived(workload_class).name == expected


@pytest.mark.parametrize(
    ("obj", "namespace", "facts", "expected"),
    [
        pytest.param(
            pod({"gpugate.dev/workload-class": "batch"}), "research", NAMESPACE, "batch", id="the Pod's label"
        ),
        pytest.param(pod({"gpugate.dev/workload-class": "x"}), "research", NAMESPACE, "interactive", id="no class"),
        pytest.param(labelled(workload="training"), "research", NAMESPACE, "interactive", id="the namespace's label"),
        pytest.param(labelled(workload="training"), "inference", "", "training", id="a label of the configuration"),
        pytest.param(selecting("gpu-training"), "default", "", "training", id="a node selector"),
        pytest.param(selecting("gpu-spot"), "ml-training", "", "inference", id="a node selector before the namespace"),
        pytest.param(pod(), "ml-training-1", "", "training", id="the namespace's name"),
        pytest.param(pod(INDEXED, owner="Job"), "ml-serving", "", "inference", id="before the owner"),
    ],
)
def test_what_people_say_comes_first(
    context: Contexts, obj: dict[str, Any], namespace: str, facts: str, expected: str
) -> None:
    assert context(obj, namespace=namespace, facts=facts).derived(workload_class).name == expected


def test_a_framework_that_disagrees_is_remembered(context: Contexts) -> None:
    found = context(pod({**kubeflow(), "workload": "inference"})).derived(workload_class)
    assert (found.name, found.source, found.conflict) == ("inference", "label workload of the Pod", "training")


def test_the_rules_are_the_platforms(context: Contexts) -> None:
    rules = WorkloadClasses(labels={"kind": {"finetune": "training"}}, node_selectors={}, namespaces={"lab-*": "batch"})
    platform = Platform(workload_classes=rules)
    assert context(labelled(kind="finetune"), platform=platform).derived(workload_class).name == "training"
    assert context(pod(), platform=platform, namespace="lab-1").derived(workload_class).name == "batch"
    assert context(pod(), platform=platform, namespace="ml-training").derived(workload_class).name is None


@pytest.mark.parametrize(
    ("containers", "expected"),
    [
        ([{"ports": [{"containerPort": 1}]}, {}], "inference"),
        ([{}, {"readinessProbe": {}}], "inference"),
        ([{"livenessProbe": {}}], "inference"),
        ([{"startupProbe": {}}], "inference"),
        ([{"ports": []}], None),
        ([{"lifecycle": {}}], None),
    ],
)
def test_one_container_with_a_port_or_probe_serves(
    context: Contexts, containers: list[dict[str, Any]], expected: str | None
) -> None:
    obj = pod(owner="ReplicaSet")
    obj["spec"]["containers"] = containers
    assert context(obj).derived(workload_class).name == expected


def test_a_pod_of_an_indexed_job_has_its_index_as_an_annotation(context: Contexts) -> None:
    obj = pod(JOB, owner="Job")
    obj["metadata"]["annotations"] = {"batch.kubernetes.io/job-completion-index": "3"}
    assert said(context(obj)) == "possibly training"


def test_the_job_around_a_template_says_whether_it_is_parallel(context: Contexts) -> None:
    template = {"spec": {"containers": [{"name": "c"}]}}
    for spec, expected in (({"parallelism": 2}, "possibly training"), ({"parallelism": 1}, "batch")):
        job = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "j"},
            "spec": {**spec, "template": template},
        }
        assert said(context(job, subject=1)) == expected


@pytest.mark.parametrize(
    "origin",
    [("RayJob", "possibly training"), ("RayService", "inference"), ("", "none")],
    ids=["job", "service", "own"],
)
def test_the_ray_cluster_around_a_template_says_what_it_was_made_for(
    context: Contexts, origin: tuple[str, str]
) -> None:
    made_for, expected = origin
    cluster = {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {"name": "r", "labels": {"ray.io/originated-from-crd": made_for}},
        "spec": {"headGroupSpec": {"template": {"spec": {"containers": [{"name": "c", "resources": GPU}]}}}},
    }
    assert said(context(cluster, subject=1)) == expected


NAMESPACES = """
apiVersion: v1
kind: Namespace
metadata: {name: another}
"""


@pytest.mark.parametrize(
    ("obj", "facts", "complete", "namespace", "coming"),
    [
        pytest.param(pod(owner="DaemonSet"), NAMESPACES, True, "research", True, id="the namespace may come"),
        pytest.param(pod(owner="DaemonSet"), NAMESPACES, False, "research", False, id="namespaces are known in part"),
        pytest.param(pod(owner="DaemonSet"), NAMESPACES, True, "another", False, id="the namespace is known"),
        pytest.param(pod(owner="DaemonSet"), NAMESPACES, True, "", False, id="there is no namespace"),
        pytest.param(
            pod({"gpugate.dev/workload-class": "batch"}), NAMESPACES, True, "research", False, id="the Pod says it"
        ),
    ],
)
def test_a_namespace_that_is_not_known_yet_may_say_otherwise(
    context: Contexts,
    obj: dict[str, Any],
    facts: str,
    complete: bool,  # noqa: FBT001 -- a column of the table
    namespace: str,
    coming: bool,  # noqa: FBT001 -- a column of the table
) -> None:
    found = context(obj, facts=facts, complete=complete, namespace=namespace).derived(workload_class)
    doubt = found.doubt or Skip("")
    assert (doubt.coming, doubt.reason.startswith(f"namespace {namespace} was not found")) == (coming, coming)


@pytest.mark.parametrize(
    ("labels", "owner", "says"),
    [
        ({"job-name": "j"}, "Job", "Job j was not found"),
        ({"ray.io/cluster": "r"}, "", "RayCluster r was not found"),
    ],
)
def test_what_made_a_pod_may_come(context: Contexts, labels: dict[str, str], owner: str, says: str) -> None:
    for complete in (True, False):
        ctx = context(pod(labels, owner=owner), facts=NAMESPACES, complete=complete, namespace="another")
        doubt = ctx.derived(workload_class).doubt
        assert doubt is not None
        assert (doubt.coming, doubt.reason.startswith(says)) == (complete, True)


def test_labels_of_a_namespace_that_is_not_known_are_a_doubt(context: Contexts) -> None:
    for complete in (True, False):
        ctx = context(pod(), facts=NAMESPACES, complete=complete, namespace="research")
        assert namespace_doubt(ctx) == Skip(
            "namespace research was not found, so its labels are unknown", coming=complete
        )
        assert namespace_doubt(context(pod(), facts=NAMESPACES, complete=complete, namespace="another")) is None


@pytest.mark.parametrize(("replica", "expected"), [("Worker", "possibly training"), ("Launcher", "none")])
def test_the_launcher_of_an_mpi_job_only_starts_its_workers(context: Contexts, replica: str, expected: str) -> None:
    job = {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": "j"},
        "spec": {
            "mpiReplicaSpecs": {
                replica: {
                    "template": {
                        "spec": {"containers": [{"name": "c", **({"resources": GPU} if replica == "Worker" else {})}]}
                    }
                }
            }
        },
    }
    assert said(context(job, subject=1)) == expected


def test_of_a_pod_that_says_nothing_nothing_may_come(context: Contexts) -> None:
    found = context(pod(), facts=NAMESPACES, complete=True, namespace="another").derived(workload_class)
    assert found.doubt is None


def test_the_empty_value_of_a_label_is_no_missing_label(context: Contexts) -> None:
    classes = WorkloadClasses(labels={"a": {"": "batch"}}, node_selectors={"b": {"": "system"}})
    selecting = pod()
    selecting["spec"]["nodeSelector"] = {"b": ""}
    for obj, expected in ((pod(), None), (pod({"a": ""}), "batch"), (pod({"a": "x"}), None), (selecting, "system")):
        found = context(obj, platform=Platform(workload_classes=classes)).derived(workload_class)
        assert found.name == expected


def job_set(*commands: list[str], gpu: bool = True, **metadata: Any) -> dict[str, Any]:
    """A JobSet with a replicated Job for each command."""
    jobs = [{"name": f"j{i}", "template": {"spec": job_spec(command, gpu=gpu)}} for i, command in enumerate(commands)]
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "w", **metadata},
        "spec": {"replicatedJobs": jobs},
    }


def job_spec(command: list[str], *, gpu: bool = True, image: str = "", **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": image, "command": command, **({"resources": GPU} if gpu else {})}
    return {"template": {"spec": {"containers": [container]}}, **spec}


def workload(kind: str, command: list[str], name: str = "w", image: str = "", **spec: Any) -> dict[str, Any]:
    group = "apps/v1" if kind in {"Deployment", "DaemonSet", "StatefulSet"} else "batch/v1"
    return {
        "apiVersion": group,
        "kind": kind,
        "metadata": {"name": name},
        "spec": job_spec(command, image=image, **spec),
    }


def mpi_job(launcher: str, worker_image: str = "pretrain") -> dict[str, Any]:
    """An MPIJob; the last of its subjects is a worker."""
    specs = {
        role: {"template": job_spec(command, gpu=gpu, image=worker_image)["template"]}
        for role, command, gpu in (("Launcher", launcher.split(), False), ("Worker", ["/usr/sbin/sshd", "-De"], True))
    }
    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": "w"},
        "spec": {"mpiReplicaSpecs": specs},
    }


def ray_job(entrypoint: str, name: str = "w") -> dict[str, Any]:
    template = {"spec": pod()["spec"]}
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": {"name": name},
        "spec": {"entrypoint": entrypoint, "rayClusterSpec": {"workerGroupSpecs": [{"template": template}]}},
    }


TORCHRUN = ["torchrun", "--nproc_per_node=8", "main.py"]
TRAIN = ["python", "train.py"]
SERVED = {"ports": [{"containerPort": 1}], "readinessProbe": {"httpGet": {"port": 1}}}


def indexed(command: list[str], name: str = "w", image: str = "") -> dict[str, Any]:
    return workload("Job", command, name, image, completionMode="Indexed")


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        pytest.param(pod(container={"command": TORCHRUN}), "training", id="bare Pod with a launcher"),
        pytest.param(pod(container={"command": TRAIN}), "possibly training", id="bare Pod with a script"),
        pytest.param(pod(container={"command": TRAIN, **SERVED}), "none", id="bare Pod that serves"),
        pytest.param(workload("Deployment", TORCHRUN), "training", id="Deployment with a launcher"),
        pytest.param(workload("Deployment", TRAIN), "none", id="Deployment with a script"),
        pytest.param(workload("Job", TORCHRUN), "training", id="Job with a launcher"),
        pytest.param(workload("Job", TRAIN), "batch possibly training", id="Job with a script"),
        pytest.param(workload("Job", ["python", "report.py"]), "batch", id="Job"),
        pytest.param(indexed(TRAIN), "training", id="indexed Job with a script"),
        pytest.param(indexed(["python", "infer.py"]), "batch", id="indexed Job that infers"),
        pytest.param(indexed(["sleep", "9"], "batch-inference"), "batch", id="indexed Job named for inference"),
        pytest.param(indexed([], image="registry.example.com/nccl-tests:2"), "batch", id="indexed Job of a benchmark"),
        pytest.param(job_set(["python", "main.py"]), "possibly training", id="JobSet"),
        pytest.param(job_set(["python", "train.py"]), "training", id="JobSet with a script"),
        pytest.param(job_set(["python", "main.py"], TORCHRUN), "training", id="JobSet with a launcher in another Job"),
        pytest.param(job_set(["python", "evaluate.py"], TORCHRUN), "none", id="the part of a JobSet that evaluates"),
        pytest.param(
            job_set(["python", "main.py"], ownerReferences=[{"kind": "TrainJob", "name": "t"}]),
            "training",
            id="TrainJob",
        ),
        pytest.param(mpi_job("mpirun -np 8 python train.py"), "training", id="MPIJob with a training script"),
        pytest.param(mpi_job("mpirun -np 8 ./solve"), "possibly training", id="MPIJob"),
        pytest.param(mpi_job("mpirun -np 8 /opt/all_reduce_perf -b 8"), "none", id="MPIJob with nccl-tests"),
        pytest.param(mpi_job("sleep 1", "example.com/samples:nvbandwidth-v0.8"), "none", id="MPIJob with nvbandwidth"),
        pytest.param(ray_job("python process.py"), "possibly training", id="RayJob"),
        pytest.param(ray_job("python train.py"), "training", id="RayJob with a training script"),
        pytest.param(ray_job("python batch_inference.py"), "none", id="RayJob with batch inference"),
        pytest.param(ray_job("python process.py", "batch-inference"), "none", id="RayJob named for batch inference"),
    ],
)
def test_the_command_tells(context: Contexts, obj: dict[str, Any], expected: str) -> None:
    is_pod = obj["kind"] == "Pod"
    last = 2 if obj["kind"] == "MPIJob" else 1
    assert said(context(obj, subject=0 if is_pod else last)) == expected


def test_a_benchmark_in_a_framework_that_trains_does_not_train(context: Contexts) -> None:
    for command, expected in ((["./all_reduce_perf"], "none"), (TRAIN, "training"), (["true"], "training")):
        assert said(context(pod(kubeflow(), container={"command": command}))) == expected


def test_a_server_in_a_framework_that_serves_stays_one(context: Contexts) -> None:
    group = pod({"leaderworkerset.sigs.k8s.io/name": "l"}, container={"command": TORCHRUN})
    assert said(context(group)) == "inference"
    deployment = workload("Deployment", TORCHRUN)
    deployment["spec"]["template"]["spec"]["containers"][0].update(SERVED)
    assert said(context(deployment, subject=1)) == "inference"


def test_what_told_is_said(context: Contexts) -> None:
    assert context(pod(container={"command": TORCHRUN})).derived(workload_class).source == (
        "the launcher torchrun in its command"
    )
    assert context(indexed(TRAIN), subject=1).derived(workload_class).source == (
        "a parallel or indexed Job with train.py in its command"
    )


# What the kind of a workload tells of a template with a GPU, of one without, and whether it tells so for certain.
KINDS = {
    "apps.nvidia.com NIMService": ("inference", "inference", True),
    "batch.volcano.sh Job": ("possibly training", "possibly training", False),
    "jobset.x-k8s.io JobSet": ("possibly training", "none", False),
    "kubeflow.org JAXJob": ("training", "training", True),
    "kubeflow.org MPIJob": ("possibly training", "possibly training", False),
    "kubeflow.org Notebook": ("interactive", "interactive", True),
    "kubeflow.org PaddleJob": ("training", "training", True),
    "kubeflow.org PyTorchJob": ("training", "training", True),
    "kubeflow.org TFJob": ("training", "training", True),
    "kubeflow.org XGBoostJob": ("training", "training", True),
    "leaderworkerset.x-k8s.io LeaderWorkerSet": ("inference", "inference", True),
    "nvidia.com DynamoGraphDeployment": ("inference", "none", True),
    "production-stack.vllm.ai VLLMRuntime": ("inference", "inference", True),
    "ray.io RayCronJob": ("possibly training", "possibly training", False),
    "ray.io RayJob": ("possibly training", "possibly training", False),
    "ray.io RayService": ("inference", "inference", True),
    "sagemaker.amazonaws.com HyperPodPyTorchJob": ("training", "training", True),
    "serving.kserve.io InferenceService": ("inference", "inference", True),
    "serving.kserve.io LLMInferenceService": ("inference", "inference", True),
    "trainer.kubeflow.org ClusterTrainingRuntime": ("training", "none", True),
    "trainer.kubeflow.org TrainingRuntime": ("training", "none", True),
    "example.com RayJob": ("none", "none", False),
}
# The same of the labels of a Pod.
LABELS = {
    "training.kubeflow.org/job-name": ("training", "training", True),
    "jobset.sigs.k8s.io/jobset-name": ("possibly training", "none", False),
    "volcano.sh/job-name": ("possibly training", "possibly training", False),
    "serving.kserve.io/inferenceservice": ("inference", "inference", True),
    "leaderworkerset.sigs.k8s.io/name": ("inference", "inference", True),
    "notebook-name": ("interactive", "interactive", True),
    "component=singleuser-server": ("interactive", "interactive", True),
    "component=another": ("none", "none", False),
    "training.kubeflow.org/operator-name=mpi-operator": ("possibly training", "possibly training", False),
    "training.kubeflow.org/operator-name=mpijob-controller": ("possibly training", "possibly training", False),
    "training.kubeflow.org/operator-name=pytorchjob-controller": ("none", "none", False),
}


def of_kind(ctx: Context[Any], kind: str, **metadata: Any) -> Context[Any]:
    """Return the context of the Pod as a template of a workload of this kind."""
    group, name = kind.split()
    return replace(ctx, wrapper=Wrapper(GroupVersionKind(group, "v1", name), Field({"metadata": metadata})), memo={})


def conflicts(ctx: Context[Any]) -> bool:
    return ctx.derived(workload_class).conflict is not None


@pytest.mark.parametrize(("kind", "expected"), KINDS.items(), ids=KINDS)
def test_each_kind_of_workload_tells_its_class(context: Contexts, kind: str, expected: tuple[str, str, bool]) -> None:
    with_gpu, without = (of_kind(context(pod(gpu=gpu)), kind) for gpu in (True, False))
    declared = of_kind(context(pod({"gpugate.dev/workload-class": "batch"})), kind)
    assert (said(with_gpu), said(without), conflicts(declared)) == expected


@pytest.mark.parametrize(("label", "expected"), LABELS.items(), ids=LABELS)
def test_each_label_of_a_framework_tells_its_class(
    context: Contexts, label: str, expected: tuple[str, str, bool]
) -> None:
    key, _, value = label.partition("=")
    labels = {key: value or "a"}
    declared = context(pod({**labels, "gpugate.dev/workload-class": "batch"}))
    found = (said(context(pod(labels))), said(context(pod(labels, gpu=False))), conflicts(declared))
    assert found == expected


@pytest.mark.parametrize(
    ("kind", "metadata", "expected"),
    [
        pytest.param("jobset.x-k8s.io JobSet", {"ownerReferences": [{"kind": "TrainJob"}]}, "training", id="TrainJob"),
        pytest.param("jobset.x-k8s.io JobSet", {"ownerReferences": [{"kind": "A"}]}, "possibly training", id="JobSet"),
        pytest.param(
            "apps Deployment", {"ownerReferences": [{"kind": "TrainJob"}]}, "none", id="an owner of another kind"
        ),
        pytest.param(
            "ray.io RayCluster", {"labels": {"ray.io/originated-from-crd": "RayJob"}}, "possibly training", id="RayJob"
        ),
        pytest.param(
            "ray.io RayCluster", {"labels": {"ray.io/originated-from-crd": "RayService"}}, "inference", id="RayService"
        ),
        pytest.param("ray.io RayCluster", {}, "none", id="RayCluster"),
        # The name of a benchmark or of inference.
        pytest.param("ray.io RayJob", {"name": "train"}, "possibly training", id="a name"),
        *(
            pytest.param("ray.io RayJob", {"name": name}, "none", id=name)
            for name in ("infer-a", "a-inference", "bench", "benchmarking", "nccl", "rccl-a", "eval", "evaluation")
        ),
        pytest.param("ray.io RayJob", {"name": "a" * 248 + "-eval"}, "none", id="the longest name"),
        pytest.param("ray.io RayJob", {"name": "a" * 249 + "-eval"}, "possibly training", id="a name that is too long"),
        pytest.param("ray.io RayJob", {"generateName": "eval-"}, "none", id="a name that is generated"),
        pytest.param("ray.io RayJob", {"name": "a", "generateName": "eval-"}, "possibly training", id="both names"),
    ],
)
def test_the_metadata_of_a_workload_tell_more(
    context: Contexts, kind: str, metadata: dict[str, Any], expected: str
) -> None:
    assert said(of_kind(context(pod()), kind, **metadata)) == expected


def test_nothing_tells_the_class_of_a_bare_pod(context: Contexts) -> None:
    found = context(pod()).derived(workload_class)
    assert (found.name, found.source, found.conflict, found.possible) == (None, "", None, None)


CONTROLLERS = {
    "DaemonSet": "system:serviceaccount:kube-system:daemon-set-controller",
    "Job": "system:serviceaccount:kube-system:job-controller",
    "ReplicaSet": "system:serviceaccount:kube-system:replicaset-controller",
    "ReplicationController": "system:serviceaccount:kube-system:replication-controller",
    "StatefulSet": "system:serviceaccount:kube-system:statefulset-controller",
}
OTHER = "system:serviceaccount:ml:operator"


@pytest.mark.parametrize(
    ("kind", "version", "user", "counts"),
    [
        *((kind, "", user, True) for kind, user in CONTROLLERS.items()),
        *((kind, "", "system:kube-controller-manager", True) for kind in CONTROLLERS),
        *((kind, "", "", True) for kind in CONTROLLERS),
        *((kind, "", OTHER, False) for kind in CONTROLLERS),
        *(("Job", version, OTHER, False) for version in ("v1", "apps/v1", "batch/v1")),
        ("Job", "batch.volcano.sh/v1alpha1", OTHER, True),
        ("Job", "batch.volcano.sh/v1alpha1", "anna", False),
        ("RayCluster", "ray.io/v1", OTHER, True),
        ("RayCluster", "ray.io/v1", "anna", False),
    ],
)
def test_the_owner_of_a_pod_counts_if_its_controller_made_the_pod(
    context: Contexts,
    kind: str,
    version: str,
    user: str,
    counts: bool,  # noqa: FBT001 -- a table's column
) -> None:
    obj = pod()
    obj["metadata"]["ownerReferences"] = [
        {"kind": "Other", "name": "o"},
        {"kind": kind, "apiVersion": version, "name": "o", "controller": True},
    ]
    ctx = context(obj)
    sent = replace(ctx, request=replace(ctx.request, user=user))
    assert owner_kind(sent.subject, sent) == (kind if counts else "")
