"""`gpugate serve` that keeps its certificates, and what clients see of it."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import ssl
from typing import TYPE_CHECKING, Any

from cryptography import x509
from harness.cases import usual
from harness.one_connection import UID
from harness.server import Server
from kept.cluster import SERVER_NAME
from prometheus_client.parser import text_string_to_metric_families

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from kept.cluster import KeptCluster

_TIMEOUT_SECONDS = 20


class Replica(Server):
    """Started when made; whether it is ready depends on the cluster."""

    def __init__(self, cluster: KeptCluster, folder: Path, *flags: str, workers: int = 1, drain: int = 0) -> None:
        super().__init__(folder, *cluster.flags(folder, *flags), "--drain", str(drain), workers=workers)
        self.find_keeper()

    def find_keeper(self) -> None:
        """Note the process id of the keeper; of all it was started last, also where it was started again."""
        self.keeper = self.workers()[-1]

    def served(self, bundle: bytes) -> x509.Certificate:
        """Return the certificate that a client sees which trusts a bundle, and asks for the Service's name.

        Raises:
            SSLError: the client does not trust it.
        """
        return certificate_of(self.address, ssl.create_default_context(cadata=bundle.decode()))

    def review(self, bundle: bytes) -> None:
        """Have something reviewed over a new connection by a client that trusts a bundle, and check the answer.

        Raises:
            SSLError: the client does not trust it.
        """
        case = usual()[0]
        body = case.body(UID)
        head = f"POST {case.path} HTTP/1.1\r\nHost: {SERVER_NAME}\r\nContent-Length: {len(body)}\r\n\r\n"
        with _connected(self.address, ssl.create_default_context(cadata=bundle.decode())) as tls:
            tls.sendall(head.encode() + body)
            response = http.client.HTTPResponse(tls)
            response.begin()
            case.check(UID, response.read())

    def signed_by(self) -> str:
        """Return the name of the authority of the certificate that a new connection meets."""
        anybody = ssl.create_default_context()
        anybody.check_hostname, anybody.verify_mode = False, ssl.CERT_NONE
        return certificate_of(self.address, anybody).issuer.rfc4514_string().removeprefix("CN=")

    def log(self) -> list[dict[str, Any]]:
        """Return what it has logged so far."""
        lines = self.log_file.read_text().splitlines(keepends=True)
        # The last one may be half written.
        return [json.loads(line) for line in lines if line.endswith("}\n")]

    def reasons(self) -> list[str]:
        """Return what it has logged to be wrong with the certificates."""
        said = "certificates are not kept as they should be"
        return [line["reason"] for line in self.log() if line["message"] == said]

    def metric(self, name: str, **labels: str) -> float | None:
        """Return a metric; None if nothing is known to say."""
        _, text = self.get("/metrics")
        found = [s for family in text_string_to_metric_families(text) for s in family.samples]
        return next((s.value for s in found if (s.name, s.labels) == (name, labels)), None)


def certificate_of(address: tuple[str, int], client: ssl.SSLContext) -> x509.Certificate:
    with _connected(address, client) as tls:
        return x509.load_der_x509_certificate(tls.getpeercert(binary_form=True) or b"")


@contextlib.contextmanager
def _connected(address: tuple[str, int], client: ssl.SSLContext) -> Iterator[ssl.SSLSocket]:
    with (
        socket.create_connection(address, timeout=_TIMEOUT_SECONDS) as plain,
        client.wrap_socket(plain, server_hostname=SERVER_NAME) as tls,
    ):
        yield tls
