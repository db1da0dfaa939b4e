from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gpugate.policies.data.instance_types import load_instance_types
from gpugate.policies.nodepools.cluster_gpu_ceiling import Params, check
from gpugate.policies.sdk.facts import Known, NoFacts
from gpugate.policies.sdk.field import Field
from gpugate.policies.sdk.findings import Skip, Violation
from gpugate.policies.sdk.node_pools import INSTANCE_TYPES
from gpugate.policies.sdk.objects import GroupVersionKind, Operation, Request
from gpugate.policies.sdk.platform import Platform, Target
from gpugate.policies.sdk.policy import Context

if TYPE_CHECKING:
    from gpugate.policies.sdk.facts import Fact, Facts
    from gpugate.policies.sdk.field import Json
    from gpugate.policies.sdk.objects import Kind

GPU = "nvidia.com/gpu"


def pool(name: str, family: str = "g5", **spec: Any) -> dict[str, Json]:
    requirements: Json = [{"key": "karpenter.k8s.aws/instance-family", "operator": "In", "values": [family]}]
    return {"metadata": {"name": name}, "spec": {"template": {"spec": {"requirements": requirements}}, **spec}}


class Pools:
    """All NodePools of a cluster, and no other objects."""

    def __init__(self, *pools: dict[str, Json], complete: bool = True) -> None:
        self.known = Known(tuple(map(Field, pools)), complete)

    def list(self, kind: Kind, namespace: str | None = None) -> Fact:  # noqa: ARG002 -- the protocol's signature
        return self.known if kind.name == "NodePool" else Known((), complete=True)


def findings(own: dict[str, Json], facts: Facts, most: int = 64, resource: str = GPU) -> list[Violation | Skip]:
    request = Request(GroupVersionKind("karpenter.sh", "v1", "NodePool"), Operation.CREATE, own)
    tables = {INSTANCE_TYPES.name: load_instance_types()}
    params = Params(max_per_cluster={resource: most})
    return list(check(Field(own), Context(params, Field(own), None, request, facts, Platform(), Target(), tables)))


OWN = pool("own", limits={GPU: 48})


@pytest.mark.parametrize(
    ("other", "total"),
    [
        (pool("other", limits={GPU: 16}), 0),
        (pool("other", limits={GPU: 17}), 65),
        (pool("other", limits={GPU: "17"}, replicas=1), 0),  # its one node has at most 8
        (pool("other", limits={"nodes": 3}), 72),
        (pool("other", limits={"cpu": 100}), 73),  # 25 nodes of 4 CPUs
        (pool("other", limits={"cpu": 40, GPU: 1000}), 0),
        (pool("other", limits={GPU: 0}), 0),
        (pool("other"), 0),  # without any bound, which another policy reports
        (pool("other", "inf2", limits={GPU: 1000}), 0),
        (pool("other", "c7i", limits={"cpu": 100000}), 0),
        (pool("own", limits={GPU: 1000}), 0),  # the version before this request
    ],
)
def test_the_lowest_bound_of_each_pool_counts(other: dict[str, Json], total: int) -> None:
    messages = [each.message for each in findings(OWN, Pools(other)) if isinstance(each, Violation)]
    expected = f"the limits of 2 NodePools together allow {total} {GPU} (maximum for the cluster: 64)"
    assert messages == ([expected] if total else [])


def test_a_sum_that_may_be_higher_is_not_evaluated() -> None:
    assert findings(OWN, Pools(complete=False)) == [Skip("not all NodePools are known")]
    assert [type(each) for each in findings(OWN, NoFacts())] == [Skip]
    (alone,) = findings(OWN, NoFacts(), most=47)
    assert isinstance(alone, Violation)
    assert findings(OWN, Pools(), resource="amd.com/gpu") == []


def test_the_pool_with_the_highest_limit_leads() -> None:
    facts = Pools(OWN, pool("large", limits={GPU: 64}))
    (small,) = findings(OWN, facts)
    (large,) = findings(pool("large", limits={GPU: 64}), facts)
    assert isinstance(small, Violation)
    assert isinstance(large, Violation)
    assert (small.follows, [each.name for each in small.others]) == (True, ["large"])
    assert (large.follows, [each.name for each in large.others]) == (False, ["own"])
