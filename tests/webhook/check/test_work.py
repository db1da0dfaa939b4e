"""How much work a run is: in proportion to its objects, though many policies look at all others of a kind."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from typing import TYPE_CHECKING, Any

from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.config import PolicyConfig
from gpugate.policies.engine.ruleset import bind
from gpugate.policies.sdk import quantity, scale_targets, scheduling
from gpugate.webhook.check.options import Options
from gpugate.webhook.check.run import check
from gpugate.webhook.manifests.inputs import expand

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest

FILE = """
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {{name: gpu-{n}}}
spec:
  weight: 10
  limits: {{nvidia.com/gpu: 8}}
  template:
    metadata: {{labels: {{workload: {workload}}}}}
    spec:
      nodeClassRef: {{group: karpenter.k8s.aws, kind: EC2NodeClass, name: gpu}}
      requirements: [{{key: karpenter.k8s.aws/instance-family, operator: In, values: [g6, p5]}}]
      taints: [{{key: nvidia.com/gpu, effect: NoSchedule}}]
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {{name: agent-{n}, namespace: gpu}}
spec:
  template:
    spec:
      tolerations: [{{key: nvidia.com/gpu, operator: Exists}}]
      containers: [{{name: agent, image: agent}}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: model-{n}, namespace: ml}}
spec:
  template:
    metadata: {{labels: {{app: model}}}}
    spec:
      nodeSelector: {{workload: {workload}}}
      containers: [{{name: model, image: model, ports: [{{containerPort: 80}}], resources: {{limits: {{nvidia.com/gpu: {gpus}}}}}}}]
---
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {{name: model-{n}, namespace: ml}}
spec:
  scaleTargetRef: {{name: model-{n}}}
  maxReplicaCount: 4
  triggers: [{{type: cron, metadata: {{timezone: UTC, start: 0 8 * * *, end: 0 18 * * *, desiredReplicas: "2"}}}}]
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {{name: model-{n}, namespace: ml}}
spec: {{minAvailable: 1, selector: {{matchLabels: {{app: model}}}}}}
"""


def work(folder: Path, monkeypatch: pytest.MonkeyPatch, copies: int) -> Counter[str]:
    """How often a run of so many files reads a requirement, a quantity and what a scaler scales."""
    counts: Counter[str] = Counter()

    def counting(module: Any, name: str) -> None:
        read: Callable[..., object] = getattr(module, name)

        def counted(*values: object) -> object:
            counts[name] += 1
            return read(*values)

        patched.setattr(module, name, counted)

    folder.mkdir()
    for n in range(copies):
        workload = "training" if n % 2 else "inference"
        (folder / f"{n}.yaml").write_text(FILE.format(n=n, workload=workload, gpus=n % 4 + 1), encoding="utf-8")
    options = Options(today=dt.date(2026, 11, 21), known=frozenset(policy.id for policy in CATALOG))
    with monkeypatch.context() as patched:
        counting(scheduling, "read_requirement")
        counting(quantity, "parse")
        counting(scale_targets, "scale_target")
        report = check(list(expand([str(folder)])), bind(CATALOG, PolicyConfig()), options).report
    assert (report.objects, [finding for finding in report.findings if not finding.policy]) == (5 * copies, [])
    return counts


def test_four_times_the_files_are_four_times_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few, many = (work(tmp_path / str(copies), monkeypatch, copies) for copies in (10, 40))

    assert set(few) == {"read_requirement", "parse", "scale_target"}
    assert [name for name in few if many[name] > 4 * few[name]] == []
