"""Policies outside the library, one in Python and one in CEL, and Pods that they deny or allow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from violating import blameless_pod

if TYPE_CHECKING:
    from collections.abc import Callable

Json = dict[str, Any]

H100_SELECTED = '''"""Pod that selects nodes with an H100.

## Why is this bad?

They cost as much as ten other nodes.
"""

from gpugate.policies.sdk.findings import Stance, Violation
from gpugate.policies.sdk.gpu_demand import CLAIM_NEEDS, MAY_DEMAND, gpu_demand
from gpugate.policies.sdk.objects import POD
from gpugate.policies.sdk.policy import validates

SDK = 1


@validates(POD, mode=Stance.ENFORCE, needs=CLAIM_NEEDS, concerns=MAY_DEMAND)
def check(pod, ctx):
    """Find the node selector."""
    name = pod["spec", "nodeSelector", "karpenter.k8s.aws/instance-gpu-name"]
    if name.text == "h100" and ctx.derived(gpu_demand):
        yield Violation(name.path, "selects an H100")
'''
MANY_GPUS = """apiVersion: gpugate.dev/v1
kind: Policy
id: acme/many-gpus
title: Pod with many GPUs
why: Training Pods wait for them.
mode: enforce
match:
  kinds: [Pod]
validations:
  - expression: gpu.pod.gpus <= 2
    message: requests more than 2 GPUs
    path: spec.containers
"""
FILES = {"h100_selected.py": H100_SELECTED, "limits.yaml": MANY_GPUS}
H100, MANY = "[acme/h100-selected]", "[acme/many-gpus]"


def on_h100(namespace: str) -> Json:
    """A Pod that the policy in Python denies."""
    pod = blameless_pod(namespace)
    pod["spec"]["nodeSelector"] = {"karpenter.k8s.aws/instance-gpu-name": "h100"}
    return pod


def with_gpus(namespace: str, count: int) -> Json:
    """A Pod that the policy in CEL denies from 3 GPUs on."""
    pod = blameless_pod(namespace)
    resources = pod["spec"]["containers"][0]["resources"]
    for each in resources.values():
        each["nvidia.com/gpu"] = str(count)
    return pod


# An object, and what of the denial names the policy; empty if it is allowed.
OBJECTS: dict[str, tuple[Callable[[str], Json], str]] = {
    "denied by Python": (on_h100, H100),
    "denied by CEL": (lambda where: with_gpus(where, 8), MANY),
    "allowed by both": (lambda where: with_gpus(where, 2), ""),
}
