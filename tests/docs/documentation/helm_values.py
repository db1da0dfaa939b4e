"""Holds values against those that the chart knows."""

from __future__ import annotations

from typing import Any

from gpugate.policies.engine.config import ConfigError
from gpugate.policies.sdk.field import render
from gpugate.webhook.generate.chart.manifests import default_values, manifests, merged


def values_mistake(given: dict[str, Any]) -> str:  # Any: what JSON holds
    """Return why the chart refuses values laid over its defaults; empty when it takes them.

    A guard that looks at the release as a whole, such as `Fail` on a first install, is no mistake of a page about upgrades.
    """
    try:
        list(manifests(merged(given, default_values()), "gpugate", "gpugate"))
    except ConfigError as error:
        return f"{render(error.path)}: {error.message}" if error.path else ""
    return ""
