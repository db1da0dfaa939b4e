"""Which requests a rule sends, as an API server decides it."""

from __future__ import annotations

import pytest

from gpugate.webhook.registration.drift import Sent, covers, sent

PODS = Sent("", "v1", "pods", "CREATE", "Namespaced")


@pytest.mark.parametrize(
    ("rule", "covered"),
    [
        ({}, True),
        ({"scope": "*"}, True),
        ({"scope": "Cluster"}, False),
        ({"group": "*"}, True),
        ({"group": "apps"}, False),
        ({"operation": "*"}, True),
        ({"operation": "UPDATE"}, False),
        ({"resource": "*"}, True),
        ({"resource": "*/*"}, True),
        ({"resource": "pods/*"}, False),
        ({"resource": "pods/status"}, False),
    ],
)
def test_a_rule_sends_what_each_of_its_parts_holds_for(rule: dict[str, str], *, covered: bool) -> None:
    assert covers(PODS._replace(**rule), PODS, "Exact") == covered


@pytest.mark.parametrize(
    ("resource", "covered"),
    [("*", False), ("*/*", True), ("pods/*", True), ("*/status", True), ("pods/status", True), ("*/scale", False)],
)
def test_a_subresource_is_sent_where_it_is_named(resource: str, *, covered: bool) -> None:
    assert covers(PODS._replace(resource=resource), PODS._replace(resource="pods/status"), "Exact") == covered


@pytest.mark.parametrize(("policy", "covered"), [("Equivalent", True), ("Exact", False)])
def test_another_version_is_sent_where_versions_are_equivalent(policy: str, *, covered: bool) -> None:
    assert covers(PODS._replace(version="v2"), PODS, policy) == covered


def test_a_rule_stands_for_every_combination_of_its_lists() -> None:
    rule = {"apiGroups": ["a", "b"], "apiVersions": ["v1"], "resources": ["x", "y"], "operations": ["CREATE", "UPDATE"]}

    assert len(set(sent({"rules": [rule]}))) == 8
