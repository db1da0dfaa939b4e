"""Certificates change as the kubelet changes them: new handshakes see the new one, open connections stay."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from harness.certificate_folder import CertificateFolder
from harness.one_connection import OneConnection
from harness.processes import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

# Whichever worker takes a connection: this many handshakes in a row are not all of one.
HANDSHAKES = 12


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

    def all_handshakes_see(certificate: str) -> bool:
        for _ in range(HANDSHAKES):
            with contextlib.closing(OneConnection(server.address, folder.ca_file)) as connection:
                if connection.certificate != certificate:
                    return False
        return True

    opened = closing.enter_context(contextlib.closing(OneConnection(server.address, folder.ca_file)))
    running = load(server, folder.ca_file)
    swaps = counts(10, 200)
    for _ in range(swaps):
        certificate = folder.swap()
        wait_until(lambda new=certificate: all_handshakes_see(new), "new handshakes see the new certificate")
        opened.review()
    report = running.finish()
    show("certificate swapped", {**report.figures(), "swaps": swaps, "seen": len(report.certificates)})
    assert report.faults() == []
