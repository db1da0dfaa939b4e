"""What the controllers of training and serving frameworks create for a stored workload, without running them.

Each function takes the workload as the API server stored it and returns the object its controller creates next, with
the labels, annotations and owner that it writes. Where that is a Job or a StatefulSet, Kubernetes' own controllers make
the Pods of it.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

Object = dict[str, Any]


def owned(workload: Object) -> dict[str, Any]:
    """Write the reference to the controller that made an object (`metav1.NewControllerRef`)."""
    kept = {"apiVersion": workload["apiVersion"], "kind": workload["kind"]}
    name, uid = workload["metadata"]["name"], workload["metadata"]["uid"]
    return kept | {"name": name, "uid": uid, "controller": True, "blockOwnerDeletion": True}


def kubeflow_pod(job: Object, replicas: str, replica_type: str) -> Object:
    """Make the first Pod of a replica type, as Kubeflow's training operator does.

    Source: kubeflow/training-operator v1.9.4 `pkg/controller.v1/common/pod.go` (createNewPod), `job_controller.go`
    (GenLabels), `pkg/core/utils.go` (GenGeneralName); the operator's name is the controller's, as `pytorchjob-controller`.
    """
    template = job["spec"][replicas][replica_type]["template"]
    labels = {
        "training.kubeflow.org/operator-name": f"{job['kind'].lower()}-controller",
        "training.kubeflow.org/job-name": job["metadata"]["name"],
        "training.kubeflow.org/replica-type": replica_type.lower(),
        "training.kubeflow.org/replica-index": "0",
    }
    if replica_type in {"Master", "Chief"}:
        labels["training.kubeflow.org/job-role"] = "master"
    name = f"{job['metadata']['name']}-{replica_type.lower()}-0"
    return _pod(job, name, template, labels)


def mpi_worker(job: Object) -> Object:
    """Make the first worker of an MPIJob.

    Source: kubeflow/mpi-operator v0.6.0 `pkg/controller/mpi_job_controller.go` (newWorker, defaultLabels).
    """
    name = f"{job['metadata']['name']}-worker-0"
    template = job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]
    labels = _mpi_labels(job, "worker") | {"training.kubeflow.org/replica-index": "0"}
    made = _pod(job, name, template, labels)
    made["spec"] |= {"hostname": name, "subdomain": job["metadata"]["name"]}
    return made


def mpi_launcher(job: Object) -> Object:
    """Make the Job that launches an MPIJob, whose Pod asks for no GPU.

    Source: kubeflow/mpi-operator v0.6.0 `pkg/controller/mpi_job_controller.go` (newLauncherJob, newLauncherPodTemplate).
    """
    template = deepcopy(job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"])
    metadata = template.setdefault("metadata", {})
    metadata["labels"] = metadata.get("labels", {}) | _mpi_labels(job, "launcher")
    template["spec"]["restartPolicy"] = "Never"
    labels = {"app": job["metadata"]["name"]}
    return _made("batch/v1", "Job", job, "-launcher", labels) | {"spec": {"template": template}}


def job_of_set(job_set: Object) -> Object:
    """Make the first Job of a JobSet's first replicated Job; Kubeflow trainer v2 makes JobSets of its TrainJobs.

    Source: kubernetes-sigs/jobset v0.12.0 `pkg/controllers/jobset_controller.go` (constructJob,
    labelAndAnnotateObject): labels and annotations are those of the Job and of its template.
    """
    replicated = job_set["spec"]["replicatedJobs"][0]
    marks = {
        "jobset.sigs.k8s.io/jobset-name": job_set["metadata"]["name"],
        "jobset.sigs.k8s.io/jobset-uid": job_set["metadata"]["uid"],
        "jobset.sigs.k8s.io/replicatedjob-name": replicated["name"],
        "jobset.sigs.k8s.io/replicatedjob-replicas": str(replicated["replicas"]),
        "jobset.sigs.k8s.io/restart-attempt": "0",
        "jobset.sigs.k8s.io/job-index": "0",
        "jobset.sigs.k8s.io/job-global-index": "0",
    }
    spec = deepcopy(replicated["template"]["spec"])
    metadata = spec["template"].setdefault("metadata", {})
    metadata["labels"] = metadata.get("labels", {}) | marks
    metadata["annotations"] = metadata.get("annotations", {}) | marks
    made = _made("batch/v1", "Job", job_set, f"-{replicated['name']}-0", marks)
    return made | {"spec": {**spec, "suspend": False}}


def volcano_pod(job: Object) -> Object:
    """Make the first Pod of a Volcano Job's first task, for Volcano's own scheduler.

    Source: volcano-sh/volcano v1.15.1 `pkg/controllers/job/job_controller_util.go` (createJobPod).
    """
    task = job["spec"]["tasks"][0]
    name = job["metadata"]["name"]
    labels = {
        "volcano.sh/task-index": "0",
        "volcano.sh/job-name": name,
        "volcano.sh/task-spec": task["name"],
        "volcano.sh/job-namespace": job["metadata"]["namespace"],
        "volcano.sh/queue-name": job["spec"]["queue"],
    }
    made = _pod(job, f"{name}-{task['name']}-0", task["template"], labels)
    annotations = {
        "volcano.sh/task-index": "0",
        "volcano.sh/task-spec": task["name"],
        "scheduling.k8s.io/group-name": f"{name}-{job['metadata']['uid']}",
        "volcano.sh/job-name": name,
        "volcano.sh/queue-name": job["spec"]["queue"],
        "volcano.sh/job-version": "0",
    }
    made["metadata"]["annotations"] = annotations
    made["spec"]["schedulerName"] = job["spec"]["schedulerName"]
    return made


def ray_cluster_of(workload: Object, spec: str) -> Object:
    """Make the RayCluster of a RayJob or a RayService.

    Source: ray-project/kuberay v1.7.0 `ray-operator/controllers/ray/rayjob_controller.go`
    (constructRayClusterForRayJob), `rayservice_controller.go` (constructRayClusterForRayService).
    """
    labels = {
        "ray.io/originated-from-cr-name": workload["metadata"]["name"],
        "ray.io/originated-from-crd": workload["kind"],
    }
    made = _made("ray.io/v1", "RayCluster", workload, "-x7k2p", labels)
    return made | {"spec": deepcopy(workload["spec"][spec])}


def ray_worker(cluster: Object) -> Object:
    """Make the first worker of a RayCluster's first group.

    Source: ray-project/kuberay v1.7.0 `ray-operator/controllers/ray/common/pod.go` (labelPod).
    """
    group = cluster["spec"]["workerGroupSpecs"][0]
    name = cluster["metadata"]["name"]
    labels = {
        "ray.io/is-ray-node": "yes",
        "ray.io/cluster": name,
        "ray.io/node-type": "worker",
        "ray.io/group": group["groupName"],
        "ray.io/identifier": f"{name}-worker",
        "app.kubernetes.io/name": "kuberay",
        "app.kubernetes.io/created-by": "kuberay-operator",
    }
    return _pod(cluster, f"{name}-{group['groupName']}-worker-q4x9z", group["template"], labels)


def leaders_of(workload: Object) -> Object:
    """Make the StatefulSet of a LeaderWorkerSet's leaders.

    Source: kubernetes-sigs/lws v0.10.0 `pkg/controllers/leaderworkerset_controller.go`
    (constructLeaderStatefulSetApplyConfiguration).
    """
    name = workload["metadata"]["name"]
    selector = {"leaderworkerset.sigs.k8s.io/name": name, "leaderworkerset.sigs.k8s.io/worker-index": "0"}
    template = deepcopy(workload["spec"]["leaderWorkerTemplate"]["workerTemplate"])
    metadata = template.setdefault("metadata", {})
    metadata["labels"] = metadata.get("labels", {}) | selector
    metadata["annotations"] = {
        "leaderworkerset.sigs.k8s.io/size": str(workload["spec"]["leaderWorkerTemplate"]["size"])
    }
    spec = {"serviceName": name, "replicas": 1, "selector": {"matchLabels": selector}, "template": template}
    made = _made("apps/v1", "StatefulSet", workload, "", {"leaderworkerset.sigs.k8s.io/name": name})
    return made | {"spec": {**spec, "podManagementPolicy": "Parallel"}}


def _mpi_labels(job: Object, role: str) -> dict[str, str]:
    return {
        "training.kubeflow.org/operator-name": "mpi-operator",
        "training.kubeflow.org/job-name": job["metadata"]["name"],
        "training.kubeflow.org/job-role": role,
    }


def _made(api_version: str, kind: str, owner: Object, suffix: str, labels: dict[str, str]) -> Object:
    name, namespace = owner["metadata"]["name"] + suffix, owner["metadata"]["namespace"]
    metadata = {"name": name, "namespace": namespace, "labels": labels, "ownerReferences": [owned(owner)]}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}


def _pod(owner: Object, name: str, template: Object, labels: dict[str, str]) -> Object:
    made = _made("v1", "Pod", owner, "", template.get("metadata", {}).get("labels", {}) | labels)
    made["metadata"]["name"] = name
    return made | {"spec": deepcopy(template["spec"])}
