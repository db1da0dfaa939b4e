"""What cert-manager is asked for, where it makes the certificate, and the authorities of client certificates.

An authority stands between issuer and certificate, so that a new certificate needs no new trust. Source: cert-manager v1.18
docs, "SelfSigned: bootstrapping CA issuers".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.webhook.generate.chart.names import (
    FULL_NAME,
    IS_CERT_MANAGER,
    NAMESPACE,
    OWN_CLIENT_CA,
    TLS_SECRET,
    metadata,
)
from gpugate.webhook.generate.chart.terms import If, Node, Value, both, call, no, text

if TYPE_CHECKING:
    from collections.abc import Iterator

_API: Final = "cert-manager.io/v1"
_AUTHORITY: Final = text(FULL_NAME, "-ca")
_GIVEN: Final = call("dig", "name", "", Value("certificates.certManager.issuerRef"))
_CLIENTS: Final = Value("clientAuthentication.caBundle")
_KEY: Final[dict[str, Node]] = {"algorithm": "ECDSA", "size": 256, "rotationPolicy": "Always"}


def certificates() -> Iterator[Node]:
    """Yield issuers and certificates, and the ConfigMap with the authorities of client certificates."""
    clients: Node = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(OWN_CLIENT_CA),
        "data": {"ca.crt": _CLIENTS},
    }
    yield If(_CLIENTS, clients)
    bootstrap: Node = {"apiVersion": _API, "kind": "Issuer", "metadata": metadata(), "spec": {"selfSigned": {}}}
    authority: Node = {
        "apiVersion": _API,
        "kind": "Certificate",
        "metadata": metadata(_AUTHORITY),
        "spec": {
            "isCA": True,
            "commonName": _AUTHORITY,
            "secretName": _AUTHORITY,
            # Five years; cert-manager renews it with the same key for as long as its Secret is there.
            "duration": "43800h",
            "privateKey": {**_KEY, "rotationPolicy": "Never"},
            "issuerRef": {"kind": "Issuer", "name": FULL_NAME},
        },
    }
    issuer: Node = {
        "apiVersion": _API,
        "kind": "Issuer",
        "metadata": metadata(_AUTHORITY),
        "spec": {"ca": {"secretName": _AUTHORITY}},
    }
    own_issuer: Node = {"kind": "Issuer", "name": _AUTHORITY}
    service = text(FULL_NAME, ".", NAMESPACE)
    leaf: Node = {
        "apiVersion": _API,
        "kind": "Certificate",
        "metadata": metadata(),
        "spec": {
            "secretName": TLS_SECRET,
            "dnsNames": [FULL_NAME, service, text(service, ".svc"), text(service, ".svc.cluster.local")],
            "duration": Value("certificates.certManager.duration"),
            "renewBefore": Value("certificates.certManager.renewBefore"),
            "privateKey": _KEY,
            "usages": ["digital signature", "server auth"],
            "issuerRef": If(_GIVEN, Value("certificates.certManager.issuerRef"), own_issuer),
        },
    }
    for each in (bootstrap, authority, issuer):
        yield If(both(IS_CERT_MANAGER, no(_GIVEN)), each)
    yield If(IS_CERT_MANAGER, leaf)
