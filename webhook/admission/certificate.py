"""The server's certificate: the one that was given, taken up again when its files change, or one made at start."""

from __future__ import annotations

import contextlib
import datetime as dt
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gpugate.certs.errors import CertificateError
from gpugate.certs.files import FileError
from gpugate.certs.pki import certificate_authority, expiry, server_certificate
from gpugate.certs.serving import server_context
from gpugate.policies.engine.breakage import described
from gpugate.webhook.admission.certificate_files import CertificateFiles
from gpugate.webhook.admission.options import ServeError

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable
    from pathlib import Path

    from gpugate.certs.pki import KeyPair
    from gpugate.webhook.admission.certificate_files import Content
    from gpugate.webhook.admission.leaf_memory import LeafMemory
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

    def __init__(self, options: ServeOptions, now: Callable[[], dt.datetime], leafs: LeafMemory | None = None) -> None:
        """Read the certificate that the options name, or make one, which has to do until one is put in `leafs`.

        Raises:
            ServeError: a file cannot be read or written, or its content cannot be used.
        """
        self._now = now
        self._files = CertificateFiles(options)
        self._made = None if options.tls_cert else _made(options, now())
        self._leafs = leafs
        self._seen = self._signatures()
        self._refused = ""
        try:
            self._identity = self._read(now())
        except (CertificateError, FileError) as error:
            raise ServeError(str(error)) from None

    @property
    def identity(self) -> Identity:
        """The identity in force; ask for it again for each new connection."""
        return self._identity

    @property
    def is_behind(self) -> bool:
        """Whether a pair was put in memory that was not looked at yet; asking costs next to nothing."""
        return self._leafs is not None and self._leafs.version != self._seen_leaf

    @property
    def warnings(self) -> tuple[str, ...]:
        """What about the files is not as it should be, though they can be used."""
        return self._files.warnings()

    def poll(self) -> str | None:
        """Take up what changed; returns None when nothing did, an empty text, or what is wrong with it.

        What was refused is tried again each time, because that can be over without a change to a file: a clock was
        set, a disk was full. The same reason is told once.
        """
        seen = self._signatures()
        if seen == self._seen:
            if not self._refused:
                return None
            before = self._refused
            said = self.reload()
            return None if said == before else said
        self._seen = seen
        return self.reload()

    def reload(self) -> str | None:
        """Read all of it again; returns None when there is nothing to read, an empty text, or what is wrong with it."""
        if not self._files and not self._kept:
            return None
        try:
            now = self._now()
            # One that expired is no worse than one that expired too, and the clock may be what is wrong.
            self._identity = self._read(now if now < self._identity.not_after else None)
        except (CertificateError, FileError) as error:
            self._refused = str(error)
            # A pair from memory need not wait until somebody mends the file that says who vouches for clients.
            if self._kept:
                with contextlib.suppress(CertificateError):
                    self._identity = self._made_of(self._content)
        except Exception as error:  # noqa: BLE001 -- whatever is wrong, the one in use goes on, and so does the process
            self._refused = f"{self._files}: cannot be used ({described(error)})"
        else:
            self._refused = ""
        return self._refused

    @property
    def _kept(self) -> bool:
        return self._leafs is not None and self._leafs.version > 0

    def _signatures(self) -> object:
        self._seen_leaf = self._leafs.version if self._leafs else 0
        return self._files.signatures(), self._seen_leaf

    def _read(self, now: dt.datetime | None) -> Identity:
        self._content = self._files.read(now)
        return self._made_of(self._content)

    def _made_of(self, content: Content) -> Identity:
        authority, pair = self._made or (None, content.pair)
        if self._leafs is not None and self._kept:
            authority, pair = None, self._leafs.get()
        if pair is None:
            raise CertificateError("the certificate is just being written")
        return Identity(server_context(pair, content.client_authorities), expiry(pair.certificate), authority)


def names(options: ServeOptions) -> tuple[str, ...]:
    """Return every name that a certificate made at start is for; the first is the one to reach the server by."""
    host = () if options.host in _EVERY_ADDRESS else (options.host,)
    return tuple(dict.fromkeys((*options.tls_san, *host, "localhost", "127.0.0.1", "::1")))


def _made(options: ServeOptions, now: dt.datetime) -> tuple[bytes, KeyPair]:
    name = f"gpugate-{secrets.token_hex(4)}"
    try:
        authority = certificate_authority(name, now=now, lifetime=LIFETIME, names=names(options))
        pair = server_certificate(authority, names(options), now=now, lifetime=LIFETIME)
    except ValueError as error:
        raise ServeError(f"certificate: {error}") from None
    if options.ca_file is not None:
        _write(options.ca_file, authority.certificate)
    return authority.certificate, pair


def _write(path: Path, content: bytes) -> None:
    try:
        path.write_bytes(content)
    except OSError as error:
        raise ServeError(f"{path}: {(error.strerror or 'cannot be used').lower()}") from None
