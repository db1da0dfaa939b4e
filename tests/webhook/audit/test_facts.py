from __future__ import annotations

from typing import Any

from audit.memory_source import named, stored

from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.config import PolicyConfig
from gpugate.policies.engine.ruleset import Needs, bind
from gpugate.policies.sdk import objects
from gpugate.policies.sdk.facts import Fact, Known, Unavailable
from gpugate.webhook.audit.facts import AuditFacts

SCALED = objects.SCALED_OBJECT


def facts() -> AuditFacts:
    return AuditFacts(Needs(bind(CATALOG, PolicyConfig()).rules))


def scaled(name: str, namespace: str = "team", api_version: str = "keda.sh/v1alpha1") -> Any:
    return stored({**named("ScaledObject", name, namespace, api_version), "spec": {"maxReplicaCount": 3, "other": 1}})


def names(fact: Fact) -> tuple[list[str], bool]:
    assert isinstance(fact, Known)
    return [item["metadata", "name"].text for item in fact.items], fact.complete


def test_a_kind_that_was_read_whole_proves_what_is_missing() -> None:
    found = facts()
    found.add(scaled("a"))
    found.add(scaled("b", "other"))
    found.close(SCALED)

    assert names(found.list(SCALED)) == (["b", "a"], True)
    assert names(found.list(SCALED, "team")) == (["a"], True)
    assert names(found.list(SCALED, "empty")) == ([], True)
    assert found.list(SCALED, "team") is found.list(SCALED, "team")


def test_only_what_rules_read_is_kept() -> None:
    found = facts()
    found.add(scaled("a"))
    found.close(SCALED)

    fact = found.list(SCALED)
    assert isinstance(fact, Known)
    assert fact.items[0]["spec"].value == {"maxReplicaCount": 3}


def test_a_kind_of_which_some_was_read_proves_what_is_there() -> None:
    found = facts()
    found.add(scaled("a"))
    found.close(SCALED, "the list broke off")

    assert names(found.list(SCALED)) == (["a"], False)
    assert names(found.list(SCALED, "other")) == ([], False)


def test_a_namespace_that_was_read_whole_proves_what_is_missing_in_it() -> None:
    found = facts()
    found.add(scaled("a"))
    found.close(SCALED, "forbidden elsewhere", ["team"])

    assert names(found.list(SCALED, "team")) == (["a"], True)
    assert names(found.list(SCALED, "other")) == ([], False)
    assert names(found.list(SCALED)) == (["a"], False)


def test_of_a_kind_that_could_not_be_read_nothing_is_known() -> None:
    found = facts()
    found.close(SCALED, "forbidden")

    assert found.list(SCALED) == Unavailable("forbidden")
    assert isinstance(found.list(objects.NODE_POOL), Unavailable)


def test_objects_in_a_version_that_no_rule_reads_prove_nothing() -> None:
    found = facts()
    found.add(scaled("a", api_version="keda.sh/v9"))
    found.close(SCALED)

    assert found.list(SCALED) == Unavailable("scaledobjects are served in v9, which policies do not support")
