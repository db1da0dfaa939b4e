"""Servers and what clients trust: authorities of one name, held to some names or none, in bundles of any order."""

from __future__ import annotations

import datetime as dt

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import strategies as st

from gpugate.certs.pki import KeyPair, certificate_authority, server_certificate

NOW = dt.datetime(2026, 11, 21, 12, tzinfo=dt.UTC)
_DAY = dt.timedelta(days=1)
_HELD_TO = (
    (),
    ("gpugate.gpugate.svc",),
    ("gpugate", "gpugate.gpugate", "gpugate.gpugate.svc", "gpugate.gpugate.svc.cluster.local"),
    ("gpugate.gpugate.svc", "127.0.0.1"),
    ("10.0.0.1", "::1"),
    ("*.gpugate.svc",),
)
_SIGNED = (
    ("gpugate.gpugate.svc",),
    ("gpugate", "gpugate.gpugate", "gpugate.gpugate.svc"),
    ("GPUgate.gpugate.svc",),
    ("kubernetes.default.svc",),
    ("gpugate.gpugate.svc", "127.0.0.1"),
    ("gpugate.gpugate.svc", "10.0.0.1"),
    ("10.0.0.1",),
    ("::1",),
    ("*.gpugate.svc",),
    ("gpugate.gpugate.svc", "kubernetes.default.svc"),
)
_ASKED_FOR = (
    "gpugate",
    "gpugate.gpugate.svc",
    "GPUGATE.gpugate.SVC",
    "other.gpugate.svc",
    "a.b.gpugate.svc",
    "kubernetes.default.svc",
    "127.0.0.1",
    "10.0.0.1",
    "::1",
)
_NOISE = (
    b"",
    b"# a comment\n",
    b"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n",
    b"-----BEGIN CERTIFICATE-----\n!!\n-----END CERTIFICATE-----\n",
    b"-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----\n",
    b"\r\n \n",
)


def _free(pair: KeyPair) -> KeyPair:
    """Return the same authority without what it is held to, which is what a thief of its key signs by."""
    plain = x509.load_pem_x509_certificate(pair.certificate)
    key = serialization.load_pem_private_key(pair.key, password=None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    builder = x509.CertificateBuilder(
        plain.issuer,
        plain.subject,
        key.public_key(),
        plain.serial_number,
        plain.not_valid_before_utc,
        plain.not_valid_after_utc,
    )
    for extension in plain.extensions:
        if not isinstance(extension.value, x509.NameConstraints):
            builder = builder.add_extension(extension.value, extension.critical)
    return KeyPair(builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM), pair.key)


# Half of them have one name, and each lives for another time.
_AUTHORITIES = [
    certificate_authority("gpugate-ca" if number % 2 else f"ca-{number}", now=NOW, lifetime=days * _DAY, names=held_to)
    for number, (held_to, days) in enumerate((held_to, days) for held_to in _HELD_TO for days in (2, 20))
]
_SERVERS = [
    server_certificate(_free(authority), signed, now=NOW, lifetime=10 * _DAY)
    for authority in _AUTHORITIES
    for signed in _SIGNED
]

_certificates = st.sampled_from([authority.certificate for authority in _AUTHORITIES])
_line_ends = st.sampled_from([lambda pem: pem, lambda pem: pem.replace(b"\n", b"\r\n")])

bundles = st.lists(_certificates | st.sampled_from(_NOISE), max_size=6).map(b"".join)
written = st.tuples(bundles, _line_ends).map(lambda both: both[1](both[0]))


_times = st.just(NOW) | st.sampled_from([NOW - _DAY, NOW + _DAY, NOW + 3 * _DAY, NOW + 12 * _DAY, NOW + 30 * _DAY])


@st.composite
def questions(draw: st.DrawFn) -> tuple[KeyPair, bytes, str, dt.datetime]:
    """Draw a server's pair, a bundle that its authority is in more often than not, a name and a time."""
    number = draw(st.integers(0, len(_SERVERS) - 1))
    authority, signed = _AUTHORITIES[number // len(_SIGNED)].certificate, _SIGNED[number % len(_SIGNED)]
    name = draw(st.sampled_from(signed) | st.sampled_from(_ASKED_FOR)).replace("*", "any")
    known = draw(st.sampled_from([authority, authority, b""]))
    return _SERVERS[number], draw(written) + known + draw(written), name, draw(_times)
