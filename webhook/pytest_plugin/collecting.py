"""Finds policy tests among the files that pytest looks at."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpugate.webhook.manifests.inputs import expand
from gpugate.webhook.policy_tests.collecting import Collector
from gpugate.webhook.pytest_plugin.case_items import CaseFile
from gpugate.webhook.pytest_plugin.coverage import Coverage
from gpugate.webhook.pytest_plugin.object_items import Objects
from gpugate.webhook.pytest_plugin.patterns import Patterns
from gpugate.webhook.pytest_plugin.surroundings import shown, surroundings

if TYPE_CHECKING:
    from pathlib import Path


class PolicyTests:
    """What pytest calls, where somebody asked for policy tests."""

    def __init__(self, config: pytest.Config) -> None:
        if config.getoption("--gpugate-update") and _is_distributed(config):
            raise pytest.UsageError("--gpugate-update writes files, which processes cannot share: leave out -n")
        self._collector = Collector()
        self._coverage = Coverage(surroundings(config), config.getoption("--gpugate-coverage"))
        config.pluginmanager.register(self._coverage, "gpugate-coverage")
        patterns = Patterns(config)
        config.pluginmanager.register(patterns, "gpugate-patterns")
        config.pluginmanager.register(Objects(config, patterns), "gpugate-objects")

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        """Collect a file that holds tests."""
        if not file_path.name.endswith((".yaml", ".yml")):
            return None
        collected = self._collector.collect(expand([shown(file_path)]))
        if not collected.cases and not collected.broken:
            return None
        return CaseFile.of(parent, file_path, collected, self._coverage)


def _is_distributed(config: pytest.Config) -> bool:
    return bool(config.getoption("numprocesses", None)) or hasattr(config, "workerinput")
