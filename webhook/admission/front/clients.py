"""Which clients are let in, by the names in the certificate that they showed."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from gpugate.webhook.admission.front.request_head import Refusal

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Set as AbstractSet


def stranger(transport: asyncio.BaseTransport, allowed: AbstractSet[str] | None) -> Refusal | None:
    """Say why a client is not let in; None if it is.

    Args:
        transport: the connection, after the handshake. Who vouches for the certificate was checked there.
        allowed: the names let in, as common name or DNS name of the certificate; None lets everybody in. So does a
            connection without TLS, which only probes and scrapes use.
    """
    if allowed is None or transport.get_extra_info("ssl_object") is None:
        return None
    if names(transport.get_extra_info("peercert") or {}).isdisjoint(allowed):
        return Refusal(HTTPStatus.FORBIDDEN, "the client certificate is for no name that is let in (--client-name)")
    return None


def names(certificate: dict[str, Any]) -> set[str]:
    """Return the common names and DNS names of a certificate as `ssl.SSLSocket.getpeercert` gives it."""
    subject = {value for part in certificate.get("subject", ()) for kind, value in part if kind == "commonName"}
    return subject | {value for kind, value in certificate.get("subjectAltName", ()) if kind == "DNS"}
