from __future__ import annotations

import contextlib
import datetime as dt
import os
import ssl
import stat
import tempfile
from pathlib import Path
from typing import Any

import pytest
from certificate_files import BAD, GOOD
from client_certificates import client_certificate
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from handshakes import shaken, trusting
from tls_records import SUITE, ClientRecords

from gpugate.certs import serving
from gpugate.certs.pki import KeyPair, certificate_authority, server_certificate
from gpugate.certs.serving import CertificateError, SmallRecordsError, self_test, server_context

NOW = dt.datetime.now(tz=dt.UTC)
DAY = dt.timedelta(days=1)
AUTHORITY = certificate_authority("ca", now=NOW, lifetime=DAY, names=["localhost", "127.0.0.1"])
PAIR = server_certificate(AUTHORITY, ["localhost", "127.0.0.1"], now=NOW, lifetime=DAY)
OF_CLIENTS = certificate_authority("clients", now=NOW, lifetime=DAY)
NEXT_OF_CLIENTS = certificate_authority("clients", now=NOW, lifetime=DAY)


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1"])
def test_a_client_that_trusts_the_authority_connects(name: str) -> None:
    _, client = shaken(server_context(PAIR), trusting(AUTHORITY.certificate), name)
    assert client.version() == "TLSv1.3"


def test_tls_1_1_is_rejected() -> None:
    old = trusting(AUTHORITY.certificate)
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
    old.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.raises(ssl.SSLError):
        shaken(server_context(PAIR), old, "localhost")


@pytest.mark.parametrize(
    "authorities", [b"", OF_CLIENTS.certificate], ids=["without-client-certificates", "with-client-certificates"]
)
def test_sessions_are_not_resumed(authorities: bytes) -> None:
    server = server_context(PAIR, authorities)
    client = trusting(AUTHORITY.certificate, client_certificate(OF_CLIENTS, now=NOW))
    _, first = shaken(server, client, "localhost")
    _, second = shaken(server, client, "localhost", first.session)
    assert (first.session.has_ticket, second.session_reused) == (False, False)


def test_http_1_1_is_the_only_protocol() -> None:
    client = trusting(AUTHORITY.certificate)
    client.set_alpn_protocols(["h2", "http/1.1"])
    assert shaken(server_context(PAIR), client, "localhost")[1].selected_alpn_protocol() == "http/1.1"


def test_tls_1_2_has_no_tickets() -> None:
    client = trusting(AUTHORITY.certificate)
    client.maximum_version = ssl.TLSVersion.TLSv1_2
    server = server_context(PAIR)
    assert not shaken(server, client, "localhost")[1].session.has_ticket
    assert server.options & ssl.OP_NO_COMPRESSION, "the defaults of Python remain"


@pytest.mark.parametrize(
    ("authorities", "accepted"),
    [
        pytest.param(b"", True, id="without-client-certificates"),
        # TLS 1.2 sessions can be resumed without a ticket.
        pytest.param(OF_CLIENTS.certificate, False, id="with-client-certificates"),
    ],
)
def test_tls_1_2_is_only_for_clients_without_certificates(authorities: bytes, accepted: bool) -> None:  # noqa: FBT001 -- a table's column
    client = trusting(AUTHORITY.certificate, client_certificate(OF_CLIENTS, now=NOW))
    client.maximum_version = ssl.TLSVersion.TLSv1_2
    if accepted:
        assert shaken(server_context(PAIR, authorities), client, "localhost")[1].version() == "TLSv1.2"
    else:
        with pytest.raises(ssl.SSLError, match="TLSV1_ALERT_PROTOCOL_VERSION"):
            shaken(server_context(PAIR, authorities), client, "localhost")


@pytest.mark.parametrize("pair", GOOD.values(), ids=GOOD)
def test_every_format_of_a_pair_is_loaded(pair: KeyPair) -> None:
    server_context(pair)


@pytest.mark.parametrize(
    ("pair", "message"),
    [BAD[name] for name in ("empty-certificate", "no-pem", "key-in-der", "encrypted-key", "another-key", "swapped")],
)
def test_invalid_pairs_are_rejected(pair: KeyPair, message: str) -> None:
    with pytest.raises(CertificateError) as raised:
        server_context(pair, where=("tls.crt", "tls.key"))
    assert message in str(raised.value)


def test_no_key_is_written_to_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "TemporaryDirectory", None)
    assert shaken(server_context(PAIR), trusting(AUTHORITY.certificate), "localhost")


def test_without_memory_files_the_key_is_in_a_private_temporary_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    modes = []
    load = ssl.SSLContext.load_cert_chain

    def record_modes(context: ssl.SSLContext, path: str) -> None:
        modes.extend(stat.S_IMODE(entry.stat().st_mode) for entry in (Path(path), Path(path).parent))
        load(context, path)

    def fail(*_: object) -> int:
        raise OSError

    monkeypatch.setattr(os, "memfd_create", fail)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", record_modes)
    server_context(PAIR)
    assert (modes, list(tmp_path.iterdir())) == ([0o600, 0o700], [])


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
def test_clients_without_a_valid_certificate_are_rejected(shown: KeyPair | None, alert: str) -> None:
    with pytest.raises(ssl.SSLError) as raised:
        shaken(server_context(PAIR, OF_CLIENTS.certificate), trusting(AUTHORITY.certificate, shown), "localhost")
    assert raised.value.reason == alert


