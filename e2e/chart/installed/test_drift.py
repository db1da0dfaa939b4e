"""Whatever is chosen in the values, nobody takes it for a change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from chart.conftest import CHART
from chart.installed.release import NAME

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from chart.installed.release import Release

# Two Pods are as good as nine here.
FEWER: dict[str, dict[str, Any]] = {
    "platform": {"replicaCount": 1, "hooks": {"wait": {"enabled": False}}},
    "busy": {
        "autoscaling": {"minReplicas": 2, "maxReplicas": 2},
        "podDisruptionBudget": {"minAvailable": 1},
        "server": {"workers": 1},
        "hooks": {"wait": {"enabled": False}},
        # The ConfigMap that they mount is the platform's.
        "extraVolumes": [],
        "extraVolumeMounts": [],
    },
}


@pytest.mark.parametrize("case", FEWER)
def test_what_was_chosen_is_no_drift(prepare: Callable[[], AbstractContextManager[Release]], case: str) -> None:
    with prepare() as release:
        release.install(CHART / "ci" / f"{case}-values.yaml", FEWER[case])

        reasons = {
            line for pod in release.pods.ready() for line in pod.metrics().splitlines() if "_config_drift{" in line
        }
        ran = release.run(f"gpugate doctor --namespace {release.namespace} --webhook-configuration {NAME}")
        release.uninstall()

        assert {line for line in reasons if not line.endswith(" 0.0")} == set()
        assert (ran.returncode, "0 errors, 0 warnings" in ran.stdout) == (0, True), ran.stdout
