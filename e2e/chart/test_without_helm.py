"""Test the manifest for installations without Helm."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import yaml
from chart.conftest import CHART

if TYPE_CHECKING:
    from pathlib import Path

    from chart.conftest import Helm


def test_the_manifest_contains_the_default_objects_without_hooks(helm: Helm, tmp_path: Path) -> None:
    target = tmp_path / "install.yaml"
    command = ["make", "--silent", "install-yaml", f"HELM={helm.program}", f"INSTALL_YAML={target}"]
    subprocess.run(command, cwd=CHART.parents[1], check=True, timeout=300)  # noqa: S603 -- make, with arguments of ours
    found = [each for each in yaml.safe_load_all(target.read_text()) if each]

    installed = helm.ran("template", "gpugate", CHART, "--namespace", "gpugate")
    expected = [each for each in yaml.safe_load_all(installed.stdout) if each]
    hooks = [each for each in expected if "helm.sh/hook" in (each["metadata"].get("annotations") or {})]
    assert hooks
    assert [each for each in expected if each not in hooks] == found
    kinds = [each["kind"] for each in found]
    # `kubectl apply` goes through them in this order.
    assert kinds.index("Deployment") < kinds.index("MutatingWebhookConfiguration")
