"""The generated configurations, registered for a server that does not answer as it should."""

from __future__ import annotations

import base64
import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, Protocol

import pytest
from cluster.namespaces import made_namespaces, until_ready
from cluster.service_account import NAMESPACE
from stub_webhook.registration import register
from stub_webhook.server import Stub

from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.config import PolicyConfig, PolicyEntry
from gpugate.policies.engine.ruleset import bind
from gpugate.webhook.registration.entries import RiskGroup
from gpugate.webhook.registration.objects import Server, webhook_configurations

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from cluster.api import Api
    from cluster.served_webhook import ServedWebhook

_RULESET = bind(CATALOG, PolicyConfig(policies={"*/*": PolicyEntry(mode="enforce")}))
_NAME = "failing.e2e.gpugate.dev"


class Registered(Protocol):
    """Registers what is generated for a server with this URL and `caBundle`, as long as the context lasts."""

    def __call__(
        self, url: str, bundle: str, failure_policy: Literal["Fail", "Ignore"], timeout_seconds: int = 5
    ) -> AbstractContextManager[None]: ...


@pytest.fixture(scope="module", autouse=True)
def without_gpugate(webhook: ServedWebhook) -> Iterator[None]:
    webhook.unregister()
    yield
    webhook.register()


@pytest.fixture(scope="module")
def tenant(api: Api) -> Iterator[str]:
    """A namespace like any other."""
    name = f"tenant-{uuid.uuid4().hex[:8]}"
    until_ready(api, NAMESPACE)
    with made_namespaces(api, name):
        yield name


@pytest.fixture(scope="module")
def registered(api: Api, tenant: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registered]:
    with Stub(tmp_path_factory.mktemp("prober")) as prober:

        @contextmanager
        def register_all(
            url: str, bundle: str, failure_policy: Literal["Fail", "Ignore"], timeout_seconds: int = 5
        ) -> Iterator[None]:
            server = Server(base64.b64decode(bundle), namespace=NAMESPACE, url=url)
            made = webhook_configurations(
                _RULESET,
                server,
                fail=tuple(RiskGroup) if failure_policy == "Fail" else (),
                fail_mutating=tuple(RiskGroup) if failure_policy == "Fail" else (),
            )
            configurations = [_renamed(each, timeout_seconds) for each in made]
            try:
                for configuration in configurations:
                    register(api, prober, tenant, configuration)
                yield
            finally:
                for configuration in configurations:
                    api.delete(configuration)

        yield register_all


def _renamed(configuration: dict[str, Any], timeout_seconds: int) -> dict[str, Any]:
    hooks = [hook | {"timeoutSeconds": timeout_seconds} for hook in configuration["webhooks"]]
    return configuration | {"metadata": {"name": _NAME}, "webhooks": hooks}
