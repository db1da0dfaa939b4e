"""Which certificates of a webhook the API server takes, and for how long."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import pytest
from api_server.stub_webhook import raw
from stub_webhook.certificates import Authority
from stub_webhook.registration import configuration
from stub_webhook.server import allow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cluster.api import Api
    from stub_webhook.registration import Registrar
    from stub_webhook.server import Stub

LOOPBACK = "127.0.0.0/8"


def trusting(registrar: Registrar, bundle: str) -> dict[str, object]:
    return registrar.hook(clientConfig={"url": f"{registrar.stub.url}/", "caBundle": bundle})


@pytest.mark.parametrize(
    ("permitted", "names", "refusal"),
    [
        ([LOOPBACK], ["127.0.0.1"], None),
        ([LOOPBACK, "gpugate.svc"], ["127.0.0.1", "webhook.gpugate.svc"], None),
        # A constraint of one form of names says nothing about others (RFC 5280, 4.2.1.10).
        (["gpugate.svc"], ["127.0.0.1"], None),
        (["10.0.0.0/8"], ["127.0.0.1"], "is not permitted by any constraint"),
        ([LOOPBACK, "gpugate.svc"], ["127.0.0.1", "webhook.other.svc"], "is not permitted by any constraint"),
        ([], ["127.0.0.2"], "not 127.0.0.1"),
    ],
    ids=["network", "network-and-name", "names-only", "other-network", "other-name", "other-address"],
)
def test_names_in_authority_and_certificate(
    stub: Stub, registrar: Registrar, permitted: Sequence[str], names: Sequence[str], refusal: str | None
) -> None:
    authority = Authority("constrained", permitted)
    # The hook that tells when the configuration is in force keeps the certificate that works.
    with registrar.registered("validating", trusting(registrar, authority.bundle)):
        stub.certify(authority, names)
        answer = registrar.try_create()
    assert answer.ok == (refusal is None), answer.message
    assert (refusal or "") in answer.message


def test_any_certificate_of_the_bundle_is_trusted(stub: Stub, registrar: Registrar) -> None:
    both = base64.b64decode(Authority("next").bundle) + base64.b64decode(stub.authority.bundle)
    with registrar.registered("validating", trusting(registrar, base64.b64encode(both).decode())):
        assert registrar.try_create().ok


def test_another_authority_is_not_trusted(registrar: Registrar) -> None:
    with registrar.registered("validating", trusting(registrar, Authority("another").bundle)):
        assert "certificate signed by unknown authority" in registrar.try_create().message


def test_a_bundle_that_is_none_is_stored_as_it_is(api: Api, registrar: Registrar) -> None:
    rubbish = base64.b64encode(b"no certificate").decode()
    stored = api.create(
        configuration("validating", "rubbish.e2e.gpugate.dev", [{"name": "a.b.c"} | trusting(registrar, rubbish)]),
        dry_run=True,
    )
    assert stored.ok, stored.message


def test_a_bundle_that_is_none_fails_the_call(stub: Stub, registrar: Registrar) -> None:
    rubbish = base64.b64encode(b"no certificate").decode()
    with registrar.registered("validating", trusting(registrar, rubbish)):
        answer = registrar.try_create()
    assert "unable to load root certificates" in answer.message
    assert not stub.calls


def test_a_new_bundle_means_new_connections(stub: Stub, registrar: Registrar) -> None:
    old = stub.authority.bundle
    more = base64.b64encode(base64.b64decode(old) + base64.b64decode(Authority("next").bundle)).decode()
    used = []
    with registrar.registered("validating", trusting(registrar, old)):
        for bundle in (old, more, old):
            registrar.register("validating", trusting(registrar, bundle))
            assert registrar.try_create().ok
            used.append(len(stub.connected()))
    assert used == [1, 2, 2]


def test_what_an_old_bundle_trusted_is_not_used_again(stub: Stub, registrar: Registrar) -> None:
    with registrar.registered("validating", registrar.hook()):
        assert registrar.try_create().ok
        registrar.register("validating", trusting(registrar, Authority("next").bundle))
        assert "certificate signed by unknown authority" in registrar.try_create().message
    assert len(stub.calls) == 1


def test_sessions_are_never_resumed(stub: Stub, registrar: Registrar) -> None:
    stub.behaviour = lambda call: raw(allow(call).body, connection="close")
    with registrar.registered("validating", registrar.hook()):
        assert all(registrar.try_create().ok for _ in range(3))
    assert [connection.resumed for connection in stub.connected()] == [False] * 3
