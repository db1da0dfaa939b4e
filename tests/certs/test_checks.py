from __future__ import annotations

import pytest
from certificate_files import AUTHORITY, BAD, DAY, GOOD, NAME, NOW, OTHER, PAIR
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from gpugate.certs.checks import checked_authorities, checked_authority, checked_pair, checked_server
from gpugate.certs.errors import CertificateError
from gpugate.certs.pki import KeyPair, certificate_authority
from gpugate.certs.serving import server_context

WHERE = ("tls.crt", "tls.key")


@pytest.mark.parametrize("pair", GOOD.values(), ids=GOOD)
def test_what_can_be_served_with(pair: KeyPair) -> None:
    checked = checked_server(pair, [NAME], NOW, WHERE)
    assert server_context(checked).cert_store_stats()["x509"] == 0


@pytest.mark.parametrize(("pair", "says"), BAD.values(), ids=BAD)
def test_what_cannot(pair: KeyPair, says: str) -> None:
    with pytest.raises(CertificateError) as raised:
        checked_server(pair, [NAME], NOW, WHERE)
    assert says in str(raised.value)


@pytest.mark.parametrize("pair", [pair for pair, _ in BAD.values()], ids=BAD)
def test_nothing_of_a_key_is_said(pair: KeyPair) -> None:
    with pytest.raises(CertificateError) as raised:
        checked_server(pair, [NAME], NOW, WHERE)
    assert not any(line in str(raised.value).encode() for line in PAIR.key.splitlines()[1:-1])


def test_dates_are_not_looked_at_without_a_time() -> None:
    expired = BAD["expired"][0]
    assert checked_server(expired, [NAME], None) == expired


def test_one_form_whatever_was_given() -> None:
    assert {checked_pair(GOOD[name]) for name in ("byte-order-mark", "crlf", "sec1-key", "ec-parameters-first")} == {
        PAIR
    }


def _rekeyed() -> KeyPair:
    key = ec.generate_private_key(ec.SECP256R1())
    plain = serialization.NoEncryption()
    return KeyPair(
        AUTHORITY.certificate, key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    )


@pytest.mark.parametrize(
    ("pair", "says"),
    [
        pytest.param(PAIR, "it is no authority (CA:TRUE, keyCertSign)", id="server"),
        pytest.param(_rekeyed(), "does not belong", id="another-key"),
        pytest.param(KeyPair(AUTHORITY.certificate + PAIR.certificate, AUTHORITY.key), "there are 2", id="two"),
        pytest.param(KeyPair(b"x" * 1024 * 1024, b""), "certificate: not PEM", id="junk"),
        pytest.param(KeyPair(AUTHORITY.certificate, b""), "key: empty", id="no-key"),
        pytest.param(GOOD["rsa-self-signed"], "it is no authority of ours", id="without-constraints"),
    ],
)
def test_what_is_no_authority(pair: KeyPair, says: str) -> None:
    with pytest.raises(CertificateError) as raised:
        checked_authority(pair)
    assert says in str(raised.value)


def test_an_authority_is_one_also_after_it_expired() -> None:
    expired = certificate_authority("old", now=NOW - 100 * DAY, lifetime=DAY, names=[NAME])
    assert checked_authority(expired) == expired


def test_authorities_of_clients_overlap() -> None:
    expired = certificate_authority("old", now=NOW - 2 * DAY, lifetime=DAY)
    both = expired.certificate + AUTHORITY.certificate
    assert checked_authorities(both, NOW, "ca.crt") == both


@pytest.mark.parametrize(
    ("pem", "says"),
    [
        pytest.param(b"", "ca.crt: empty", id="empty"),
        pytest.param(OTHER.key, "ca.crt: holds 'PRIVATE KEY'", id="key"),
        pytest.param(AUTHORITY.certificate + AUTHORITY.certificate[:99], "ca.crt: cut off", id="truncated"),
        pytest.param(
            certificate_authority("old", now=NOW - 2 * DAY, lifetime=DAY).certificate,
            "ca.crt: every authority in it expired",
            id="expired",
        ),
    ],
)
def test_authorities_that_vouch_for_nobody(pem: bytes, says: str) -> None:
    with pytest.raises(CertificateError) as raised:
        checked_authorities(pem, NOW, "ca.crt")
    assert says in str(raised.value)
