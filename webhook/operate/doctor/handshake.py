"""Connects to the webhook as an API server does, and looks at the certificate that it shows."""

from __future__ import annotations

import socket
import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from gpugate.certs.pki import split
from gpugate.webhook.generate.drift_bundles import decoded
from gpugate.webhook.operate.doctor.case import error
from gpugate.webhook.operate.doctor.certificates import SERVER, expiring
from gpugate.webhook.operate.installation import Unread

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpugate.webhook.operate.doctor.case import Case
    from gpugate.webhook.operate.installation import Installation, Object
    from gpugate.webhook.report.diagnosis import Problem

_SECONDS: Final = 3.0
_MOST_ADDRESSES: Final = 8
_PORT: Final = 443


@dataclass(frozen=True, slots=True)
class Target:
    """Somebody to connect to: the name that its certificate must have, host and port, and what is trusted (PEM)."""

    name: str
    host: str
    port: int
    bundle: bytes

    def __str__(self) -> str:
        address = f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"
        return f"https://{address}"


@dataclass(frozen=True, slots=True)
class Handshake:
    """What became of it: the certificate that was shown (PEM), why it is refused, or why nobody was reached."""

    target: Target
    certificate: bytes = b""
    refused: str = ""
    unreached: str = ""


def targets(installation: Installation) -> Sequence[Target]:
    """Return whom the entries lead to: URLs, and the Pods behind the Service; each once with each bundle."""
    found: dict[Target, None] = {}
    for _, entry in installation.entries:
        bundle, client = decoded(entry), entry.get("clientConfig") or {}
        if client.get("url"):
            url = urlsplit(client["url"])
            found[Target(url.hostname or "", url.hostname or "", url.port or _PORT, bundle)] = None
        elif client.get("service"):
            service = client["service"]
            name = f"{service['name']}.{service['namespace']}.svc"
            found |= {Target(name, host, port, bundle): None for host, port in _addresses(installation)}
    return list(found)[:_MOST_ADDRESSES]


def shake(target: Target) -> Handshake:
    """Connect once, and hang up when the certificate was seen; sends nothing beyond TLS."""
    seen = _shown(target, _context(b""))
    if seen.unreached or seen.refused:
        return seen
    if not split(target.bundle):
        return Handshake(target, seen.certificate, "the caBundle holds no certificate to check it against")
    checked = _shown(target, _context(target.bundle))
    return Handshake(target, seen.certificate, checked.refused, checked.unreached)


def check(case: Case) -> Iterator[Problem]:
    """Yield which certificate an API server would refuse, and which expires soon."""
    shown: dict[bytes, Target] = {}
    for each in case.handshakes or ():
        if each.certificate:
            shown.setdefault(each.certificate, each.target)
        if each.refused:
            text = f"the API server would refuse the certificate of the webhook: {each.refused}"
            remedy = (
                "name the address with --tls-san of `gpugate serve`; with certificates of your own, make one for it, "
                "signed by an authority in the caBundle"
            )
            yield error("refused", text, f"{each.target}, as {each.target.name}", remedy)
    for pem, target in shown.items():
        yield from expiring(pem, str(target), case.installation.now, SERVER, last=True)


def _addresses(installation: Installation) -> Iterator[tuple[str, int]]:
    slices: Sequence[Object] = () if isinstance(installation.endpoint_slices, Unread) else installation.endpoint_slices
    for found in slices:
        ports = [each["port"] for each in found.get("ports") or () if each.get("port")]
        for endpoint in found.get("endpoints") or ():
            if (endpoint.get("conditions") or {}).get("ready") is not False:
                yield from ((address, port) for address in endpoint.get("addresses") or () for port in ports[:1])


def _context(bundle: bytes) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # Go, and so the API server, does not look at the common name either.
    context.hostname_checks_common_name = False
    if bundle:
        context.load_verify_locations(cadata=b"".join(split(bundle)).decode("ascii"))
    else:
        # To see the certificate; nothing is sent to whom it belongs.
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def _shown(target: Target, context: ssl.SSLContext) -> Handshake:
    try:
        with (
            socket.create_connection((target.host, target.port), _SECONDS) as plain,
            context.wrap_socket(plain, server_hostname=target.name) as connection,
        ):
            der = connection.getpeercert(binary_form=True) or b""
            return Handshake(target, ssl.DER_cert_to_PEM_cert(der).encode("ascii"))
    except ssl.SSLCertVerificationError as failure:
        return Handshake(target, refused=failure.verify_message)
    except ssl.SSLError as failure:
        return Handshake(target, refused=f"no TLS ({failure.reason or 'unknown'})")
    except OSError as failure:
        return Handshake(target, unreached=(failure.strerror or type(failure).__name__).lower())
