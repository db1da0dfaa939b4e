"""A stub webhook over TLS, and a client for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from api_server.client import Client
from api_server.stub_webhook import StubServer, allowing

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def stub_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StubServer]:
    server = StubServer(tmp_path_factory.mktemp("stub"), ("127.0.0.1", "gpugate.gpugate-system.svc"))
    yield server
    server.stop()


@pytest.fixture
def stub(stub_server: StubServer) -> StubServer:
    stub_server.behaviour = allowing
    stub_server.seen.clear()
    return stub_server


@pytest.fixture
def waits() -> list[float]:
    """What a client waited for, in seconds, without waiting."""
    return []


@pytest.fixture
def client(stub: StubServer, waits: list[float]) -> Iterator[Client]:
    made = Client(f"{stub.url}/hook", stub.ca_file, sleep=waits.append)
    yield made
    made.close()
