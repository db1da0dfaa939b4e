"""What the API server makes of the manifests that the fast tests use, without gpugate: what it refuses, and why."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from cluster.namespaces import made_namespaces, until_ready

from gpugate.webhook.manifests.load import load

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cluster.api import Api
    from cluster.served_webhook import ServedWebhook

TESTS = Path(__file__).parents[1] / "tests"
MANIFESTS = TESTS / "fixtures" / "manifests"


def refused() -> dict[str, tuple[str, bool]]:
    """The table of what the fast tests say that the API server refuses: object -> field, whether a policy finds it too."""
    file = TESTS / "webhook" / "check" / "test_fixture_manifests.py"
    spec = importlib.util.spec_from_file_location("test_fixture_manifests", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    table: dict[str, tuple[str, bool]] = module.REFUSED
    return table


def named() -> Iterator[tuple[str, dict[str, Any]]]:
    for manifest in load([str(file) for file in sorted(MANIFESTS.iterdir())]).manifests:
        request = manifest.request
        yield f"{Path(manifest.document.source).stem}: {request.kind.kind} {request.name}", dict(request.object or {})


# Where it names another field: of what is missing the outermost, and one of an old version as the newest has it.
NAMED_OTHERWISE = {
    "nodepool-gpu-inference-without-template: NodePool gpu-inference-pool": "spec.template",
    "resourceclaimtemplate-mig-1g10gb: ResourceClaimTemplate mig-1g10gb": (
        "spec.spec.devices.requests[0].exactly.deviceClassName"
    ),
}
REFUSED = refused()
OBJECTS = dict(named())


@pytest.fixture(scope="module", autouse=True)
def _alone(webhook: ServedWebhook) -> Iterator[None]:
    webhook.unregister()
    yield
    webhook.register()


@pytest.fixture(scope="module", autouse=True)
def _namespaces(api: Api) -> Iterator[None]:
    names = {obj["metadata"]["namespace"] for obj in OBJECTS.values() if "namespace" in obj["metadata"]}
    until_ready(api, "default")
    with made_namespaces(api, *sorted(names - {"default"})):
        yield


@pytest.mark.parametrize("name", [name for name in OBJECTS if name not in REFUSED])
def test_the_api_server_takes_it(name: str, api: Api) -> None:
    answer = api.create(OBJECTS[name], dry_run=True)
    assert (answer.code, answer.message) == (201, "")


@pytest.mark.parametrize("name", REFUSED)
def test_the_api_server_refuses_it(name: str, api: Api) -> None:
    field = NAMED_OTHERWISE.get(name) or REFUSED[name][0]
    answer = api.create(OBJECTS[name], dry_run=True)
    assert answer.code == 422
    assert f"{field}: " in answer.message
