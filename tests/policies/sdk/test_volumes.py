"""What the volumes of a Pod require of the labels of its node."""

from __future__ import annotations

from typing import Any

import pytest

from gpugate.policies.sdk.field import Field
from gpugate.policies.sdk.objects import GroupVersionKind, Operation, Request
from gpugate.policies.sdk.platform import Platform, Target
from gpugate.policies.sdk.policy import Context, Params
from gpugate.policies.sdk.volumes import required_by_volumes, zones_of
from gpugate.webhook.manifests.load import RunFacts

Object = dict[str, Any]
ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
EBS, AZURE = "topology.ebs.csi.aws.com/zone", "topology.disk.csi.azure.com/zone"


def claim(name: str, volume: str = "", storage_class: str = "") -> Object:
    spec = {"volumeName": volume, "storageClassName": storage_class}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "ml"},
        "spec": spec,
    }


def volume(name: str, *terms: dict[str, list[str]], **source: Object) -> Object:
    affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": entries(term, "In")} for term in terms]}}
    spec = {"nodeAffinity": affinity, **source}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec}


def storage_class(name: str, *terms: dict[str, list[str]]) -> Object:
    topologies = [{"matchLabelExpressions": entries(term)} for term in terms]
    metadata = {"name": name}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": metadata,
        "allowedTopologies": topologies,
    }


def entries(term: dict[str, list[str]], operator: str = "") -> list[Object]:
    return [
        {"key": key, "values": values, **({"operator": operator} if operator else {})} for key, values in term.items()
    ]


def claims(*names: str) -> list[Object]:
    return [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names]


def ephemeral(name: str, storage_class: str) -> list[Object]:
    return [{"name": name, "ephemeral": {"volumeClaimTemplate": {"spec": {"storageClassName": storage_class}}}}]


@pytest.mark.parametrize(
    ("volumes", "known", "expected"),
    [
        pytest.param([{"name": "cache", "emptyDir": {}}], [], [], id="not a claim"),
        pytest.param(claims("a"), [], [], id="unknown claim"),
        pytest.param(claims("a"), [claim("a", "pv")], [], id="unknown volume"),
        pytest.param(
            claims("a"), [claim("a", "pv"), volume("pv", {EBS: ["z1"]})], [{ZONE: ["z1"]}], id="bound to a volume"
        ),
        pytest.param(
            claims("a"),
            [claim("a", "pv"), volume("pv", {AZURE: ["z1"]}, {AZURE: [""]})],
            [{ZONE: ["z1"]}, {ZONE: [""]}],
            id="one of two terms",
        ),
        pytest.param(
            claims("a"), [claim("a", "pv"), volume("pv", {HOST: ["n1"]}, local={"path": "/x"})], [], id="local volume"
        ),
        pytest.param(
            claims("a"), [claim("a", "pv"), volume("pv", {HOST: ["n1"]})], [{HOST: ["n1"]}], id="volume of one host"
        ),
        pytest.param(
            claims("a"),
            [claim("a", storage_class="gp3"), storage_class("gp3", {EBS: ["z1", "z2"]})],
            [{ZONE: ["z1", "z2"]}],
            id="to be created",
        ),
        pytest.param(
            claims("a", "b"),
            [
                *(claim("a", "pv-a"), claim("b", storage_class="gp3")),
                *(volume("pv-a", {EBS: ["z1"]}), storage_class("gp3", {ZONE: ["z1", "z2"]})),
            ],
            [{ZONE: ["z1"]}],
            id="two volumes together",
        ),
        pytest.param(
            claims("a", "b"),
            [
                *(claim("a", "pv-a"), claim("b", "pv-b")),
                *(volume("pv-a", {EBS: ["z1"]}), volume("pv-b", {EBS: ["z2"]})),
            ],
            [{ZONE: []}],
            id="volumes in different zones",
        ),
        pytest.param(
            ephemeral("data", "gp3"), [storage_class("gp3", {ZONE: ["z2"]})], [{ZONE: ["z2"]}], id="ephemeral"
        ),
        pytest.param(
            ephemeral("data", "gp3"),
            [storage_class("gp3", {ZONE: ["z2"]}), claim("train-data", "pv"), volume("pv", {ZONE: ["z1"]})],
            [{ZONE: ["z1"]}],
            id="ephemeral, and its claim exists",
        ),
    ],
)
def test_what_volumes_require(volumes: list[Object], known: list[Object], expected: list[dict[str, list[str]]]) -> None:
    required = required_by_volumes(*pod_with(volumes, known))

    assert [{key: sorted(of.values) for key, of in one.items()} for one in required] == expected


def test_combinations_of_many_volumes_are_bounded() -> None:
    zones = [{ZONE: [f"z{zone}"], "example.com/rack": [str(zone)]} for zone in range(8)]
    names = [f"v{number}" for number in range(20)]
    known = [thing for name in names for thing in (claim(name, name), volume(name, *zones))]

    assert len(required_by_volumes(*pod_with(claims(*names), known))) == 64


@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        pytest.param([{ZONE: ["z1"]}, {ZONE: ["z2"]}], {"z1", "z2"}, id="one of two"),
        pytest.param([{ZONE: ["z1"]}, {HOST: ["n1"]}], set(), id="a term without a zone"),
        pytest.param([{AZURE: ["z1"]}, {AZURE: [""]}], set(), id="every node can mount it"),
        pytest.param([], set(), id="no terms"),
    ],
)
def test_the_zones_of_a_volume(terms: list[dict[str, list[str]]], expected: set[str]) -> None:
    known = [claim("a", "pv"), volume("pv", *terms)]

    assert zones_of(required_by_volumes(*pod_with(claims("a"), known))) == expected


def pod_with(volumes: list[Object], known: list[Object]) -> tuple[Field, Context[Params]]:
    pod = {"metadata": {"name": "train", "namespace": "ml"}, "spec": {"volumes": volumes}}
    facts = RunFacts(
        [
            Request(
                GroupVersionKind.of(obj["apiVersion"], obj["kind"]),
                Operation.CREATE,
                obj,
                namespace=obj["metadata"].get("namespace", ""),
            )
            for obj in known
        ],
        complete=True,
    )
    request = Request(GroupVersionKind("", "v1", "Pod"), Operation.CREATE, pod, namespace="ml")
    return Field(pod), Context(Params(), Field(pod), None, request, facts, Platform(), Target(), {})
