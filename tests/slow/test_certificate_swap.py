"""The kubelet replaces certificates: new handshakes get the new one, and open connections stay open."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from harness.certificate_folder import CertificateFolder, ClientCertificate
from harness.one_connection import OneConnection
from harness.processes import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

# Any worker may accept a connection; this many handshakes in a row reach more than one.
HANDSHAKES = 12


def wait_until_seen(certificate: str, server: Any, folder: CertificateFolder, client: Path | None = None) -> None:
    def all_handshakes_see() -> bool:
        for _ in range(HANDSHAKES):
            with contextlib.closing(OneConnection(server.address, folder.ca_file, client)) as connection:
                if connection.certificate != certificate:
                    return False
        return True

    wait_until(all_handshakes_see, "new handshakes see the new certificate")


def test_swapped_certificates_lose_nothing(
    serve: Callable[..., Any],
    load: Callable[..., Any],
    counts: Callable[[int, int], int],
    show: Callable[..., None],
    closing: Any,
    tmp_path: Path,
) -> None:
    folder = CertificateFolder(tmp_path)
    server = serve(*folder.flags)

    opened = closing.enter_context(contextlib.closing(OneConnection(server.address, folder.ca_file)))
    running = load(server, folder.ca_file)
    swaps = counts(10, 200)
    for _ in range(swaps):
        certificate = folder.swap()
        wait_until_seen(certificate, server, folder)
        opened.review()
    report = running.finish()
    show("certificate swapped", {**report.figures(), "swaps": swaps, "seen": len(report.certificates)})
    assert report.faults() == []


def test_authorities_of_clients_that_overlap_lose_nothing(
    serve: Callable[..., Any],
    load: Callable[..., Any],
    counts: Callable[[int, int], int],
    show: Callable[..., None],
    tmp_path: Path,
) -> None:
    folder, client = CertificateFolder(tmp_path), ClientCertificate(tmp_path)
    folder.swap(client.authority)
    server = serve(*folder.flags, "--client-ca", str(folder.client_ca))
    running = load(server, folder.ca_file, client=client.file)
    rotations = counts(5, 50)
    for _ in range(rotations):
        # Every worker uses each pair before the next one; the serving certificate of the same folder shows it.
        wait_until_seen(folder.swap(client.prepare()), server, folder, client.file)
        client.renew()
        wait_until_seen(folder.swap(client.authority), server, folder, client.file)
    report = running.finish()
    show("authority of clients replaced", {**report.figures(), "rotations": rotations})
    assert report.faults() == []
