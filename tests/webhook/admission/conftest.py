"""The fake API server in front of real webhook processes.

`api_server` has the webhook with the shipped modes registered, mutating and validating. `library(name)` returns one
whose webhook uses the configuration and the cluster data of an example. `library.outcome(name)` is the outcome of the
request in the example. `uncollected` shows what reference cycles keep in memory.
"""

from __future__ import annotations

import functools
import gc
import itertools
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from api_server.admission import ApiServer
from api_server.client import Client
from api_server.library import as_it_says, defaulted
from api_server.webhooks import Webhook

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from api_server.outcomes import Outcome

EXAMPLE_SERVER = Path(__file__).parents[1] / "example_server.py"


@pytest.fixture(scope="session")
def registered(start_process: Callable[..., Any]) -> Iterator[Callable[..., ApiServer]]:
    """Create an API server with a webhook process, registered as mutating and validating."""
    # Connections close before the processes, so that no process waits at its end for a client.
    assert start_process
    clients: list[Client] = []

    def register(process: Any, **members: Any) -> ApiServer:
        pair = [Client(f"{process.url}/{path}", process.ca_file) for path in ("mutate", "validate")]
        clients.extend(pair)
        mutating, validating = (
            Webhook(f"{name}.gpugate.dev", client, **members)
            for name, client in zip(("mutate", "validate"), pair, strict=True)
        )
        return ApiServer((mutating,), (validating,), defaulted)

    yield register
    for client in clients:
        client.close()


@pytest.fixture(scope="session")
def api_server(registered: Callable[..., ApiServer], webhook: Any) -> ApiServer:
    return registered(webhook, reinvocation_policy="IfNeeded")


class Library:
    def __init__(self, api_server: ApiServer) -> None:
        self._api_server = api_server
        self._numbers = itertools.count()

    def __call__(self, name: str, version: str = "v1") -> ApiServer:
        mutating, validating = (
            tuple(replace(webhook, version=version) for webhook in webhooks)
            for webhooks in (self._api_server.mutating, self._api_server.validating)
        )
        # The uid tells the server which example a review belongs to.
        return replace(
            self._api_server,
            mutating=mutating,
            validating=validating,
            new_uid=lambda: f"{name}#{next(self._numbers)}",
        )

    @functools.cache  # noqa: B019 -- one library for the whole run
    def outcome(self, name: str) -> Outcome:
        return self(name).admit(as_it_says(name))


@pytest.fixture(scope="session")
def library(
    registered: Callable[..., ApiServer],
    start_process: Callable[..., Any],
    tmp_path_factory: pytest.TempPathFactory,
) -> Library:
    ca_file = tmp_path_factory.mktemp("examples") / "ca.crt"
    return Library(registered(start_process([sys.executable, str(EXAMPLE_SERVER), str(ca_file)], ca_file)))


@pytest.fixture
def uncollected() -> Iterator[None]:
    """Disable collections, and consider only objects that the test creates."""
    gc.collect()
    gc.disable()
    gc.freeze()
    yield
    gc.unfreeze()
    gc.enable()
