from __future__ import annotations

import datetime as dt
import textwrap
from typing import TYPE_CHECKING

import pytest

from gpugate.webhook.testing.cases import Case, InlineCase, read_case_file
from gpugate.webhook.testing.run import run_one
from gpugate.webhook.testing.setup import Setup

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gpugate.webhook.testing.cases import CaseFileError
    from gpugate.webhook.testing.comparing import CaseResult

TODAY = dt.date(2026, 11, 21)

# A GPU pool that nothing is wrong with.
POOL = """\
apiVersion: karpenter.sh/v1
kind: NodePool
metadata:
  name: gpu-inference
spec:
  template:
    metadata:
      labels: {workload: inference, team: search, cost-center: cc-1234}
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: gpu}
      requirements:
        - {key: karpenter.k8s.aws/instance-gpu-name, operator: In, values: [t4, l40s, a10g]}
        - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
      taints:
        - {key: nvidia.com/gpu, value: "true", effect: NoSchedule}
  limits: {nvidia.com/gpu: "32"}
  disruption:
    consolidationPolicy: WhenEmptyOrUnderutilized
    consolidateAfter: 5m
"""
# A GPU Pod that is given its toleration at admission, and is fine otherwise.
POD = """\
apiVersion: v1
kind: Pod
metadata:
  name: embedder
  namespace: serving
  labels: {team: search, cost-center: cc-1234}
spec:
  containers:
    - name: embedder
      image: registry.example.com/embedder:1
      resources: {limits: {nvidia.com/gpu: 1}}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with `pool.yaml`, `pod.yaml` and `both.yaml`."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pool.yaml").write_text(POOL)
    (tmp_path / "pod.yaml").write_text(POD)
    (tmp_path / "both.yaml").write_text(f"{POOL}---\n{POD}")
    return tmp_path


@pytest.fixture
def setup() -> Setup:
    return Setup(today=TODAY)


@pytest.fixture
def cases(folder: Path) -> Callable[[str], tuple[Case, ...]]:
    """Read the text of a case file."""

    def read(text: str) -> tuple[Case, ...]:
        (folder / "x.gpugate-test.yaml").write_text(textwrap.dedent(text))
        return read_case_file("x.gpugate-test.yaml").cases

    return read


Outcomes = dict[str, str]


def outcome(result: CaseResult | CaseFileError) -> str:
    """What came of a test: `passed`, the sentences that say what failed, or why it could not be run."""
    failures = getattr(result, "failures", None)
    if failures is None:
        return f"broken: {result}"
    return "; ".join(failure.message for failure in failures) or "passed"


@pytest.fixture
def outcomes(cases: Callable[[str], tuple[Case, ...]], setup: Setup) -> Callable[[str], Outcomes]:
    """Run the tests of a case file; name -> what came of it."""
    return lambda text: {case.name: outcome(run_one(case, setup)) for case in cases(text)}


@pytest.fixture
def inline(folder: Path, setup: Setup) -> Callable[..., str]:
    """Run a file with expectations; return what came of it."""

    def run(text: str, name: str = "x.yaml") -> str:
        (folder / name).write_text(text)
        return outcome(run_one(InlineCase(name, name, text), setup))

    return run
