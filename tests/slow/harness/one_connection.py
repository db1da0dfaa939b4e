"""A single connection for many requests, which is never reopened."""

from __future__ import annotations

import hashlib
import http.client
import ssl
from typing import TYPE_CHECKING

from harness.cases import usual

if TYPE_CHECKING:
    from pathlib import Path

UID = "5f0c1f3a-7d55-4cc4-9c0e-3b1f9a5c8f10"
PATIENCE_SECONDS = 60


class OneConnection:
    def __init__(self, address: tuple[str, int], ca_file: Path, client: Path | None = None) -> None:
        trust = ssl.create_default_context(cafile=ca_file)
        if client is not None:
            trust.load_cert_chain(client)
        self._connection = http.client.HTTPSConnection(*address, context=trust, timeout=PATIENCE_SECONDS)
        self._connection.connect()
        # Do not reconnect.
        self._connection.auto_open = 0
        self.certificate = hashlib.sha256(self._connection.sock.getpeercert(binary_form=True)).hexdigest()

    def review(self) -> None:
        """Send a review and check its answer.

        Raises:
            OSError: the connection is closed.
            HTTPException: the last response closed the connection, or the response is not HTTP.
        """
        case = usual()[0]
        self._connection.request("POST", case.path, case.body(UID), {"Content-Type": "application/json"})
        case.check(UID, self._connection.getresponse().read())

    def close(self) -> None:
        self._connection.close()
