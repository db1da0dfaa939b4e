from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml

from gpugate.policies.pods._training import evidence_for_class, otherwise, trains

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpugate.policies.sdk.policy import Context


def pod(metadata: str = "{}", container: str = "{}", gpus: int = 1) -> dict[str, Any]:
    limits = {"resources": {"limits": {"nvidia.com/gpu": gpus}}}
    return {"metadata": yaml.safe_load(metadata), "spec": {"containers": [limits | yaml.safe_load(container)]}}


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        pytest.param(pod(), False, id="bare"),
        pytest.param(pod("annotations: {karpenter.sh/do-not-disrupt: 'true'}"), False, id="protected by hand"),
        pytest.param(pod(container="command: [torchrun, main.py]"), True, id="a launcher"),
        pytest.param(pod(container="command: [python, train.py]"), False, id="a script"),
        pytest.param(pod("labels: {jobset.sigs.k8s.io/jobset-name: a}"), False, id="possibly"),
        pytest.param(pod("labels: {training.kubeflow.org/job-name: a}"), True, id="a framework that trains"),
        pytest.param(
            pod("labels: {gpugate.dev/workload-class: inference}", "command: [torchrun, a.py]"), False, id="not"
        ),
        pytest.param(
            pod("labels: {gpugate.dev/workload-class: training}", "ports: [{containerPort: 8}]"), True, id="own"
        ),
        pytest.param(pod("labels: {gpugate.dev/workload-class: training}", gpus=0), False, id="without a GPU"),
        pytest.param(
            pod("{labels: {workload: training}, ownerReferences: [{kind: DaemonSet, controller: true}]}"),
            False,
            id="of a DaemonSet",
        ),
    ],
)
def test_it_is_known_to_train(context: Callable[..., Context[Any]], obj: dict[str, Any], *, expected: bool) -> None:
    ctx = context(obj, namespace="apps")
    assert trains(ctx.subject, ctx) is expected


@pytest.mark.parametrize(
    ("obj", "said", "hint"),
    [
        (
            pod(container="command: [torchrun, a.py]"),
            "(detected as training by: the launcher torchrun in its command)",
            ", or label the Pod gpugate.dev/workload-class: batch if it does not train",
        ),
        (
            pod("labels: {gpugate.dev/workload-class: training}"),
            "(detected as training by: label gpugate.dev/workload-class of the Pod)",
            "",
        ),
    ],
)
def test_a_finding_states_its_evidence(
    context: Callable[..., Context[Any]], obj: dict[str, Any], said: str, hint: str
) -> None:
    ctx = context(obj, namespace="apps")
    assert (evidence_for_class(ctx), otherwise(ctx)) == (said, hint)