@pytest.mark.parametrize("authority", [OF_CLIENTS, NEXT_OF_CLIENTS], ids=["old", "new"])
def test_two_client_authorities_are_accepted(authority: KeyPair) -> None:
    server = server_context(PAIR, OF_CLIENTS.certificate + NEXT_OF_CLIENTS.certificate)
    client = trusting(AUTHORITY.certificate, client_certificate(authority, now=NOW))
    ends = shaken(server, client, "localhost")
    assert ends[0].getpeercert() is not None


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1"])
def test_a_valid_pair_passes_the_self_test(name: str) -> None:
    another = certificate_authority("ca", now=NOW, lifetime=DAY)
    self_test(PAIR, another.certificate + AUTHORITY.certificate, name, NOW)


def test_the_self_test_uses_the_given_time() -> None:
    then = NOW + 1000 * DAY
    authority = certificate_authority("ca", now=then, lifetime=DAY, names=["localhost"])
    pair = server_certificate(authority, ["localhost"], now=then, lifetime=DAY)
    self_test(pair, authority.certificate, "localhost", then)


@pytest.mark.parametrize(
    ("pair", "bundle", "name", "now", "message"),
    [
        pytest.param(PAIR, b"", "localhost", NOW, "the bundle contains no certificate", id="empty-bundle"),
        pytest.param(
            KeyPair(b"", PAIR.key), AUTHORITY.certificate, "localhost", NOW, "^certificate: empty", id="no-certificate"
        ),
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
def test_the_self_test_rejects_what_a_client_rejects(
    pair: KeyPair, bundle: bytes, name: str, now: dt.datetime, message: str
) -> None:
    with pytest.raises(CertificateError, match=message):
        self_test(pair, bundle, name, now)


def test_the_error_contains_the_reason_of_openssl() -> None:
    key = rsa.generate_private_key(65537, 1024)  # noqa: S505 -- too short for OpenSSL
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


def test_a_failed_verification_contains_the_message_of_openssl() -> None:
    with pytest.raises(CertificateError, match=r"^the handshake failed: unable to get local issuer certificate$"):
        serving._perform_handshake(server_context(PAIR), OF_CLIENTS.certificate, "localhost")


def test_other_handshake_failures_contain_the_reason() -> None:
    old = server_context(PAIR)
    old.set_ciphers("AES128-SHA")
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises(CertificateError, match=r"^the handshake failed: .*[A-Z]$"):
        serving._perform_handshake(old, AUTHORITY.certificate, "localhost")


def test_an_endless_handshake_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "_has_finished", lambda _: False)
    with pytest.raises(CertificateError, match="did not finish"):
        self_test(PAIR, AUTHORITY.certificate, "localhost", NOW)


class Talk:
    """A server after its handshake with a TLS 1.3 client, and the records of the client."""

    def __init__(self, log: Path) -> None:
        client = trusting(AUTHORITY.certificate)
        client.keylog_filename = str(log)
        self.received, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.server = server_context(PAIR).wrap_bio(self.received, to_client, server_side=True)
        hello = client.wrap_bio(to_client, self.received, server_hostname="localhost")
        for end in (hello, self.server, hello, self.server):
            with contextlib.suppress(ssl.SSLWantReadError):
                end.do_handshake()
        assert hello.cipher() is not None
        assert hello.cipher()[0] == SUITE
        self.client = ClientRecords(log)

    def read(self) -> bytes:
        """Read as an event loop does, until there is no further content."""
        content = b""
        with contextlib.suppress(ssl.SSLWantReadError):
            while True:
                content += self.server.read(1 << 18)
        return content


@pytest.fixture
def talk(tmp_path: Path) -> Talk:
    return Talk(tmp_path / "keys")


@pytest.mark.parametrize("size", [1, 5, 7, 1000], ids="{} bytes at a time".format)
def test_records_are_read_however_they_arrive(talk: Talk, size: int) -> None:
    stream = b"".join(map(talk.client.content, (b"a", b"bc", b"d" * 40)))
    content = b""
    for start in range(0, len(stream), size):
        talk.received.write(stream[start : start + size])
        content += talk.read()
    assert content == b"abc" + b"d" * 40


# What a client sends on a connection, of which the last is rejected: K is a key update, a number is a record with so much content.
ENDLESS = [
    pytest.param(["K"], id="key updates"),
    pytest.param(["K", 1], id="key updates between content"),
    pytest.param([1], id="records of one byte"),
    pytest.param([63], id="records just below the size"),
]
ALLOWED = [
    pytest.param([64], id="records of the size"),
    pytest.param([1, 1024], id="the small end of each request"),
    pytest.param(["K", 1024], id="key updates between requests"),
]


def sent(talk: Talk, records: list[Any], times: int) -> bytes:
    return b"".join(
        talk.client.key_update() if record == "K" else talk.client.content(b"a" * record)
        for _ in range(times)
        for record in records
    )


@pytest.mark.parametrize("records", ENDLESS)
def test_a_client_that_sends_small_records_without_end_is_rejected(talk: Talk, records: list[Any]) -> None:
    talk.received.write(sent(talk, records, 20))
    talk.read()
    talk.received.write(sent(talk, records, 100))
    with pytest.raises(SmallRecordsError):
        talk.read()


@pytest.mark.parametrize("records", ALLOWED)
def test_a_small_record_for_each_kibibyte_is_allowed(talk: Talk, records: list[Any]) -> None:
    talk.received.write(sent(talk, records, 200))
    assert len(talk.read()) == 200 * sum(record for record in records if record != "K")


def test_a_client_that_updates_its_key_instead_of_closing_is_rejected(talk: Talk) -> None:
    with pytest.raises(ssl.SSLWantReadError):
        talk.server.unwrap()
    talk.received.write(sent(talk, ["K"], 100))
    with pytest.raises(SmallRecordsError):
        talk.server.unwrap()
