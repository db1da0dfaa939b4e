from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml

from gpugate.policies.pods._training import trains

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpugate.policies.sdk.policy import Context

PROTECTED = "annotations: {karpenter.sh/do-not-disrupt: 'true'}"


def pod(metadata: str = "{}", container: str = "{}", gpus: int = 1, **spec: Any) -> dict[str, Any]:
    limits = {"resources": {"limits": {"nvidia.com/gpu": gpus}}}
    return {
        "metadata": yaml.safe_load(metadata),
        "spec": {"containers": [limits | yaml.safe_load(container)], **spec},
    }


def owned(kind: str) -> str:
    return f"{{{PROTECTED}, ownerReferences: [{{kind: {kind}, controller: true}}]}}"


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        (pod(PROTECTED), True),
        (pod(PROTECTED, restartPolicy="Always"), True),
        (pod("annotations: {karpenter.sh/do-not-disrupt: 4h}"), True),
        (pod("annotations: {karpenter.sh/do-not-disrupt: 'True'}"), False),
        (pod("annotations: {karpenter.sh/do-not-disrupt: 'false'}"), False),
        (pod(), False),
        (pod(PROTECTED, gpus=0), False),
        (pod(PROTECTED, "ports: [{containerPort: 80}]"), False),
        (pod(PROTECTED, "livenessProbe: {}"), False),
        (pod(owned("Job")), True),
        (pod(owned("ReplicaSet")), False),
        (pod(owned("Workflow")), False),
        (pod(f"{{{PROTECTED}, labels: {{gpugate.dev/workload-class: inference}}}}"), False),
        (pod(f"{{{PROTECTED}, labels: {{notebook-name: a}}}}"), False),
        (pod("labels: {gpugate.dev/workload-class: training}", "ports: [{containerPort: 80}]"), True),
        (pod("labels: {gpugate.dev/workload-class: training}", gpus=0), False),
        (pod("{labels: {workload: training}, ownerReferences: [{kind: DaemonSet, controller: true}]}"), False),
    ],
    ids=[
        *("bare and protected", "restarted", "for a while", "misspelt", "opted out", "not protected", "no GPU"),
        *("ports", "probe", "of a Job", "of a Deployment", "of a workflow", "inference", "notebook"),
        *("says so", "says so without a GPU", "of a DaemonSet"),
    ],
)
def test_it_trains_or_is_presumed_to(
    context: Callable[..., Context[Any]], obj: dict[str, Any], *, expected: bool
) -> None:
    ctx = context(obj, namespace="apps")
    assert trains(ctx.subject, ctx) is expected
