from __future__ import annotations

import datetime as dt
import os
import ssl
import stat
import tempfile
from pathlib import Path

import pytest
from certificate_files import BAD, GOOD
from client_certificates import client_certificate
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from handshakes import shaken, trusting

from gpugate.certs import serving
from gpugate.certs.pki import KeyPair, certificate_authority, server_certificate
from gpugate.certs.serving import CertificateError, self_test, server_context

NOW = dt.datetime.now(tz=dt.UTC)
DAY = dt.timedelta(days=1)
AUTHORITY = certificate_authority("ca", now=NOW, lifetime=DAY, names=["localhost", "127.0.0.1"])
PAIR = server_certificate(AUTHORITY, ["localhost", "127.0.0.1"], now=NOW, lifetime=DAY)
OF_CLIENTS = certificate_authority("clients", now=NOW, lifetime=DAY)
NEXT_OF_CLIENTS = certificate_authority("clients", now=NOW, lifetime=DAY)


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1"])
def test_shakes_hands_with_a_client_that_trusts_the_authority(name: str) -> None:
    _, client = shaken(server_context(PAIR), trusting(AUTHORITY.certificate), name)
    assert client.version() == "TLSv1.3"


def test_tls_1_1_is_refused() -> None:
    old = trusting(AUTHORITY.certificate)
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
    old.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.raises(ssl.SSLError):
        shaken(server_context(PAIR), old, "localhost")


@pytest.mark.parametrize("authorities", [b"", OF_CLIENTS.certificate], ids=["anybody", "clients-with-certificates"])
def test_sessions_are_not_resumed(authorities: bytes) -> None:
    server = server_context(PAIR, authorities)
    client = trusting(AUTHORITY.certificate, client_certificate(OF_CLIENTS, now=NOW))
    _, first = shaken(server, client, "localhost")
    _, second = shaken(server, client, "localhost", first.session)
    assert (first.session.has_ticket, second.session_reused) == (False, False)


@pytest.mark.parametrize(
    ("authorities", "spoken"),
    [
        pytest.param(b"", True, id="anybody"),
        # A session of 1.2 can be resumed without a ticket.
        pytest.param(OF_CLIENTS.certificate, False, id="clients-with-certificates"),
    ],
)
def test_who_may_speak_tls_1_2(authorities: bytes, spoken: bool) -> None:  # noqa: FBT001 -- a table's column
    client = trusting(AUTHORITY.certificate, client_certificate(OF_CLIENTS, now=NOW))
    client.maximum_version = ssl.TLSVersion.TLSv1_2
    if spoken:
        assert shaken(server_context(PAIR, authorities), client, "localhost")[1].version() == "TLSv1.2"
    else:
        with pytest.raises(ssl.SSLError, match="TLSV1_ALERT_PROTOCOL_VERSION"):
            shaken(server_context(PAIR, authorities), client, "localhost")


@pytest.mark.parametrize("pair", GOOD.values(), ids=GOOD)
def test_every_form_of_a_pair_is_loaded(pair: KeyPair) -> None:
    server_context(pair)


@pytest.mark.parametrize(
    ("pair", "says"),
    [BAD[name] for name in ("empty-certificate", "no-pem", "key-in-der", "encrypted-key", "another-key", "swapped")],
)
def test_what_cannot_be_loaded(pair: KeyPair, says: str) -> None:
    with pytest.raises(CertificateError) as raised:
        server_context(pair, where=("tls.crt", "tls.key"))
    assert says in str(raised.value)


def test_no_key_comes_to_a_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "TemporaryDirectory", None)
    assert shaken(server_context(PAIR), trusting(AUTHORITY.certificate), "localhost")


def test_where_memory_cannot_be_a_file_the_key_is_on_disk_for_a_moment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen = []
    load = ssl.SSLContext.load_cert_chain

    def look(context: ssl.SSLContext, path: str) -> None:
        seen.extend(stat.S_IMODE(each.stat().st_mode) for each in (Path(path), Path(path).parent))
        load(context, path)

    def none(*_: object) -> int:
        raise OSError

    monkeypatch.setattr(os, "memfd_create", none)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", look)
    server_context(PAIR)
    assert (seen, list(tmp_path.iterdir())) == ([0o600, 0o700], [])


