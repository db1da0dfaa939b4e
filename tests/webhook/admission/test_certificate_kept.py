"""A certificate that another process creates: it is read from shared memory, completely or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from certificate_files import AUTHORITY, DAY, NAME, NOW, OTHER, PAIR
from handshakes import shaken, trusting

from gpugate.certs.pki import KeyPair, certificate_authority, server_certificate
from gpugate.webhook.admission.certificate import Certificate, LeafMemory
from gpugate.webhook.admission.options import ServeOptions

if TYPE_CHECKING:
    from pathlib import Path

LONGER = server_certificate(AUTHORITY, [NAME], now=NOW, lifetime=2 * DAY)


@pytest.fixture
def leafs() -> LeafMemory:
    return LeafMemory()


@pytest.fixture
def certificate(leafs: LeafMemory) -> Certificate:
    return Certificate(ServeOptions("127.0.0.1", 0), lambda: NOW, leafs)


def served(certificate: Certificate) -> bytes:
    """Return the server's certificate for a client that trusts the authority."""
    client = trusting(AUTHORITY.certificate)
    # The dates of these certificates are independent of the local clock.
    client.verify_flags |= 0x200000  # type: ignore[operator]  # X509_V_FLAG_NO_CHECK_TIME
    _, end = shaken(certificate.identity.context, client, NAME)
    return end.getpeercert(binary_form=True) or b""


def tear(leafs: LeafMemory, pair: KeyPair) -> None:
    leafs.put(pair)
    leafs._memory[100] ^= 1


def test_a_created_certificate_is_used_until_there_is_another(certificate: Certificate) -> None:
    assert (certificate.poll(), certificate.is_behind, certificate.identity.authority is None) == (None, False, False)


def test_a_new_pair_is_used(certificate: Certificate, leafs: LeafMemory) -> None:
    before = certificate.identity
    leafs.put(PAIR)
    assert (certificate.is_behind, certificate.poll(), certificate.is_behind) == (True, "", False)
    assert (before.context is certificate.identity.context, certificate.identity.authority) == (False, None)
    assert served(certificate)


def test_a_pair_in_use_is_not_loaded_again(certificate: Certificate, leafs: LeafMemory) -> None:
    leafs.put(PAIR)
    certificate.poll()
    before = certificate.identity
    assert (certificate.poll(), certificate.identity is before) == (None, True)


def test_sighup_applies_the_current_files(certificate: Certificate, leafs: LeafMemory) -> None:
    leafs.put(LONGER)
    assert (certificate.reload(), certificate.identity.not_after) == ("", NOW + 2 * DAY)


def test_a_half_written_one_is_tried_again(certificate: Certificate, leafs: LeafMemory) -> None:
    leafs.put(PAIR)
    certificate.poll()
    before = certificate.identity
    tear(leafs, LONGER)
    errors = [certificate.poll(), certificate.poll()]
    assert (errors, certificate.identity is before) == (["the certificate is being written", None], True)
    leafs._memory[100] ^= 1
    assert (certificate.poll(), certificate.identity.not_after) == ("", NOW + 2 * DAY)


def test_an_invalid_certificate_keeps_the_last_valid_one(certificate: Certificate, leafs: LeafMemory) -> None:
    leafs.put(PAIR)
    certificate.poll()
    before = certificate.identity
    leafs.put(KeyPair(PAIR.certificate, OTHER.key))
    assert "does not match" in (certificate.poll() or "")
    assert certificate.identity is before


def test_authorities_of_clients_stay_with_it(tmp_path: Path, leafs: LeafMemory) -> None:
    clients = certificate_authority("clients", now=NOW, lifetime=DAY)
    (tmp_path / "ca.crt").write_bytes(clients.certificate)
    certificate = Certificate(ServeOptions("127.0.0.1", 0, client_ca=tmp_path / "ca.crt"), lambda: NOW, leafs)
    leafs.put(PAIR)
    certificate.poll()
    assert certificate.identity.context.cert_store_stats()["x509_ca"] == 1
