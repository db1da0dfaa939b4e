"""What an API server is told to send, from the rules in force."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.config import PolicyConfig, PolicyEntry
from gpugate.policies.engine.ruleset import Ruleset, bind
from gpugate.policies.sdk.kinds import NODE_POOL
from gpugate.policies.sdk.pod_templates import TEMPLATES
from gpugate.policies.sdk.policy import Policy, validates
from gpugate.policies.sdk.request import Operation
from gpugate.webhook.generate.registration import Server, webhook_configurations

SERVER = Server(b"authority", url="https://127.0.0.1:8443")


def shipped(**config: Any) -> Ruleset:
    return bind(CATALOG, PolicyConfig(**config))


def only(*ids: str) -> Ruleset:
    return bind(CATALOG, PolicyConfig(policies={each: PolicyEntry(mode="enforce") for each in ids}), only=ids)


def entries(ruleset: Ruleset, kind: str, **options: Any) -> dict[str, dict[str, Any]]:
    """The webhooks of one configuration by their name, without the phase in it."""
    mutating, validating = webhook_configurations(ruleset, SERVER, **options)
    configuration, phase = {"mutating": (mutating, ".mutate"), "validating": (validating, ".validate")}[kind]
    return {each["name"].replace(phase, ""): each for each in configuration["webhooks"]}


def sent(webhook: dict[str, Any]) -> dict[str, str]:
    """Resource with its group -> operations."""
    return {
        f"{name}.{rule['apiGroups'][0]}".rstrip("."): " ".join(rule["operations"])
        for rule in webhook["rules"]
        for name in rule["resources"]
    }


def test_what_can_be_changed_is_sent_to_mutate() -> None:
    found = entries(shipped(), "mutating")

    assert {name: sent(each) for name, each in found.items()} == {
        "pods.gpugate.dev": {"pods": "CREATE UPDATE"},
        "objects.gpugate.dev": {
            "ec2nodeclasses.karpenter.k8s.aws": "CREATE",
            "nodeclasses.eks.amazonaws.com": "CREATE",
            "scaledobjects.keda.sh": "CREATE UPDATE",
        },
        "warnings.gpugate.dev": {"nodepools.karpenter.sh": "CREATE"},
    }


def test_what_can_be_refused_is_sent_to_validate() -> None:
    found = entries(shipped(), "validating")

    assert sent(found["pods.gpugate.dev"]) == {"pods": "CREATE UPDATE", "pods/ephemeralcontainers": "UPDATE"}
    assert set(sent(found["objects.gpugate.dev"])) == {
        "namespaces",
        "horizontalpodautoscalers.autoscaling",
        "nodeclasses.eks.amazonaws.com",
        "awsnodetemplates.karpenter.k8s.aws",
        "ec2nodeclasses.karpenter.k8s.aws",
        "horizontalautoscalers.karpenter.sh",
        "metricsproducers.karpenter.sh",
        "nodepools.karpenter.sh",
        "provisioners.karpenter.sh",
        "provisioners.provisioning.karpenter.sh",
        "scalablenodegroups.karpenter.sh",
        "scaledjobs.keda.sh",
        "scaledobjects.keda.sh",
        "poddisruptionbudgets.policy",
        "deviceclasses.resource.k8s.io",
        "resourceclaims.resource.k8s.io",
        "resourceclaimtemplates.resource.k8s.io",
    }


def test_every_workload_with_a_pod_template_is_sent_for_warnings() -> None:
    groups = {rule["apiGroups"][0] for rule in entries(shipped(), "validating")["warnings.gpugate.dev"]["rules"]}

    assert groups == {group for group, _ in TEMPLATES} - {"keda.sh"}


def test_nothing_is_sent_of_which_no_policy_says_anything() -> None:
    mutating, validating = webhook_configurations(bind(CATALOG, PolicyConfig(), only=()), SERVER)

    assert (mutating["webhooks"], validating["webhooks"]) == ([], [])


def test_a_policy_that_is_off_has_no_part() -> None:
    on = {"pods/mig-without-claim": PolicyEntry(mode="enforce")}
    annotation = "gpugate.dev/mig-profile"

    def conditions(ruleset: Ruleset) -> str:
        return str(entries(ruleset, "mutating")["pods.gpugate.dev"]["matchConditions"])

    assert annotation not in conditions(shipped())
    assert annotation in conditions(shipped(policies=on))


def test_a_deletion_is_sent_where_a_policy_judges_it() -> None:
    handler = validates(NODE_POOL, operations=frozenset({Operation.DELETE}))(lambda _obj, _ctx: iter(()))
    ruleset = bind([Policy("nodepools/x", "", (handler,))], PolicyConfig())

    assert sent(entries(ruleset, "validating")["objects.gpugate.dev"]) == {"nodepools.karpenter.sh": "DELETE"}
    assert not any("DELETE" in str(sent(each)) for each in entries(shipped(), "validating").values())


def test_no_rule_stands_for_more_than_it_names() -> None:
    for configuration in webhook_configurations(shipped(), SERVER):
        for rule in (rule for each in configuration["webhooks"] for rule in each["rules"]):
            assert "*" not in "".join((*rule["apiGroups"], *rule["resources"], *rule["operations"]))
            assert rule["scope"] in {"Namespaced", "Cluster"}


@pytest.mark.parametrize(
    "resource", ["nodes", "leases", "events", "certificatesigningrequests", "tokenreviews", "secrets", "configmaps"]
)
def test_a_cluster_can_heal_without_us(resource: str) -> None:
    configurations = webhook_configurations(shipped(), SERVER)
    resources = {name for each in configurations for hook in each["webhooks"] for name in map(_resource, sent(hook))}

    assert resource not in resources


def _resource(name: str) -> str:
    return name.partition(".")[0].partition("/")[0]


def test_only_what_can_be_refused_waits_for_us() -> None:
    def waiting(ruleset: Ruleset) -> set[str]:
        return {name for name, each in entries(ruleset, "validating").items() if each["failurePolicy"] == "Fail"}

    assert waiting(shipped()) == {
        "pods.gpugate.dev",
        "machines.karpenter.sh.gpugate.dev",
        "nodeclaims.karpenter.sh.gpugate.dev",
        "objects.gpugate.dev",
    }
    assert waiting(shipped(mode="audit")) == set()


def test_no_two_webhooks_share_a_name_which_would_lose_what_one_of_them_notes_in_the_audit_log() -> None:
    names = [
        each["name"]
        for configuration in webhook_configurations(shipped(), SERVER)
        for each in configuration["webhooks"]
    ]

    assert len(names) == len(set(names))


def test_every_webhook_leaves_out_updates_that_change_nothing_that_is_judged() -> None:
    for configuration in webhook_configurations(shipped(), SERVER):
        assert {hook["matchConditions"][0]["name"] for hook in configuration["webhooks"]} == {"changes-what-is-judged"}


@pytest.mark.parametrize(
    ("options", "mutating", "validating"),
    [
        ({}, "Ignore", "Fail"),
        ({"failure_policy": "Ignore"}, "Ignore", "Ignore"),
        ({"mutating_failure_policy": "Fail"}, "Fail", "Fail"),
    ],
)
def test_the_failure_policy_is_the_one_asked_for(options: dict[str, Any], mutating: str, validating: str) -> None:
    found = [
        entries(shipped(), kind, **options)["pods.gpugate.dev"]["failurePolicy"] for kind in ("mutating", "validating")
    ]

    assert found == [mutating, validating]


def test_namespaces_are_left_out_by_the_label_that_nobody_can_change() -> None:
    server = Server(b"authority", namespace="guard")
    mutating, _ = webhook_configurations(shipped(excluded_namespaces=("kube-system",)), server)

    assert mutating["webhooks"][0]["namespaceSelector"] == {
        "matchExpressions": [
            {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["guard", "kube-system"]}
        ]
    }


def test_what_karpenter_makes_for_itself_is_not_sent() -> None:
    found = entries(only("nodepools/legacy-api"), "validating")

    assert set(found) == {
        "machines.karpenter.sh.gpugate.dev",
        "nodeclaims.karpenter.sh.gpugate.dev",
        "objects.gpugate.dev",
    }
    assert "ownerReferences" in str(found["machines.karpenter.sh.gpugate.dev"]["matchConditions"])


BUNDLE = base64.b64encode(b"authority").decode()


@pytest.mark.parametrize(
    ("server", "client_config"),
    [
        (SERVER, {"url": "https://127.0.0.1:8443/validate", "caBundle": BUNDLE}),
        (
            Server(b"authority", namespace="guard", service="gate"),
            {"service": {"namespace": "guard", "name": "gate", "path": "/validate", "port": 443}, "caBundle": BUNDLE},
        ),
    ],
    ids=["by-url", "by-service"],
)
def test_where_it_is_sent(server: Server, client_config: dict[str, Any]) -> None:
    _, validating = webhook_configurations(shipped(), server)

    assert [each["clientConfig"] for each in validating["webhooks"]] == [client_config] * 5


def test_what_holds_for_every_entry() -> None:
    mutating, validating = webhook_configurations(shipped(), SERVER)

    for each in (*mutating["webhooks"], *validating["webhooks"]):
        assert each["matchPolicy"] == "Equivalent"
        assert each["sideEffects"] == "None"
        assert each["admissionReviewVersions"] == ["v1"]
        assert each["timeoutSeconds"] == 5
    assert {each["reinvocationPolicy"] for each in mutating["webhooks"]} == {"IfNeeded"}
    assert not any("reinvocationPolicy" in each for each in validating["webhooks"])
