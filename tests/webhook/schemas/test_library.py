"""The examples of policies and the fixtures: the API server refuses no other than those listed, nor do we."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from example_laws import for_each_example

from gpugate.webhook.manifests.load import load

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[3]
POLICIES = ROOT / "policies"
LISTED: dict[str, str] = yaml.safe_load((ROOT / "e2e/expectations/refused_by_api_server.yaml").read_text("utf-8"))
# What a server takes that is not asked to be strict, and loses. kubectl asks.
PRUNED = (
    "claims/examples/invalid_request/bad-admin-access-in-an-alternative.yaml",
    "claims/examples/removed_api/bad-shape-of-both.yaml",
    "nodepools/examples/legacy_field/bad-",
)
GROUPS = ("karpenter.", "keda.sh", "autoscaling.x-k8s.io")
EXAMPLES = sorted(file.relative_to(POLICIES).as_posix() for file in POLICIES.rglob("examples/*/*.yaml"))


def refused(file: Path, problems: Callable[..., Any]) -> set[str]:
    found = [problems(dict(manifest.request.object or {})) for manifest in load([str(file)]).manifests]
    return {path for each in found for path in each}


@for_each_example(EXAMPLES)
def test_an_example_is_refused_only_where_the_api_server_refuses_it(name: str, problems: Callable[..., Any]) -> None:
    found = refused(POLICIES / name, problems)

    assert not found or name in LISTED or name.startswith(PRUNED)


# A field that is missing is told of by the unknown one that was meant for it.
TOLD_OTHERWISE = {"nodepools/examples/legacy_field/bad-selectors.yaml": "spec.securityGroupSelector"}
OF_DEFINITIONS = [
    name for name in LISTED if any(f"apiVersion: {group}" in (POLICIES / name).read_text("utf-8") for group in GROUPS)
]


@pytest.mark.parametrize("name", OF_DEFINITIONS)
def test_an_example_that_the_api_server_refuses_is_refused_at_the_same_field(
    name: str, problems: Callable[..., Any]
) -> None:
    field = TOLD_OTHERWISE.get(name) or LISTED[name].partition(":")[0]

    assert field in refused(POLICIES / name, problems)


FIXTURES = ROOT / "tests/fixtures/manifests"
REFUSED = {
    "nodepool-gpu-inference-without-node-class-group.yaml": {
        "spec.template.spec.nodeClassRef.group",
        "spec.template.spec.nodeClassRef.kind",
    },
    "nodepool-gpu-inference-without-template.yaml": {"spec.template"},
}


@pytest.mark.parametrize("name", sorted(file.name for file in FIXTURES.iterdir()))
def test_a_fixture_is_refused_only_where_the_api_server_refuses_it(name: str, problems: Callable[..., Any]) -> None:
    assert refused(FIXTURES / name, problems) == REFUSED.get(name, set())
