"""The server's certificate: the one that was given, taken up again when its files change, or one made at start."""

from __future__ import annotations

import datetime as dt
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gpugate.certs.pki import KeyPair, certificate_authority, expiry, server_certificate
from gpugate.certs.serving import CertificateError, server_context
from gpugate.policies.engine.breakage import described
from gpugate.webhook.admission.file_signature import signature
from gpugate.webhook.admission.options import ServeError

if TYPE_CHECKING:
    import ssl
    from pathlib import Path

    from gpugate.webhook.admission.file_signature import Signature
    from gpugate.webhook.admission.options import ServeOptions

# A certificate made at start lasts as long as the process; a year is longer than any should run.
LIFETIME: Final = dt.timedelta(days=365)
_EVERY_ADDRESS: Final = {"0.0.0.0", "::", ""}  # noqa: S104 -- not bound here: no name for a certificate


@dataclass(frozen=True, slots=True)
class Identity:
    """How the server speaks TLS, until when, and who vouches for it: an authority (PEM), or None when it was given."""

    context: ssl.SSLContext
    not_after: dt.datetime
    authority: bytes | None = None


class Certificate:
    """The certificate in force; one that cannot be used leaves the last good one where it is."""

    def __init__(self, options: ServeOptions, now: dt.datetime) -> None:
        """Read the certificate that the options name, or make one.

        Raises:
            ServeError: a file cannot be read or written, or its content cannot be used.
        """
        self._files = (options.tls_cert, options.tls_key) if options.tls_cert and options.tls_key else None
        self._seen = self._signatures()
        self._identity = _read_identity(*self._files) if self._files else _made(options, now)

    @property
    def identity(self) -> Identity:
        """The identity in force; ask for it again for each new connection."""
        return self._identity

    def poll(self) -> str | None:
        """Take up files that changed; returns None when they did not, an empty text, or what is wrong with them."""
        seen = self._signatures()
        if seen == self._seen:
            return None
        self._seen = seen
        return self.reload()

    def reload(self) -> str | None:
        """Read the files again; returns None when there are none, an empty text, or what is wrong with them."""
        if self._files is None:
            return None
        try:
            self._identity = _read_identity(*self._files)
        except ServeError as error:
            return str(error)
        except Exception as error:  # noqa: BLE001 -- whatever is wrong, the one in use goes on, and so does the process
            return f"{self._files[0]}, {self._files[1]}: cannot be used ({described(error)})"
        return ""

    def _signatures(self) -> tuple[Signature, ...]:
        return tuple(signature(path) for path in self._files or ())


def names(options: ServeOptions) -> tuple[str, ...]:
    """Return every name that a certificate made at start is for; the first is the one to reach the server by."""
    host = () if options.host in _EVERY_ADDRESS else (options.host,)
    return tuple(dict.fromkeys((*options.tls_san, *host, "localhost", "127.0.0.1", "::1")))


def _read_identity(certificate: Path, key: Path) -> Identity:
    pair = KeyPair(_read(certificate), _read(key))
    try:
        return Identity(server_context(pair), expiry(pair.certificate))
    except CertificateError as error:
        raise ServeError(f"{certificate}, {key}: {error}") from None
    except ValueError:
        # OpenSSL reads some that say until when they are valid to nobody else.
        raise ServeError(f"{certificate}: write it as PEM of type CERTIFICATE, one after the other") from None


def _made(options: ServeOptions, now: dt.datetime) -> Identity:
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
    return Identity(server_context(pair), expiry(pair.certificate), authority.certificate)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise _unusable(path, error) from None


def _unusable(path: Path, error: OSError) -> ServeError:
    return ServeError(f"{path}: {(error.strerror or 'cannot be used').lower()}")
