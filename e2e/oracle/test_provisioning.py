"""Which NodePools can launch a node for a Pod: as Karpenter's scheduler decides it."""

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
from gpugate.policies.sdk.provisioning import launchable
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


def launching(cluster: Json) -> tuple[Result, ...]:
    """Return what each pool can do, as gpugate decides it."""
    agents = [
        Request(
            GroupVersionKind("apps", "v1", "DaemonSet"),
            Operation.CREATE,
            {"metadata": each["metadata"], "spec": {"template": each}},
        )
        for each in cluster["daemons"]
    ]
    pools = [Request(POOL, Operation.CREATE, pool) for pool in cluster["pools"]]
    facts = RunFacts([*pools, *agents, NODE_CLASS], complete=True)
    pod = Request(GroupVersionKind("", "v1", "Pod"), Operation.CREATE, cluster["pod"], namespace="ml")
    tables = {INSTANCE_TYPES.name: CATALOGUE}
    ctx = Context(Params(), Field(pod.object), None, pod, facts, Platform(), Target(), tables)
    terms = ((read_requirement(Field(entry)) for entry in term) for term in cluster["volumesNeed"])
    volumes = tuple(combine(each for each in term if each) for term in terms)
    wanted = replace(demand(ctx.subject, ctx), volumes=volumes)
    found = results(wanted, ctx)
    assert launchable(wanted, ctx) is any(each.failure is None for each in found)
    return found


@given(clusters())
def test_karpenter_launches_a_node_from_the_same_pools(scheduler: Oracle, cluster: Json) -> None:
    ours = launching(cluster)

    theirs = scheduler.ask("launching", cluster)

    # A pool that no known type meets may allow one that is newer than the catalogue.
    unknown = {each.pool for each in ours if each.doubt}
    assert [each.pool for each in ours if not (each.failure or each.doubt)] == [
        name for name in theirs if name not in unknown
    ]
