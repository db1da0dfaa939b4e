"""The connections that the API server keeps to a webhook."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from api_server.client import Client
from api_server.errors import TransportError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

SERVICE = "gpugate.gpugate-system.svc"


@pytest.fixture(scope="module")
def service(start_process: Callable[[list[str], Path], Any], tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A webhook whose certificate contains the name of its Service."""
    ca_file = tmp_path_factory.mktemp("service") / "ca.crt"
    command = [sys.executable, "-m", "gpugate.webhook.cli.main", "serve", "--host", "127.0.0.1", "--port", "0"]
    command += ["--health-port", "0", "--drain", "0", "--workers", "1", "--tls-san", SERVICE, "--ca-file", str(ca_file)]
    return start_process(command, ca_file)


@pytest.fixture
def body(captured: Callable[[str], bytes]) -> bytes:
    return captured("pod-create-gpu-untolerated.validate")


def client_of(service: Any, server_name: str) -> Client:
    # Its URL contains the name of the Service, which only a cluster resolves.
    url = f"https://127.0.0.1:{urlsplit(service.url).port}/validate"
    return Client(url, service.ca_file, server_name=server_name)


@pytest.fixture
def client(service: Any) -> Iterator[Client]:
    made = client_of(service, SERVICE)
    yield made
    made.close()


def test_the_name_of_the_service_is_in_the_certificate(client: Client, body: bytes) -> None:
    assert client.post(body, 10).status == 200


def test_no_other_name_is(service: Any, body: bytes) -> None:
    client = client_of(service, "other.gpugate-system.svc")
    with pytest.raises(TransportError, match="x509"):
        client.post(body, 10)


def test_idle_connections_are_used_again(client: Client, body: bytes) -> None:
    with ThreadPoolExecutor(25) as side_by_side:
        answers = list(side_by_side.map(lambda _: client.post(body, 30), range(200)))
    opened = client.opened
    answers += [client.post(body, 10) for _ in range(100)]
    assert {answer.status for answer in answers} == {200}
    assert client.opened == opened <= 25


def test_the_timeout_of_the_query_is_understood(client: Client, body: bytes) -> None:
    assert [client.post(body, seconds).status for seconds in (1, 10, 29.5, 30)] == [200] * 4