@pytest.mark.parametrize(
    ("shown", "alert"),
    [
        pytest.param(None, "PEER_DID_NOT_RETURN_A_CERTIFICATE", id="none"),
        pytest.param(client_certificate(AUTHORITY, now=NOW), "CERTIFICATE_VERIFY_FAILED", id="another-authority"),
        pytest.param(client_certificate(OF_CLIENTS, now=NOW - 2 * DAY), "CERTIFICATE_VERIFY_FAILED", id="expired"),
        pytest.param(
            server_certificate(OF_CLIENTS, ["kube-apiserver"], now=NOW, lifetime=DAY),
            "CERTIFICATE_VERIFY_FAILED",
            id="for-servers",
        ),
    ],
)
def test_clients_that_are_not_let_in(shown: KeyPair | None, alert: str) -> None:
    with pytest.raises(ssl.SSLError) as raised:
        shaken(server_context(PAIR, OF_CLIENTS.certificate), trusting(AUTHORITY.certificate, shown), "localhost")
    assert raised.value.reason == alert


@pytest.mark.parametrize("authority", [OF_CLIENTS, NEXT_OF_CLIENTS], ids=["old", "new"])
def test_two_authorities_of_clients_overlap(authority: KeyPair) -> None:
    server = server_context(PAIR, OF_CLIENTS.certificate + NEXT_OF_CLIENTS.certificate)
    client = trusting(AUTHORITY.certificate, client_certificate(authority, now=NOW))
    ends = shaken(server, client, "localhost")
    assert ends[0].getpeercert() is not None


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1"])
def test_what_is_good_passes_its_test(name: str) -> None:
    another = certificate_authority("ca", now=NOW, lifetime=DAY)
    self_test(PAIR, another.certificate + AUTHORITY.certificate, name, NOW)


def test_dates_are_judged_by_the_time_given() -> None:
    then = NOW + 1000 * DAY
    authority = certificate_authority("ca", now=then, lifetime=DAY, names=["localhost"])
    pair = server_certificate(authority, ["localhost"], now=then, lifetime=DAY)
    self_test(pair, authority.certificate, "localhost", then)


@pytest.mark.parametrize(
    ("pair", "bundle", "name", "now", "says"),
    [
        pytest.param(PAIR, b"", "localhost", NOW, "the bundle contains no certificate", id="empty-bundle"),
        pytest.param(PAIR, OF_CLIENTS.certificate, "localhost", NOW, "a client .* rejects", id="another-authority"),
        pytest.param(PAIR, AUTHORITY.certificate, "other.svc", NOW, "a client .* rejects", id="another-name"),
        pytest.param(PAIR, AUTHORITY.certificate, "localhost", NOW + 2 * DAY, "a client .* rejects", id="expired"),
        pytest.param(
            KeyPair(PAIR.certificate, OF_CLIENTS.key),
            AUTHORITY.certificate,
            "localhost",
            NOW,
            "does not match",
            id="another-key",
        ),
    ],
)
def test_what_a_client_would_refuse(pair: KeyPair, bundle: bytes, name: str, now: dt.datetime, says: str) -> None:
    with pytest.raises(CertificateError, match=says):
        self_test(pair, bundle, name, now)


def test_what_openssl_refuses_is_said_in_its_words() -> None:
    key = rsa.generate_private_key(65537, 1024)  # noqa: S505 -- one that OpenSSL refuses
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    signed = (
        x509.CertificateBuilder(name, name, key.public_key(), 1, NOW, NOW + DAY)
        .sign(key, hashes.SHA256())
        .public_bytes(serialization.Encoding.PEM)
    )
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    with pytest.raises(CertificateError) as raised:
        server_context(KeyPair(signed, pem), where=("tls.crt", "tls.key"))
    assert str(raised.value) == "tls.crt, tls.key: OpenSSL rejects them: ee key too small"


def test_a_handshake_that_a_client_ends_is_said_in_its_words() -> None:
    with pytest.raises(CertificateError, match=r"^the handshake failed: unable to get local issuer certificate$"):
        serving._perform_handshake(server_context(PAIR), OF_CLIENTS.certificate, "localhost")


def test_a_handshake_that_fails_otherwise_is_said_by_its_reason() -> None:
    old = server_context(PAIR)
    old.set_ciphers("AES128-SHA")
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises(CertificateError, match=r"^the handshake failed: .*[A-Z]$"):
        serving._perform_handshake(old, AUTHORITY.certificate, "localhost")


def test_a_handshake_without_an_end_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "_has_finished", lambda _: False)
    with pytest.raises(CertificateError, match="did not finish"):
        self_test(PAIR, AUTHORITY.certificate, "localhost", NOW)
