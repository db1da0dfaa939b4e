"""Requests to delete NodePools."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import pytest

from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.config import parse_config
from gpugate.policies.engine.evaluate import evaluate
from gpugate.policies.engine.ruleset import bind
from gpugate.policies.sdk.facts import NoFacts
from gpugate.policies.sdk.findings import Stance
from gpugate.policies.sdk.objects import GroupVersionKind, Operation, Request

if TYPE_CHECKING:
    from gpugate.policies.engine.verdict import Verdict
    from gpugate.policies.sdk.field import Json

ID = "nodepools/unguarded-deletion"
PROTECTED: dict[str, Json] = {"gpugate.dev/deletion-protection": "true"}
GPUS: dict[str, Json] = {"nodes": "3", "cpu": "288", "nvidia.com/gpu": "24"}


def deletion(resources: dict[str, Json], metadata: dict[str, Json] | None = None, mode: str = "warn") -> Verdict:
    pool: dict[str, Json] = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "gpu", **(metadata or {})},
        "spec": {},
        "status": {"resources": resources},
    }
    configuration: Json = {"apiVersion": "gpugate.dev/v1", "kind": "PolicyConfig", "policies": {ID: {"mode": mode}}}
    ruleset = bind(CATALOG, parse_config(configuration))
    request = Request(GroupVersionKind("karpenter.sh", "v1", "NodePool"), Operation.DELETE, None, pool, name="gpu")
    return evaluate(ruleset, request, NoFacts(), today=dt.date(2026, 11, 23))


@pytest.mark.parametrize(
    ("metadata", "mode", "stance", "message"),
    [
        ({}, "warn", Stance.WARN, "deleting the NodePool terminates its 3 nodes with 24 nvidia.com/gpu"),
        ({}, "enforce", Stance.WARN, "deleting the NodePool terminates its 3 nodes with 24 nvidia.com/gpu"),
        (
            {"annotations": PROTECTED},
            "warn",
            Stance.WARN,
            "deleting this protected NodePool terminates its 3 nodes with 24 nvidia.com/gpu",
        ),
        (
            {"annotations": PROTECTED},
            "enforce",
            Stance.ENFORCE,
            "deleting this protected NodePool terminates its 3 nodes with 24 nvidia.com/gpu",
        ),
        (
            {"annotations": {"gpugate.dev/deletion-protection": "false"}},
            "enforce",
            Stance.WARN,
            "deleting the NodePool terminates its 3 nodes with 24 nvidia.com/gpu",
        ),
    ],
)
def test_the_nodes_of_a_deleted_pool_are_reported(
    metadata: dict[str, Json], mode: str, stance: Stance, message: str
) -> None:
    verdict = deletion(GPUS, metadata, mode)

    assert [(f.policy, f.stance, f.message) for f in verdict.findings] == [(ID, stance, message)]
    assert verdict.allowed is (stance is Stance.WARN)


@pytest.mark.parametrize(
    ("resources", "metadata"),
    [
        pytest.param({}, {}, id="no status"),
        pytest.param({"nodes": "0", "nvidia.com/gpu": "0"}, {}, id="no nodes"),
        pytest.param({"nodes": "3", "cpu": "288"}, {}, id="no accelerators"),
        pytest.param({"nodes": "many", "nvidia.com/gpu": "24"}, {}, id="not a quantity"),
        pytest.param(GPUS, {"deletionTimestamp": "2026-11-23T10:00:00Z"}, id="deleted already"),
    ],
)
def test_other_pools_are_deleted_without_a_finding(resources: dict[str, Json], metadata: dict[str, Json]) -> None:
    verdict = deletion(resources, {"annotations": PROTECTED, **metadata}, "enforce")

    assert verdict.allowed
    assert [*verdict.findings] == []


def test_several_accelerators_are_named() -> None:
    (finding,) = deletion({"nodes": "1", "nvidia.com/gpu": "8", "aws.amazon.com/neuron": 16}).findings

    assert (
        finding.message
        == "deleting the NodePool terminates its 1 node with 8 nvidia.com/gpu and 16 aws.amazon.com/neuron"
    )
