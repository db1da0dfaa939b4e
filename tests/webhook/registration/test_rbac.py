from __future__ import annotations

from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.config import PolicyConfig
from gpugate.policies.engine.ruleset import Needs, bind
from gpugate.webhook.registration.rbac import audit_rbac, audited_resources, keeper_rbac, rbac


def test_it_may_read_what_policies_look_up_and_nothing_else() -> None:
    ruleset = bind(CATALOG, PolicyConfig())
    role, _ = rbac(ruleset, "guard", "gate")

    rules = role["rules"]
    readable = {(group, name) for rule in rules for group in rule["apiGroups"] for name in rule["resources"]}
    assert readable == {(kind.group, kind.plural) for kind in Needs(ruleset.rules).kinds}
    assert {verb for rule in rules for verb in rule["verbs"]} == {"get", "list", "watch"}


def test_policies_that_look_nothing_up_need_no_right() -> None:
    role, _ = rbac(bind(CATALOG, PolicyConfig(), only=["pods/wildcard-toleration"]), "guard", "gate")

    assert {name for rule in role["rules"] for name in rule["resources"]} == {
        "deviceclasses",
        "nodepools",
        "resourceclaims",
        "resourceclaimtemplates",
    }


def test_the_right_is_that_of_the_service_account() -> None:
    role, binding = rbac(bind(CATALOG, PolicyConfig()), "guard", "gate")

    assert binding["subjects"] == [{"kind": "ServiceAccount", "namespace": "guard", "name": "gate"}]
    assert binding["roleRef"]["name"] == role["metadata"]["name"]


def test_the_keeper_may_use_its_own_objects_only_and_list_nothing() -> None:
    role, binding, cluster_role, cluster_binding = keeper_rbac("guard", "gate", "certificates", "leader", "hooks")
    allowed = {
        (resource, name, verb)
        for each in (role, cluster_role)
        for rule in each["rules"]
        for resource in rule["resources"]
        for name in rule.get("resourceNames", ["*"])
        for verb in rule["verbs"]
    }
    hooks = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")

    assert allowed == {
        ("secrets", "*", "create"),
        *(("secrets", "certificates", verb) for verb in ("get", "watch", "update")),
        ("leases", "*", "create"),
        *(("leases", "leader", verb) for verb in ("get", "update")),
        *((resource, "hooks", verb) for resource in hooks for verb in ("get", "watch", "patch")),
        ("namespaces", "guard", "get"),
    }
    assert [each["metadata"].get("namespace") for each in (role, binding, cluster_role, cluster_binding)] == [
        "guard",
        "guard",
        None,
        None,
    ]


def test_an_audit_may_read_what_it_looks_at_and_no_secrets() -> None:
    ruleset = bind(CATALOG, PolicyConfig())
    role, _ = audit_rbac(ruleset, "guard", "auditor")
    readable = {(group, name) for rule in role["rules"] for group in rule["apiGroups"] for name in rule["resources"]}

    assert readable == {(each.kind.group, each.kind.plural) for each in audited_resources(ruleset)}
    assert {verb for rule in role["rules"] for verb in rule["verbs"]} == {"get", "list"}
    assert ("", "secrets") not in readable


def test_reports_are_written_by_a_role_of_their_own() -> None:
    roles = audit_rbac(bind(CATALOG, PolicyConfig()), "guard", "auditor", reports=True)
    reader, _, writer, binding = roles

    assert [each["kind"] for each in roles] == ["ClusterRole", "ClusterRoleBinding"] * 2
    assert (reader["metadata"]["name"], writer["metadata"]["name"]) == ("gpugate-audit", "gpugate-audit-reports")
    assert {name for rule in writer["rules"] for name in rule["resources"]} == {
        "reports",
        "clusterreports",
        "policyreports",
        "clusterpolicyreports",
    }
    assert binding["subjects"] == [{"kind": "ServiceAccount", "namespace": "guard", "name": "auditor"}]
