"""A store that answers over a socket: the files of a directory, or a fault."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Answer = Literal["files", "nothing", "forbidden", "hang up"]


class Bucket:
    """A store at a URL, which serves a directory as a web server does: lists with links, and files.

    Attributes:
        answers: what it does with requests from now on.
        asked: the paths of all requests.
    """

    def __init__(self, folder: Path) -> None:
        self.answers: Answer = "files"
        self.asked: list[str] = []
        self._folder = folder
        self._end = threading.Event()
        bucket = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                bucket.asked.append(self.path)
                bucket._answer(self)

            do_HEAD = do_GET  # noqa: N815 -- as above

            def log_message(self, *_: object) -> None:
                """Print nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/audits"

    def _answer(self, request: BaseHTTPRequestHandler) -> None:
        if self.answers == "nothing":
            self._end.wait()
        if self.answers in {"nothing", "hang up"}:
            request.close_connection = True
            return
        path = self._folder / request.path.strip("/").removeprefix("audits").strip("/")
        if self.answers == "forbidden" or not path.exists():
            request.send_error(HTTPStatus.FORBIDDEN if self.answers == "forbidden" else HTTPStatus.NOT_FOUND)
            return
        data = path.read_bytes() if path.is_file() else b"".join(map(_link, sorted(path.iterdir())))
        request.send_response(HTTPStatus.OK)
        request.send_header("Content-Length", str(len(data)))
        request.send_header("Content-Type", "application/octet-stream" if path.is_file() else "text/html")
        request.end_headers()
        if request.command == "GET":
            request.wfile.write(data)

    @contextmanager
    def served(self) -> Iterator[Bucket]:
        """Serve until the end of the block, which also ends requests that wait."""
        thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield self
        finally:
            self._end.set()
            self._server.shutdown()
            thread.join()
            self._server.server_close()


def _link(path: Path) -> bytes:
    name = f"{path.name}/" if path.is_dir() else path.name
    return f'<a href="{name}">{name}</a>\n'.encode()
