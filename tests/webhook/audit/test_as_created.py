"""With Pods as kube-apiserver v1.36.3 stores them, see `tests/fixtures/stored`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gpugate.policies.engine.defaults import with_defaults
from gpugate.policies.sdk.objects import GroupVersionKind, Operation, Request
from gpugate.webhook.audit.verdicts import as_created, pod_as_created
from gpugate.webhook.report.copies import digest

STORED = Path(__file__).parents[2] / "fixtures" / "stored"


def read(name: str) -> Any:
    return json.loads((STORED / f"{name}.json").read_bytes())


def test_a_scheduled_pod_is_what_was_written() -> None:
    pod = pod_as_created(read("pod-scheduled"))

    assert set(pod["metadata"]) == {"name", "namespace"}
    assert pod["spec"]["tolerations"] == [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]
    assert not {"nodeName", "serviceAccount", "serviceAccountName", "priority", "volumes"} & set(pod["spec"])
    assert "volumeMounts" not in pod["spec"]["containers"][0]
    assert "status" not in pod


def test_the_name_of_a_node_stays_when_the_user_wrote_it() -> None:
    assert pod_as_created(read("pod-with-node-name"))["spec"]["nodeName"]


def test_the_stored_object_is_left_as_it_is() -> None:
    pod, before = read("pod-scheduled"), read("pod-scheduled")

    pod_as_created(pod)

    assert pod == before


@pytest.mark.parametrize("kind", ["deployment", "daemonset"])
def test_a_pod_is_as_the_template_that_it_was_made_from(kind: str) -> None:
    stored = read(kind)
    owner_kind = stored["pods"][0]["metadata"]["ownerReferences"][0]["kind"]

    assert content(stored["workload"]["spec"]["template"], owner_kind) == digest(
        pod_as_created(stored["pods"][0], owner_kind)
    )


def test_pods_of_an_indexed_job_are_alike() -> None:
    first, second = read("job")["pods"]

    assert digest(pod_as_created(first)) == digest(pod_as_created(second))


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"spec": {"nodeSelector": {"a": "b"}}}, id="spec"),
        pytest.param({"metadata": {"labels": {"team": "other"}}}, id="label"),
        pytest.param({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}}, id="annotation"),
        pytest.param(
            {"metadata": {"labels": {"batch.kubernetes.io/job-completion-index": "0"}}}, id="copy-of-another-sort"
        ),
    ],
)
def test_pods_that_policies_can_tell_apart_are_not_alike(change: dict[str, Any]) -> None:
    pod = pod_as_created(read("pod-scheduled"))
    other = {**pod, **{key: {**pod[key], **value} for key, value in change.items()}}

    assert digest(pod) != digest(other)


@pytest.mark.parametrize(
    "toleration",
    [
        pytest.param({"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}, id="own-seconds"),
        pytest.param({"operator": "Exists"}, id="everything"),
        pytest.param({"key": "node.kubernetes.io/disk-pressure", "operator": "Exists"}, id="not-of-a-daemon-set"),
    ],
)  # fmt: skip
def test_a_toleration_that_nobody_else_adds_stays(toleration: dict[str, Any]) -> None:
    assert pod_as_created({"spec": {"tolerations": [toleration]}})["spec"] == {"tolerations": [toleration]}


def test_affinity_to_more_than_the_node_of_a_daemon_set_stays() -> None:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    chosen = {"key": "metadata.name", "operator": "In", "values": ["node-1"]}
    own = {"key": "zone", "operator": "In", "values": ["a"]}
    terms = [{"matchFields": [chosen], "matchExpressions": [own]}]
    spec = {"affinity": {"nodeAffinity": {required: {"nodeSelectorTerms": terms}}, "podAffinity": {}}}

    kept = pod_as_created({"spec": spec}, "DaemonSet")["spec"]["affinity"]

    assert kept == {"nodeAffinity": {required: {"nodeSelectorTerms": [{"matchExpressions": [own]}]}}, "podAffinity": {}}


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param({}, id="empty"),
        pytest.param({"metadata": None, "spec": None}, id="nulls"),
        pytest.param({"metadata": [], "spec": "text"}, id="other-types"),
        pytest.param({"metadata": {"managedFields": [1], "annotations": 3}, "spec": {"containers": [1], "volumes": {}}}, id="within"),
        pytest.param({"metadata": {"managedFields": [{"fieldsV1": 1}]}, "spec": {"tolerations": ["a"], "affinity": []}}, id="deeper"),
    ],
)  # fmt: skip
def test_what_is_no_pod_goes_through(broken: dict[str, Any]) -> None:
    digest(pod_as_created(broken, "DaemonSet"))


def test_an_object_keeps_neither_status_nor_what_the_api_server_notes() -> None:
    workload = read("deployment")["workload"]

    assert set(as_created(workload)) == {"apiVersion", "kind", "metadata", "spec"}
    assert set(as_created(workload)["metadata"]) == {"name", "namespace", "annotations"}
    assert as_created(workload)["metadata"]["annotations"] == {}


def content(template: dict[str, Any], owner_kind: str) -> bytes:
    pod = {"metadata": template["metadata"], "spec": template["spec"]}
    defaulted = with_defaults(Request(GroupVersionKind("", "v1", "Pod"), Operation.CREATE, pod)).object
    return digest(pod_as_created(defaulted or {}, owner_kind))
