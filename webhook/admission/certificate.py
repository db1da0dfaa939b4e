"""The server's certificate: the one that was given, or one made at start."""

from __future__ import annotations

import datetime as dt
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gpugate.certs.pki import KeyPair, certificate_authority, server_certificate
from gpugate.certs.serving import CertificateError, server_context
from gpugate.webhook.admission.options import ServeError

if TYPE_CHECKING:
    import ssl
    from pathlib import Path

    from gpugate.webhook.admission.options import ServeOptions

# A certificate made at start lasts as long as the process; a year is longer than any should run.
LIFETIME: Final = dt.timedelta(days=365)
_EVERY_ADDRESS: Final = {"0.0.0.0", "::", ""}  # noqa: S104 -- not bound here: no name for a certificate


@dataclass(frozen=True, slots=True)
class Identity:
    """How the server speaks TLS, and who vouches for it: the authority made at start (PEM), or None when given."""

    context: ssl.SSLContext
    authority: bytes | None


def identity(options: ServeOptions, now: dt.datetime) -> Identity:
    """Read the certificate that the options name, or make one.

    Raises:
        ServeError: a file cannot be read or written, or its content cannot be used.
    """
    if options.tls_cert is not None and options.tls_key is not None:
        pair = KeyPair(_read(options.tls_cert), _read(options.tls_key))
        try:
            return Identity(server_context(pair), None)
        except CertificateError as error:
            raise ServeError(f"{options.tls_cert}, {options.tls_key}: {error}") from None
    authority = certificate_authority(f"gpugate-{secrets.token_hex(4)}", now=now, lifetime=LIFETIME)
    try:
        pair = server_certificate(authority, names(options), now=now, lifetime=LIFETIME)
    except ValueError as error:
        raise ServeError(f"certificate: {error}") from None
    if options.ca_file is not None:
        try:
            options.ca_file.write_bytes(authority.certificate)
        except OSError as error:
            raise _unusable(options.ca_file, error) from None
    return Identity(server_context(pair), authority.certificate)


def names(options: ServeOptions) -> tuple[str, ...]:
    """Return every name that a certificate made at start is for; the first is the one to reach the server by."""
    host = () if options.host in _EVERY_ADDRESS else (options.host,)
    return tuple(dict.fromkeys((*options.tls_san, *host, "localhost", "127.0.0.1", "::1")))


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise _unusable(path, error) from None


def _unusable(path: Path, error: OSError) -> ServeError:
    return ServeError(f"{path}: {(error.strerror or 'cannot be used').lower()}")
