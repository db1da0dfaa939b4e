"""How the API server connects to a webhook, and how it keeps its connections."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from api_server.stub_webhook import raw
from eventually import eventually
from stub_webhook.registration import Registrar
from stub_webhook.server import Call, Stub, allow

if TYPE_CHECKING:
    from pathlib import Path

    from api_server.responses import HttpAnswer
    from cluster.api import Api

IDLE_KEPT = 25


@pytest.mark.parametrize(
    ("offered", "agreed"), [(["http/1.1"], "http/1.1"), (["h2", "http/1.1"], "h2")], ids=["only-http-1.1", "both"]
)
def test_what_is_spoken_to_a_loopback_url(
    api: Api, namespace: str, stub: Stub, tmp_path: Path, offered: list[str], agreed: str
) -> None:
    with Stub(tmp_path, offered) as offering:
        registrar = Registrar(api, namespace, offering, prober=stub)
        # A stub that is taken for an HTTP/2 server cannot answer.
        with registrar.registered("validating", registrar.hook(timeoutSeconds=1)):
            registrar.try_create()
        assert {connection.protocol for connection in offering.connections} == {agreed}


def test_a_connection_is_used_again(stub: Stub, registrar: Registrar) -> None:
    with registrar.registered("validating", registrar.hook()):
        assert all(registrar.try_create().ok for _ in range(5))
    assert len(stub.connected()) == 1


def test_paths_of_a_url_share_connections(stub: Stub, registrar: Registrar) -> None:
    with registrar.registered("mutating", registrar.hook("/one"), registrar.hook("/two")):
        assert registrar.try_create().ok
    assert stub.connected("/one") == stub.connected("/two")


def test_requests_do_not_wait_for_connections_and_25_are_kept(stub: Stub, registrar: Registrar) -> None:
    together = threading.Barrier(40)

    def behaviour(call: Call) -> HttpAnswer:
        together.wait(timeout=30)
        return allow(call)

    stub.behaviour = behaviour
    with registrar.registered("validating", registrar.hook(timeoutSeconds=30)):
        with ThreadPoolExecutor(40) as users:
            answers = list(users.map(lambda _: registrar.try_create(), range(40)))
        assert all(answer.ok for answer in answers)
        assert len(stub.connected()) == 40
        assert eventually(lambda: sum(connection.open for connection in stub.connected()) == IDLE_KEPT)


def test_close_is_obeyed(stub: Stub, registrar: Registrar) -> None:
    stub.behaviour = lambda call: raw(allow(call).body, connection="close")
    with registrar.registered("validating", registrar.hook()):
        assert all(registrar.try_create().ok for _ in range(3))
    assert len(stub.connected()) == 3
