"""The definitions of report objects, as those who make them publish them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml
from cluster.custom_resources import install

import tools

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cluster.api import Api

Json = dict[str, Any]


def openreports() -> list[Json]:
    """Return Report and ClusterReport.

    Raises:
        ToolsError: the Go module that holds them cannot be had.
    """
    folder = tools.module_folder(*tools.OPEN_REPORTS) / "config" / "crd"
    return [yaml.safe_load(file.read_text(encoding="utf-8")) for file in sorted(folder.glob("*.yaml"))]


def policy_reports() -> list[Json]:
    """Return PolicyReport and ClusterPolicyReport, as Kyverno installs them.

    Raises:
        ToolsError: the Go module that holds them cannot be had.
    """
    folder = tools.module_folder(*tools.KYVERNO) / "config" / "crds" / "policyreport"
    return [yaml.safe_load(file.read_text(encoding="utf-8")) for file in sorted(folder.glob("*.yaml"))]


def installed(api: Api, definitions: list[Json]) -> Iterator[None]:
    """Install some, and take them away again, with every object of theirs."""
    install(api, definitions)
    yield
    for each in definitions:
        api.delete(each)
        api.eventually(each, lambda found: not found)
