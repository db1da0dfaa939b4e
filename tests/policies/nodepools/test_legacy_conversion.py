from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml

from gpugate.policies.nodepools._conversion import as_received, converted, implicit_requirements, selector_terms
from gpugate.policies.sdk.field import Field, Json
from gpugate.policies.sdk.objects import GroupVersionKind

if TYPE_CHECKING:
    from gpugate.policies.nodepools._conversion import Converted


def convert(text: str) -> Converted:
    obj = yaml.safe_load(text)
    new = converted(Field(obj), GroupVersionKind.of(obj["apiVersion"], obj["kind"]))
    assert new
    return new


def provisioner(spec: str) -> Converted:
    return convert(f"{{apiVersion: karpenter.sh/v1alpha5, kind: Provisioner, metadata: {{name: gpu}}, spec: {spec}}}")


def at(new: Converted, path: str, number: int = 0) -> Json:
    return Field(new.objects[number])[tuple(path.split("."))].value


@pytest.mark.parametrize(
    ("spec", "path", "value"),
    [
        ("{labels: {a: b}}", "spec.template.metadata.labels", {"a": "b"}),
        ("{annotations: {a: b}}", "spec.template.metadata.annotations", {"a": "b"}),
        ("{taints: [{key: a}]}", "spec.template.spec.taints", [{"key": "a"}]),
        ("{startupTaints: [{key: a}]}", "spec.template.spec.startupTaints", [{"key": "a"}]),
        ("{limits: {resources: {cpu: 100}}}", "spec.limits", {"cpu": 100}),
        ("{weight: 7}", "spec.weight", 7),
        ("{ttlSecondsUntilExpired: 60}", "spec.template.spec.expireAfter", "60s"),
        ("{}", "spec.template.spec.expireAfter", "Never"),
        (
            "{ttlSecondsAfterEmpty: 30}",
            "spec.disruption",
            {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "30s"},
        ),
        (
            "{ttlSecondsAfterEmpty: 0}",
            "spec.disruption",
            {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "0s"},
        ),
        (
            "{consolidation: {enabled: true}}",
            "spec.disruption",
            {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "0s"},
        ),
        (
            "{consolidation: {enabled: false}}",
            "spec.disruption",
            {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "Never"},
        ),
        (
            "{providerRef: {name: gpu-nodes}}",
            "spec.template.spec.nodeClassRef",
            {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "gpu-nodes"},
        ),
        (
            "{provider: {instanceProfile: p}}",
            "spec.template.spec.nodeClassRef",
            {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "gpu"},
        ),
    ],
)
def test_a_field_of_a_provisioner_has_its_place_in_a_node_pool(spec: str, path: str, value: Json) -> None:
    assert at(provisioner(spec), path) == value


IMPLICIT = ["kubernetes.io/os", "kubernetes.io/arch", "karpenter.sh/capacity-type"]
CATEGORIES = ["karpenter.k8s.aws/instance-category", "karpenter.k8s.aws/instance-generation"]


@pytest.mark.parametrize(
    ("written", "added"),
    [
        ([], [*IMPLICIT, *CATEGORIES]),
        (["kubernetes.io/arch"], ["kubernetes.io/os", "karpenter.sh/capacity-type", *CATEGORIES]),
        (["beta.kubernetes.io/arch"], ["kubernetes.io/os", "karpenter.sh/capacity-type", *CATEGORIES]),
        (["node.kubernetes.io/instance-type"], IMPLICIT),
        (["karpenter.k8s.aws/instance-family"], IMPLICIT),
        (["karpenter.k8s.aws/instance-generation"], IMPLICIT),
        (["karpenter.k8s.aws/instance-gpu-name"], [*IMPLICIT, *CATEGORIES]),
        ([*IMPLICIT, *CATEGORIES], []),
    ],
)
def test_what_a_provisioner_left_unsaid_is_written_out(written: list[str], added: list[str]) -> None:
    entries: Json = [{"key": key, "operator": "Exists"} for key in written]
    assert [Field(entry)["key"].text for entry in implicit_requirements(Field(entries))] == added


def test_settings_inside_a_provisioner_become_a_node_class_of_its_name() -> None:
    new = provisioner("{provider: {amiFamily: Bottlerocket, instanceProfile: p}, kubeletConfiguration: {maxPods: 9}}")
    assert new.objects[1] == {
        "apiVersion": "karpenter.k8s.aws/v1",
        "kind": "EC2NodeClass",
        "metadata": {"name": "gpu"},
        "spec": {
            "instanceProfile": "p",
            "amiSelectorTerms": [{"alias": "bottlerocket@latest"}],
            "kubelet": {"maxPods": 9},
        },
    }


@pytest.mark.parametrize(
    ("spec", "open_point"),
    [
        ("{}", "write the group, kind and name of a node class in spec.template.spec.nodeClassRef"),
        (
            "{}",
            "consolidateAfter: Never keeps empty nodes, as the Provisioner did; write a duration such as 5m to remove them",
        ),
        (
            "{providerRef: {name: a}, kubeletConfiguration: {maxPods: 9}}",
            "move kubeletConfiguration to spec.kubelet of the EC2NodeClass",
        ),
        ("{solver: fast}", "spec.solver has no equivalent in v1 and was removed"),
        ("{provider: {launchTemplate: a}}", "spec.launchTemplate has no equivalent in v1 and was removed"),
        ("{provider: {tags: {a: b}}}", "spec.role or spec.instanceProfile is required"),
        ("{provider: {tags: {a: b}}}", "spec.subnetSelectorTerms is required"),
        ("{provider: {userData: x}}", "rewrite the userData, which is for AL2, for AL2023"),
    ],
)
def test_what_cannot_be_converted_is_named(spec: str, open_point: str) -> None:
    assert open_point in provisioner(spec).open_points


