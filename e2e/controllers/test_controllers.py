"""With everything enforced, the controllers of Kubernetes do their work, and say why where they cannot."""

from __future__ import annotations

import copy
import time
from typing import TYPE_CHECKING, Any

import pytest
from cluster.namespaces import make_namespace, namespace_object
from controllers.watched import failures, has_status, running
from eventually import eventually
from violating import HIDDEN_ACCESS, blameless_pod, deployment, node_class, pod, pod_spec

if TYPE_CHECKING:
    from cluster.api import Api
    from cluster.served_webhook import ServedWebhook

Json = dict[str, Any]
GPUS = {"nvidia.com/gpu": "1"}
LABELS = {"app": "made", "team": "search", "cost-center": "cc-1234"}


def template(namespace: str, **spec: Any) -> Json:
    """A Pod template that asks for a GPU and lacks the toleration."""
    return {"metadata": {"labels": LABELS}, "spec": blameless_pod(namespace)["spec"] | spec}


def workload(api_version: str, kind: str, namespace: str, **spec: Any) -> Json:
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": "made", "namespace": namespace, "labels": LABELS},
        "spec": spec,
    }


def job_spec(namespace: str) -> Json:
    return {"template": template(namespace, restartPolicy="Never"), "backoffLimit": 0}


@pytest.mark.usefixtures("gpu_room")
def test_a_deployment_rolls_out(api: Api, namespace: str) -> None:
    made = deployment(namespace, "made", template(namespace)["spec"], replicas=2)
    assert api.create(made).ok
    api.eventually(made, lambda found: has_status(found, availableReplicas=2))
    old = {each["metadata"]["name"] for each in running(api, namespace)}

    made["spec"]["template"]["spec"]["containers"][0]["image"] = "registry.example.com/main:2"
    assert api.apply(made, force=True).ok
    api.eventually(made, lambda found: has_status(found, updatedReplicas=2, availableReplicas=2, replicas=2))
    assert eventually(lambda: len(api.list("v1", "Pod", namespace)) == 2)
    assert old.isdisjoint(each["metadata"]["name"] for each in running(api, namespace))
    assert failures(api, namespace) == []


@pytest.mark.usefixtures("gpu_room")
def test_a_job_completes(api: Api, namespace: str) -> None:
    made = workload("batch/v1", "Job", namespace, **job_spec(namespace))
    assert api.create(made).ok
    api.eventually(made, lambda found: has_status(found, succeeded=1))
    assert failures(api, namespace) == []


@pytest.mark.usefixtures("gpu_room")
def test_a_cron_job_makes_a_job_that_completes(api: Api, namespace: str) -> None:
    made = workload("batch/v1", "CronJob", namespace, schedule="* * * * *", jobTemplate={"spec": job_spec(namespace)})
    assert api.create(made).ok
    # So the controller takes it that a minute was missed, and does not wait for the next one.
    missed = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 90))
    assert api.patch(made, {"status": {"lastScheduleTime": missed}}, subresource="status").ok
    completed = [{"type": "Complete", "status": "True"}]

    def done() -> bool:
        jobs = api.list("batch/v1", "Job", namespace)
        return any(_conditions(job, "Complete") == completed for job in jobs)

    assert eventually(done)
    assert failures(api, namespace) == []


def _conditions(obj: Json, kind: str) -> list[Json]:
    found = obj.get("status", {}).get("conditions", ())
    return [{"type": each["type"], "status": each["status"]} for each in found if each["type"] == kind]


def test_a_daemon_set_has_a_pod_on_each_node(api: Api, namespace: str, gpu_room: Json, plain_room: Json) -> None:
    agent = {"containers": [{"name": "agent", "image": "registry.example.com/agent:1"}]}
    agent["tolerations"] = [{"operator": "Exists"}]
    made = workload(
        "apps/v1",
        "DaemonSet",
        namespace,
        selector={"matchLabels": {"app": "made"}},
        template={"metadata": {"labels": LABELS}, "spec": agent},
    )
    assert api.create(made).ok
    nodes = {room["metadata"]["name"] for room in (gpu_room, plain_room)}
    assert eventually(lambda: nodes <= {each["spec"]["nodeName"] for each in running(api, namespace)})
    assert failures(api, namespace) == []


