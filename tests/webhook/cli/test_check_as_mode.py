"""`check --as-mode`: one policy file serves the cluster and pull requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Run = Callable[..., Any]

POOL = """
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: gpu}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: gpu}
      requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [g5.xlarge]}]
"""
POLICY = "nodepools/missing-gpu-limit"
HEAD = "apiVersion: gpugate.dev/v1\nkind: PolicyConfig\n"
AUDIT = f"{HEAD}mode: audit\n"


@pytest.fixture
def check(tree: Callable[..., Path], gpugate: Run) -> Callable[..., Any]:
    def run(policies: str, *flags: str, project: str = "{}\n") -> Any:
        tree({"pool.yaml": POOL, "policy.yaml": policies, ".gpugate.yaml": project})
        return gpugate("check", "pool.yaml", "-p", "policy.yaml", "--select", POLICY, "-o", "concise", *flags)

    return run


@pytest.mark.parametrize(
    ("policies", "flags", "code", "severity"),
    [
        (AUDIT, (), 0, None),
        (AUDIT, ("--as-mode", "as-is"), 0, None),
        (AUDIT, ("--as-mode", "enforce"), 1, "error"),
        (HEAD + "mode: warn\n", ("--as-mode", "enforce"), 1, "error"),
        # A mode that the file sets for the policy is a decision about this policy.
        (f"{AUDIT}policies: {{{POLICY}: {{mode: warn}}}}\n", ("--as-mode", "enforce"), 0, "warning"),
        (f"{AUDIT}policies: {{{POLICY}: {{mode: off}}}}\n", ("--as-mode", "enforce"), 0, None),
    ],
)
def test_the_global_mode_is_that_of_the_cluster(
    check: Callable[..., Any], policies: str, flags: tuple[str, ...], code: int, severity: str | None
) -> None:
    ran = check(policies, *flags)
    assert ran.code == code, ran.err
    assert (f"{severity}[{POLICY}]" in ran.out) is (severity is not None)


def test_the_project_file_sets_it(check: Callable[..., Any]) -> None:
    assert check(AUDIT, project="as_mode: enforce\n").code == 1
    assert check(AUDIT, "--as-mode", "as-is", project="as_mode: enforce\n").code == 0