@pytest.mark.parametrize(
    ("selector", "terms"),
    [
        ({"a": "b", "c": "d"}, [{"tags": {"a": "b", "c": "d"}}]),
        ({"aws::ids": "subnet-1, subnet-2"}, [{"id": "subnet-1"}, {"id": "subnet-2"}]),
        ({"aws-ids": "subnet-1"}, [{"id": "subnet-1"}]),
        ({"Name": "x,y", "a": "b"}, [{"tags": {"Name": "x", "a": "b"}}, {"tags": {"Name": "y", "a": "b"}}]),
        ({"aws::name": "image-*", "aws::owners": "self"}, [{"name": "image-*", "owner": "self"}]),
        ({}, []),
        (["a"], []),
        (None, []),
    ],
)
def test_a_selector_becomes_terms(selector: Json, terms: Json) -> None:
    assert selector_terms(Field(selector)) == terms


def test_terms_are_no_more_than_v1_takes() -> None:
    many = ",".join(map(str, range(100)))
    assert len(selector_terms(Field({"a": many, "b": many, "c": many}))) == 30


@pytest.mark.parametrize(
    ("family", "terms"),
    [
        ("AL2", [{"alias": "al2023@latest"}]),
        ("AL2023", [{"alias": "al2023@latest"}]),
        ("Bottlerocket", [{"alias": "bottlerocket@latest"}]),
        ("Windows2022", [{"alias": "windows2022@latest"}]),
        ("Custom", None),
        ("Ubuntu", None),
    ],
)
def test_a_family_of_images_becomes_an_alias(family: str, terms: Json) -> None:
    new = convert(
        f"{{apiVersion: karpenter.k8s.aws/v1beta1, kind: EC2NodeClass, spec: {{role: r, amiFamily: {family}}}}}"
    )
    assert at(new, "spec.amiSelectorTerms") == terms


def test_images_that_are_named_keep_their_family() -> None:
    new = convert(
        "{apiVersion: karpenter.k8s.aws/v1alpha1, kind: AWSNodeTemplate, spec: {amiFamily: AL2, amiSelector: {a: b}}}"
    )
    assert (at(new, "spec.amiFamily"), at(new, "spec.amiSelectorTerms")) == ("AL2", [{"tags": {"a": "b"}}])


@pytest.mark.parametrize(
    ("disruption", "wanted"),
    [
        ("{}", None),
        ("{expireAfter: 24h}", None),
        (
            "{consolidationPolicy: WhenUnderutilized}",
            {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "0s"},
        ),
        (
            "{consolidationPolicy: WhenEmpty, consolidateAfter: 30s}",
            {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "30s"},
        ),
        (
            "{budgets: [{nodes: '1'}]}",
            {
                "budgets": [{"nodes": "1"}],
                "consolidationPolicy": "WhenEmptyOrUnderutilized",
                "consolidateAfter": "0s",
            },
        ),
    ],
)
def test_the_disruption_of_v1beta1_is_written_as_v1_needs_it(disruption: str, wanted: Json) -> None:
    new = convert(f"{{apiVersion: karpenter.sh/v1beta1, kind: NodePool, spec: {{disruption: {disruption}}}}}")
    assert at(new, "spec.disruption") == wanted


def test_the_lifetime_of_v1beta1_moves_into_the_template() -> None:
    new = convert("{apiVersion: karpenter.sh/v1beta1, kind: NodePool, spec: {disruption: {expireAfter: 24h}}}")
    assert at(new, "spec.template.spec.expireAfter") == "24h"


def test_only_what_a_person_wrote_is_kept_of_the_metadata() -> None:
    new = as_received(
        Field(
            yaml.safe_load("""
            apiVersion: karpenter.sh/v1
            kind: NodePool
            metadata:
              name: gpu
              uid: 6f0f9f39-3ba1-4a5c-9f3a-4a7ad7f5b0f1
              resourceVersion: '7'
              labels: {team: search}
              annotations:
                note: mine
                kubectl.kubernetes.io/last-applied-configuration: '{}'
                compatibility.karpenter.sh/v1beta1-nodeclass-reference: '{}'
            spec: {weight: 1}
            status: {resources: {cpu: '4'}}
            """)
        )
    )
    assert new.objects == (
        {
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodePool",
            "metadata": {"name": "gpu", "labels": {"team": "search"}, "annotations": {"note": "mine"}},
            "spec": {"weight": 1},
        },
    )


@pytest.mark.parametrize(
    "text",
    [
        "{apiVersion: karpenter.sh/v1alpha5, kind: Provisioner}",
        "{apiVersion: karpenter.sh/v1alpha5, kind: Provisioner, spec: [a]}",
        "{apiVersion: karpenter.sh/v1alpha5, kind: Provisioner, spec: {requirements: x, labels: [a], provider: y}}",
        "{apiVersion: karpenter.sh/v1alpha5, kind: Machine, metadata: [], spec: {machineTemplateRef: x}}",
        "{apiVersion: karpenter.sh/v1beta1, kind: NodePool, spec: {template: x, disruption: [y]}}",
        "{apiVersion: karpenter.k8s.aws/v1alpha1, kind: AWSNodeTemplate, spec: {subnetSelector: [a], amiFamily: 7}}",
    ],
)
def test_a_malformed_object_is_converted_as_far_as_it_goes(text: str) -> None:
    assert convert(text).objects


def test_nothing_is_computed_for_fields_that_map_to_nothing() -> None:
    assert converted(Field({}), GroupVersionKind("karpenter.sh", "v1alpha3", "Provisioner")) is None