@pytest.mark.usefixtures("gpu_room")
def test_a_stateful_set_starts_its_pods(api: Api, namespace: str) -> None:
    made = workload(
        "apps/v1",
        "StatefulSet",
        namespace,
        serviceName="made",
        replicas=2,
        selector={"matchLabels": {"app": "made"}},
        template=template(namespace),
    )
    assert api.create(made).ok
    api.eventually(made, lambda found: has_status(found, readyReplicas=2, currentReplicas=2))
    assert {each["metadata"]["name"] for each in running(api, namespace)} == {"made-0", "made-1"}
    assert failures(api, namespace) == []


def test_the_event_of_a_pod_that_was_denied_says_why(api: Api, namespace: str) -> None:
    made = deployment(namespace, "made", pod_spec())
    answer = api.create(made)
    assert answer.ok, answer.message
    assert any(HIDDEN_ACCESS in warning for warning in answer.warnings)

    assert eventually(lambda: failures(api, namespace))
    assert all("denied the request" in said and HIDDEN_ACCESS in said for said in failures(api, namespace))
    stored = api.eventually(made, lambda found: _conditions(found, "ReplicaFailure"))
    (failed,) = (each for each in stored["status"]["conditions"] if each["type"] == "ReplicaFailure")
    assert HIDDEN_ACCESS in failed["message"]


@pytest.mark.usefixtures("plain_room")
def test_a_controller_goes_on_once_the_template_is_fixed(api: Api, namespace: str) -> None:
    made = deployment(namespace, "made", pod_spec())
    assert api.create(made).ok
    assert eventually(lambda: failures(api, namespace))
    fixed = copy.deepcopy(made)
    del fixed["spec"]["template"]["spec"]["containers"][0]["env"]
    assert api.replace(fixed).ok
    api.eventually(made, lambda found: has_status(found, availableReplicas=1, replicas=1))


@pytest.mark.usefixtures("plain_room")
def test_pods_that_were_there_before_go_on_and_are_replaced_when_fixed(
    api: Api, namespace: str, webhook: ServedWebhook
) -> None:
    made = deployment(namespace, "made", pod_spec())
    webhook.unregister()
    try:
        assert api.create(made).ok
        api.eventually(made, lambda found: has_status(found, availableReplicas=1))
    finally:
        webhook.register()
    assert api.patch(made, {"metadata": {"labels": {"changed": "yes"}}}).ok
    fixed = copy.deepcopy(made)
    del fixed["spec"]["template"]["spec"]["containers"][0]["env"]
    assert api.replace(fixed).ok
    api.eventually(made, lambda found: has_status(found, availableReplicas=1, updatedReplicas=1, replicas=1))
    assert failures(api, namespace) == []


def test_a_namespace_goes_with_everything_that_violates_in_it(api: Api, webhook: ServedWebhook) -> None:
    scaled_object = {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": "scaler", "namespace": "going"},
        "spec": {"scaleTargetRef": {"name": "made"}, "triggers": [{"type": "prometheus", "metadata": {}}]},
    }
    webhook.unregister()
    try:
        going = make_namespace(api, "going")
        for violating in (pod("going"), deployment("going", "made", pod_spec(), replicas=2), scaled_object):
            answer = api.create(violating)
            assert answer.ok, answer.message
    finally:
        webhook.register()
    assert api.delete(going).ok
    api.eventually(going, lambda found: not found, seconds=150)


def test_no_controller_is_held_up_by_a_node_class_that_violates(api: Api, webhook: ServedWebhook) -> None:
    """The garbage collector removes what an owner leaves behind."""
    owner = namespace_object("owner")
    assert api.create(owner).ok
    uid = api.get(owner)["metadata"]["uid"]
    owned = node_class()
    owned["metadata"]["ownerReferences"] = [{"apiVersion": "v1", "kind": "Namespace", "name": "owner", "uid": uid}]
    webhook.unregister()
    try:
        assert api.create(owned).ok
    finally:
        webhook.register()
    assert api.delete(owner).ok
    api.eventually(owned, lambda found: not found, seconds=150)
