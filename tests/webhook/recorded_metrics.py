"""A server with the query API of Prometheus, whose answers are recorded in a file: the labels and values of each device."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from gpugate.webhook.audit.cost.gpu_metrics import Signal, Window

if TYPE_CHECKING:
    from collections.abc import Iterator

PLATFORM = Path(__file__).parents[1] / "fixtures" / "dumps" / "ml-platform"
RECORDED = PLATFORM.with_name("ml-platform-metrics.json")
_DAY = Window(86400, {})


def answer(query: str, devices: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the body for a query of the audit with the default window."""
    signal = next(signal for signal in Signal if _DAY.query(signal) == query)
    series = [
        {"metric": device["labels"], "value": [0, str(device["values"][signal.value])]}
        for device in devices
        if signal.value in device["values"]
    ]
    return {"status": "success", "data": {"resultType": "vector", "result": series}}


@contextmanager
def recorded_metrics(path: Path = RECORDED) -> Iterator[str]:
    """Serve the answers until the end; return the address."""
    devices = json.loads(path.read_text(encoding="utf-8"))

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            (query,) = parse_qs(urlsplit(self.path).query)["query"]
            body = json.dumps(answer(query, devices)).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
