"""HTTPS requests to one server over connections that are kept; safe to use from several threads."""

from __future__ import annotations

import http.client
import json
import select
import ssl
from collections import deque
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from cluster.answer import Answer, warnings_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from cluster.certificates import Files

_TIMEOUT_SECONDS = 60


class Connections:
    """Authenticates with a client certificate, or with headers that are sent each time."""

    def __init__(
        self, url: str, ca_file: Path, client: Files | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        self._server = urlsplit(url)
        self._headers = dict(headers or {})
        self._context = ssl.create_default_context(cafile=ca_file)
        if client:
            self._context.load_cert_chain(client.certificate, client.key)
        self._idle: deque[http.client.HTTPSConnection] = deque()

    def request(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> Answer:
        """Send a request and read the answer.

        Raises:
            OSError: nobody answers.
        """
        connection = self._taken()
        try:
            sent = None if body is None else json.dumps(body).encode()
            connection.request(method, path, sent, {"Content-Type": content_type, **self._headers})
            response = connection.getresponse()
            read = response.read()
        except BaseException:
            connection.close()
            raise
        self._idle.append(connection)
        return Answer(response.status, _decoded(read), warnings_of(response.headers.get_all("Warning", ())))

    def close(self) -> None:
        """End what is kept."""
        while self._idle:
            self._idle.pop().close()

    def _taken(self) -> http.client.HTTPSConnection:
        while self._idle:
            try:
                kept = self._idle.pop()
            except IndexError:
                break
            # One that can be read from while nothing was asked has been closed by the server.
            if kept.sock and not select.select([kept.sock], [], [], 0)[0]:
                return kept
            kept.close()
        return http.client.HTTPSConnection(
            self._server.hostname or "", self._server.port, context=self._context, timeout=_TIMEOUT_SECONDS
        )


def _decoded(body: bytes) -> dict[str, Any]:
    """Return the object; text that is none, such as `ok` or `404 page not found`, as a Status."""
    try:
        read = json.loads(body)
    except ValueError:
        read = None
    return read if isinstance(read, dict) else {"kind": "Status", "message": body.decode(errors="replace").strip()}
