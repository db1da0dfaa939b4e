from __future__ import annotations

from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.config import PolicyConfig
from gpugate.policies.engine.ruleset import Needs, bind
from gpugate.webhook.registration.rbac import AuditedResource, audited_resources

RULES = bind(CATALOG, PolicyConfig())


def resources(*policies: str) -> dict[str, AuditedResource]:
    rules = bind(CATALOG, PolicyConfig(), policies) if policies else RULES
    return {f"{found.kind.name}.{found.kind.group}": found for found in audited_resources(rules)}


def test_each_resource_is_read_once_in_every_version_that_is_of_use() -> None:
    found = audited_resources(RULES)

    assert len({(each.kind.group, each.kind.plural) for each in found}) == len(found)
    assert resources()["NodePool.karpenter.sh"].kind.versions == ("v1", "v1beta1")


def test_what_makes_others_comes_before_these() -> None:
    order = list(resources())

    chains = [
        ("Deployment.apps", "ReplicaSet.apps", "Pod."),
        ("JobSet.jobset.x-k8s.io", "Job.batch"),
        ("CronJob.batch", "Job.batch", "Pod."),
        ("RayJob.ray.io", "RayCluster.ray.io", "Pod."),
        ("LeaderWorkerSet.leaderworkerset.x-k8s.io", "StatefulSet.apps", "Pod."),
    ]
    for chain in chains:
        assert [order.index(name) for name in chain] == sorted(order.index(name) for name in chain)
    assert order[-1] == "Pod."


def test_everything_that_rules_look_up_is_read() -> None:
    needed = {f"{kind.name}.{kind.group}" for kind in Needs(RULES.rules).kinds}

    assert {name for name, found in resources().items() if found.needed} == needed


def test_what_holds_gpus_is_read_whatever_the_rules() -> None:
    found = resources("nodepools/missing-gpu-limit")

    assert {"Pod.", "Node.", "ReplicaSet.apps", "ResourceClaim.resource.k8s.io"} <= set(found)
    assert [name for name, each in found.items() if each.evaluated] == ["NodePool.karpenter.sh"]
