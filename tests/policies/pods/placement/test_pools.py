from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from gpugate.policies.data.instance_types import load_instance_types
from gpugate.policies.pods._placement import pools_for
from gpugate.policies.sdk.gpu_demand import gpu_demand
from gpugate.policies.sdk.node_pools import INSTANCE_TYPES

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpugate.policies.sdk.policy import Context

TABLE = load_instance_types()
POOL = """
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: a100}
spec:
  template:
    metadata: {labels: {node-type: gpu-training}}
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: gpu}
      requirements:
        - {key: karpenter.k8s.aws/instance-gpu-name, operator: In, values: [a100]}
        - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand, spot]}
      taints: [{key: nvidia.com/gpu, value: "true", effect: NoSchedule}]
"""
KWOK = POOL.replace("karpenter.k8s.aws, kind: EC2NodeClass", "karpenter.kwok.sh, kind: KWOKNodeClass")
UNTAINTED = POOL.partition("      taints:")[0]
SOFT = POOL.replace("effect: NoSchedule", "effect: PreferNoSchedule")


@pytest.mark.parametrize(
    ("spec", "pool", "expected"),
    [
        ("{}", POOL, True),
        ("tolerations: []", POOL, False),
        ("tolerations: []", SOFT, True),
        ("nodeSelector: {node-type: gpu-training}", POOL, True),
        ("nodeSelector: {node-type: gpu-inference}", POOL, False),
        ("nodeSelector: {rack: r1}", POOL, False),
        ("nodeSelector: {topology.kubernetes.io/zone: us-east-1a}", POOL, True),
        ("nodeSelector: {karpenter.sh/nodepool: a100}", POOL, True),
        ("nodeSelector: {karpenter.sh/nodepool: h100}", POOL, False),
        ("nodeSelector: {karpenter.sh/capacity-type: reserved}", POOL, False),
        ("nodeSelector: {karpenter.k8s.aws/instance-family: p4d}", POOL, True),
        ("nodeSelector: {karpenter.k8s.aws/instance-family: p5}", POOL, False),
        ("containers: [{resources: {limits: {nvidia.com/gpu: 16}}}]", POOL, False),
        ("containers: [{resources: {limits: {nvidia.com/gpu: 16}}}]", KWOK, True),
        ("containers: [{resources: {limits: {nvidia.com/mig-1g.5gb: 1}}}]", POOL, True),
    ],
)
def test_a_pool_takes_a_pod(context: Callable[..., Context[Any]], spec: str, pool: str, *, expected: bool) -> None:
    usual = {
        "containers": [{"resources": {"limits": {"nvidia.com/gpu": "8"}}}],
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
    }
    ctx = context({"metadata": {}, "spec": usual | yaml.safe_load(spec)}, facts=pool)
    ctx = replace(ctx, tables={INSTANCE_TYPES.name: TABLE})
    matches = pools_for(ctx.subject, ctx.derived(gpu_demand), ctx)
    names = [taker["metadata", "name"].text for match in matches for taker in match.pools]
    assert names == (["a100"] if expected else [])


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("{}", ["first", "second"]),
        ("nodeSelector: {karpenter.sh/nodepool: second}", ["second"]),
        ("nodeSelector: {karpenter.sh/nodepool: third}", []),
    ],
)
def test_pools_that_differ_in_their_names_alone_are_all_named(
    context: Callable[..., Context[Any]], spec: str, expected: list[str]
) -> None:
    pools = "---".join(UNTAINTED.replace("name: a100", f"name: {name}", 1) for name in ("first", "second"))
    ctx = context(
        {
            "metadata": {},
            "spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": "8"}}}]} | yaml.safe_load(spec),
        },
        facts=pools,
    )
    ctx = replace(ctx, tables={INSTANCE_TYPES.name: TABLE})
    matches = list(pools_for(ctx.subject, ctx.derived(gpu_demand), ctx))
    assert [pool["metadata", "name"].text for match in matches for pool in match.pools] == expected
    assert len(matches) == bool(expected)
