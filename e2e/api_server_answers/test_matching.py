"""Which requests the API server asks a webhook about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from stub_webhook.registration import config_map, configuration, rule

if TYPE_CHECKING:
    from cluster.api import Api
    from stub_webhook.registration import Registrar
    from stub_webhook.server import Stub

BREAKS = [{"name": "breaks", "expression": "object.data.missing == 'x'"}]
LABELLED = {"matchLabels": {"judged": "yes"}}


@pytest.mark.parametrize(
    ("expression", "asked"),
    [
        ("object.metadata.name.startsWith('asked')", True),
        ("object.metadata.name.startsWith('other')", False),
        ("!has(object.data)", True),
        ("request.userInfo.username.startsWith('system:node:')", False),
    ],
)
def test_match_conditions(stub: Stub, registrar: Registrar, expression: str, *, asked: bool) -> None:
    conditions = [{"name": "condition", "expression": expression}]
    with registrar.registered("validating", registrar.hook(matchConditions=conditions)):
        assert registrar.try_create().ok
    assert bool(stub.calls) == asked


@pytest.mark.parametrize(("policy", "ok"), [("Fail", False), ("Ignore", True)])
def test_a_match_condition_that_breaks_is_no_call(stub: Stub, registrar: Registrar, policy: str, *, ok: bool) -> None:
    hook = registrar.hook(matchConditions=BREAKS, failurePolicy=policy)
    with registrar.registered("validating", hook):
        answer = registrar.try_create()
    assert (answer.ok, stub.calls) == (ok, [])
    assert ok or (answer.code == 403 and "no such key: data" in answer.message), answer.message


def test_a_false_match_condition_beats_one_that_breaks(stub: Stub, registrar: Registrar) -> None:
    conditions = [*BREAKS, {"name": "false", "expression": "false"}]
    with registrar.registered("validating", registrar.hook(matchConditions=conditions, failurePolicy="Fail")):
        assert registrar.try_create().ok
    assert not stub.calls


# True of every update that changes more than finalizers and the API server's own book-keeping.
CHANGES_MORE = (
    "oldObject == null || object.?data != oldObject.?data || "
    "['labels', 'annotations', 'ownerReferences'].exists(m, object.metadata[?m] != oldObject.metadata[?m])"
)


@pytest.mark.parametrize(
    ("change", "asked"),
    [
        ({"data": {"a": "c"}}, True),
        ({"data": {"a": "b"}}, False),
        ({"metadata": {"labels": {"a": "b"}}}, True),
        ({"metadata": {"finalizers": None}}, False),
        ({"metadata": {"finalizers": None}, "data": {"a": "c"}}, True),
    ],
    ids=["data", "nothing", "label", "finalizer", "finalizer-and-data"],
)
def test_a_match_condition_can_tell_what_an_update_changes(
    stub: Stub, registrar: Registrar, change: dict[str, Any], *, asked: bool
) -> None:
    stored = config_map(registrar.namespace, finalizers=["e2e.gpugate.dev/not-yet"]) | {"data": {"a": "b"}}
    assert registrar.api.create(stored).ok
    hook = registrar.hook(
        rules=[rule("configmaps", "UPDATE")],
        matchConditions=[{"name": "changes-more", "expression": CHANGES_MORE}],
        failurePolicy="Fail",
    )
    with registrar.registered("validating", hook):
        answer = registrar.api.patch(stored, change)
    assert answer.ok, answer.message
    assert bool(stub.calls) == asked
    registrar.api.patch(stored, {"metadata": {"finalizers": None}})


@pytest.mark.parametrize(
    ("before", "after", "asked"),
    [({"judged": "yes"}, {}, True), ({}, {"judged": "yes"}, True), ({}, {}, False)],
    ids=["old", "new", "neither"],
)
def test_an_object_selector_looks_at_the_old_and_the_new_object(
    stub: Stub, registrar: Registrar, before: dict[str, str], after: dict[str, str], *, asked: bool
) -> None:
    stored = registrar.api.create(config_map(registrar.namespace, labels=before)).body
    hook = registrar.hook(objectSelector=LABELLED, rules=[rule("configmaps", "UPDATE")])
    with registrar.registered("validating", hook):
        changed = stored | {"metadata": stored["metadata"] | {"labels": after}, "data": {"a": "b"}}
        assert registrar.api.replace(changed).ok
    assert bool(stub.calls) == asked


def test_a_namespace_selector_says_nothing_about_cluster_scoped_objects(stub: Stub, registrar: Registrar) -> None:
    classes = rule("priorityclasses", "CREATE", group="scheduling.k8s.io")
    priority_class = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "asked"},
        "value": 1,
    }
    with registrar.registered("validating", registrar.hook(rules=[classes], failurePolicy="Ignore")):
        assert registrar.api.create(priority_class, dry_run=True).ok
    assert [call.request["name"] for call in stub.calls] == ["asked"]


def test_a_rule_for_everything_leaves_out_webhook_configurations(api: Api, stub: Stub, registrar: Registrar) -> None:
    everything = [rule("*", "*", group="*", version="*") | {"scope": "Cluster"}]
    hook = registrar.hook(rules=everything, failurePolicy="Ignore")
    other = configuration("mutating", "other.e2e.gpugate.dev", [])
    with registrar.registered("validating", hook):
        assert api.create(other, dry_run=True).ok
        asked = {call.request["resource"]["resource"] for call in stub.calls}
    assert not {resource for resource in asked if "webhook" in resource}


@pytest.mark.parametrize(
    ("resources", "asked"), [(["pods"], []), (["pods/*"], ["status"]), (["*/*"], ["status"])], ids=" ".join
)
def test_subresources_have_to_be_named(
    stub: Stub, registrar: Registrar, resources: list[str], asked: list[str]
) -> None:
    pod: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "stored", "namespace": registrar.namespace},
        # Without a node nobody else writes its status, but for the scheduler, which has no part in this one.
        "spec": {"containers": [{"name": "main", "image": "busybox"}], "schedulerName": "nobody"},
    }
    assert registrar.api.create(pod).ok
    rules = [rule("pods", "UPDATE") | {"resources": resources}]
    with registrar.registered("validating", registrar.hook(rules=rules)):
        status = {"status": {"message": "said"}}
        assert registrar.api.patch(pod, status, kind="merge", subresource="status").ok
    assert [call.request.get("subResource") for call in stub.calls] == asked


@pytest.mark.parametrize(("selector", "asked"), [(None, True), (LABELLED, False)], ids=["none", "labels"])
def test_an_object_selector_never_fits_a_connection(
    stub: Stub, registrar: Registrar, selector: dict[str, Any] | None, *, asked: bool
) -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "stored", "namespace": registrar.namespace, "labels": LABELLED["matchLabels"]},
        "spec": {"containers": [{"name": "main", "image": "busybox"}], "schedulerName": "nobody"},
    }
    assert registrar.api.create(pod).ok
    hook = registrar.hook(rules=[rule("pods/exec", "CONNECT")], objectSelector=selector)
    with registrar.registered("validating", hook):
        registrar.api.request("POST", f"/api/v1/namespaces/{registrar.namespace}/pods/stored/exec", command="ls")
    assert [call.request["object"]["kind"] for call in stub.calls] == (["PodExecOptions"] if asked else [])


def test_each_object_of_a_collection_is_deleted_without_a_name(stub: Stub, registrar: Registrar) -> None:
    for number in range(2):
        assert registrar.api.create(config_map(registrar.namespace, name=f"one-{number}", labels={"judged": "yes"})).ok
    with registrar.registered("validating", registrar.hook(rules=[rule("configmaps", "DELETE")])):
        assert registrar.api.delete_collection("v1", "ConfigMap", registrar.namespace, labelSelector="judged=yes").ok
    seen = [
        (call.request.get("name"), call.request["object"], call.request["oldObject"]["metadata"]["name"])
        for call in stub.calls
    ]
    assert sorted(seen) == [(None, None, "one-0"), (None, None, "one-1")]
