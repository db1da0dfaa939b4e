from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.config import PolicyConfig
from gpugate.policies.engine.ruleset import Needs, bind
from gpugate.policies.sdk.catalogue import Catalogue
from gpugate.policies.sdk.facts import Need
from gpugate.policies.sdk.objects import DEPLOYMENT, NODE, POD, RESOURCE_SLICE, GroupVersionKind, Operation, Request
from gpugate.policies.sdk.platform import Platform
from gpugate.policies.sdk.policy import AnyContext, Policy, validates

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.findings import Violation


def needs(*fields: str) -> Needs:
    @validates(POD, needs=(Need(DEPLOYMENT, fields),))
    def nothing(_pod: Field, _ctx: AnyContext) -> Iterator[Violation]:
        yield from ()

    return Needs(bind([Policy("pods/some", "A policy.", (nothing,))], PolicyConfig()).rules)


def request(obj: dict[str, Any], kind: str = "Deployment") -> Request:
    return Request(GroupVersionKind("apps", "v1", kind), Operation.CREATE, obj)


WHOLE: dict[str, Any] = {
    "metadata": {"name": "a", "namespace": "ml", "labels": {"x": "y"}},
    "spec": {"replicas": 2, "template": {"containers": [{"name": "c", "image": "i"}, {"name": "d"}]}},
}
NAMED = {"name": "a", "namespace": "ml"}
KEPT: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "name and namespace always": ((), {"metadata": NAMED}),
    "a value": (("spec.replicas",), {"metadata": NAMED, "spec": {"replicas": 2}}),
    "all below a field": (("metadata.labels",), {"metadata": {**NAMED, "labels": {"x": "y"}}}),
    "a field of each element": (
        ("spec.template.containers.name",),
        {"metadata": NAMED, "spec": {"template": {"containers": [{"name": "c"}, {"name": "d"}]}}},
    ),
    "a value where an object is looked for": (("spec.replicas.max",), {"metadata": NAMED, "spec": {"replicas": 2}}),
    "a field and two in it": (
        ("metadata.labels", "metadata.labels.a", "metadata.labels.b.c"),
        {"metadata": {**NAMED, "labels": {"x": "y"}}},
    ),
    "what is missing": (("spec.other.field",), {"metadata": NAMED, "spec": {}}),
    "a field and one in it": (("spec", "spec.replicas"), {"metadata": NAMED, "spec": WHOLE["spec"]}),
    "one in a field and the field": (("spec.replicas", "spec"), {"metadata": NAMED, "spec": WHOLE["spec"]}),
}


@pytest.mark.parametrize(("fields", "kept"), KEPT.values(), ids=KEPT)
def test_only_what_is_read_is_kept(fields: tuple[str, ...], kept: dict[str, Any]) -> None:
    projected = needs(*fields).project(request(WHOLE))

    assert projected is not None
    assert projected.object == kept


def test_of_a_kind_that_nobody_looks_up_nothing_is_kept() -> None:
    assert needs("spec").project(request(WHOLE, "StatefulSet")) is None


def test_the_old_object_is_not_kept() -> None:
    projected = needs("spec").project(replace(request(WHOLE), old_object=WHOLE))
    assert projected is not None
    assert projected.old_object is None


def test_nothing_is_kept_of_a_request_without_an_object() -> None:
    assert needs("spec").project(replace(request(WHOLE), object=None)) is None


def test_what_rules_look_up_is_added_to_what_is_looked_up_beside_them() -> None:
    both = Needs((), (Need(DEPLOYMENT, ("spec.replicas",)), Need(POD, ())))
    assert both.kinds == (DEPLOYMENT, POD)
    name = {"name": {}, "namespace": {}}
    assert both.of(GroupVersionKind("apps", "v1", "Deployment")) == {"metadata": name, "spec": {"replicas": {}}}
    assert both.of(GroupVersionKind("apps", "v1", "StatefulSet")) is None


def test_what_is_below_a_field_that_is_read_is_read_anyway() -> None:
    below = Needs((), (Need(DEPLOYMENT, ("spec", "spec.replicas.max", "spec.replicas")),))
    assert below.of(GroupVersionKind("apps", "v1", "Deployment")) == {
        "metadata": {"name": {}, "namespace": {}},
        "spec": {},
    }


@pytest.mark.parametrize(("from_nodes", "expected"), [(False, False), (True, True)])
def test_what_cluster_data_adds_to_a_table_is_needed_if_the_configuration_says_so(
    from_nodes: bool,  # noqa: FBT001 -- a column of the table
    expected: bool,  # noqa: FBT001 -- a column of the table
) -> None:
    config = PolicyConfig(platform=Platform(catalogue=Catalogue(from_nodes=from_nodes)))
    rules = bind(CATALOG, config, {"nodepools/missing-gpu-taint"}).rules
    assert (RESOURCE_SLICE in Needs(rules).kinds, NODE in Needs(rules).kinds) == (expected, expected)
