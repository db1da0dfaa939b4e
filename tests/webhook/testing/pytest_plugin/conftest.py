from __future__ import annotations

import pkgutil
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest

from gpugate.webhook import check, manifests, rendering, report, schemas
from gpugate.webhook import testing as policy_tests
from gpugate.webhook.testing import pytest_plugin

if TYPE_CHECKING:
    from collections.abc import Callable

PLUGIN = "gpugate.webhook.testing.pytest_plugin.plugin"
DENIED = """\
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: gpu}
spec:
  template:
    metadata:
      labels: {workload: inference, team: serving, cost-center: cc-4711}
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: gpu}
      requirements:
        - {key: karpenter.k8s.aws/instance-gpu-name, operator: In, values: [t4, l40s, a10g]}
        - {key: kubernetes.io/arch, operator: In, values: [amd64]}
        - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
      taints:
        - {key: nvidia.com/gpu, value: "true", effect: NoSchedule}
  disruption: {consolidationPolicy: WhenEmptyOrUnderutilized, consolidateAfter: 5m}
"""
FINE = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n"
CASES = """\
tests:
  - name: a pool without a limit is refused
    object: pool.yaml
    expect: {deny: [nodepools/missing-gpu-limit]}
  - name: settings are let in
    object: settings.yaml
    expect: {allow: true}
"""


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    """A project with a pool that is denied, settings that are not, and a case file that says so."""
    for name, text in {"pool.yaml": DENIED, "settings.yaml": FINE, "pools.gpugate-test.yaml": CASES}.items():
        pytester.path.joinpath(name).write_text(text)
    return pytester


@pytest.fixture(autouse=True, scope="session")
def imported() -> None:
    """Import what runs of pytest in this process use.

    They forget what they imported, and neither C extensions such as PyYAML's nor types of fields bear a second import.
    """
    for package in (check, manifests, policy_tests, pytest_plugin, rendering, report, schemas):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            import_module(module.name)


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Load the plugins that a test names, whether they are installed or not, and no others."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)


@pytest.fixture
def run(project: pytest.Pytester) -> Callable[..., pytest.RunResult]:
    """Run pytest in the project with the plugin."""

    def ran(*arguments: str, **more: Any) -> pytest.RunResult:  # Any: pytester's own arguments
        return project.runpytest_inprocess("-p", PLUGIN, "-p", "xdist", *arguments, **more)

    return ran
