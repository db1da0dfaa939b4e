from __future__ import annotations

import datetime as dt
import ssl

import pytest
from cryptography.hazmat.primitives import serialization

from gpugate.certs.pki import KeyPair, certificate_authority, server_certificate
from gpugate.certs.serving import CertificateError, server_context

NOW = dt.datetime.now(tz=dt.UTC)
DAY = dt.timedelta(days=1)


@pytest.fixture(scope="module")
def authority() -> KeyPair:
    return certificate_authority("ca", now=NOW, lifetime=DAY)


@pytest.fixture(scope="module")
def pair(authority: KeyPair) -> KeyPair:
    return server_certificate(authority, ["localhost"], now=NOW, lifetime=DAY)


def encrypted(key: bytes) -> bytes:
    loaded = serialization.load_pem_private_key(key, password=None)
    scheme = serialization.BestAvailableEncryption(b"secret")
    return loaded.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, scheme)


def test_shakes_hands_with_a_client_that_trusts_the_authority(pair: KeyPair, authority: KeyPair) -> None:
    client_context = ssl.create_default_context(cadata=authority.certificate.decode())
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = server_context(pair).wrap_bio(to_server, to_client, server_side=True)
    client = client_context.wrap_bio(to_client, to_server, server_hostname="localhost")
    waiting = {server, client}
    while waiting:
        for end in tuple(waiting):
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
            waiting.remove(end)
    assert client.version() == "TLSv1.3"


def test_key_of_another_certificate_is_refused(pair: KeyPair, authority: KeyPair) -> None:
    with pytest.raises(CertificateError, match="does not belong"):
        server_context(KeyPair(pair.certificate, authority.key))


def test_encrypted_key_is_refused(pair: KeyPair) -> None:
    with pytest.raises(CertificateError, match="encrypted"):
        server_context(KeyPair(pair.certificate, encrypted(pair.key)))


@pytest.mark.parametrize("junk", [b"", b"junk", b"\x30\x82"], ids=["empty", "text", "der"])
def test_what_is_not_pem_is_refused(pair: KeyPair, junk: bytes) -> None:
    with pytest.raises(CertificateError, match="PEM"):
        server_context(KeyPair(pair.certificate, junk))
