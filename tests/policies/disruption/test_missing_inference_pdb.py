from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from gpugate.policies.disruption.missing_inference_pdb import Params, check
from gpugate.policies.sdk.findings import Skip

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpugate.policies.sdk.policy import Context

Contexts: TypeAlias = "Callable[..., Context[Any]]"

SERVER = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: llm, namespace: research}
spec:
  replicas: 2
  template:
    metadata: {labels: {app: llm, gpugate.dev/workload-class: inference}}
    spec:
"""
GPU = "      containers: [{resources: {limits: {nvidia.com/gpu: 1}}}]"
CLAIM = """
      resourceClaims: [{name: gpu, resourceClaimTemplateName: gpu}]
      containers: [{resources: {claims: [{name: gpu}]}}]
"""


@pytest.mark.parametrize(
    ("pods", "reason"),
    [
        pytest.param(GPU, "no poddisruptionbudgets to look up", id="no facts at all"),
        pytest.param(CLAIM, "the devices of claim gpu are unknown", id="a claim that is not known"),
    ],
)
def test_what_it_cannot_know_it_does_not_judge(context: Contexts, pods: str, reason: str) -> None:
    ctx = context(SERVER + pods, params=Params())
    assert list(check(ctx.subject, ctx)) == [Skip(reason)]


def test_what_a_claim_asks_for_counts(context: Contexts) -> None:
    template = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: gpu, namespace: research}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com}}]}}}
"""
    ctx = context(SERVER + CLAIM, facts=template, complete=True, params=Params())
    assert len(list(check(ctx.subject, ctx))) == 1
