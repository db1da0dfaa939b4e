"""Prometheus' query API, whose answers tests set."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

from cluster.ports import HOST

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_QUERY = "/api/v1/query"


class Prometheus:
    """A server that is asked for instant queries: `url`. What was not set has no result."""

    def __init__(self, port: int) -> None:
        self.url = f"http://{HOST}:{port}"
        self._answers: dict[str, Callable[[], Sequence[float]]] = {}

    def set(self, query: str, answer: Callable[[], Sequence[float]]) -> None:
        """Answer a query with what this returns each time: the value of each series."""
        self._answers[query] = answer

    def asked(self, query: str) -> dict[str, object]:
        """Return the body of an answer; as of Prometheus 3, "HTTP API", "Instant queries"."""
        values = self._answers.get(query, tuple)()
        series = [{"metric": {"pod": str(n)}, "value": [0, str(value)]} for n, value in enumerate(values)]
        return {"status": "success", "data": {"resultType": "vector", "result": series}}


@contextmanager
def running_prometheus() -> Iterator[Prometheus]:
    """Serve on a free port of loopback until the end."""
    server = ThreadingHTTPServer((HOST, 0), BaseHTTPRequestHandler)
    prometheus = Prometheus(server.server_port)
    server.RequestHandlerClass = _handler(prometheus)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield prometheus
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _handler(prometheus: Prometheus) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = urlsplit(self.path)
            if asked.path != _QUERY:
                self.send_error(404)
                return
            body = json.dumps(prometheus.asked(parse_qs(asked.query)["query"][0])).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing: each query is asked every few seconds."""

    return Handler
